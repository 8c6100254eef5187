"""Figure 3: NeuralRBMLE-GA with α(t) = ν t^n on MNIST, n in {0, 0.25, 0.5, 1, 2}."""

from dataclasses import replace
from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.policies import Power
from rbmle.studies.base import paper_study
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan

GA = "neural-rbmle-ga"
# What ν is tuned on for each exponent: α is of the same size after some thousand rounds.
VALUES = {
    0: (10.0, 3.0, 1.0, 0.3, 0.1),
    0.25: (1.0, 0.3, 0.1, 0.03, 0.01),
    0.5: (0.1, 0.03, 0.01, 0.003, 0.001),
    1: (1e-3, 3e-4, 1e-4, 3e-5, 1e-5),
    2: (1e-7, 3e-8, 1e-8, 3e-9, 1e-9),
}


def contenders(plan: Plan) -> list[Contender]:
    """Return five exponents, each with a ν of its own; what is not tuned has that of n = 1/2."""
    dataset = plan.image()
    policy = plan.policy(GA, dataset)
    return [
        plan.tuned_to(
            Contender(
                name=f"α(t) = ν t^{n:g}",
                key=f"{GA} (t^{n:g})",
                dataset=dataset,
                policy=replace(policy, growth=Power(exponent=n)),
                values=values,
            )
        )
        for n, values in VALUES.items()
    ]


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw one panel."""
    return list(panel_figure(summary, out / "figure-3"))


FIGURE_3 = paper_study("figure-3", "Regret under different α(t)", contenders, render)
