"""Keys of clients: two for each scope, so that one serves while the other is changed."""

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.core.files import written_whole

SHORTEST_KEY = 16
_OWNER_ONLY = 0o600
_KEY = re.compile(r"[!-~]+")  # what a header can carry


class KeysError(RBMLEError, ValueError):
    """Keys that cannot be read, or that anyone could read or guess."""


class Scope(Enum):
    """What a key allows."""

    READ = "read"  # to look at status, configuration, model and dashboard
    DECIDE = "decide"  # to rank, reward and activate
    ADMIN = "admin"  # both, and to change everything

    def covers(self, needed: "Scope") -> bool:
        """Return whether a key of this scope may do what needs that one."""
        return self is needed or self is Scope.ADMIN


class Place(Enum):
    """One of the two keys of a scope."""

    PRIMARY = "primary"
    SECONDARY = "secondary"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """The two keys of a scope; it does not show them."""

    primary: str = field(repr=False)
    secondary: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """All keys of a service."""

    admin: KeyPair
    read: KeyPair
    decide: KeyPair | None = None  # None: the file is older than this scope, and cannot be written

    @property
    def pairs(self) -> dict[Scope, KeyPair]:
        """Return the keys by scope."""
        pairs = {Scope.READ: self.read, Scope.DECIDE: self.decide, Scope.ADMIN: self.admin}
        return {scope: pair for scope, pair in pairs.items() if pair is not None}

    def scopes(self) -> dict[bytes, Scope]:
        """Return what each key allows, by its digest: the time of a look tells nothing of a key."""
        return {
            _digest(key): scope
            for scope, pair in self.pairs.items()
            for key in (pair.primary, pair.secondary)
        }

    def rotated(self, scope: Scope, place: Place) -> "Keys":
        """Return keys of which one is new."""
        pair = self.pairs.get(scope) or _fresh_pair()
        return replace(self, **{scope.value: replace(pair, **{place.value: _fresh()})})


class KeyRing:
    """The keys in a file; what is written to it holds from the next request on.

    A first key that is given stands before the primary admin key of the file, which is then no key.
    """

    def __init__(self, path: Path, first: str | None = None) -> None:
        if first is not None:
            _check(first, "the first key")
        self.path = path
        self._first = first
        self._stamp: tuple[int, int, int] | None = None
        if not path.exists():
            save_keys(path, make_keys())
        elif (found := load_keys(path)).decide is None:
            with suppress(OSError):  # a file that nobody may write has the keys that it has
                save_keys(path, replace(found, decide=_fresh_pair()))
        self._read()

    def __repr__(self) -> str:
        """Return where the keys are, and not what they are."""
        return f"KeyRing({str(self.path)!r})"

    def scope_of(self, presented: str) -> Scope | None:
        """Return what a key allows now; None for nothing."""
        self._refresh()
        return self._scopes.get(_digest(presented))

    def digests(self, needed: Scope) -> list[bytes]:
        """Return the digests of all keys that allow something now, for signatures made with a key."""
        self._refresh()
        return [digest for digest, scope in self._scopes.items() if scope.covers(needed)]

    @property
    def keys(self) -> Keys:
        """Return the keys as they are in the file; while it cannot be read, as they were.

        A file that is deleted or spoilt locks nobody out, and lets nobody in.
        """
        self._refresh()
        return self._keys

    def rotate(self, scope: Scope, place: Place) -> Keys:
        """Make one key new, in the file first, and return all."""
        if self._first is not None and (scope, place) == (Scope.ADMIN, Place.PRIMARY):
            raise KeysError(
                "the primary admin key was given at the start; give another one there, or rotate the secondary"
            )
        save_keys(self.path, load_keys(self.path).rotated(scope, place))
        self._read()
        return self._keys

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        with suppress(OSError, KeysError):
            if _stamp(self.path) != self._stamp:
                self._read()

    def _read(self) -> None:
        stamp = _stamp(self.path)
        keys = load_keys(self.path)
        self._stamp = stamp
        if self._first is not None:
            keys = replace(keys, admin=replace(keys.admin, primary=self._first))
        self._keys, self._scopes = keys, keys.scopes()


def make_keys() -> Keys:
    """Return new keys; unlike all other randomness, nobody can make these again."""
    return Keys(admin=_fresh_pair(), read=_fresh_pair(), decide=_fresh_pair())


def save_keys(path: Path, keys: Keys) -> None:
    """Write keys, whole or not at all, for their owner's eyes."""
    with written_whole(path, mode=_OWNER_ONLY) as file:
        file.write(msgspec.json.format(msgspec.json.encode(keys)) + b"\n")


def load_keys(path: Path) -> Keys:
    """Return the keys in a file, or raise a KeysError that says why they are none."""
    with open(path, "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & ~_OWNER_ONLY:
            raise KeysError(
                f"{path} can be read by others (its mode is {mode:o}); "
                f"say chmod 600 {path}, and rotate the keys"
            )
        text = file.read()
    try:
        keys = msgspec.json.decode(text, type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise KeysError(
            f"{path} has no keys that can be read; delete it, and new ones are made at the next start"
        ) from None
    for scope, pair in keys.pairs.items():
        _check(pair.primary, f"the primary {scope.value} key in {path}")
        _check(pair.secondary, f"the secondary {scope.value} key in {path}")
    return keys


def _fresh_pair() -> KeyPair:
    return KeyPair(primary=_fresh(), secondary=_fresh())


def _fresh() -> str:
    return secrets.token_urlsafe(32)


def _digest(key: str) -> bytes:
    """Return what is compared: as long for a short key as for a long one."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def _check(key: str, what: str) -> None:
    if len(key) < SHORTEST_KEY or not _KEY.fullmatch(key):
        raise KeysError(
            f"{what} has {len(key)} characters; it needs at least {SHORTEST_KEY}, "
            "all of them printable ASCII without spaces"
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino, found.st_size
