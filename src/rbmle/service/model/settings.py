"""What decides and learns in the service: a policy, and how JSON features become its contexts."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from rbmle.core.bandit import Bandit
from rbmle.core.encoding import Encoded
from rbmle.core.errors import FileError, SettingError
from rbmle.core.policy import Policy, limits_of
from rbmle.core.saving import decode, encode, write
from rbmle.core.types import Contexts, Encoding
from rbmle.features import Hashing
from rbmle.features.json_rows import Offered
from rbmle.models.history import Memory, usual_memory
from rbmle.models.linear import GLM, Ridge
from rbmle.policies.registry import make_default, name_of, parse_policy, policy_with
from rbmle.policies.settings import differences
from rbmle.service.log.base import Log
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    NO_FEATURES,
    OPERATOR,
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    RawFeatures,
    decode_record,
    row_of,
)
from rbmle.service.model.features import contexts_of
from rbmle.service.settings import BITS, Aggregation, ServiceConfiguration

DEFAULT_POLICY = "neural-rbmle-pc"
# Tuned on benchmarks/worlds: clicks are noisy, and more steps overfit them. θ̂ is the last point of the walk, so
# the cost of a fit depends on its samples, and not on the model; W_1 starts as if there were 4,096 slots.
DEFAULT_SETTINGS = (
    "bias=3e-5 model.ridge=0.001 "
    "model.network=Network(width=32,fan_in=4096,start='standard') "
    "model.training=Replay(steps=20,rate=0.02,average=0)"
)
BITS_OF_AVERAGES, BITS_OF_RIDGES = 12, 10  # of features, where a fit costs more; else BITS
MEMORY = Memory(keep="window", size=20_000)  # so that the memory of a service is bounded
MOST_WEIGHTS = 2**26  # in a layer
MOST_RIDGE, QUICK_RIDGE = 2**13, 2**10  # slots of features of a policy with an exact V
RIDGE_PER_SECOND = 1e9  # entries of V that are updated, roughly
SHARPNESS = 100.0
FITS_PER_SECOND = 400  # of some 150 µs each: 6 % of a core
DRAWS = 128  # that estimate the probabilities of a policy whose index is random


def bound_memory(policy: Any) -> Any:
    """Return a policy with the memory of a service, if its own memory is a default or has no bound."""
    if getattr(getattr(policy, "model", None), "memory", None) not in (Memory(), usual_memory()):
        return policy
    return replace(policy, model=replace(policy.model, memory=MEMORY))


def service_policy(name: str = DEFAULT_POLICY, settings: str = "") -> Policy[Any]:
    """Return a policy of a service; settings change the tuned defaults one by one."""
    tuned = DEFAULT_SETTINGS if name == DEFAULT_POLICY else ""
    return bound_memory(policy_with(name, f"{tuned} {settings}"))


def default_policy() -> Policy[Any]:
    return service_policy()


def settings_in(policy: Policy[Any]) -> str:
    """Return the settings that `service_policy` makes a policy of, besides its name.

    >>> settings_in(service_policy("neural-rbmle-pc", "model.alarm=0"))
    'model.alarm=0.0'
    """
    is_default = name_of(policy) == DEFAULT_POLICY
    usual = default_policy() if is_default else bound_memory(make_default(type(policy)))
    return " ".join(differences(policy, usual))


def _has_matrix(policy: Any) -> bool:
    model = getattr(policy, "model", None)
    return isinstance(model, Ridge | GLM) and model.precision == "full"


def default_featuriser(policy: Any = None) -> Hashing:
    """Return the default featuriser of a policy, or of the default policy.

    It has fewer slots if the cost of learning grows with them: a policy that averages its walk updates every
    weight that was ever changed, and a linear or generalised linear one slots × slots numbers, unless its
    precision is diagonal.
    """
    if _has_matrix(policy):
        return Hashing(bits=BITS_OF_RIDGES, is_scaled=True)
    model = getattr(default_policy() if policy is None else policy, "model", None)
    usual = 0.0 if isinstance(model, Ridge | GLM) else 1.0
    is_averaged = getattr(getattr(model, "training", None), "average", usual) > 0
    return Hashing(bits=BITS_OF_AVERAGES if is_averaged else BITS, is_scaled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The settings of a model, which is determined by them and the log."""

    policy: Policy[Any] = field(default_factory=default_policy)
    featuriser: Hashing = field(default_factory=default_featuriser)
    seed: int = 0
    fits_per_second: int = FITS_PER_SECOND  # by the log's clock; others are only remembered
    sharpness: float = SHARPNESS  # γ = sharpness · √rounds, see `inverse_gaps`; 0: by ε alone

    def __post_init__(self) -> None:
        if type(self.fits_per_second) is not int or self.fits_per_second < 1:
            raise SettingError(
                f"`fits_per_second` must be an integer of at least 1, got {self.fits_per_second!r}"
            )
        if not 0 <= self.sharpness < float("inf"):
            raise SettingError(
                f"`sharpness` must be a finite number, 0 or more, got {self.sharpness!r}"
            )
        slots = self.featuriser.size
        if _has_matrix(self.policy) and slots > MOST_RIDGE:
            raise SettingError(
                f"{type(self.policy).__name__} keeps a matrix of {slots:,} × {slots:,} numbers for "
                f"{slots:,} slots of features, which no machine can learn from; use at most "
                f"{MOST_RIDGE.bit_length() - 1} bits, or model.precision=diagonal, or a policy with a network"
            )
        network = getattr(getattr(self.policy, "model", None), "network", None)
        units = getattr(network, "width", 0)
        if units * max(self.featuriser.size, units) > MOST_WEIGHTS:
            raise SettingError(
                f"a network of {units:,} units over {self.featuriser.size:,} slots of features has more "
                f"than {MOST_WEIGHTS:,} weights in a layer; use fewer units, or fewer bits"
            )

    @property
    def notice(self) -> str | None:
        """Return a warning about the cost of these settings, if there is one."""
        slots = self.featuriser.size
        if not _has_matrix(self.policy) or slots <= QUICK_RIDGE:
            return None
        per_second = max(1, round(RIDGE_PER_SECOND / slots**2))
        return (
            f"{type(self.policy).__name__} over {slots:,} slots of features updates a matrix of "
            f"{slots:,} × {slots:,} numbers for each observation, so it learns about {per_second:,} a second "
            f"and falls behind if more come; use {QUICK_RIDGE.bit_length() - 1} bits, or "
            "model.precision=diagonal"
        )

    def with_policy(self, policy: Policy[Any]) -> Self:
        """Return the settings with another policy; default bits change if one of the two keeps a matrix."""
        featuriser = self.featuriser
        is_usual = featuriser.bits == default_featuriser(self.policy).bits
        if is_usual and _has_matrix(policy) != _has_matrix(self.policy):
            featuriser = replace(featuriser, bits=default_featuriser(policy).bits)
        return replace(self, policy=policy, featuriser=featuriser)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": encode(self.policy),
            "featuriser": asdict(self.featuriser),
            "seed": self.seed,
            "fits_per_second": self.fits_per_second,
            "sharpness": self.sharpness,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the settings that `to_json` wrote; raise SettingError for a class of another package."""
        try:
            policy = decode(value["policy"])
        except LookupError as error:
            raise SettingError(
                f"the log has a model with {error}, which is not part of this rbmle; use the rbmle that "
                "wrote it"
            ) from None
        featuriser = dict(value["featuriser"])
        if featuriser["interactions"] is not None:
            featuriser["interactions"] = tuple(map(tuple, featuriser["interactions"]))
        return cls(
            policy=policy,
            featuriser=Hashing(**featuriser),
            seed=value["seed"],
            fits_per_second=value.get("fits_per_second", FITS_PER_SECOND),
            sharpness=value.get("sharpness", 0.0),
        )

    def start(self) -> Bandit:
        return Bandit(
            self.policy,
            features=Encoded(
                self.featuriser if self.featuriser.is_scaled else self.featuriser.size
            ),
            seed=self.seed,
            encoding=Encoding.PER_ARM,
            draws=DRAWS,
        )

    def sharpness_of(self, bandit: Bandit) -> float:
        """Return γ, the weight of gaps between indices, by what the model has learned since a drift alarm."""
        known = getattr(bandit.state, "round", bandit.round)
        return self.sharpness * (known + 1) ** 0.5

    def contexts(self, offers: Sequence[Offered], bandit: Bandit) -> Contexts:
        """Return one context for each action of each call, as a bandit sees it; raise FeatureError."""
        return contexts_of(self.featuriser, offers, bandit.learner.scales)

    def chosen_contexts(self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit) -> Contexts:
        """Return the context of the chosen action of each play, for a bandit to learn.

        The scales of the bandit are updated at once, in the order of the plays, each before it is scaled.
        """
        offers = [
            offer_of(decided.context, play.features, [decided.actions[play.chosen]])
            for decided, play in plays
        ]
        return contexts_of(self.featuriser, offers, bandit.learner.scales, is_learning=True)

    def warm_up(self, *, is_learning: bool = True) -> None:
        """Decide and learn once with a throwaway bandit, so that no client waits for a compiler.

        Raise SettingError if the policy fails.
        """
        try:
            bandit = self.start()
            offers = [OfferedAction(id=""), OfferedAction(id="-")]
            contexts = self.contexts([offer_of(NO_FEATURES, NO_FEATURES, offers)], bandit)
            bandit.choose_many(contexts, [len(offers)], [""], 0.5)
            decision = bandit.decide(contexts, id="", floor=0.5)
            if is_learning:
                bandit.learn(decision, 0.0)
        except Exception as error:  # a setting of the wrong type can lead to any error
            raise SettingError(
                f"the policy {self.policy!r} cannot decide and learn: {type(error).__name__} {error}"
            ) from error

    def load(self, content: bytes) -> Bandit:
        """Return a saved bandit; raise FileError if it is not of this kind."""
        bandit = Bandit.load(io.BytesIO(content))
        if (bandit.learner.scales is not None) != self.featuriser.is_scaled:
            raise FileError(
                "the features of the model are scaled, and those of this service are not, or the other way "
                "round; use a model of a service with the same featuriser"
            )
        wanted = (self.featuriser.size, Encoding.PER_ARM, None)
        if (bandit.features, bandit.encoding, bandit.arms) != wanted:
            raise FileError(
                f"the model has {bandit.features} features in the {bandit.encoding} encoding, but this "
                f"service has {wanted[0]} per arm; use a model of a service with the same featuriser"
            )
        if encode(bandit.policy) != encode(self.policy):
            raise FileError(
                f"the model is of {bandit.policy!r}, but this service has {self.policy!r}; choose that "
                "policy first"
            )
        return bandit


def offer_of(context: RawFeatures, slot: RawFeatures, actions: Sequence[OfferedAction]) -> Offered:
    """Return a call: the features of the context and of the slot, and the actions."""
    shared = [context] if slot is NO_FEATURES else [context, slot]
    return Offered(shared, [a.id for a in actions], [a.features for a in actions])


def save_bytes(bandit: Bandit) -> bytes:
    """Return the bytes that `Bandit.save` writes."""
    file = io.BytesIO()
    write(bandit, file)
    return file.getvalue()


LOWEST, HIGHEST = -1.0, 1.0  # reward that any client may send


def reward_range(policy: Policy[Any]) -> tuple[float, float]:
    """Return the smallest and the largest reward that a service with this policy accepts.

    >>> from rbmle import NeuFastCB, NeuralUCB
    >>> reward_range(NeuralUCB()), reward_range(NeuFastCB())
    ((-1.0, 1.0), (0.0, 1.0))
    """
    low, high = limits_of(policy)
    return max(low, LOWEST), min(high, HIGHEST)


def parse_shadow(name: str) -> Policy[Any]:
    """Return the policy of a shadow, such as `lin-ucb` or `neural-ucb:exploration=0.5`."""
    specification = parse_policy(name)
    return service_policy(specification.name, " ".join(specification.settings))


def check_rewards(policy: Policy[Any], configuration: ServiceConfiguration) -> None:
    """Raise SettingError if events could have rewards that the policy, or a shadow, cannot learn."""
    for shadow in configuration.shadows:
        check_rewards(parse_shadow(shadow), replace(configuration, shadows=()))
    low, high = reward_range(policy)
    if (low, high) == (LOWEST, HIGHEST):
        return
    name, default = type(policy).__name__, configuration.default_reward
    takes = f"the likelihood of {name} takes rewards from {low:g} to {high:g}"
    remedy = "or a policy with model.likelihood=gaussian"
    if not low <= default <= high:
        raise SettingError(
            f"`default_reward` is {default:g}, but {takes}; use a default in that range, {remedy}"
        )
    if configuration.reward_aggregation is Aggregation.SUM:
        raise SettingError(
            f"`reward_aggregation` is 'sum', but {takes}, and sums may be beyond; use 'earliest', {remedy}"
        )


@dataclass(frozen=True, slots=True)
class WrittenSettings:
    """The last settings in the log."""

    model: ModelSettings | None = None
    configuration: ServiceConfiguration | None = None
    seq: int = 0  # of the last record that changed the model
    configured: int = 0  # the seq of the configuration's record


def settings_of(log: Log) -> WrittenSettings:
    written = WrittenSettings()
    for stored in log.of_event(OPERATOR):
        match decode_record(stored.row):
            case Modelled(settings=settings):
                model = ModelSettings.from_json(settings)
                written = replace(written, model=model, seq=stored.seq)
            case Configured(configuration=configuration):
                after = ServiceConfiguration.from_record(configuration)
                written = replace(written, configuration=after, configured=stored.seq)
            case _:
                written = replace(written, seq=stored.seq)
    return written


def change_configuration(log: Log, changes: Mapping[str, Any]) -> None:
    """Write a configuration with some JSON values changed.

    Raise ConfigurationError or SettingError for a change that is not possible, and DuplicateRequest if somebody
    else changed it at the same moment.
    """
    written = settings_of(log)
    if written.model is None or written.configuration is None:
        raise SettingError("the log is empty; start the service first")
    after = written.configuration.with_changes(changes)
    check_rewards(written.model.policy, after)
    record = Configured(configuration=after.to_json())
    request = f"configuration:{written.configured}"
    log.append([row_of(record, OPERATOR, clock.now(), request)])
