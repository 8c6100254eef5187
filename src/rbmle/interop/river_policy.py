"""A bandit as a contextual policy of river: arms have ids, and contexts are dictionaries."""

from collections.abc import Iterable, Sequence
from typing import Any

from river.bandit.base import ContextualPolicy

from rbmle.core.bandit import Bandit
from rbmle.core.encoding import Encoder
from rbmle.core.policy import Policy
from rbmle.core.types import ArmId


class RiverPolicy(ContextualPolicy):
    """A bandit that is made at the first context; new arms are added as they come.

    Parameters
    ----------
    policy
        A policy, its class, or its name, such as "neural-ucb".
    features
        Their names, or an encoder such as `Hashing()` for features that are not all numbers or
        differ from round to round. None: the names of the first context.
    seed
        Of the bandit.
    reward_obj
        River's own statistic of each arm; None: the mean.
    reward_scaler
        As in river; the bandit learns the scaled reward.
    burn_in
        How often each arm is pulled before the bandit decides.

    """

    def __init__(
        self,
        policy: Policy[Any] | type[Policy[Any]] | str = "neural-rbmle-ga",
        features: Iterable[str] | Encoder | None = None,
        seed: int = 0,
        reward_obj: Any = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
    ) -> None:
        super().__init__(reward_obj=reward_obj, reward_scaler=reward_scaler, burn_in=burn_in)
        self.policy, self.features, self.seed = policy, features, seed
        self.bandit: Bandit | None = None

    def update(self, arm_id: ArmId, context: dict[str, Any], *reward: Any, **more: Any) -> None:
        """Learn what an arm paid in a context."""
        super().update(arm_id, context, *reward, **more)
        paid = reward[0] if self.reward_scaler is None else self.reward_scaler.func(reward[0])
        self._begin(context, [arm_id]).learn(context, arm=arm_id, reward=float(paid))

    def _pull(self, arm_ids: Sequence[ArmId], context: dict[str, Any]) -> ArmId:
        return self._begin(context, arm_ids).decide(context, eligible=list(arm_ids)).arm

    def _begin(self, context: dict[str, Any], arms: Sequence[ArmId]) -> Bandit:
        """Return the bandit, made at the first context, with all of these arms."""
        if self.bandit is None:
            names = list(context) if self.features is None else self.features
            self.bandit = Bandit(self.policy, arms=arms, features=names, seed=self.seed)
        known = self.bandit.arms
        for arm in arms:
            if known is not None and arm not in known.ids:
                self.bandit.add_arm(arm)
        return self.bandit
