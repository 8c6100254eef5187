"""Figures; the only file that knows matplotlib."""

from pathlib import Path

import numpy as np
from jaxtyping import Float


def regret_curves(
    curves: dict[str, Float[np.ndarray, "seeds rounds"]], title: str, path: Path
) -> None:
    """Write cumulative regret over rounds, the mean of the seeds with a band of one deviation."""
    import matplotlib  # it takes half a second to import

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    colours = pyplot.get_cmap("tab20")
    for place, (name, runs) in enumerate(curves.items()):
        mean, deviation = runs.mean(axis=0), runs.std(axis=0)
        rounds = np.arange(1, len(mean) + 1)
        bold = "rbmle" in name
        axes.plot(rounds, mean, label=name, color=colours(place), linewidth=2.4 if bold else 1.2)
        axes.fill_between(
            rounds, mean - deviation, mean + deviation, color=colours(place), alpha=0.15
        )
    axes.set(title=title, xlabel="round", ylabel="cumulative regret")
    axes.set_xlim(0, len(rounds))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8, ncols=2)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
