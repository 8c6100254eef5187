"""Features as the JSON that a client sent; what was read before is remembered by its bytes.

The actions of a page are the same for all who look at it, so most of what comes was there before.
"""

from functools import lru_cache
from typing import Any

import msgspec

from rbmle.service.features.reading import FeatureError, Group, read
from rbmle.service.features.rows import Pairs, interactions_of
from rbmle.service.requests import Features

_REMEMBERED = 2**15  # groups, and as many from before
_LONGEST = 500  # bytes of JSON that are remembered; so what is remembered stays below 100 MB
_decoder = msgspec.json.Decoder(list[Features])


class Groups(dict[tuple[str | None, bytes], Group]):
    """The features of (id, JSON array), where an id is a feature unless it is None; raises FeatureError.

    A dict, so that what is known costs one lookup. When it is full it starts anew, and what it had is
    kept for one time more: so what comes again and again stays, and what came once does not.
    """

    __slots__ = ("before", "codes", "seed")

    def __init__(self, seed: int, pairs: Pairs | None) -> None:
        self.seed = seed
        self.codes = interactions_of(pairs).codes
        self.before: dict[tuple[str | None, bytes], Group] = {}

    def __missing__(self, sent: tuple[str | None, bytes]) -> Group:
        """Return features that did not come lately, and remember them unless they are long."""
        found = self.before.get(sent) or self.read(*sent)
        if len(sent[1]) <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.before = dict(self)
                self.clear()
            self[sent] = found
        return found

    def read(self, id: str | None, json: bytes) -> Group:
        """Return features without remembering them."""
        try:
            features: Any = _decoder.decode(json)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FeatureError(f"features cannot be read: {error}") from None
        return read(features, id, self.seed, self.codes)


@lru_cache(maxsize=8)
def groups_of(seed: int, pairs: Pairs | None) -> Groups:
    """Return what was read with these settings, which all featurisers that have them share."""
    return Groups(seed, pairs)
