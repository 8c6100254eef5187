"""The log of a bandit is not labelled data: a row tells the reward of one arm, not the best arm."""

from collections.abc import Iterable
from pathlib import Path

from rbmle.datasets.errors import DatasetError

ARMS = ("action", "action_id", "arm", "arm_id", "chosen_action", "chosen_arm")
REWARDS = ("click", "clicked", "cost", "reward", "rewards")
PROPENSITIES = (
    "action_prob",
    "action_probability",
    "pi_b",
    "probability",
    "propensity",
    "propensity_score",
    "pscore",
)


def refuse_bandit_log(path: Path, names: Iterable[str]) -> None:
    """Raise if a file's columns are those of a log: an arm, and its reward or its propensity."""
    names = list(names)
    arms, rewards, chances = (
        [name for name in names if name.lower() in known] for known in (ARMS, REWARDS, PROPENSITIES)
    )
    if not arms or not (rewards or chances):
        return
    found = [*arms, *rewards, *chances]
    raise DatasetError(
        f"{str(path)!r} looks like the log of a bandit (columns {', '.join(found)}): its rows tell the "
        "reward of the arm that was played, while an experiment needs the right class of every row; to "
        "judge policies on a log, use rbmle evaluate, and to learn from it Bandit.partial_fit; if it is "
        f"labelled data all the same, leave out what is not a feature: --drop {','.join([*rewards, *chances])}"
    )
