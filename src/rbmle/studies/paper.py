"""Tables 1 and 2 and Figures 1 to 4 of the paper: who plays, and how it is shown."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rbmle.core.files import write_text
from rbmle.experiments.figures import dot_figure, final_panels, panel_figure
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import ReportTable, latex, markdown, mean_table, std_table
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood, Mixture
from rbmle.models.regression import Replay
from rbmle.policies import NeuralRBMLEGA, Power
from rbmle.studies.base import OURS, PAPER, Contender, Plan, Study, add_note

LIKELIHOODS: tuple[Likelihood, ...] = (Gaussian(), Bernoulli(), Mixture())
LIKELIHOOD_VALUES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of ν
# What ν is tuned on for each exponent n of α(t) = ν t^n: α is of the same size after some thousand rounds.
GROWTH_VALUES = {
    0: (10.0, 3.0, 1.0, 0.3, 0.1),
    0.25: (1.0, 0.3, 0.1, 0.03, 0.01),
    0.5: (0.1, 0.03, 0.01, 0.003, 0.001),
    1: (1e-3, 3e-4, 1e-4, 3e-5, 1e-5),
    2: (1e-7, 3e-8, 1e-8, 3e-9, 1e-9),
}
Contenders = Callable[[Plan], list[Contender]]
DEFAULT = f"{OURS} (default)"  # without any setting, tuned on none of these datasets


def table_contenders(plan: Plan) -> list[Contender]:
    """Return 7 policies × 6 datasets, each with the constant and the learning rate that were chosen.

    With our preprocessing, GA as it ships stands beside them.
    """
    contenders = plan.tuned_contenders(plan.datasets)
    if plan.is_faithful or plan.preprocessing != "standard":
        return contenders
    ships = partial(Contender, name=DEFAULT, key=DEFAULT, policy=NeuralRBMLEGA())
    return [*contenders, *(ships(dataset=dataset) for dataset in plan.datasets)]


def table_candidates(plan: Plan) -> list[Contender]:
    """Return the same with every learning rate, of which the best is shown."""
    return plan.candidates(plan.datasets)


def contenders_on(*datasets: str) -> Contenders:
    """Return what compares seven policies on some datasets; if quick, on those of them that ship."""
    return lambda plan: plan.tuned_contenders(plan.available(datasets))


def likelihood_contenders(plan: Plan) -> list[Contender]:
    """Return GA with three likelihoods on three datasets, each with a ν of its own."""
    contenders = []
    for dataset in plan.available(("mnist", "mushroom", "shuttle")):
        for likelihood in LIKELIHOODS:
            name = f"{OURS} ({type(likelihood).__name__})"
            policy = with_likelihood(plan.policy(OURS, dataset), likelihood)
            values = LIKELIHOOD_VALUES
            contender = Contender(
                name=name, key=name, dataset=dataset, policy=policy, values=values
            )
            contenders.append(plan.apply_tuning(contender))
    return contenders


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


def growth_contenders(plan: Plan) -> list[Contender]:
    """Return GA with five exponents of α(t), each with a ν of its own; untuned ones have that of n = 1/2."""
    (dataset,) = plan.available(("mnist",))
    policy = plan.policy(OURS, dataset)
    return [
        plan.apply_tuning(
            Contender(
                name=f"α(t) = ν t^{n:g}",
                key=f"{OURS} (t^{n:g})",
                dataset=dataset,
                policy=replace(policy, growth=Power(exponent=n)),
                values=values,
            )
        )
        for n, values in GROWTH_VALUES.items()
    ]


def _study(
    name: str,
    title: str,
    contenders: Contenders,
    render: Callable[[Summary, Path, str], list[Path]],
    candidates: Contenders | None = None,
) -> Study:
    return Study(
        name=name,
        title=title,
        trials=lambda plan: plan.trials(contenders(plan)),
        render=render,
        contenders=candidates or contenders,
    )


def _figure(name: str, title: str, contenders: Contenders) -> Study:
    def render(summary: Summary, out: Path, note: str) -> list[Path]:
        return list(panel_figure(summary, out / name))

    return _study(name, title, contenders, render)


def _table(
    name: str,
    title: str,
    table: Callable[..., ReportTable],
    candidates: Contenders | None = None,
    *,
    has_pictures: bool = False,
) -> Study:
    def render(summary: Summary, out: Path, note: str) -> list[Path]:
        ours, beside = add_note(table(summary), note), add_note(table(summary, PAPER), note)
        return [
            write_text(out / f"{name}.md", markdown(ours)),
            write_text(out / f"{name}.tex", latex(ours)),
            write_text(out / f"{name}-beside-the-paper.md", markdown(beside)),
            *(pictures(summary, out, name) if has_pictures else ()),
        ]

    return _study(name, title, table_contenders, render, candidates)


def pictures(summary: Summary, out: Path, name: str) -> list[Path]:
    note = (
        "Dots: means over seeds, with two standard errors. Filled: as good as the best (p ≥ 0.05)."
    )
    return [
        *dot_figure(final_panels(summary), out / f"{name}-final", note),
        *panel_figure(summary, out / f"{name}-curves"),
    ]


TABLES_AND_FIGURES = (
    _table("table-1", "Mean final regret", mean_table, table_candidates, has_pictures=True),
    _table("table-2", "Deviation of the final regret", std_table),
    _figure(
        "figure-1",
        "Cumulative regret on MNIST, Mushroom and Shuttle",
        contenders_on("mnist", "mushroom", "shuttle"),
    ),
    _figure("figure-2", "Three likelihoods of GA", likelihood_contenders),
    _figure("figure-3", "Regret under different α(t)", growth_contenders),
    _figure(
        "figure-4",
        "Cumulative regret on Covertype, Magic and Adult",
        contenders_on("covertype", "magic", "adult"),
    ),
)
