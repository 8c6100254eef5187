"""Records: everything in the log, and all that can change what the service knows."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from rbmle.evaluation.sums import WeightSums
from rbmle.service.log.base import Row

# What stands as the event of records that belong to no event; clients cannot use these.
OPERATOR = ""  # models and configurations
CLOCK = "\x1f"  # time
EVALUATIONS = "\x1e"
RETENTION = "\x1c"

RawFeatures = msgspec.Raw  # a JSON array of objects, as the client sent it
NO_FEATURES: RawFeatures = msgspec.Raw(b"[]")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record; its event, time and idempotency key stand beside it in the log."""


class OfferedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action that could be chosen."""

    id: str
    features: RawFeatures = NO_FEATURES


# The digest of imported decisions of which only the probability of the chosen action is known; the other
# actions share the rest equally.
SHARED_ALIKE = "imported"

CELLS = 256  # of units, over which the variance of the holdout's lift is estimated


class Play(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was chosen in one slot, and the probability of each eligible action."""

    eligible: list[int]  # places in the list of actions
    probabilities: list[float]  # of the eligible ones, in their order
    chosen: int  # a place in the list of actions
    slot: str = ""  # empty where there is one slot only
    features: RawFeatures = NO_FEATURES  # of the slot
    baseline: int = 0  # the place of the action that would be shown without the service
    preferred: int | None = None  # what the model would have shown, if the baseline was shown


class Assignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a unit, such as a user, belongs to the holdout: decided by its digest alone.

    The unit itself is not stored. Its digest says which plays have the same one, as the plays of a user have.
    """

    share: float  # of units in the holdout
    unit: str  # a digest of 16 hexadecimal digits
    play: str = "baseline"  # what the holdout gets: baseline or uniform
    is_held: bool = False

    @staticmethod
    def of(unit: str, share: float, play: str) -> "Assignment":
        """Assign a unit; one that is held stays so if the share grows."""
        digest = blake2b(unit.encode(), digest_size=8, person=b"rbmle-holdout").hexdigest()
        is_held = int(digest[:8], 16) < share * 2**32
        return Assignment(share=share, unit=digest, play=play, is_held=is_held)

    @property
    def cell(self) -> int:
        """The cell of the unit, a number below CELLS that does not depend on whether it is held."""
        return int(self.unit[8:], 16) % CELLS


class GuardRule(msgspec.Struct, frozen=True, kw_only=True):
    """The promise of conservative mode: Σ reward ≥ (1 − α) Σ baseline at all times, with 1 − δ."""

    tolerance: float  # α
    error: float  # δ
    low: float  # the smallest reward, from which rewards are measured
    high: float


class Guarded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How conservative mode decided an event."""

    rule: GuardRule
    front: str  # the front end
    number: int  # how many costly plays it has made, this one included
    share: float = 1.0  # the probability of the baseline whatever the policy proposes
    proposed: int | None = None  # the place of what the policy proposed; None: it was not asked

    def is_costly(self, play: "Play") -> bool:
        """Return whether a play may earn less than the baseline: something else was proposed."""
        return self.share < 1 and self.proposed not in (None, play.baseline)


class Modelled(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A model with these settings starts here; it learns nothing from earlier records."""

    settings: dict[str, Any]  # of the policy and of the featuriser


class Imported(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A saved model continues here."""

    model: bytes  # as `Bandit.save` writes it


class Decided(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An answer to a rank call."""

    context: RawFeatures
    actions: Sequence[OfferedAction]
    plays: list[Play]  # one for each slot
    digest: str  # of the request: the same event with another digest is a conflict
    learned: int  # observations that the deciding model had seen
    deferred: bool = False  # not to be learned from before it is activated
    mode: str = "Online"  # the learning mode at that time
    assignment: Assignment | None = None  # None: there was no holdout
    guarded: Guarded | None = None  # None: conservative mode was off

    @property
    def is_held(self) -> bool:
        """Whether the event belongs to the holdout, which is counted and not learned."""
        return self.assignment is not None and self.assignment.is_held


class Activated(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A deferred event was shown."""


class Rewarded(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The reward of an event."""

    values: dict[str, float]  # by slot
    digest: str = ""


class Configured(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A new configuration starts here."""

    configuration: dict[str, Any]


class Ticked(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Time has passed: deadlines until now are over."""


class ClockCorrected(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The log's clock ran ahead of the real time; it goes back to the time of this record."""


class Reset(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The model starts again; it learns nothing from earlier events."""


class LogCleared(Record, frozen=True, kw_only=True, omit_defaults=True):
    """All earlier records are to be deleted; the model keeps what it has learned of them."""


class Erased(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A record was here. A fold takes no notice of it, not even of its time."""


class NamedPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy to evaluate: its settings, and `lin-ucb` or a name whose first word is that."""

    name: str
    arguments: str = ""  # key=value, with spaces between


class EvaluationAsked(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An evaluation was requested: what policies would have earned, or which features matter, in some time."""

    id: str
    name: str
    start: int  # milliseconds since the epoch
    end: int
    policies: list[NamedPolicy] = []
    is_optimizing: bool = False  # try other policies too
    is_importance: bool = False  # features are asked for, not policies


class PolicyEstimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a policy would have earned, by the IPS and SNIPS estimators."""

    name: str
    arguments: str
    source: str  # Online, Baseline, Random, Custom or OfflineExperimentation
    ips_numerator: float
    ips_denominator: float
    snips_denominator: float
    average_reward: float | None  # None: it cannot be estimated
    half_width: float | None  # of its 95 % confidence interval; None: it has none
    warnings: list[str] = []  # such as that it hardly plays what was logged
    minutes: int = 0  # the length of a window; 0: there are none
    windows: dict[int, WeightSums] = {}  # by number: the time of decisions over that length


class FeatureScore(msgspec.Struct, frozen=True, kw_only=True):
    """How much a feature matters."""

    namespace: str
    name: str
    score: float


class EvaluationDone(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The results of an evaluation, or why there are none."""

    asked: int  # the seq of what was asked
    estimates: list[PolicyEstimate] = []
    scores: list[FeatureScore] = []
    problem: str = ""

    @property
    def doubts(self) -> list[str]:
        """Return why there are no results, or what limits them."""
        warnings = [warning for estimate in self.estimates for warning in estimate.warnings]
        return [self.problem, *warnings] if self.problem else warnings


class EvaluationDeleted(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An evaluation was deleted, and is no longer shown."""

    asked: int


class PromotionAsked(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An operator wants a shadow policy to decide."""

    policy: str  # as the configuration names it


KINDS: dict[str, type[Record]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Modelled, Imported, Decided, Activated, Rewarded, Configured, Ticked, Reset),
        *(ClockCorrected, LogCleared, Erased),
        *(EvaluationAsked, EvaluationDone, EvaluationDeleted, PromotionAsked),
    )
}


def pack_features(features: list[dict[str, Any]]) -> RawFeatures:
    return msgspec.Raw(msgspec.json.encode(features))


def unpack_features(features: RawFeatures) -> list[dict[str, Any]]:
    return msgspec.json.decode(features, type=list[dict[str, Any]])


def row_of(record: Record, event: str, time: int, request: str | None = None) -> Row:
    """Return a record as a row of the log; equal records have the same bytes."""
    kind = type(record).__name__.lower()
    return Row(kind, event, request, time, msgspec.json.encode(record))


def decode_record(row: Row) -> Record:
    return msgspec.json.decode(row.payload, type=KINDS[row.kind])
