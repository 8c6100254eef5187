"""The sha256 of a file."""

import hashlib
from pathlib import Path

from rbmle.datasets.errors import DatasetError


def sha256(path: Path) -> str:
    """Return the checksum of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read ({error.strerror}); check its permissions"
        ) from error
