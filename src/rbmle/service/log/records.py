"""What the log remembers: all that ever changes what the service knows, and nothing else."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rbmle.evaluation.weight_sums import WeightSums

OPERATOR = ""  # the event of records that are of none: models and configurations
CLOCK = "\x1f"  # the event of records of time; no client can have it
EVALUATIONS = "\x1e"  # the event of records of evaluations

RawFeatures = msgspec.Raw  # a JSON array of objects, as the client sent it
NO_FEATURES: RawFeatures = msgspec.Raw(b"[]")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record; its event, time and idempotency key stand beside it in the log."""


class OfferedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action that could be chosen."""

    id: str
    features: RawFeatures = NO_FEATURES


# The digest of imported decisions of which only the probability of the chosen action is known: the others
# share the rest alike.
SHARED_ALIKE = "imported"


class Play(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was chosen in one slot, and with which probability each eligible action would have been."""

    eligible: list[int]  # places in the list of actions
    probabilities: list[float]  # of the eligible ones, in their order
    chosen: int  # a place in the list of actions
    slot: str = ""  # empty where there is one slot only
    features: RawFeatures = NO_FEATURES  # of the slot
    baseline: int = 0  # the place of the action that would be shown without us
    preferred: int | None = (
        None  # what the model would have shown, where the baseline was; else None
    )


class Modelled(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A model of this kind starts here, before any data; what went before is not learned by it."""

    settings: dict[str, Any]  # of the policy and of the featuriser


class Imported(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A model that was learned elsewhere, or before, goes on here."""

    model: bytes  # as `Bandit.save` writes it


class Decided(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An answer to a rank call."""

    context: RawFeatures
    actions: Sequence[OfferedAction]
    plays: list[Play]  # one for each slot
    digest: str  # of the request: the same event with another one is a conflict
    learned: int  # observations that the deciding model had seen
    deferred: bool = False  # not to be learned from before it is activated
    mode: str = "Online"  # the learning mode at that time


class Activated(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A deferred event was shown."""


class Rewarded(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What an event was worth."""

    values: dict[str, float]  # by slot
    digest: str = ""


class Configured(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A new configuration, from here on."""

    configuration: dict[str, Any]


class Ticked(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Time has passed: what waited until now is over."""


class ClockCorrected(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The log's clock ran ahead of the real time; it goes back to the time of this record."""


class Reset(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The model starts anew; events before it are not learned from any more."""


class NamedPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy that is to be judged: `lin-ucb`, or a name that begins so, and its settings."""

    name: str
    arguments: str = ""  # key=value, with spaces between


class EvaluationAsked(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody wants to know what policies would have earned, or which features matter, in some time."""

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
    average_reward: float | None  # None: the log does not tell
    half_width: float | None  # of its 95 % confidence interval; None: it has none
    warnings: list[str] = []  # what must be known of it, as that it hardly plays what the log has
    minutes: int = 0  # the length of a window; 0: there are none
    windows: dict[int, WeightSums] = {}  # by number: the time of decisions over that length


class FeatureScore(msgspec.Struct, frozen=True, kw_only=True):
    """How much a feature matters."""

    namespace: str
    name: str
    score: float


class EvaluationDone(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was found, or why nothing was."""

    asked: int  # the seq of what was asked
    estimates: list[PolicyEstimate] = []
    scores: list[FeatureScore] = []
    problem: str = ""

    @property
    def doubts(self) -> list[str]:
        """Return why nothing was found, or what must be known of it."""
        warnings = [warning for one in self.estimates for warning in one.warnings]
        return [self.problem, *warnings] if self.problem else warnings


class EvaluationDeleted(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked and found is not shown any more."""

    asked: int


KINDS: dict[str, type[Record]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Modelled, Imported, Decided, Activated, Rewarded, Configured, Ticked, Reset),
        ClockCorrected,
        *(EvaluationAsked, EvaluationDone, EvaluationDeleted),
    )
}


def packed(features: list[dict[str, Any]]) -> RawFeatures:
    """Return features as a client would send them."""
    return msgspec.Raw(msgspec.json.encode(features))


def unpacked(features: RawFeatures) -> list[dict[str, Any]]:
    """Return features as Python has them."""
    return msgspec.json.decode(features, type=list[dict[str, Any]])


def kind_of(record: Record) -> str:
    """Return the name under which a record is stored."""
    return type(record).__name__.lower()


def encoded(record: Record) -> bytes:
    """Return a record as JSON, the same bytes for the same record."""
    return msgspec.json.encode(record)


def decoded(kind: str, payload: bytes) -> Record:
    """Return the record that `encoded` wrote."""
    return msgspec.json.decode(payload, type=KINDS[kind])
