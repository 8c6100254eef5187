"""`rbmle evaluate`: estimate what policies would have earned on a log of another policy."""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rbmle.cli.app import JUDGE, command, open_console, print_line
from rbmle.cli.extras import require
from rbmle.cli.options import SettingsOption, complete_policy, named_policies
from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.policies.settings import split

if TYPE_CHECKING:
    from rbmle.evaluation import Evaluation, Rounds
    from rbmle.service.statistics.lift import LoggedLift

SAVED = ".rbmle"  # the suffix of a saved bandit


@command(JUDGE, "evaluate")
def evaluate_log(
    log: Annotated[Path, typer.Argument(help="The log: a file, or the folder of rbmle serve.")],
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=complete_policy,
            help="Policies, separated by commas: names, with settings as in lin-ucb:exploration=0.5; files of "
            "saved bandits; or baseline, the baseline actions in the log of a service.",
        ),
    ],
    settings: SettingsOption = None,
    estimator: Annotated[
        str,
        typer.Option(
            help="Estimators, separated by commas: replay, dm, ips, clipped, snips, dr, switch."
        ),
    ] = "all",
    interval: Annotated[
        str,
        typer.Option(
            help="How intervals are computed: sequence stays valid however often you look; bootstrap, "
            "bernstein and normal are for one look."
        ),
    ] = "sequence",
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    frozen: Annotated[
        float | None,
        typer.Option(
            help="Learn from this first share of the log, then judge without learning.",
            show_default="learn all the way",
        ),
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(
            help="Smallest and largest possible reward, as in 0,5.",
            show_default="0,1 or -1,1 if the log fits",
        ),
    ] = None,
    default_reward: Annotated[
        float, typer.Option(help="Reward of a decision that has none in the log.")
    ] = 0.0,
    propensities: Annotated[
        str,
        typer.Option(
            help="How to estimate missing propensities: from contexts, or from arms, which means from arm "
            "frequencies."
        ),
    ] = "contexts",
    floor: Annotated[
        float | None,
        typer.Option(
            help="Smallest probability that any action had, if the log does not have the probabilities of all "
            "actions."
        ),
    ] = None,
    clip: Annotated[
        float, typer.Option(help="Largest weight in the estimators clipped and switch.")
    ] = 10.0,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the file: parquet, csv, dsjson or vw.", show_default="by its suffix"
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option(help="Skip bad rows and count them.", show_default=False)
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the policies and of resampling.")] = 0,
    records: Annotated[
        Path | None,
        typer.Option("--json", help="Also write one record per policy and estimator to this file."),
    ] = None,
) -> None:
    """Estimate what policies would have earned on logged decisions. They learn from the log on the way.

    A log has the columns event_id, context, actions, arm, propensity and reward, as rbmle log export writes
    them.

    rbmle evaluate log.parquet --policy uniform,lin-ucb:exploration=0.5
    rbmle evaluate log.dsjson --policy my-bandit.rbmle --estimator ips,dr
    rbmle evaluate my-service --policy baseline
    """
    require("experiments")
    from rbmle.cli.logs import open_decisions
    from rbmle.evaluation import EvaluationWarning, evaluate
    from rbmle.evaluation.targets import BASELINE
    from rbmle.service.statistics.lift import LoggedLift

    console = open_console()
    policies, lift = _policies(policy, settings, console), LoggedLift()

    def watch(name: str, rounds: "Rounds", weights: Any) -> None:
        if name == BASELINE:
            lift.add(rounds, weights)

    with (
        open_decisions(log, format) as opened,
        warnings.catch_warnings(),
        _progress(console) as step,
    ):
        warnings.simplefilter("ignore", EvaluationWarning)  # they are shown below
        evaluation = evaluate(
            opened,
            policies,
            estimators=estimator,
            interval=interval,
            confidence=confidence,
            frozen=frozen,
            rewards=_bounds(rewards),
            default_reward=default_reward,
            propensities=propensities,
            floor=floor,
            clip=clip,
            skips_bad=skip_bad,
            seed=seed,
            step=step,
            watch=watch if BASELINE in policies else None,
        )
    _show(evaluation, log, console)
    if lift.sums.plays:
        print_line(_over_baseline(lift, confidence), console)
    if records is not None:
        estimates = [estimate.as_dict() for estimate in evaluation.estimates]
        write_text(records, json.dumps(estimates, indent=1))
        print_line(f"The records are in {records}.", console)


def _policies(text: str, settings: list[str] | None, console: Console) -> dict[str, Any]:
    from rbmle.core.bandit import Bandit
    from rbmle.evaluation.targets import BASELINE

    policies: dict[str, Any] = {}
    for part in split(text, ","):
        if part == BASELINE:
            policies[part] = part
        elif part.endswith(SAVED):
            if not Path(part).is_file():
                raise SettingError(f"there is no file {part!r}; give a bandit that was saved")
            policies[part] = Bandit.load(part)
        else:
            specs = named_policies(part, settings, console)
            policies |= {part if len(specs) == 1 else spec.name: spec.policy() for spec in specs}
    if not policies:
        raise SettingError("no policy is named; give --policy, as in --policy uniform,lin-ucb")
    return policies


def _bounds(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise SettingError(f"--rewards is {text!r}, but two numbers are expected: 0,1") from None
    return low, high


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, int | None], None]]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} decisions"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("reading", total=None)

        def step(what: str, done: int, of: int | None) -> None:
            progress.update(bar, description=what, completed=done, total=of)

        yield step


def _show(evaluation: "Evaluation", log: Path, console: Console) -> None:
    for message in evaluation.warnings:
        console.print(Panel(message, title="WARNING", style="bold red"), highlight=False)
    print_line(
        f"{log}: {evaluation.rounds:,} decisions, which earned {evaluation.mean:.4f} each.", console
    )
    first = evaluation.estimates[0]
    percent = f"{100 * first.confidence:g} % from"
    table = Table("policy", "estimator", "value", percent, "to", "effective", "rounds")
    for column in table.columns[2:]:
        column.justify = "right"
    for estimate in evaluation.estimates:
        if estimate.estimator == first.estimator and estimate is not first:
            table.add_section()
        ends = [
            "–" if x is None else f"{x:.4f}" for x in (estimate.value, estimate.low, estimate.high)
        ]
        effective, rounds = f"{estimate.effective_sample_size:,.0f}", f"{estimate.n:,}"
        table.add_row(estimate.policy, estimate.estimator, *ends, effective, rounds)
    console.print(table)
    if any(e.low is None and e.value is not None for e in evaluation.estimates):
        console.print(
            "–: there is no such interval. dm, clipped and switch are biased, replay needs --floor."
        )


def _over_baseline(lift: "LoggedLift", confidence: float) -> str:
    """Return how much more the policy earned than the baseline action would have."""
    from rbmle.service.statistics.lift_intervals import lift_of

    sums = lift.sums
    text = f"The policy decided {sums.plays:,} of these plays, which earned {sums.reward / sums.plays:.4f} each"
    estimate = lift_of(sums, confidence)
    if estimate is None:
        return f"{text}. The lift over the baseline action is not known: some rewards are beyond −1 to 1."
    scale, unit = (100.0, " %") if estimate.is_relative else (1.0, " a decision")
    value, low, high = (scale * x for x in (estimate.value, estimate.low, estimate.high))
    places = 1 if estimate.is_relative else 4
    return (
        f"{text}: {value:+.{places}f}{unit} over the baseline action ({low:.{places}f} to {high:.{places}f}, "
        f"{100 * confidence:g} % at every look), computed as the lift of the dashboard."
    )
