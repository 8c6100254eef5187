"""The gallery: each example runs, shows pictures, and what its text says of them holds."""

import runpy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[1] / "examples"
NEEDS = {"pytorch_network": ("torch",), "coba_and_river": ("coba", "river")}


def late(values: np.ndarray, share: float = 0.25) -> float:
    """Return the mean over the last part of some runs."""
    return float(np.atleast_2d(values)[:, -int(share * np.shape(values)[-1]) :].mean())


def the_page_earns_more(names: dict[str, Any]) -> None:
    rates = names["rates"]
    assert late(rates["bandit"]) > 1.2 * late(rates["A/B test"])
    assert rates["bandit"][:, :600].mean() > rates["A/B test"][:, :600].mean()
    of_science = [arm.startswith("science") for arm in names["played"][0][1]]
    assert np.mean(of_science[100:]) > 0.5


def most_get_their_dose(names: dict[str, Any]) -> None:
    assert late(names["is_best"]) > 0.7
    assert names["is_best"][:, :200].mean() < 0.65


def a_cap_saves_money(names: dict[str, Any]) -> None:
    for lost in names["final"].values():
        assert lost["at most 100 €"] < lost["revenue as it is"]


def lists_are_personal(names: dict[str, Any]) -> None:
    for scores in names["scores"].values():
        assert scores[60:100].mean() > names["one_list"]
        assert late(scores) > 2 * names["one_list"]


def a_log_saves_exploration(names: dict[str, Any]) -> None:
    cold, short, long = (values[:, :100].sum(axis=1).mean() for values in names["lost"].values())
    assert cold > short > long
    assert long < cold / 4


def late_rewards_teach_the_same(names: dict[str, Any]) -> None:
    at_once, soon, later = names["regrets"].values()
    assert at_once.sum() < soon.sum() < later.sum()
    assert late(later, 1 / 3) < 0.05 * later[:, :300].mean() + 0.02


def alarms_follow_the_change(names: dict[str, Any]) -> None:
    assert len(names["alarms"]) == names["RUNS"]
    assert all(names["CHANGE"] < alarm < names["CHANGE"] + 150 for alarm in names["alarms"])
    on, off = names["rewards"].values()
    assert late(on) > late(off) + 0.1
    assert (on[:, : names["CHANGE"]] == off[:, : names["CHANGE"]]).all()


def explanations_and_promises_hold(names: dict[str, Any]) -> None:
    arms = {each.arm: each for each in names["explanation"].arms}
    assert names["explanation"].best.arm == "shoes"
    assert max(arms, key=lambda arm: arms[arm].bonus) == "nothing"
    expected, sold = (np.array(names[name])[names["half"] :] for name in ("expected", "sold"))
    groups = np.array_split(np.argsort(expected), 5)
    assert all(abs(expected[one].mean() - sold[one].mean()) < 0.12 for one in groups)


def cooler_is_better_and_linucb_best(names: dict[str, Any]) -> None:
    hot, cool, linucb = (values.sum(axis=1).mean() for values in names["regrets"].values())
    assert hot > 2 * cool
    assert cool > 2 * linucb


def products_need_a_factorisation(names: dict[str, Any]) -> None:
    popular = names["likes"].mean(axis=0).max()
    factorisation, linear = (late(values) for values in names["results"].values())
    assert factorisation > popular + 0.05 > linear


def the_bandit_catches_up(names: dict[str, Any]) -> None:
    full, bandit = (scores.mean(axis=1) for scores in names["curves"].values())
    assert full[0] - bandit[0] > 0.1
    assert full[-1] - bandit[-1] < 0.06


def policies_learn_in_both_libraries(names: dict[str, Any]) -> None:
    for results in (names["in_coba"], names["in_river"]):
        assert all(late(np.array(rewards)) > 0.9 for rewards in results.values())
    for name in ("rbmle NeuralRBMLE-GA", "rbmle LinUCB"):
        means = [np.mean(names[place][name]) for place in ("in_coba", "in_river")]
        assert abs(means[0] - means[1]) < 0.03


def poisson_fits_counts(names: dict[str, Any]) -> None:
    assert names["errors"]["Poisson"] < names["errors"]["Gaussian"]
    assert names["smallest"]["Gaussian"] < 0 < names["smallest"]["Poisson"]


def intervals_contain_the_truth(names: dict[str, Any]) -> None:
    estimates = {(one.policy, one.estimator): one for one in names["found"].estimates}
    for policy, value in names["truth"].items():
        one = estimates[policy, "dr"]
        assert one.low < value < one.high
    for policy in ("what they read", "a bandit that learns"):
        assert estimates[policy, "dr"].low > names["found"].mean


def peeking_fools_one_interval_only(names: dict[str, Any]) -> None:
    assert names["usual"] > 0.15
    assert names["always"] <= 0.05
    assert not names["excludes_zero"](names["fooled"][1]).any()
    noticed = names["shares"]["B is better"]
    assert noticed["confidence sequence"][-1] > 0.95
    assert (noticed["confidence sequence"] <= noticed["usual interval"]).all()


def rbmle_swims_up(names: dict[str, Any]) -> None:
    final = {name: float(np.median(runs[:, -1])) for name, runs in names["regrets"].items()}
    trusting, klucrl, psrl, rbmle = final.values()
    assert trusting > 0.9 * names["STEPS"] * names["best"].gain
    assert trusting > klucrl > psrl > rbmle


def the_service_starts_warm(names: dict[str, Any]) -> None:
    values = {(one.policy, one.estimator): one for one in names["found"].estimates}
    assert values["a bandit", "dr"].low > names["found"].mean
    for viewer, chances in names["chances"].items():
        assert names["VIDEOS"][max(chances, key=lambda name: chances[name])] == viewer


CLAIMS: dict[str, Callable[[dict[str, Any]], None]] = {
    "news": the_page_earns_more,
    "dose_finding": most_get_their_dose,
    "pricing": a_cap_saves_money,
    "many_items": lists_are_personal,
    "warm_start": a_log_saves_exploration,
    "delayed_rewards": late_rewards_teach_the_same,
    "drift": alarms_follow_the_change,
    "look_inside": explanations_and_promises_hold,
    "own_policy": cooler_is_better_and_linucb_best,
    "pytorch_network": products_need_a_factorisation,
    "scikit_learn_pipeline": the_bandit_catches_up,
    "coba_and_river": policies_learn_in_both_libraries,
    "own_likelihood": poisson_fits_counts,
    "off_policy_evaluation": intervals_contain_the_truth,
    "daily_peeking": peeking_fools_one_interval_only,
    "from_personalizer": the_service_starts_warm,
    "riverswim": rbmle_swims_up,
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_prints_its_output(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [module for module in NEEDS.get(path.stem, ()) if find_spec(module) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}, which make interop installs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        names = runpy.run_path(str(path), run_name="__main__")
        drawn = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes]
        assert any(axes.has_data() for axes in drawn), "it shows no picture"
        if path.stem in CLAIMS:
            CLAIMS[path.stem](names)
    finally:
        plt.close("all")


def test_the_gallery_has_a_place_for_every_example() -> None:
    order = runpy.run_path(str(FOLDER.parent / "docs" / "_ext" / "gallery_order.py"))["ORDER"]
    assert {path.stem for path in FOLDER.glob("*/*.py")} == set(order)
