"""API keys: two for each scope, so that one can be rotated while clients use the other.

If the service is started with a key (RBMLE_KEY), that is the primary admin key, and the others are derived from
it: services that are started with the same key share all keys, wherever their files are.
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
_KEY = re.compile(r"[!-~]+")  # what fits in a header


class KeysError(RBMLEError, ValueError):
    """The keys cannot be read, or others could read or guess them."""


class Scope(Enum):
    """What a key allows."""

    READ = "read"  # status, configuration, model and dashboard
    DECIDE = "decide"  # rank, reward and activate
    ADMIN = "admin"  # both, and all changes

    def covers(self, needed: "Scope") -> bool:
        """Return whether a key of this scope suffices where another one is needed."""
        return self is needed or self is Scope.ADMIN


class Place(Enum):
    """One of the two keys of a scope."""

    PRIMARY = "primary"
    SECONDARY = "secondary"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """The two keys of a scope; its repr does not show them."""

    primary: str = field(repr=False)
    secondary: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """All keys of a service."""

    admin: KeyPair
    read: KeyPair
    decide: KeyPair | None = None  # None: a read-only file from before there was this scope
    given: str = field(default="", repr=False)  # fingerprint of the key of the start, if any
    derived: tuple[str, ...] = ()  # names of keys derived from it, as "read.primary"

    def key(self, scope: Scope, place: Place | None = None, first: str | None = None) -> str:
        """Return a key that the service accepts, or raise KeysError; `first` may be the key of its start.

        Without a place, return the primary key, or the secondary one where the primary one is not known.
        """
        if scope not in self.pairs:
            raise KeysError(
                f"there are no {scope.value} keys yet; start the service, which makes them"
            )
        is_given = bool(self.given) and scope is Scope.ADMIN and place is not Place.SECONDARY
        if is_given and first is not None and fingerprint(first) == self.given:
            return first
        if is_given and place is Place.PRIMARY:
            raise KeysError(
                "the service was started with its primary admin key, which is not in the file; set the same "
                "RBMLE_KEY here, or use the secondary key"
            )
        if place is None:
            place = Place.SECONDARY if is_given else Place.PRIMARY
        return str(getattr(self.pairs[scope], place.value))

    @property
    def pairs(self) -> dict[Scope, KeyPair]:
        """The keys by scope."""
        pairs = {Scope.READ: self.read, Scope.DECIDE: self.decide, Scope.ADMIN: self.admin}
        return {scope: pair for scope, pair in pairs.items() if pair is not None}

    def scopes(self) -> dict[bytes, Scope]:
        """Return the scope of each key by digest, so that the time of a lookup says nothing about a key."""
        return {
            _digest(key): scope
            for scope, pair in self.pairs.items()
            for key in (pair.primary, pair.secondary)
        }

    def with_new(self, scope: Scope, place: Place) -> "Keys":
        """Return the same keys with a new one in this place."""
        pair = self.pairs.get(scope) or _new_pair()
        derived = tuple(name for name in self.derived if name != _name(scope, place))
        return self._with({scope: replace(pair, **{place.value: _new_key()})}, self.given, derived)

    def complete(self, first: str | None) -> "Keys":
        """Return keys of all scopes, where those that are derived are derived from the first key."""
        if first is None:
            return replace(self, given="", decide=self.decide or _new_pair())
        derived = self.derived
        if self.decide is None:
            derived += tuple(_name(Scope.DECIDE, place) for place in Place)
        if (self.given, self.derived) == (fingerprint(first), derived):
            return self
        pairs = {scope: self.pairs.get(scope) or _new_pair() for scope in Scope}
        for (scope, place), key in _derive(first).items():
            if _name(scope, place) in derived:
                pairs[scope] = replace(pairs[scope], **{place.value: key})
        return self._with(pairs, fingerprint(first), derived)

    def _with(self, pairs: Mapping[Scope, KeyPair], mark: str, derived: tuple[str, ...]) -> "Keys":
        changed = {scope.value: pair for scope, pair in pairs.items()}
        return replace(self, given=mark, derived=derived, **changed)


class KeyRing:
    """The keys in a file; changes of the file hold from the next request on.

    A first key replaces the primary admin key of the file. In a new file, all other keys are derived from it.
    """

    def __init__(self, path: Path, first: str | None = None) -> None:
        if first is not None:
            _check(first, "the first key")
        self.path = path
        self._first = first
        self._stamp: tuple[int, int, int] | None = None
        if not path.exists():
            save_keys(path, make_keys(first))
        elif (known := load_keys(path)) != (complete := known.complete(first)):
            with suppress(OSError):  # a read-only file keeps the keys that it has
                save_keys(path, complete)
        self._read()

    def __repr__(self) -> str:
        return f"KeyRing({str(self.path)!r})"

    def scope_of(self, presented: str) -> Scope | None:
        """Return the scope of a key; None if it is not one of ours."""
        self._refresh()
        return self._scopes.get(_digest(presented))

    def digests(self, needed: Scope) -> list[bytes]:
        """Return the digests of all keys with a scope, to check what was signed with a key."""
        self._refresh()
        return [digest for digest, scope in self._scopes.items() if scope.covers(needed)]

    @property
    def keys(self) -> Keys:
        """The keys of the file, or while it is missing or damaged, the last ones that were read."""
        self._refresh()
        return self._keys

    def rotate(self, scope: Scope, place: Place) -> Keys:
        """Replace one key by a new one in the file, and return all keys."""
        rotate(self.path, scope, place)
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


def make_keys(first: str | None = None) -> Keys:
    """Return new random keys, or reproducible ones that are derived from a first key."""
    keys = Keys(admin=_new_pair(), read=_new_pair(), decide=_new_pair())
    if first is None:
        return keys
    places = [_name(scope, place) for scope in Scope for place in Place]
    places.remove(_name(Scope.ADMIN, Place.PRIMARY))
    return replace(keys, derived=tuple(places)).complete(first)


def rotate(path: Path, scope: Scope, place: Place) -> Keys:
    """Replace one key by a new one in a file, and return all keys; a running service follows at once."""
    before = load_keys(path)
    if before.given and (scope, place) == (Scope.ADMIN, Place.PRIMARY):
        raise KeysError(
            "the primary admin key was given at the start of the service; start it with another one, or rotate "
            "the secondary key"
        )
    after = before.with_new(scope, place)
    save_keys(path, after)
    return after


def save_keys(path: Path, keys: Keys) -> None:
    """Write keys to a file that only its owner can read, completely or not at all."""
    with written_whole(path, mode=_OWNER_ONLY) as file:
        file.write(msgspec.json.format(msgspec.json.encode(keys)) + b"\n")


def load_keys(path: Path) -> Keys:
    """Return the keys in a file; raise KeysError if it is damaged, or others can read it."""
    with open(path, "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & ~_OWNER_ONLY:
            raise KeysError(
                f"{path} can be read by others (its mode is {mode:o}); "
                f"run chmod 600 {path}, and rotate the keys"
            )
        text = file.read()
    try:
        keys = msgspec.json.decode(text, type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise KeysError(
            f"{path} has no keys that can be read; delete it, and the next start makes new ones"
        ) from None
    for scope, pair in keys.pairs.items():
        _check(pair.primary, f"the primary {scope.value} key in {path}")
        _check(pair.secondary, f"the secondary {scope.value} key in {path}")
    return keys


def fingerprint(key: str) -> str:
    """Return a digest that identifies a key without revealing it."""
    return hashlib.sha256(b"rbmle first key " + key.encode()).hexdigest()


def _derive(first: str) -> dict[tuple[Scope, Place], str]:
    """Derive all keys from one, slowly, so that it cannot be guessed from a derived key."""
    secret = hashlib.scrypt(first.encode(), salt=b"rbmle keys", n=2**14, r=8, p=1)
    keys = {}
    for scope in Scope:
        for place in Place:
            digest = hmac.digest(secret, _name(scope, place).encode(), "sha256")
            keys[scope, place] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return keys


def _name(scope: Scope, place: Place) -> str:
    return f"{scope.value}.{place.value}"


def _new_pair() -> KeyPair:
    return KeyPair(primary=_new_key(), secondary=_new_key())


def _new_key() -> str:
    return secrets.token_urlsafe(32)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def _check(key: str, what: str) -> None:
    if len(key) < SHORTEST_KEY or not _KEY.fullmatch(key):
        raise KeysError(
            f"{what} has {len(key)} characters; it needs at least {SHORTEST_KEY}, "
            "all of them printable ASCII without spaces"
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_ino, status.st_size
