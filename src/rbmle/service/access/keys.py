"""Keys of clients: two for each scope, so that one serves while the other is changed.

A key that is given at the start stands for the primary admin key, and all others are derived from it. So
services that are given the same key share all keys, wherever their files are.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.core.files import written_whole

KEYS_FILE = "keys.json"  # in the folder of a service
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
    given: str = field(
        default="", repr=False
    )  # what the key that was given can be recognised by; it is in no file
    derived: tuple[str, ...] = ()  # the places of keys that are derived from it, as "read.primary"

    def key(self, scope: Scope, place: Place | None = None, given: str | None = None) -> str:
        """Return a key that the service takes, or raise KeysError; `given` is the one that it may know.

        Without a place, it is the secondary one where the primary one is given and not known.
        """
        if scope not in self.pairs:
            raise KeysError(
                f"there are no {scope.value} keys yet; start the service, which makes them"
            )
        is_given = bool(self.given) and scope is Scope.ADMIN and place is not Place.SECONDARY
        if is_given and given is not None and fingerprint(given) == self.given:
            return given
        if is_given and place is Place.PRIMARY:
            raise KeysError(
                "the primary admin key was given at the start and is in no file; set the same RBMLE_KEY here, "
                "or take the secondary one"
            )
        if place is None:
            place = Place.SECONDARY if is_given else Place.PRIMARY
        return str(getattr(self.pairs[scope], place.value))

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
        others = tuple(name for name in self.derived if name != _name(scope, place))
        pairs = self.pairs | {scope: replace(pair, **{place.value: _fresh()})}
        return _keys(pairs, self.given, others)

    def completed(self, given: str | None) -> "Keys":
        """Return keys of all scopes, of which those that are derived are derived from the key that is given."""
        if given is None:
            return replace(self, given="", decide=self.decide or _fresh_pair())
        derived = self.derived
        if self.decide is None:
            derived += tuple(_name(Scope.DECIDE, place) for place in Place)
        mark = fingerprint(given)
        if (self.given, self.derived) == (mark, derived):
            return self
        pairs = {scope: self.pairs.get(scope) or _fresh_pair() for scope in Scope}
        for (scope, place), key in _derived(given).items():
            if _name(scope, place) in derived:
                pairs[scope] = replace(pairs[scope], **{place.value: key})
        return _keys(pairs, mark, derived)


def _keys(pairs: Mapping[Scope, KeyPair], given: str, derived: tuple[str, ...]) -> Keys:
    return Keys(
        admin=pairs[Scope.ADMIN],
        read=pairs[Scope.READ],
        decide=pairs.get(Scope.DECIDE),
        given=given,
        derived=derived,
    )


class KeyRing:
    """The keys in a file; what is written to it holds from the next request on.

    A first key that is given stands before the primary admin key of the file, which is then no key, and in a
    new file all others are derived from it.
    """

    def __init__(self, path: Path, first: str | None = None) -> None:
        if first is not None:
            _check(first, "the first key")
        self._path = path
        self._first = first
        self._stamp: tuple[int, int, int] | None = None
        if not path.exists():
            save_keys(path, make_keys(first))
        elif (found := load_keys(path)) != (completed := found.completed(first)):
            with suppress(OSError):  # a file that nobody may write has the keys that it has
                save_keys(path, completed)
        self._read()

    def __repr__(self) -> str:
        """Return where the keys are, and not what they are."""
        return f"KeyRing({str(self._path)!r})"

    @property
    def path(self) -> Path:
        """Return the file."""
        return self._path

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
        rotate(self._path, scope, place)
        self._read()
        return self._keys

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        with suppress(OSError, KeysError):
            if _stamp(self._path) != self._stamp:
                self._read()

    def _read(self) -> None:
        stamp = _stamp(self._path)
        keys = load_keys(self._path)
        self._stamp = stamp
        if self._first is not None:
            keys = replace(keys, admin=replace(keys.admin, primary=self._first))
        self._keys, self._scopes = keys, keys.scopes()


def make_keys(given: str | None = None) -> Keys:
    """Return new keys. Unlike all other randomness, nobody can make these again, unless a key is given."""
    keys = Keys(admin=_fresh_pair(), read=_fresh_pair(), decide=_fresh_pair())
    if given is None:
        return keys
    places = [_name(scope, place) for scope in Scope for place in Place]
    places.remove(_name(Scope.ADMIN, Place.PRIMARY))
    return replace(keys, derived=tuple(places)).completed(given)


def rotate(path: Path, scope: Scope, place: Place) -> Keys:
    """Make one key new in a file, and return all; a service that runs follows at once."""
    before = load_keys(path)
    if before.given and (scope, place) == (Scope.ADMIN, Place.PRIMARY):
        raise KeysError(
            "the primary admin key was given at the start; give another one there, or rotate the secondary"
        )
    after = before.rotated(scope, place)
    save_keys(path, after)
    return after


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


def fingerprint(given: str) -> str:
    """Return what a key that was given is recognised by; it tells the key to nobody who cannot guess it."""
    return hashlib.sha256(b"rbmle first key " + given.encode()).hexdigest()


def _derived(given: str) -> dict[tuple[Scope, Place], str]:
    """Return the keys that are derived from one, slowly: who has one of them cannot guess that one."""
    secret = hashlib.scrypt(given.encode(), salt=b"rbmle keys", n=2**14, r=8, p=1)
    return {
        (scope, place): base64.urlsafe_b64encode(
            hmac.digest(secret, _name(scope, place).encode(), "sha256")
        )
        .rstrip(b"=")
        .decode()
        for scope in Scope
        for place in Place
    }


def _name(scope: Scope, place: Place) -> str:
    return f"{scope.value}.{place.value}"


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
