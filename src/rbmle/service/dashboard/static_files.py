"""Scripts and styles, read once; a browser asks whether its copy is still the newest."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent / "static"
TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
        ".txt": "text/plain; charset=utf-8",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str


def load_files() -> dict[str, StaticFile]:
    """Return all files by name; no other path can be asked for."""
    return {
        path.name: _file(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(FOLDER.iterdir())
        if path.suffix in TYPES
    }


def _file(content: bytes, media_type: str) -> StaticFile:
    digest = hashlib.sha256(content).hexdigest()[:32]
    return StaticFile(content=content, media_type=media_type, etag=f'"{digest}"')
