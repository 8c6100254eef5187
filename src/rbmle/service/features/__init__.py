"""JSON features, different from call to call, to sparse contexts."""

from rbmle.service.features.featuriser import MOST_PRODUCTS, FeatureError, Featuriser

__all__ = ["MOST_PRODUCTS", "FeatureError", "Featuriser"]
