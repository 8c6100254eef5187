"""Judging two rounds, so that the kernels of reward models and sequences are compiled."""

import numpy as np
import pyarrow as pa

from rbmle.evaluation.contexts import Featuriser, Hashed, Vectors
from rbmle.evaluation.estimators import Judged, Offered
from rbmle.evaluation.reward_model import RewardModel
from rbmle.evaluation.rounds import Offer, Rounds
from rbmle.evaluation.sequences import ValueSequence


def warm_up() -> None:
    """Learn two rounds whose contexts are arrays, and two whose contexts are dictionaries."""
    _learn(Vectors(features=2), "[0.5, 1.0]")
    _learn(Hashed(), '{"age": 31}')
    _bet()


def _bet() -> None:
    """Take two rounds into each kind of sequence."""
    ones, arms = np.ones(2), np.full(4, 0.5)
    offered = Offered(np.full(2, 2), np.array([0, 2]), arms, arms, arms)
    for name in ("ips", "dr"):
        ValueSequence(name, 0.0, 1.0).add(Judged(ones, ones, ones, ones, ones > 0, offered))


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
