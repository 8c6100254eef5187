"""What decides and learns in the service: a policy, and how JSON features become its contexts."""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from rbmle.core.bandit import Bandit
from rbmle.core.encoding import Encoded
from rbmle.core.errors import FileError, SettingError
from rbmle.core.policy import Policy
from rbmle.core.saving import decode, encode, write
from rbmle.core.types import Contexts, Encoding
from rbmle.features import Hashing
from rbmle.features.json_rows import Offered
from rbmle.models.generalised_linear import GLM
from rbmle.models.history import Memory, usual_memory
from rbmle.models.ridge import Ridge
from rbmle.policies.outside import made
from rbmle.policies.settings import differences
from rbmle.policies.specification import name_of, policy_with
from rbmle.service.features.offered import contexts_of
from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play, RawFeatures

DEFAULT_POLICY = "neural-rbmle-pc"
# By the worlds of benchmarks/worlds: clicks are noisy, and more steps learn them by heart. θ̂ is the walk's last
# point, so a fit costs what its samples have, and not what the model has; W_1 starts as if slots were 4,096.
DEFAULT_SETTINGS = (
    "bias=3e-5 model.ridge=0.001 "
    "model.network=Network(width=32,fan_in=4096,start='standard') "
    "model.training=Replay(steps=20,rate=0.02,average=0)"
)
BITS, BITS_OF_AVERAGES, BITS_OF_RIDGES = 16, 12, 10  # of features, by what a fit costs
MEMORY = Memory(keep="window", size=20_000)  # so that a service can run for ever
MOST_WEIGHTS = 2**26  # in a layer
MOST_RIDGE, QUICK_RIDGE = 2**13, 2**10  # slots of features of a policy with an exact V
RIDGE_PER_SECOND = 1e9  # entries of V that are passed over, roughly
SHARPNESS = 100.0
FITS_PER_SECOND = 400  # of some 150 µs each: 6 % of a core
DRAWS = 128  # that estimate the probabilities of a policy whose index is random


def bounded(policy: Any) -> Any:
    """Return a policy that remembers as much as a service does, if its memory is a default, or has no bound."""
    if getattr(getattr(policy, "model", None), "memory", None) not in (Memory(), usual_memory()):
        return policy
    return replace(policy, model=replace(policy.model, memory=MEMORY))


def service_policy(name: str = DEFAULT_POLICY, settings: str = "") -> Policy[Any]:
    """Return a policy as a service has it: settings change the tuned default, and nothing else of it."""
    tuned = DEFAULT_SETTINGS if name == DEFAULT_POLICY else ""
    return bounded(policy_with(name, f"{tuned} {settings}"))


def default_policy() -> Policy[Any]:
    """Return the policy of a service that was told nothing."""
    return service_policy()


def settings_in(policy: Policy[Any]) -> str:
    """Return the settings that `service_policy` makes a policy of, besides its name.

    >>> settings_in(service_policy("neural-rbmle-pc", "model.alarm=0"))
    'model.alarm=0.0'
    """
    is_default = name_of(policy) == DEFAULT_POLICY
    usual = default_policy() if is_default else bounded(made(type(policy)))
    return " ".join(differences(policy, usual))


def _has_matrix(policy: Any) -> bool:
    """Return whether a policy keeps a matrix of slots × slots."""
    model = getattr(policy, "model", None)
    return isinstance(model, Ridge | GLM) and model.precision == "full"


def default_featuriser(policy: Any = None) -> Hashing:
    """Return how features are read where nothing is said, for a policy or for the default one.

    It has fewer slots where the cost of learning grows with them: a policy that averages its walk passes
    over all that was ever touched, and a linear or generalised linear one over slots × slots, unless its
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
    """The settings of a model; with the log, they are all that determines it."""

    policy: Policy[Any] = field(default_factory=default_policy)
    featuriser: Hashing = field(default_factory=default_featuriser)
    seed: int = 0
    fits_per_second: int = FITS_PER_SECOND  # of the log's clock; more are remembered only
    sharpness: float = SHARPNESS  # γ = sharpness · √rounds, see `inverse_gaps`; 0: by ε alone

    def __post_init__(self) -> None:
        """Raise SettingError for a network that would not fit, or is never fitted."""
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
        """Return what an operator should know of the cost of these settings; None: nothing."""
        slots = self.featuriser.size
        if not _has_matrix(self.policy) or slots <= QUICK_RIDGE:
            return None
        per_second = max(1, round(RIDGE_PER_SECOND / slots**2))
        return (
            f"{type(self.policy).__name__} over {slots:,} slots of features passes over a matrix of "
            f"{slots:,} × {slots:,} numbers for each observation, so it learns about {per_second:,} a second "
            f"and falls behind if more come; use {QUICK_RIDGE.bit_length() - 1} bits, or "
            "model.precision=diagonal"
        )

    def with_policy(self, policy: Policy[Any]) -> Self:
        """Return the settings of a model of another policy.

        If a matrix of slots × slots comes or goes with it, and the number of slots is the default, it stays so.
        """
        featuriser = self.featuriser
        is_usual = featuriser.bits == default_featuriser(self.policy).bits
        if is_usual and _has_matrix(policy) != _has_matrix(self.policy):
            featuriser = replace(featuriser, bits=default_featuriser(policy).bits)
        return replace(self, policy=policy, featuriser=featuriser)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return {
            "policy": encode(self.policy),
            "featuriser": asdict(self.featuriser),
            "seed": self.seed,
            "fits_per_second": self.fits_per_second,
            "sharpness": self.sharpness,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the settings that `to_json` wrote; a class that is not ours is refused."""
        try:
            policy = decode(value["policy"])
        except LookupError as error:
            raise SettingError(
                f"the log has a model with {error}, which is not part of this rbmle; use the rbmle that "
                "wrote it"
            ) from None
        given = dict(value["featuriser"])
        if given["interactions"] is not None:
            given["interactions"] = tuple(tuple(pair) for pair in given["interactions"])
        return cls(
            policy=policy,
            featuriser=Hashing(**given),
            seed=value["seed"],
            fits_per_second=value.get("fits_per_second", FITS_PER_SECOND),
            sharpness=value.get("sharpness", 0.0),
        )

    def start(self) -> Bandit:
        """Return the bandit before any data."""
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
        """Return γ, by which a gap of the indices counts after what a model has learned since a drift alarm."""
        known = getattr(bandit.state, "round", bandit.round)
        return self.sharpness * (known + 1) ** 0.5

    def contexts(self, offers: Sequence[Offered], bandit: Bandit) -> Contexts:
        """Return one context for each action of each call, as a bandit sees it.

        Raise FeatureError for what cannot be read.
        """
        return contexts_of(self.featuriser, offers, bandit.learner.scales)

    def played(self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit) -> Contexts:
        """Return the context of what was chosen in each of some plays, for a bandit to learn.

        Its scales learn from the features at once: in the order of the plays, each before it is scaled.
        """
        offers = [
            offered(decided.context, play.features, [decided.actions[play.chosen]])
            for decided, play in plays
        ]
        return contexts_of(self.featuriser, offers, bandit.learner.scales, is_learning=True)

    def warm_up(self, *, is_learning: bool = True) -> None:
        """Decide, and learn, once on a bandit of no use, so that no client waits for a compiler.

        Raise SettingError for a policy that cannot.
        """
        try:
            bandit = self.start()
            offers = [OfferedAction(id=""), OfferedAction(id="-")]
            contexts = self.contexts([offered(NO_FEATURES, NO_FEATURES, offers)], bandit)
            bandit.weigh_all(contexts, [len(offers)], [""], 0.5)
            decision = bandit.decide(contexts, id="", floor=0.5)
            if is_learning:
                bandit.learn(decision, 0.0)
        except Exception as error:  # whatever a setting of the wrong kind leads to
            raise SettingError(
                f"the policy {self.policy!r} cannot decide and learn: {type(error).__name__} {error}"
            ) from error

    def load(self, saved: bytes) -> Bandit:
        """Return a bandit that `saved` holds, if it is of this kind, or raise FileError."""
        bandit = Bandit.load(io.BytesIO(saved))
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


def offered(context: RawFeatures, slot: RawFeatures, actions: Sequence[OfferedAction]) -> Offered:
    """Return a call: features of all, those of the slot if it has any, and the actions."""
    shared = [context] if slot is NO_FEATURES else [context, slot]
    return Offered(shared, [a.id for a in actions], [a.features for a in actions])


def saved(bandit: Bandit) -> bytes:
    """Return a bandit as `Bandit.save` would write it."""
    file = io.BytesIO()
    write(bandit, file)
    return file.getvalue()
