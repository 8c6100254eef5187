"""A bias below 0: the same objective, for learning from logs."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle import (
    GLMRBMLE,
    Bandit,
    LinRBMLE,
    Network,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    Regression,
    Ridge,
)
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.policies.schedules import Power
from rbmle.studies import pessimism
from rbmle.testing import policy_checks

SMALL = Regression(network=Network(width=16))
PESSIMISTS: dict[str, Any] = {
    "lin-rbmle": LinRBMLE(bias=-0.1),
    "glm-rbmle": GLMRBMLE(bias=-0.1),
    "neural-rbmle-pc": NeuralRBMLEPC(bias=-1e-3, model=SMALL),
}
ONLINE = {"it_learns": "a pessimist plays what it knows"}


def test_the_index_of_a_linear_pessimist_by_hand() -> None:
    # V = 1 + 3 · 1² = 4, θ̂ = 3/4; θ̂ − ½ α/V with α = 0.5 √4 = 1; an arm without data has V = 1
    policy = LinRBMLE(bias=-0.5, growth=Power(), model=Ridge(is_standardised=False))
    bandit = Bandit(policy, arms=2, features=1)
    bandit.partial_fit(np.ones((3, 1)), [0, 0, 0], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(bandit.decide([1.0]).indices, [3 / 4 - 1 / 8, -1 / 2])


@pytest.mark.parametrize("name", PESSIMISTS)
def test_a_pessimist_is_below_the_estimate(name: str) -> None:
    bandit = Bandit(PESSIMISTS[name], arms=2, features=3)
    for t in range(30):
        x = np.random.default_rng(t).normal(size=3)
        bandit.learn(x, arm=0, reward=float(x[0] > 0))
    x = np.array([0.5, -0.2, 1.0])
    indices, estimates = bandit.decide(x).indices, np.array(list(bandit.predict(x).values()))
    assert (indices < estimates).all()


@pytest.mark.parametrize("name", PESSIMISTS)
def test_a_pessimist_keeps_the_contract_but_for_exploring(name: str) -> None:
    for promise, check in policy_checks(PESSIMISTS[name]):
        if promise not in ONLINE:
            check()


@pytest.mark.parametrize("bias", [math.inf, -math.inf, math.nan])
def test_a_bias_must_be_finite(bias: float) -> None:
    for kind in (LinRBMLE, GLMRBMLE, NeuralRBMLEPC):
        with pytest.raises(SettingError, match="`bias` must be a finite number, got"):
            kind(bias=bias)


def test_ga_says_who_takes_a_bias_below_0() -> None:
    with pytest.raises(SettingError, match=r"got -1.0; NeuralRBMLEPC takes one below 0"):
        NeuralRBMLEGA(bias=-1.0)


def test_pessimism_pays_where_the_log_is_narrow() -> None:
    contest = pessimism.CONTESTS["LinRBMLE, linear rewards"]
    mean = {
        title: np.mean(pessimism.play(contest, title, range(10), (1000,))["regrets"])
        for title in pessimism.SIGNS
    }
    assert mean["pessimistic, −ν"] < 0.8 * mean["greedy, ν = 0"] < 0.8 * mean["optimistic, ν"]


def test_the_study_writes_its_table_and_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pessimism, "QUICK_PROBLEMS", 2)
    monkeypatch.setattr(pessimism, "QUICK_SIZES", (20, 40))
    done = CliRunner().invoke(app, ["reproduce", "pessimism", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for ending in ("md", "png", "pdf"):
        path = tmp_path / "quick" / "standard" / "pessimism" / f"pessimism.{ending}"
        assert path.stat().st_size > 500
