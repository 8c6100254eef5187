"""Figure 2: NeuralRBMLE-GA with each of the three likelihoods, on MNIST, Mushroom and Shuttle."""

from dataclasses import replace
from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood, Mixture
from rbmle.models.training import Replay
from rbmle.policies import NeuralRBMLEGA
from rbmle.studies.base import paper_study
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan

GA = "neural-rbmle-ga"
LIKELIHOODS: tuple[Likelihood, ...] = (Gaussian(), Bernoulli(), Mixture())
VALUES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of ν


def contenders(plan: Plan) -> list[Contender]:
    """Return three likelihoods on three datasets, each with a ν of its own."""
    found = []
    for dataset in (plan.image(), "mushroom", "shuttle"):
        for likelihood in LIKELIHOODS:
            name = f"{GA} ({type(likelihood).__name__})"
            policy = with_likelihood(plan.policy(GA, dataset), likelihood)
            each = Contender(name=name, key=name, dataset=dataset, policy=policy, values=VALUES)
            found.append(plan.tuned_to(each))
    return found


def with_likelihood(policy: NeuralRBMLEGA, likelihood: Likelihood) -> NeuralRBMLEGA:
    """Return GA with a likelihood as the paper has it.

    The paper's mixture is the sum of two log-likelihoods, ours is half of it: with half the λ, half the ν and
    twice the η all else is the same.
    """
    model = replace(policy.model, likelihood=likelihood)
    if not isinstance(likelihood, Mixture):
        return replace(policy, model=model)
    training = replace(model.training, rate=2 * model.training.rate)
    model = replace(model, ridge=model.ridge / 2, training=training)
    ascent = policy.ascent
    if isinstance(training, Replay):  # else the arms' own steps are those of the training
        ascent = replace(ascent, rate=2 * ascent.rate)
    return replace(policy, model=model, bias=policy.bias / 2, ascent=ascent)


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw three panels."""
    return list(panel_figure(summary, out / "figure-2"))


FIGURE_2 = paper_study("figure-2", "Three likelihoods of GA", contenders, render)
