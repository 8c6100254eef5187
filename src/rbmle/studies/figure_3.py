"""Figure 3: NeuralRBMLE-GA with α(t) = t^n on MNIST, n in {0, 0.25, 0.5, 1, 2}."""

from dataclasses import replace
from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.policies import NeuralRBMLEGA, Power
from rbmle.studies.base import Plan, Study

EXPONENTS = (0, 0.25, 0.5, 1, 2)


def trials(plan: Plan) -> list[Trial]:
    """Return five exponents, with the constant that was tuned for n = 1/4."""
    dataset = plan.image()
    policy = plan.policy("neural-rbmle-ga", dataset)
    assert isinstance(policy, NeuralRBMLEGA)
    return [
        plan.trial(replace(policy, growth=Power(exponent=n)), f"α(t) = ν t^{n:g}", dataset, seed)
        for n in EXPONENTS
        for seed in plan.seeds
    ]


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw one panel."""
    return list(panel_figure(summary, out / "figure-3"))


FIGURE_3 = Study(name="figure-3", title="Regret under different α(t)", trials=trials, render=render)
