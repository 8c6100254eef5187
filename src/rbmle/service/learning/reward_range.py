"""Whether the rewards of a service are rewards that its policy can learn from."""

from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy, limits_of
from rbmle.service.configuration import Aggregation, ServiceConfiguration

LOWEST, HIGHEST = -1.0, 1.0  # reward that any client may send


def reward_range(policy: Policy[Any]) -> tuple[float, float]:
    """Return the smallest and the largest reward that a service with this policy takes.

    >>> from rbmle import NeuFastCB, NeuralUCB
    >>> reward_range(NeuralUCB()), reward_range(NeuFastCB())
    ((-1.0, 1.0), (0.0, 1.0))
    """
    low, high = limits_of(policy)
    return max(low, LOWEST), min(high, HIGHEST)


def check_rewards(policy: Policy[Any], configuration: ServiceConfiguration) -> None:
    """Raise SettingError if events could be worth what the policy cannot learn from."""
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
