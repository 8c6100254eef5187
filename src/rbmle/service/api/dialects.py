"""The dialects that are spoken here, by the first part of a path."""

from rbmle.service.api.native.dialect import Native
from rbmle.service.api.personalizer.dialect import Personalizer

Wire = Native | Personalizer

NATIVE = Native()
_WIRES: dict[bytes, Wire] = {b"v1": NATIVE, b"personalizer": Personalizer()}


def wire_of(raw_path: bytes) -> Wire | None:
    """Return the dialect of a path; None for a page."""
    return _WIRES.get(raw_path.lstrip(b"/").partition(b"/")[0].lower())
