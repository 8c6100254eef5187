"""JSON features, different from call to call, to sparse contexts."""

from rbmle.service.features.featuriser import MOST_PRODUCTS, FeatureError, Featuriser
from rbmle.service.features.packed import Offered

__all__ = ["MOST_PRODUCTS", "FeatureError", "Featuriser", "Offered"]
