"""What a feature may be in JSON."""

from typing import Annotated

from msgspec import Meta

from rbmle.service.features.limits import LIMITS

FeatureName = Annotated[str, Meta(min_length=1, max_length=LIMITS.string)]
FeatureNumber = Annotated[float, Meta(ge=-LIMITS.number, le=LIMITS.number)]
FeatureText = Annotated[str, Meta(max_length=LIMITS.string)]
FeatureValue = bool | FeatureNumber | FeatureText | list[FeatureNumber | FeatureText] | None
Features = dict[
    FeatureName, FeatureValue | dict[FeatureName, FeatureValue]
]  # by name, or by namespace and name
