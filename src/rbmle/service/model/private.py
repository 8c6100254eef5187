"""Private features: a front end hashes their values with a key before anything is decided, stored or learned.

    h(p, v) = BLAKE2b-128(key; p, v),    p the path of the feature and v its value as text.

Equal values have equal hashes, so the model learns from them as from any other category. Without the key, a
value can neither be read nor be found by trying all likely ones.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from rbmle.core.errors import FeatureError, SettingError
from rbmle.service.log.records import NO_FEATURES, RawFeatures

KEY_FILE = "feature-key"  # in the folder of a service
KEY_VARIABLE = "RBMLE_FEATURE_KEY"
SHORTEST_KEY = 16
LONGEST_KEY = 64  # bytes that BLAKE2b takes
HASH_BYTES = 16
_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class FeatureHasher:
    """Hashes the values of some features; its repr does not show the key."""

    key: bytes = field(repr=False)
    paths: tuple[str, ...] = ()  # of features, such as "user.id"

    def hash(self, path: str, text: str) -> str:
        """Return the hash of a value."""
        return hashlib.blake2b(
            f"{path}\0{text}".encode(), key=self.key, digest_size=HASH_BYTES
        ).hexdigest()

    def hide(self, features: RawFeatures) -> RawFeatures:
        """Return features with the hashes of private values; raise FeatureError for invalid JSON."""
        if features is NO_FEATURES:
            return features
        try:
            groups = msgspec.json.decode(features, type=list[dict[str, Any]])
            for path in self.paths:
                for holder, name in find_features(groups, path):
                    holder[name] = self._hide_value(path, holder[name])
            return msgspec.Raw(msgspec.json.encode(groups))
        except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError) as error:
            raise FeatureError(f"features cannot be read: {error}") from None

    def digest(self, body: bytes) -> str:
        """Return the digest that recognises a repeated request, and that nobody can make without the key."""
        return hashlib.blake2b(body, key=self.key, digest_size=HASH_BYTES).hexdigest()

    def _hide_value(self, path: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._hide_value(path, part) for part in value]
        if isinstance(value, dict):
            return {name: self._hide_value(path, part) for name, part in value.items()}
        return None if value is None else self.hash(path, text_of(value))


def text_of(value: Any) -> str:
    """Return a value of a feature as text; numbers that are equal have the same text.

    >>> [text_of(value) for value in ("u7", 7, 7.0, 0.5, True)]
    ['u7', '7', '7', '0.5', 'true']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value).decode()


def find_features(
    groups: Sequence[dict[str, Any]], path: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects with a feature of this path, and its name there; names may have dots themselves.

    >>> [holder[name] for holder, name in find_features([{"user": {"id": 7}}, {"user.id": 8}], "user.id")]
    [7, 8]
    """
    for group in groups:
        for name, value in group.items():
            if name == path:
                yield group, name
            elif isinstance(value, dict) and path.startswith(f"{name}."):
                yield from find_features([value], path[len(name) + 1 :])


def key_of(folder: Path | None) -> bytes | None:
    """Return the key of a service, from the environment or its folder; None if it has none."""
    text = os.environ.get(KEY_VARIABLE)
    if text is None and folder is not None:
        with suppress(FileNotFoundError):
            text = (folder / KEY_FILE).read_text().strip()
    if text is None:
        return None
    if not SHORTEST_KEY <= len(text.encode()) <= LONGEST_KEY:
        raise SettingError(
            f"the key of private features has {len(text.encode())} bytes; set {KEY_VARIABLE} to one of "
            f"{SHORTEST_KEY} to {LONGEST_KEY}"
        )
    return text.encode()


def make_key(folder: Path) -> bytes:
    """Return the key of a service; write a random one to its folder if there is none."""
    key = key_of(folder)
    if key is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = folder / f".{KEY_FILE}.{os.getpid()}.part"
        part.touch(_OWNER_ONLY)
        part.write_text(secrets.token_hex(SHORTEST_KEY) + "\n")
        with suppress(FileExistsError):  # another process was faster
            os.link(part, folder / KEY_FILE)
        part.unlink()
        key = key_of(folder)
        assert key is not None
    return key
