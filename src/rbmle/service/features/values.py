"""What a feature may be in JSON."""

from typing import Annotated

from msgspec import Meta

from rbmle.service.features.limits import LIMITS

Name = Annotated[str, Meta(min_length=1, max_length=LIMITS.string)]
Number = Annotated[float, Meta(ge=-LIMITS.number, le=LIMITS.number)]
Text = Annotated[str, Meta(max_length=LIMITS.string)]
Value = bool | Number | Text | list[Number | Text] | None
Features = dict[Name, Value | dict[Name, Value]]  # by name, or by namespace and name
