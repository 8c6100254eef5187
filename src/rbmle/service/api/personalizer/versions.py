"""Personalizer's three versions, and where a request says which it speaks."""

from enum import Enum

from rbmle.service.api.paths import segments


class Version(Enum):
    """A dialect of Personalizer, by the name it has in a path or query."""

    V1_0 = "v1.0"
    V1_1 = "v1.1-preview.3"
    V2022 = "2022-09-01-preview"


IN_PATH = {version.value: version for version in (Version.V1_0, Version.V1_1)}


def version_of(raw_path: bytes) -> Version:
    """Return the version in which to answer a path, right or wrong."""
    parts = segments(raw_path) or []
    return IN_PATH.get(parts[1].lower(), Version.V2022) if len(parts) > 1 else Version.V2022
