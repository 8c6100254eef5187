"""The bandit: a policy with what it has learned, over arms known by ids."""

from collections.abc import Iterable, Sequence
from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rbmle.core.checks import (
    as_list,
    encoding_of,
    fixed_setting,
    policy_of,
    probability,
    rewards_of,
    whole_number,
)
from rbmle.core.choosing import Rule, choose_many, rank
from rbmle.core.diagnosis import Diagnosis
from rbmle.core.encoding import Encoded, Encoder, encoder_for
from rbmle.core.errors import ArmError, RewardError, SettingError
from rbmle.core.events import Event
from rbmle.core.offers import Arms, Offers, check_order
from rbmle.core.policy import Policy, Predicts, has, limits_of
from rbmle.core.state import OnRepeat, SharedState, given_ids, on_repeat_of, stream_of
from rbmle.core.types import ArmId, Chosen, Contexts, Decision, Encoding

if TYPE_CHECKING:
    from rbmle.core.explaining import Explanation

_SETTINGS = ("policy", "encoder", "features", "seed", "floor", "draws", "encoding", "on_repeat")
_PARTS = frozenset([*_SETTINGS, "_limits", "_usual", "_offers", "learner"])


class Bandit:
    """A policy that decides and learns, over arms known by ids of your choosing.

    Threads may share it: one learns at a time, while others decide, each on a consistent state.

    >>> from rbmle import Bandit, LinUCB
    >>> bandit = Bandit(LinUCB(), arms=["tea", "coffee"], features=2, seed=0)
    >>> decision = bandit.decide([1.0, 0.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> bandit.learn([0.0, 1.0], arm="coffee", reward=0.5)  # a decision made elsewhere
    >>> bandit.round
    2
    """

    def __init__(
        self,
        policy: Policy[Any] | type[Policy[Any]] | str,
        *,
        arms: int | Iterable[ArmId] | None = None,
        features: int | Iterable[str] | Encoder | Encoded | None = None,
        scaling: Literal["running"] | None = None,
        seed: int = 0,
        encoding: str | Encoding = Encoding.DISJOINT,
        floor: float = 0.0,
        draws: int = 0,
        on_repeat: OnRepeat = "raise",
    ) -> None:
        """Start before any data.

        Parameters
        ----------
        policy
            A policy, its class, or its name as on the command line, such as "neural-ucb".
        arms
            Their ids, or their number n for the ids 0 … n − 1. None, with contexts per arm: any arms,
            named or numbered at each decision.
        features
            Their number, their names, or an encoder such as `Hashing()` for dictionaries. None if the
            policy ignores contexts, as those of `rbmle.classical` do.
        scaling
            "running" scales numbers by the mean and deviation of what was learned, and adds a constant; see
            `rbmle.features.running.Running`. Recommended for numbers of different sizes, such as ages and
            incomes, unless you have scaled them. None: numbers are used as they are.
        seed
            The same seed gives the same choices.
        encoding
            "disjoint": arms share a vector of features, and each has its own parameters. "per-arm": each arm
            has its own row of features, and all share the parameters.
        floor
            ε, the probability with which an eligible arm is drawn at random; every propensity is then at
            least ε/n.
        draws
            How many draws estimate the propensities of a policy whose index is random; the arm is then
            drawn by these estimates. With 0 there is no estimate.
        on_repeat
            What `learn` does with a decision that was learned before. "raise": RepeatError. "ignore":
            nothing, for rewards that are delivered more than once. "learn": learn it again, for decisions
            with several rewards. The last 10,000 learned decisions are remembered.

        """
        self.policy = policy_of(policy)
        self.encoder = encoder_for(features, self.policy, scaling)
        self.features = self.encoder.size
        self.seed = whole_number("seed", seed)
        self.floor = probability("floor", floor)
        self.draws = whole_number("draws", draws, least=0)
        self.encoding = encoding_of(encoding)
        self.on_repeat = on_repeat_of(on_repeat)
        if arms is None and self.encoding is Encoding.DISJOINT:
            raise SettingError("`arms` is missing; give their ids or their number, as in arms=5")
        named = None if arms is None else Arms.of(arms)
        self._limits = limits_of(self.policy)
        self._usual = Rule(seed=self.seed, floor=self.floor, draws=self.draws)
        self._offers = Offers(encoding=self.encoding, encoder=self.encoder)
        self.learner = SharedState.start(self.policy, self.encoder, named, self.seed, self.encoding)

    @property
    def state(self) -> Any:
        """Return what the policy has learned."""
        return self.learner.now.state

    @property
    def arms(self) -> Arms | None:
        """Return the arms; None if any arms may come, with their rows."""
        return self.learner.now.arms

    @property
    def round(self) -> int:
        """Return how many rewards were learned."""
        return self.learner.now.round

    @property
    def events(self) -> tuple[Event, ...]:
        """The newest 1,000 drift alarms: when the model forgot what it knew, and how much.

        Each one is also logged as a warning, by the logger "rbmle.events".
        """
        return self.learner.now.events.newest

    @property
    def resets(self) -> int:
        """Return how often the model has forgotten what it knew."""
        return self.learner.now.events.count

    @property
    def decisions(self) -> int:
        """Return how many decisions were numbered, because they were made without an id."""
        return self.learner.decisions

    def decide(
        self,
        x: Any = None,
        *,
        eligible: Sequence[ArmId] | None = None,
        id: str | None = None,
        floor: float | None = None,
    ) -> Decision:
        """Return the arm to play; what was learned does not change.

        Parameters
        ----------
        x
            Disjoint contexts: one vector. Contexts per arm: one row for each eligible arm, in their order.
            Leave it out if there are no features.
        eligible
            The arms to choose from; all that are in play by default.
        id
            The id of the decision. The same id and question get the same answer until something is learned.
        floor
            Replaces the bandit's own for this decision.

        Raises
        ------
        ContextError
            If x has the wrong shape, or numbers that are not finite.
        EligibilityError
            If no arm is eligible, or rows and arms do not match.

        """
        with self.learner.reading() as learned:
            ids, contexts = self._offers.of_round(x, eligible, learned.arms)
            (name,), streams = self._names(None if id is None else [id], 1)
            sizes, rule = [len(contexts)], self._rule(floor)
            seen = self.learner.scale(contexts, learned)
            (chosen,) = choose_many(self.policy, learned.state, seen, sizes, streams, rule)
        return Decision.of(name, ids, contexts, chosen)

    def decide_many(
        self,
        X: Any,
        *,
        eligible: Sequence[ArmId] | None = None,
        ids: Sequence[str] | None = None,
        floor: float | None = None,
    ) -> list[Decision]:
        """Return a decision for each of many rounds, as `decide` would make them on the same state.

        Disjoint contexts: row i of X is the vector of round i. Contexts per arm: X has one matrix for each
        round. Without features, X is the number of rounds. `eligible` restricts the arms of every round.
        """
        with self.learner.reading() as learned:
            arms, contexts = self._offers.of_rounds(X, eligible, learned.arms)
            names, streams = self._names(ids, len(arms))
            sizes, rule = [len(eligible_arms) for eligible_arms in arms], self._rule(floor)
            seen = self.learner.scale(contexts, learned)
            chosen = choose_many(self.policy, learned.state, seen, sizes, streams, rule)
        starts = np.cumsum(sizes) - sizes
        rounds = zip(names, arms, chosen, starts.tolist(), strict=True)
        return [
            Decision.of(name, ids, contexts, choice, start) for name, ids, choice, start in rounds
        ]

    def rank(
        self,
        x: Any,
        k: int,
        *,
        eligible: Sequence[ArmId] | None = None,
        id: str | None = None,
        floor: float | None = None,
    ) -> list[Decision]:
        """Return a decision for each of the first k positions of a list, the best arm first.

        The first is the decision of `decide`, with the same propensity. Every later one is chosen by the same
        rule from the arms that are left, which are its `arms`; its propensity is the probability of its arm,
        given those before it, so that of a whole list is the product. Learn from the positions that have a
        reward.
        """
        with self.learner.reading() as learned:
            ids, contexts = self._offers.of_round(x, eligible, learned.arms)
            if not 1 <= whole_number("k", k) <= len(ids):
                raise SettingError(
                    f"`k` must be between 1 and the number of eligible arms, {len(ids)}, got {k}"
                )
            (name,), (stream,) = self._names(None if id is None else [id], 1)
            seen = self.learner.scale(contexts, learned)
            positions = rank(self.policy, learned.state, seen, k, stream, self._rule(floor))
        names = [name, *(f"{name}/{position}" for position in range(1, k))]
        return [
            Decision.of(name, [ids[arm] for arm in left], contexts.part(left), chosen)
            for name, (left, chosen) in zip(names, positions, strict=True)
        ]

    def predict(self, x: Any, *, eligible: Sequence[ArmId] | None = None) -> dict[ArmId, float]:
        """Return f(x; θ̂) for each arm: what the model expects, without any exploration.

        For a likelihood other than the Gaussian, the expected reward is b′(f).
        """
        if not has(self.policy, Predicts):
            raise SettingError(
                f"{type(self.policy).__name__} has no model of the reward, so it predicts nothing"
            )
        with self.learner.reading() as learned:
            ids, contexts = self._offers.of_round(x, eligible, learned.arms)
            estimates = self.policy.predict(learned.state, self.learner.scale(contexts, learned))
        return dict(zip(ids, estimates.tolist(), strict=True))

    def explain(
        self, x: Any, *, eligible: Sequence[ArmId] | None = None, top: int = 5
    ) -> "Explanation":
        """Return why the bandit prefers an arm here: estimate, bonus, index and features of each arm.

        Nothing is learned, and no decision is counted. The effect of a feature is the estimate minus the
        estimate without it; `top` says how many are shown. An index that is random is one draw of it.
        """
        from rbmle.core.explaining import explain  # it needs this class

        return explain(self, x, eligible, top)

    def choose_many(
        self,
        contexts: Contexts,
        sizes: Sequence[int],
        ids: Sequence[str],
        floor: float,
        sharpness: float = 0.0,  # γ
    ) -> list[Chosen]:
        """Choose for many rounds by contexts that are encoded already; see `choosing.choose_many`."""
        rule = self._rule(floor)._replace(sharpness=sharpness)
        with self.learner.reading() as learned:
            seen = self.learner.scale(contexts, learned)
            return choose_many(self.policy, learned.state, seen, sizes, ids, rule)

    def learn(
        self, source: Decision | Any, reward: float | None = None, *, arm: ArmId | None = None
    ) -> None:
        """Learn from the reward of a decision, or of an arm that was played in a context.

        Rewards may come late and in any order, and for retired arms too.

        Parameters
        ----------
        source
            A decision; or with `arm`, the vector of features that the arm had.
        reward
            A finite number, within the range of the policy's likelihood.
        arm
            The arm that was played, if the source is a vector of features.

        Raises
        ------
        RewardError
            If the reward is not a number, or out of range.
        RepeatError
            If the decision was learned before, unless the bandit was made with another `on_repeat`.

        """
        rewards = rewards_of([reward], self._limits)
        self.learner.learn(
            lambda arms: self._offers.of_played(source, arm, arms),
            rewards,
            decision=source if isinstance(source, Decision) else None,
            on_repeat=self.on_repeat,
            is_observed=True,
        )

    def learn_all(
        self,
        contexts: Contexts,
        rewards: Sequence[float] | np.ndarray,
        *,
        is_fitted: np.ndarray | None = None,
        times: Sequence[int] | None = None,
        allow_any_reward: bool = False,
    ) -> None:
        """Learn a batch: row i of the contexts had `rewards[i]`. The result is as if rows came one by one.

        Contexts are those of decisions, joined by `stack`. An observation that is not `is_fitted` is
        remembered, but gets no training steps of its own: later steps visit it like all others. A policy that
        is not trained in steps learns all observations equally. An event has the time of the observation that
        led to it, if there are `times`. With `allow_any_reward`, rewards may be outside the range of the
        policy, as corrections of earlier rewards are.
        """
        self._offers.check(contexts, len(rewards))
        checked = rewards_of(rewards, (-inf, inf) if allow_any_reward else self._limits)
        self.learner.learn(lambda _: contexts, checked, is_fitted, times=times)

    def partial_fit(
        self, X: Any, arms: Sequence[ArmId], rewards: Sequence[float] | np.ndarray
    ) -> "Bandit":
        """Learn from a batch of logged rounds: row i of X is what arm `arms[i]` had.

        All is checked before anything is learned. If `arms` and `rewards` are swapped, it raises ArmError,
        or warns where it cannot be sure.
        """
        ids, paid = as_list("arms", arms, ArmError), as_list("rewards", rewards, RewardError)
        check_order(ids, paid, self.arms)
        contexts = self._offers.of_logged(X, ids, len(paid))
        checked = rewards_of(rewards, self._limits)
        self.learner.learn(
            lambda known: self._offers.put_in_blocks(contexts, ids, known),
            checked,
            is_observed=True,
        )
        return self

    def diagnose(self) -> Diagnosis:
        """Return what looks wrong with rewards, features, predictions and choices; print it.

        It covers the data of `learn` and `partial_fit`. Serious findings are also logged once, as warnings of
        the logger "rbmle.diagnosis".
        """
        return self.learner.diagnosis()

    def add_arm(self, id: ArmId) -> None:
        """Add an arm, or bring a retired one back with what it had learned."""
        self.learner.add_arm(id)

    def retire_arm(self, id: ArmId) -> None:
        """Take an arm out of play; what was learned of it stays, and late rewards are still learned."""
        self.learner.retire_arm(id)

    def snapshot(self) -> "Bandit":
        """Return a copy that decides as this bandit does now, whatever this one learns later.

        It has only what deciding needs, so it can neither learn nor be saved.
        """
        return self._with(self.learner.snapshot())

    def __copy__(self) -> "Bandit":
        return self._with(self.learner.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Bandit":
        return copy(self)

    def save(self, path: Any) -> None:
        """Write the bandit to one file, whole or not at all."""
        from rbmle.core.saving import save  # it needs this class

        save(self, path)

    @staticmethod
    def load(
        path: Any, *, policy: Policy[Any] | None = None, features: Encoder | None = None
    ) -> "Bandit":
        """Return the bandit that was saved; it continues exactly where it was.

        A policy, a part of one or an encoder that is not from this package has to be given again.
        """
        from rbmle.core.saving import load  # it needs this class

        return load(path, policy, features)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self) or name not in _PARTS:
            raise AttributeError(fixed_setting(self.policy, name, value, _SETTINGS))
        vars(self)[name] = value

    def __repr__(self) -> str:
        arms = "any arms" if self.arms is None else f"{len(self.arms.active):,} arms"
        learned = f"{self.round:,} rounds learned"
        if self.events:
            alarms = "a drift alarm" if self.resets == 1 else f"{self.resets:,} drift alarms"
            learned += f" (the first {self.events[-1].round:,} forgotten after {alarms})"
        return (
            f"<Bandit of {arms}, {self.features:,} features, {learned}, "
            f"seed {self.seed}: {self.policy!r}>"
        )

    def _with(self, learner: SharedState) -> "Bandit":
        """Return a bandit with these settings and another learner."""
        twin = object.__new__(Bandit)
        vars(twin).update(vars(self), learner=learner)
        return twin

    def _names(self, ids: Sequence[str] | None, n: int) -> tuple[list[str], list[str]]:
        """Return the ids of n decisions, given or our own, and the names of their random streams."""
        if ids is not None:
            names = given_ids(ids, n)
            return names, [stream_of(name) for name in names]
        return self.learner.name_decisions(n)

    def _rule(self, floor: float | None) -> Rule:
        """Return how arms are drawn."""
        if floor is None:
            return self._usual
        return Rule(seed=self.seed, floor=probability("floor", floor), draws=self.draws)
