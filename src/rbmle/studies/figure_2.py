"""Figure 2: NeuralRBMLE-GA with each of the three likelihoods, on MNIST, Mushroom and Shuttle."""

from dataclasses import replace
from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.likelihoods import LIKELIHOODS
from rbmle.studies.base import Plan, Study

GA = "neural-rbmle-ga"


def trials(plan: Plan) -> list[Trial]:
    """Return three likelihoods on three datasets."""
    found = []
    for dataset in (plan.image(), "mushroom", "shuttle"):
        policy = plan.policy(GA, dataset)
        for kind in LIKELIHOODS:
            varied = replace(policy, model=replace(policy.model, likelihood=kind()))
            name = f"{GA} ({kind.__name__})"
            found += [plan.trial(varied, name, dataset, seed) for seed in plan.seeds]
    return found


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw three panels."""
    return list(panel_figure(summary, out / "figure-2"))


FIGURE_2 = Study(name="figure-2", title="Three likelihoods of GA", trials=trials, render=render)
