"""Pictures of your own runs; each function draws on `ax`, or on a new figure, and returns the axes.

They need matplotlib: ``pip install 'rbmle[plots]'``. The gallery shows each of them.

>>> import numpy as np
>>> from rbmle.plots import plot_regret
>>> regrets = np.random.default_rng(0).random((5, 200))  # 5 runs of 200 rounds
>>> ax = plot_regret({"uniform": regrets})
>>> ax.get_ylabel()
'cumulative regret'
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.types import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rbmle.core.explaining import Explanation

__all__ = [
    "plot_arm_shares",
    "plot_calibration",
    "plot_estimates",
    "plot_explanation",
    "plot_regret",
    "plot_rewards",
]

# Okabe and Ito's colours, which colour-blind readers can tell apart, but for the yellow, which is too light.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
Series = Any  # one run, or an array of runs × rounds


def plot_regret(runs: Mapping[str, Series], *, ax: "Axes | None" = None) -> "Axes":
    """Draw the cumulative regret of each policy.

    Parameters
    ----------
    runs
        For each name, the regret of each round: an array of rounds, or of runs × rounds. With several runs
        the line is their mean, and the band twice its standard error.
    ax
        Where to draw; a new figure if None.

    """
    ax = _axes(ax)
    for place, (name, values) in enumerate(runs.items()):
        _band(ax, np.cumsum(_runs(name, values), axis=1), name, place, 1)
    _finish(ax, "round", "cumulative regret")
    ax.set_ylim(bottom=0)
    return ax


def plot_rewards(
    runs: Mapping[str, Series], *, window: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the mean reward of each policy over a moving window.

    Parameters
    ----------
    runs
        For each name, the reward of each round: an array of rounds, or of runs × rounds. With several runs
        the line is their mean, and the band twice its standard error.
    window
        Rounds of the moving mean; a twentieth of all if None.
    ax
        Where to draw; a new figure if None.

    """
    ax = _axes(ax)
    for place, (name, values) in enumerate(runs.items()):
        rewards = _runs(name, values)
        size = min(window or max(rewards.shape[1] // 20, 1), rewards.shape[1])
        sums = np.cumsum(np.pad(rewards, ((0, 0), (1, 0))), axis=1)
        _band(ax, (sums[:, size:] - sums[:, :-size]) / size, name, place, size)
    _finish(ax, "round", "mean reward")
    return ax


def plot_arm_shares(
    arms: Iterable[Any], *, window: int | None = None, most: int = 6, ax: "Axes | None" = None
) -> "Axes":
    """Draw the share of each arm in the decisions over time, as stacked areas.

    Parameters
    ----------
    arms
        Decisions, or ids of the arms that were played, in their order.
    window
        Rounds of the moving mean; a twentieth of all if None.
    most
        How many arms have an area of their own, those that were played most; the others share a grey one.
    ax
        Where to draw; a new figure if None.

    """
    played = [each.arm if isinstance(each, Decision) else each for each in arms]
    if not played:
        raise SettingError("`arms` is empty; give the decisions of a run, or the ids of their arms")
    if not 1 <= most <= len(COLOURS):
        raise SettingError(f"`most` must be between 1 and {len(COLOURS)}, got {most}")
    ax = _axes(ax)
    shown = sorted((arm for arm, _ in Counter(played).most_common(most)), key=str)
    hits = np.array([[arm == name for arm in played] for name in shown], float)
    names, colours = [str(name) for name in shown], list(COLOURS[: len(shown)])
    if len(set(played)) > len(shown):
        hits = np.vstack([hits, 1 - hits.sum(axis=0)])
        names, colours = [*names, "other arms"], [*colours, "#b8b8b8"]
    size = min(window or max(len(played) // 20, 1), len(played))
    sums = np.cumsum(np.pad(hits, ((0, 0), (1, 0))), axis=1)
    shares = (sums[:, size:] - sums[:, :-size]) / size
    rounds = np.arange(size, len(played) + 1)
    ax.stackplot(rounds, shares, labels=names, colors=colours, alpha=0.85)
    _finish(ax, "round", "share of decisions")
    ax.set_ylim(0, 1)
    if len(rounds) > 1:
        ax.set_xlim(rounds[0], rounds[-1])
    areas, labels = ax.get_legend_handles_labels()
    ax.legend(  # in the order of the areas
        areas[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False
    )
    return ax


def plot_explanation(explanation: "Explanation", *, ax: "Axes | None" = None) -> "Axes":
    """Draw why an arm is chosen: the estimate of each arm, and the bonus that exploration adds to it.

    Parameters
    ----------
    explanation
        What `bandit.explain(x)` returned.
    ax
        Where to draw; a new figure if None.

    """
    arms = explanation.arms[::-1]  # the best on top
    ax = _axes(ax, rows=len(arms))
    estimates = [arm.index if arm.estimate is None else arm.estimate for arm in arms]
    bonuses = [arm.index - estimate for arm, estimate in zip(arms, estimates, strict=True)]
    places = range(len(arms))
    ax.barh(places, estimates, 0.55, color=COLOURS[0], label="estimate")
    ax.barh(places, bonuses, 0.55, left=estimates, color=COLOURS[5], label="bonus")
    for place, arm in enumerate(arms):
        end = max(arm.index, estimates[place], 0.0)
        _note(ax, end, place, f"{arm.index:.3g}")
    ax.axvline(0, color="#888888", lw=0.8)
    _rows(ax, [str(arm.arm) for arm in arms])
    _finish(ax, "estimate + bonus = index; the highest index is chosen", "")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    ax.grid(axis="y", visible=False)
    return ax


def plot_calibration(
    predicted: Sequence[float] | Float[np.ndarray, " n"],
    rewards: Sequence[float] | Float[np.ndarray, " n"],
    *,
    bins: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw mean rewards against what was predicted; points of a calibrated model lie on the diagonal.

    Parameters
    ----------
    predicted
        The expected reward of each played arm, from `bandit.predict` before it was learned.
    rewards
        The reward of each of them.
    bins
        Groups of equally many predictions. The bars are twice the standard error of each group's mean.
    ax
        Where to draw; a new figure if None.

    """
    x, y = np.asarray(predicted, float), np.asarray(rewards, float)
    if x.shape != y.shape or x.ndim != 1 or not 1 <= bins <= len(x):
        raise SettingError(
            f"`predicted` and `rewards` must be equally many, and at least `bins`, got {x.shape} and "
            f"{y.shape} with {bins} bins"
        )
    ax = _axes(ax)
    groups = np.array_split(np.argsort(x, kind="stable"), bins)
    means = [(x[one].mean(), y[one].mean(), 2 * y[one].std() / len(one) ** 0.5) for one in groups]
    at, mean, error = np.array(means).T
    ends = [min(at.min(), mean.min()), max(at.max(), mean.max())]
    ax.plot(ends, ends, color="#888888", lw=1, ls="--", label="perfect")
    ax.errorbar(at, mean, yerr=error, fmt="o", color=COLOURS[0], capsize=3, label="observed")
    _finish(ax, "predicted reward", "mean reward")
    return ax


def plot_estimates(estimates: Any, *, estimator: str = "snips", ax: "Axes | None" = None) -> "Axes":
    """Draw what each policy would have earned on a log, with its interval, the best at the top.

    Parameters
    ----------
    estimates
        What `rbmle.evaluation.evaluate` returned, or the file that `rbmle evaluate --json` wrote. The former
        knows what the log itself earned, which is then a dotted line.
    estimator
        Which estimator to show.
    ax
        Where to draw; a new figure if None.

    """
    if isinstance(estimates, str | Path):
        records = json.loads(Path(estimates).read_text())
    else:
        records = [one.as_dict() for one in getattr(estimates, "estimates", estimates)]
    shown = [one for one in records if one["estimator"] == estimator and one["value"] is not None]
    if not shown:
        known = ", ".join(sorted({one["estimator"] for one in records})) or "none"
        raise SettingError(f"there is no estimate by {estimator!r}; there are estimates by {known}")
    ax = _axes(ax, rows=len(shown))
    shown.sort(key=lambda record: record["value"])
    for place, record in enumerate(shown):
        value, low, high = (record[key] for key in ("value", "low", "high"))
        text = f"{value:.3g}"
        if low is not None:
            ax.plot([low, high], [place] * 2, color=COLOURS[0], lw=3, alpha=0.5)
            text += f" ({low:.3g} to {high:.3g})"
        ax.plot(value, place, "o", color=COLOURS[0], ms=7)
        _note(ax, value if high is None else high, place, text)
    _rows(ax, [record["policy"] for record in shown])
    if hasattr(estimates, "mean"):
        ax.axvline(estimates.mean, color="black", ls=":", lw=1, label="the log")
    _finish(ax, f"mean reward, estimated by {estimator}", "")
    ax.grid(axis="y", visible=False)
    return ax


def _axes(ax: "Axes | None", *, rows: int = 6) -> "Axes":
    """Return the axes to draw on; a new figure is as high as its rows need."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise SettingError(
            "plots need matplotlib, which is not installed; run pip install 'rbmle[plots]'"
        ) from None
    return plt.subplots(figsize=(7.2, 1.2 + 0.45 * min(rows, 40)), layout="constrained")[1]


def _rows(ax: "Axes", names: Sequence[str]) -> None:
    """Name the rows of a picture that has one for each arm or policy."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.tick_params(axis="y", length=0)


def _note(ax: "Axes", x: float, y: float, text: str) -> None:
    """Write a text on the right of a point, for which the axes make room."""
    ax.annotate(text, (x, y), (8, 0), textcoords="offset points", va="center", size=9)


def _runs(name: str, values: Series) -> Float[np.ndarray, "runs rounds"]:
    """Return runs as an array, or raise SettingError."""
    runs = np.atleast_2d(np.asarray(values, float))
    if runs.ndim != 2 or runs.size == 0:
        raise SettingError(f"the runs of {name!r} must be an array of rounds, or of runs × rounds")
    return runs


def _band(
    ax: "Axes", runs: Float[np.ndarray, "runs rounds"], name: str, place: int, first: int
) -> None:
    """Draw the mean of some runs, and twice its standard error around it."""
    colour = COLOURS[place % len(COLOURS)]
    rounds, mean = np.arange(first, first + runs.shape[1]), runs.mean(axis=0)
    ax.plot(rounds, mean, color=colour, label=name, lw=2)
    if len(runs) > 1:
        error = 2 * runs.std(axis=0, ddof=1) / len(runs) ** 0.5
        ax.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.18, lw=0)


def _finish(ax: "Axes", x: str, y: str) -> None:
    """Label the axes, and show what is needed to read the picture."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
