"""A policy as a learner of coba: actions are arms, and a coba.Experiment evaluates it beside others."""

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from coba.primitives import Learner

from rbmle.core.bandit import Bandit
from rbmle.core.checks import encoding_of, policy_of
from rbmle.core.errors import ContextError, SettingError
from rbmle.core.policy import Policy
from rbmle.core.types import Decision, Encoding
from rbmle.policies.specification import name_of, settings_of

CONSTANT = 1.0  # after the features, so that a linear policy has an intercept


class CobaLearner(Learner):
    """A bandit that begins with the first interaction, whose context says how many features there are.

    Args:
        policy: a policy, its class, or its name, such as "neural-ucb".
        seed: of the bandit.
        encoding: "disjoint": each action, by its value, is an arm with parameters of its own, and sees the
            context. "per-arm": an arm sees the context and the features of its action.
        floor: the probability with which an action is drawn at random, see `Bandit`.
        draws: how many draws estimate propensities, see `Bandit`.

    """

    def __init__(
        self,
        policy: Policy[Any] | type[Policy[Any]] | str = "neural-rbmle-ga",
        *,
        seed: int = 0,
        encoding: str | Encoding = Encoding.DISJOINT,
        floor: float = 0.0,
        draws: int = 0,
    ) -> None:
        self.policy, self.encoding = policy_of(policy), encoding_of(encoding)
        self.seed, self.floor, self.draws = seed, floor, draws
        self.bandit: Bandit | None = None

    @property
    def params(self) -> dict[str, Any]:
        """Return the name of the policy and its settings, for coba's tables."""
        settings = settings_of(self.policy)
        more = {"settings": settings} if settings else {}
        return {"family": f"rbmle {name_of(self.policy)}", **more, "seed": self.seed}

    def predict(self, context: Any, actions: Sequence[Any]) -> dict[str, Any]:
        """Return an action, with its probability if the policy knows it."""
        decision = self._decide(context, actions)
        action = actions[decision.arms.index(decision.arm)]
        if decision.propensity is None:
            return {"action": action}
        return {"action_prob": (action, decision.propensity)}

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """Return the probability of an action."""
        chances = self._decide(context, actions).probabilities
        if chances is None:
            raise SettingError(
                f"{type(self.policy).__name__} knows no probabilities, so it has no score; make the learner "
                "with draws=100, or with a floor"
            )
        return float(chances[list(actions).index(action)])

    def learn(
        self, context: Any, action: Any, reward: float, probability: Any, **kwargs: Any
    ) -> None:
        """Learn what an action paid, whoever chose it."""
        bandit = self._begun(context, [action])
        if self.encoding is Encoding.PER_ARM:
            bandit.learn(numbers(context, action), reward=reward)
        else:
            bandit.learn(numbers(context), arm=self._arm(bandit, action), reward=reward)

    def _decide(self, context: Any, actions: Sequence[Any]) -> Decision:
        """Return the decision of the bandit."""
        bandit = self._begun(context, actions)
        if self.encoding is Encoding.PER_ARM:
            return bandit.decide([numbers(context, action) for action in actions])
        arms = [self._arm(bandit, action) for action in actions]
        return bandit.decide(numbers(context), eligible=arms)

    def _begun(self, context: Any, actions: Sequence[Any]) -> Bandit:
        """Return the bandit, made at the first interaction."""
        if self.bandit is None:
            is_shared = self.encoding is Encoding.DISJOINT
            x = numbers(context) if is_shared else numbers(context, actions[0])
            self.bandit = Bandit(
                self.policy,
                arms=[_id(action) for action in actions] if is_shared else None,
                features=len(x),
                seed=self.seed,
                encoding=self.encoding,
                floor=self.floor,
                draws=self.draws,
            )
        return self.bandit

    def _arm(self, bandit: Bandit, action: Any) -> str:
        """Return the arm of an action, which is added if it never came before."""
        arm = _id(action)
        if bandit.arms is not None and arm not in bandit.arms.ids:
            bandit.add_arm(arm)
        return arm


def numbers(*parts: Any) -> list[float]:
    """Return the features of coba's contexts and actions in one list, and a constant.

    >>> numbers(None), numbers(2), numbers([0.5, 1], (0, 1))
    ([1.0], [2.0, 1.0], [0.5, 1.0, 0.0, 1.0, 1.0])
    """
    found: list[float] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Mapping) or hasattr(part, "keys"):
            raise ContextError(
                f"the features {dict(part)!r} are sparse; add .dense(n, method='hashing') to coba's "
                "environments"
            )
        values: list[Any] = [part] if isinstance(part, Number | str) else list(part)
        if not all(isinstance(value, Number) for value in values):
            raise ContextError(
                f"the features {values!r} are not all numbers; make them coba.Categorical, or use "
                "encoding='disjoint' if these are the actions"
            )
        found += map(float, values)
    return [*found, CONSTANT]


def _id(action: Any) -> str:
    """Return the id of the arm that an action is, by its value."""
    is_value = isinstance(action, Number | str)
    return str(action) if is_value else str(tuple(action))
