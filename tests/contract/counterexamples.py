"""One liar for each promise, each a flaw found in published code; the contract must catch them all."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rbmle import Bandit
from rbmle.core.types import Batch, Contexts, Indices, Observation, Probabilities
from rbmle.models.linear import Ridge, RidgeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """A greedy linear policy, which keeps every promise: the liars differ from it in one line."""

    model: Ridge = field(default_factory=Ridge)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        return self.model.init(blocks, features, rng)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        mean, norm = self.model.estimates(state, contexts)
        return mean + 0.1 * np.sqrt(norm)

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        self.model.update_all(state, Batch.of(seen, rng))

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state, blocks, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragesNothing(Honest):
    """Divides by the number of rounds, which is 0 at first."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        with np.errstate(all="ignore"):
            return Honest.index(self, state, contexts, rng) / np.float64(state.round)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflows(Honest):
    """Exponentiates its estimate, as a softmax without the subtraction of the largest."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        with np.errstate(all="ignore"):
            return np.exp(contexts.dense().sum(axis=1)) + Honest.index(self, state, contexts, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnsWhileChoosing(Honest):
    """Grows its precision when asked: a retried request shrinks the confidence."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        indices = Honest.index(self, state, contexts, rng)
        seen = Observation(context=contexts.row(int(indices.argmax())), reward=0.0)
        self.model.update_all(state, Batch.of(seen, rng))
        return indices


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalesContextsInPlace(Honest):
    """Normalises its input where it lies."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        contexts.rows.values[:] /= np.linalg.norm(contexts.rows.values) + 1e-9
        return Honest.index(self, state, contexts, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawsFromNowhere(Honest):
    """Draws from a generator that is seeded by the machine."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        noise = np.random.default_rng().normal(scale=0.1, size=len(contexts))
        return Honest.index(self, state, contexts, rng) + noise


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsFromNowhere(Honest):
    """Starts from numbers that no seed decides."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        state = self.model.init(blocks, features, rng)
        state.theta += np.random.default_rng().normal(scale=0.1, size=state.theta.shape)
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class UsesTheGlobalStream(Honest):
    """Draws from numpy's global generator."""

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        Honest.update(self, state, seen, rng)
        state.theta += 1e-6 * np.random.normal(size=state.theta.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefersTheFirst(Honest):
    """Breaks ties by place: an arm's index depends on where it is listed."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return Honest.index(self, state, contexts, rng) - 1e-6 * np.arange(len(contexts))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparatesTwins(Honest):
    """Draws noise by place."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return Honest.index(self, state, contexts, rng) + 0.01 * rng.normal(size=len(contexts))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsItsEstimate(Honest):
    """Takes rewards to be between −1 and 1, whatever it says: costs in cents all look alike."""

    standardises: ClassVar[bool] = True

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return np.clip(self.model.predict(state, contexts), -1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemembersOutsideItsState(Honest):
    """Keeps what it learned where neither a file nor a copy finds it."""

    memory: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        Honest.update(self, state, seen, rng)
        total = self.memory.get(id(state), 0.0) + seen.reward
        self.memory[id(state)] = total
        state.theta += 1e-6 * total


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesItsState(Honest):
    """Gives every copy the same arrays."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        return _Shared(
            **{
                f: getattr(self.model.init(blocks, features, rng), f)
                for f in ("F", "theta", "round")
            }
        )


class _Shared(RidgeState):
    def __deepcopy__(self, memo: Any) -> "_Shared":
        return self


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HidesASetting(Honest):
    """Has a setting that its repr does not show."""

    boldness: float = 0.5

    def __repr__(self) -> str:
        return "HidesASetting()"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverLearns(Honest):
    """Counts the rounds and nothing else."""

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        state.round += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentiatesRewards(Honest):
    """Learns from the exponentials of rewards, as weights of multiplicative updates are made."""

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        with np.errstate(over="ignore"):
            exponential = replace(seen, reward=float(np.exp(seen.reward)))
        self.model.update_all(state, Batch.of(exponential, rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetsWhenItGrows(Honest):
    """Starts anew for a new arm."""

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        fresh = self.model.init(blocks, state.theta.shape[1], rng)
        state.F, state.theta = fresh.F, fresh.theta


@dataclass(frozen=True, slots=True, kw_only=True)
class MakesUpProbabilities(Honest):
    """Reports 1 for each arm."""

    def weigh(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        return Honest.index(self, state, contexts, rng), np.ones(len(contexts))


class LearnsBeforeItChecks(Bandit):
    """Learns from the rows before a bad one."""

    def partial_fit(self, X: Any, arms: Sequence[Any], rewards: Any) -> "Bandit":
        for x, arm, reward in zip(X, arms, rewards, strict=False):
            self.learn(x, arm=arm, reward=reward)
        return self


class TakesAnyReward(Bandit):
    """Does not look at rewards."""

    def learn(self, source: Any, reward: Any = None, *, arm: Any = None) -> None:
        Bandit.learn(self, source, 0.0, arm=arm)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidesWithTooLittle(Honest):
    """Leaves out of a snapshot what its index reads."""

    def frozen(self, state: RidgeState) -> RidgeState:
        return replace(state, theta=np.zeros_like(state.theta))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnsBatchesBackwards(Honest):
    """Begins with the newest observation, which gives another model by rounding alone."""

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        for i in reversed(range(len(batch))):
            self.model.update_all(state, batch.one(i))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawsWithoutSayingSo(Honest):
    """Says that its index is separate, and adds noise."""

    is_separate: ClassVar[bool] = True

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return Honest.index(self, state, contexts, rng) + rng.normal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadsContextsAfterAll(Honest):
    """Says that it ignores contexts, so that a bandit may be made without features, and reads them."""

    ignores_contexts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashes(Honest):
    """Divides by zero."""

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return Honest.index(self, state, contexts, rng) * (1 / 0)


# A promise, and a liar that breaks it.
LIARS: tuple[tuple[str, Any, type[Bandit]], ...] = (
    ("index_is_one_finite_number_for_each_arm", AveragesNothing(), Bandit),
    ("index_is_finite_for_large_small_and_zero_contexts", Overflows(), Bandit),
    ("index_changes_nothing", LearnsWhileChoosing(), Bandit),
    ("index_changes_nothing", ScalesContextsInPlace(), Bandit),
    ("index_asked_twice_answers_the_same", DrawsFromNowhere(), Bandit),
    ("same_seed_same_run", StartsFromNowhere(), Bandit),
    ("global_random_state_is_untouched", UsesTheGlobalStream(), Bandit),
    ("arms_may_be_listed_in_any_order", PrefersTheFirst(), Bandit),
    ("twins_tie", SeparatesTwins(), Bandit),
    ("a_run_saved_halfway_and_resumed_equals_the_unbroken_run", RemembersOutsideItsState(), Bandit),
    ("a_copied_state_goes_its_own_way", SharesItsState(), Bandit),
    ("a_snapshot_decides_as_its_original", DecidesWithTooLittle(), Bandit),
    ("a_batch_is_learned_as_its_observations_one_by_one", LearnsBatchesBackwards(), Bandit),
    ("units_of_rewards_do_not_matter", BoundsItsEstimate(), Bandit),
    ("repr_rebuilds_the_policy", HidesASetting(boldness=1.0), Bandit),
    ("it_learns", NeverLearns(), Bandit),
    ("the_largest_rewards_leave_the_index_finite", ExponentiatesRewards(), Bandit),
    ("bad_input_is_refused_and_leaves_the_state_as_it_was", Honest(), LearnsBeforeItChecks),
    ("bad_input_is_refused_and_leaves_the_state_as_it_was", Honest(), TakesAnyReward),
    ("a_new_arm_leaves_the_others_as_they_were", ForgetsWhenItGrows(), Bandit),
    ("probabilities_are_a_distribution", MakesUpProbabilities(), Bandit),
    ("a_separate_index_does_not_draw", DrawsWithoutSayingSo(), Bandit),
    ("who_ignores_contexts_reads_none", ReadsContextsAfterAll(), Bandit),
)
