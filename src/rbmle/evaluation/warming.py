"""Judging two rounds, so that the kernel of the reward model is compiled."""

import numpy as np
import pyarrow as pa

from rbmle.evaluation.contexts import Featuriser, Hashed, Vectors
from rbmle.evaluation.reward_model import RewardModel
from rbmle.evaluation.rounds import Offer, Rounds


def warm_up() -> None:
    """Learn two rounds whose contexts are arrays, and two whose contexts are dictionaries."""
    _learn(Vectors(features=2), "[0.5, 1.0]")
    _learn(Hashed(), '{"age": 31}')


def _learn(featuriser: Featuriser, context: str) -> None:
    rounds = Rounds(
        numbers=np.arange(2),
        contexts=pa.array([context] * 2),
        offers=[Offer(ids=("a", "b"), text='["a", "b"]')],
        offered=np.zeros(2, np.int64),
        sizes=np.full(2, 2),
        played=np.arange(2),
        propensities=np.full(2, 0.5),
        rewards=np.ones(2),
    )
    RewardModel(featuriser, low=0.0, high=1.0).predict_then_learn(rounds, featuriser.rows(rounds))
