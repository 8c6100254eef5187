"""Other programs that estimate what we do, on the same logs; `pip install '.[judges]'`.

They agree to six digits where definitions do. They do not with intervals of vw-estimators other than the
normal one (Clopper and Pearson, Cressie and Read), nor with coba's direct method: its model is fitted to the
rounds that it then predicts, and ours to those before.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle.evaluation import TableLog, evaluate, write_log
from rbmle.evaluation.estimators import ESTIMATORS, Bounds, Judged
from rbmle.evaluation.logs import LogReading
from rbmle.evaluation.rounds import Rounds, rounds_of
from rbmle.evaluation.sequences import OPTIMAL, ValueSequence, boundary
from rbmle.evaluation.sums import RatioSums
from tests.evaluation.samples import world

ROUNDS = 1_500
SIX = 1e-6


@pytest.fixture(scope="module")
def log() -> TableLog:
    return world(ROUNDS, 11).log


@pytest.fixture(scope="module")
def rounds(log: TableLog) -> Rounds:
    (only,) = rounds_of(log, LogReading(), has_contexts=True, default_reward=0.0)
    return only


def greedy(rounds: Rounds) -> np.ndarray:
    """Return 0.7 for the first arm, and 0.1 for each other."""
    return np.tile([0.7, 0.1, 0.1, 0.1], len(rounds))


def test_vw_estimators_agrees_on_ips_and_snips_and_the_normal_interval(
    log: TableLog, rounds: Rounds
) -> None:
    ips = pytest.importorskip("estimators.bandits.ips").Estimator()
    snips = pytest.importorskip("estimators.bandits.snips").Estimator()
    gaussian = pytest.importorskip("estimators.bandits.gaussian").Interval()
    chances = greedy(rounds)[rounds.at]
    for p, r, own in zip(rounds.propensities, rounds.rewards, chances, strict=True):
        for judge in (ips, snips, gaussian):
            judge.add_example(p_log=p, r=r, p_pred=own)
    found = evaluate(log, {"greedy": greedy}, estimators="ips,snips", interval="normal")
    assert found["greedy", "ips"].value == pytest.approx(ips.get(), rel=SIX)
    assert found["greedy", "snips"].value == pytest.approx(snips.get(), rel=SIX)
    one = found["greedy", "ips"]
    assert [one.low, one.high] == pytest.approx(gaussian.get(0.05), rel=SIX)


@pytest.mark.parametrize("name", ["ips", "dm", "dr"])
def test_coba_agrees_given_its_own_model(name: str, rounds: Rounds) -> None:
    filters = pytest.importorskip("coba.environments.filters")
    pytest.importorskip("vowpalwabbit")
    assert rounds.contexts is not None
    ids = list(rounds.offers[0].ids)
    contexts = np.array([json.loads(text) for text in rounds.contexts.to_pylist()])
    given = [
        {"context": tuple(x), "action": ids[arm], "reward": r, "probability": p}
        for x, arm, r, p in zip(
            contexts.tolist(), rounds.played, rounds.rewards, rounds.propensities, strict=True
        )
    ]
    chances = greedy(rounds).reshape(-1, 4)
    theirs = _values(filters.OpeRewards(name.upper()), given, ids)
    model = (
        np.zeros((ROUNDS, 4)) if name == "ips" else _values(filters.OpeRewards("DM"), given, ids)
    )
    judged = Judged(
        rewards=rounds.rewards,
        weights=greedy(rounds)[rounds.at] / rounds.propensities,
        predicted=model[np.arange(ROUNDS), rounds.played],
        expected=(chances * model).sum(axis=1),
        accepted=np.zeros(ROUNDS, bool),
    )
    sums = RatioSums()
    sums.add(*ESTIMATORS[name].terms(judged, Bounds(low=0, high=1, weight=20, clip=10)))
    assert sums.value == pytest.approx(float((chances * theirs).sum(axis=1).mean()), rel=SIX)


def _values(filter: Any, given: list[dict[str, Any]], ids: list[str]) -> np.ndarray:
    """Return what coba says of every arm of every round."""
    return np.array(
        [[float(one["rewards"](id)) for id in ids] for one in list(filter.filter(given))]
    )


@pytest.mark.parametrize(
    ("c", "theirs"),
    [  # by gamma_exponential_mixture_bound(v, 0.025, 1000, c, 0.025) of confseq 0.0.9, compiled by hand
        (1.0, [29.7957507995, 35.6802561952, 99.0501308494, 3880.69264194]),
        (7.0, [44.6141600759, 51.2375032613, 118.99248223, 3953.05498269]),
        (101.0, [375.726134152, 409.253082109, 609.582757812, 5011.33158197]),
    ],
)
def test_confseq_agrees_on_the_boundary(c: float, theirs: list[float]) -> None:
    assert OPTIMAL == 1_000
    ours = [boundary(v, 0.025, c) for v in (1.0, 50.0, 1e3, 1e6)]
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("v", [50.0, 1e3, 1e4])
def test_ville_agrees_on_the_boundary_where_the_scale_vanishes(v: float) -> None:
    """Without a scale a process is sub-Gaussian, and the mixture is that of half a normal distribution.

    2 u(c) − u(2 c) is u(0), up to c².
    """
    judge = pytest.importorskip("ville")
    logarithm = math.log(1 / (2 * 0.025))
    rho = OPTIMAL / (2 * logarithm + math.log(1 + 2 * logarithm))
    theirs = float(judge.normal_mixture(v, 0.025, rho, one_sided=True))
    ours = 2 * boundary(v, 0.025, 0.01) - boundary(v, 0.025, 0.02)
    assert ours == pytest.approx(theirs, rel=SIX)


def test_ville_never_excludes_what_ours_holds_and_is_wider_on_this_log(rounds: Rounds) -> None:
    """Its empirical Bernstein and betting sequences know the largest weight, and ours for ips does not."""
    judge = pytest.importorskip("ville")
    weights = greedy(rounds)[rounds.at] / rounds.propensities
    most = float(0.7 / rounds.propensities.min())
    xi = weights * rounds.rewards
    for kind in (judge.EmpiricalBernsteinCS, judge.BettingCS):
        theirs = kind(bounds=(0.0, most), alpha=0.05, intersect=False).fit(xi)
        for t in (100, 500, ROUNDS):
            part, nothing = slice(None, t), np.zeros(t)
            ours = ValueSequence("ips", 0.0, 1.0)
            ours.add(Judged(rounds.rewards[part], weights[part], nothing, nothing, nothing > 0))
            low, high = ours.interval(0.95) or (0.0, 0.0)
            assert low < theirs.upper_[t - 1]
            assert theirs.lower_[t - 1] < high
            assert high - low < min(theirs.upper_[t - 1], 1.0) - theirs.lower_[t - 1]


@pytest.mark.parametrize("format", ["dsjson", "vw"])
def test_vowpal_wabbit_learns_from_our_files(format: str, log: TableLog, tmp_path: Path) -> None:
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    path = tmp_path / f"log.{format}"
    write_log(world(600, 12, is_vector=False).log, path)
    option = "--dsjson" if format == "dsjson" else ""
    vw = vowpalwabbit.Workspace(f"--cb_explore_adf {option} -q :: --quiet -d {path}")
    assert vw.get_weighted_examples() == 600
    assert vw.get_sum_loss() / 600 < -0.4  # costs are minus the rewards, whose mean is 0.5
    vw.finish()
