"""MABWiser's LinUCB keeps the promises of a policy, and is the formula that it claims."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle import Bandit
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.interop.needs import is_there
from rbmle.policies.registry import name_of, parse_policy
from rbmle.testing import policy_checks
from rbmle.testing.policies import PROMISES

ROUNDED = {
    "index_is_finite_for_large_small_and_zero_contexts": "its inverse is rounded, and √ of it is not a number"
}
needs_mabwiser = pytest.mark.skipif(
    not is_there("mabwiser"), reason="mabwiser is not installed: pip install 'rbmle[mabwiser]'"
)


@needs_mabwiser
@pytest.mark.parametrize("promise", [promise.__name__ for promise in PROMISES])
def test_it_keeps_every_promise(promise: str) -> None:
    policy = parse_policy("mabwiser:linucb").policy()
    dict(policy_checks(policy, expected_failures=ROUNDED))[promise]()


@needs_mabwiser
def test_its_index_is_an_upper_confidence_bound() -> None:
    """With λ = 1, A = I + Σ x xᵀ of the arm's own observations."""
    bandit = Bandit("mabwiser:linucb:exploration=0.7", arms=2, features=3, seed=0)
    X = np.random.default_rng(0).normal(size=(6, 3))
    for t, x in enumerate(X):
        bandit.learn(x, arm=t % 2, reward=float(t))
    x = np.array([0.3, -1.0, 2.0])
    for arm, index in enumerate(bandit.decide(x).indices):
        own, rewards = X[arm::2], np.arange(arm, 6.0, 2)
        inverse = np.linalg.inv(np.eye(3) + own.T @ own)
        bound = x @ inverse @ own.T @ rewards + 0.7 * (x @ inverse @ x) ** 0.5
        assert index == pytest.approx(bound)


@needs_mabwiser
def test_it_runs_in_one_comparison_with_our_policies(tmp_path: Path) -> None:
    given = ["--policy", "lin-ucb,mabwiser:linucb", "--dataset", "digits", "--rounds", "60"]
    result = CliRunner().invoke(app, ["run", *given, "--seeds", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "mabwiser:linucb" in result.output
    assert name_of(parse_policy("mabwiser:linucb").policy()) == "mabwiser:linucb"


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rbmle.interop.needs.find_spec", lambda _: None)
    with pytest.raises(SettingError, match=r"needs mabwiser.*pip install 'rbmle\[mabwiser\]'"):
        parse_policy("mabwiser:linucb")
