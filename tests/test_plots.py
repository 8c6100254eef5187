"""Pictures of a user's own runs: what is drawn is what was given."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from rbmle import Bandit
from rbmle.core.errors import SettingError
from rbmle.evaluation import TableLog, evaluate

mpl.use("agg")
from rbmle import plots


def test_regret_adds_up_with_a_band_of_two_standard_errors() -> None:
    ax: Any = plots.plot_regret({"one": [1.0, 0.0, 2.0], "many": [[1.0, 1.0], [3.0, 1.0]]})
    one, many = ax.lines
    assert one.get_ydata().tolist() == [1.0, 1.0, 3.0]
    assert many.get_ydata().tolist() == [2.0, 3.0]
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(3 + 2)


def test_rewards_are_means_of_a_window() -> None:
    ax: Any = plots.plot_rewards({"a": [0.0, 1.0, 1.0, 1.0]}, window=2)
    assert ax.lines[0].get_ydata().tolist() == [0.5, 1.0, 1.0]
    assert ax.lines[0].get_xdata().tolist() == [2, 3, 4]


def test_shares_take_decisions_or_arms() -> None:
    bandit = Bandit("uniform", arms=["tea", "coffee"], features=1)
    decisions = [bandit.decide([1.0]) for _ in range(40)]
    for given in (decisions, [each.arm for each in decisions]):
        ax: Any = plots.plot_arm_shares(given, window=20)
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["tea", "coffee"]  # as the areas are stacked
        assert ax.get_ylim() == (0, 1)


def test_arms_that_are_seldom_played_share_an_area() -> None:
    ax: Any = plots.plot_arm_shares(["a"] * 6 + ["b"] * 4 + ["c", "d"], window=12, most=2)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["other arms", "b", "a"]


def test_an_explanation_has_a_row_for_each_arm() -> None:
    bandit = Bandit("lin-ucb", arms=["tea", "coffee"], features=2)
    bandit.learn([1.0, 0.0], arm="tea", reward=1.0)
    found = bandit.explain([1.0, 0.0])
    ax: Any = plots.plot_explanation(found)
    assert [text.get_text() for text in ax.get_yticklabels()][::-1] == [
        str(each.arm) for each in found.arms
    ]


def test_calibrated_predictions_lie_on_the_diagonal() -> None:
    p = np.repeat([0.2, 0.8], 10)
    ax: Any = plots.plot_calibration(
        p, np.tile([1, 0, 0, 0, 0, 1, 0, 0, 0, 0], 2) ^ (p > 0.5), bins=2
    )
    points = ax.containers[0][0]
    assert points.get_xdata() == pytest.approx(points.get_ydata())


def test_estimates_come_from_an_evaluation_or_its_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(2, size=200)
    log = TableLog(
        {
            "context": ["{}"] * 200,
            "actions": ['["a", "b"]'] * 200,
            "arm": [("a", "b")[arm] for arm in arms],
            "propensity": np.full(200, 0.5),
            "reward": arms.astype(float),
        }
    )
    found = evaluate(log, ["uniform", "lin-ucb"], estimators="snips", floor=0.5)
    path = tmp_path / "estimates.json"
    path.write_text(json.dumps([one.as_dict() for one in found.estimates]))
    for given in (found, path):
        ax: Any = plots.plot_estimates(given)
        assert (ax.get_legend() is not None) == (given is found)  # a file has no mean of the log
        names = [text.get_text() for text in ax.get_yticklabels()]
        assert names == ["uniform", "lin-ucb"]  # the better one on top
    with pytest.raises(SettingError, match="there are estimates by snips"):
        plots.plot_estimates(found, estimator="dr")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.plot_arm_shares([]), "`arms` is empty"),
        (lambda: plots.plot_arm_shares(["a"], most=0), "`most` must be"),
        (lambda: plots.plot_regret({"a": np.zeros((2, 2, 2))}), "runs of 'a'"),
        (lambda: plots.plot_calibration([1.0], [1.0, 2.0]), "equally many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        call()


def test_matplotlib_is_imported_by_the_first_picture() -> None:
    code = "import sys, rbmle.plots; print('matplotlib' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
