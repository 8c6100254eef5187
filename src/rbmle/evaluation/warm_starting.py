"""A bandit that begins with what a log tells, in the place of nothing."""

from typing import Any

import msgspec
import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.types import Encoding
from rbmle.evaluation.evaluation import as_log
from rbmle.evaluation.logs import Reading
from rbmle.evaluation.logs.lines import objects
from rbmle.evaluation.rounds import Rounds, rounds_of


def warm_start(
    bandit: Bandit, log: Any, *, skips_bad: bool = False, default_reward: float = 0.0
) -> int:
    """Let a bandit learn all decisions of a log by `Bandit.partial_fit`, and return how many.

    Propensities are not needed: a model of rewards is fitted to what was played, whoever chose it. With
    contexts per arm, the bandit sees (context, features of the arm); else the context alone, and arms of
    the log that it does not know are added.
    """
    learned = 0
    reading = Reading(skips_bad=skips_bad)
    for rounds in rounds_of(as_log(log), reading, has_contexts=True, default_reward=default_reward):
        arms = [
            rounds.offers[k].ids[place]
            for k, place in zip(rounds.offered.tolist(), rounds.played.tolist(), strict=True)
        ]
        if bandit.encoding is Encoding.DISJOINT and bandit.arms is not None:
            for arm in dict.fromkeys(arms):
                if arm not in bandit.arms.ids:
                    bandit.add_arm(arm)
        bandit.partial_fit(_seen(bandit, rounds), arms, rounds.rewards)
        learned += len(rounds)
    return learned


def _seen(bandit: Bandit, rounds: Rounds) -> Any:
    """Return what each arm that was played had."""
    assert rounds.contexts is not None
    contexts = [msgspec.json.decode(text) for text in rounds.contexts.to_pylist()]
    if bandit.encoding is Encoding.PER_ARM:
        own = {k: rounds.offers[k].features for k in set(rounds.offered.tolist())}
        pairs = zip(contexts, rounds.offered.tolist(), rounds.played.tolist(), strict=True)
        return [(objects(x), objects(msgspec.json.decode(own[k][place]))) for x, k, place in pairs]
    if isinstance(contexts[0], list) and contexts[0] and isinstance(contexts[0][0], dict):
        return [{name: part for item in x for name, part in item.items()} for x in contexts]
    return contexts if isinstance(contexts[0], dict) else np.array(contexts, float)
