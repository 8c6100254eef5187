"""`rbmle evaluate`: what policies would have earned on a log that they did not write."""

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

from rbmle.cli.app import app, open_console
from rbmle.cli.extras import require
from rbmle.cli.logs import logged
from rbmle.cli.options import SettingsOption, named_policies
from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.policies.settings import split

if TYPE_CHECKING:
    from rbmle.evaluation import Estimate, Evaluation, Rounds
    from rbmle.service.statistics.logged_lift import LoggedLift

SAVED = ".rbmle"  # the suffix of a saved bandit


@app.command("evaluate")
def evaluate_log(
    log: Annotated[Path, typer.Argument(help="The log: a file, or the folder of rbmle serve.")],
    policy: Annotated[
        str,
        typer.Option(
            help="Names of policies or files of bandits, with commas between; baseline: the baseline "
            "actions of a service's log."
        ),
    ],
    settings: SettingsOption = None,
    estimator: Annotated[
        str, typer.Option(help="replay, dm, ips, clipped, snips, dr, switch, with commas between.")
    ] = "all",
    interval: Annotated[
        str,
        typer.Option(help="sequence: valid at every look; bootstrap, bernstein, normal: at one."),
    ] = "sequence",
    confidence: Annotated[float, typer.Option(help="How sure intervals are.")] = 0.95,
    frozen: Annotated[
        float | None,
        typer.Option(help="Learn this first part of the log, then judge without learning."),
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(help="The smallest and the largest there can be: LOWEST,HIGHEST.")
    ] = None,
    default_reward: Annotated[float, typer.Option(help="What a decision without one got.")] = 0.0,
    propensities: Annotated[
        str, typer.Option(help="Of what missing ones are estimated: contexts, or arms alone.")
    ] = "contexts",
    floor: Annotated[
        float | None,
        typer.Option(
            help="The smallest probability that any action had, if the log does not tell."
        ),
    ] = None,
    clip: Annotated[float, typer.Option(help="The largest weight of clipped and switch.")] = 10.0,
    format: Annotated[
        str | None, typer.Option(help="parquet, csv, dsjson or vw; else by the file's suffix.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave bad rows out, and count them.")] = False,
    seed: Annotated[int, typer.Option(help="Of the policies and of resampling.")] = 0,
    records: Annotated[
        Path | None, typer.Option("--json", help="File for one record per policy and estimator.")
    ] = None,
) -> None:
    """Judge policies on logged decisions; they learn as the log goes on, unless --frozen.

    A log has the columns event_id, context, actions, arm, propensity and reward, as rbmle log
    export writes them.
    """
    require("experiments")
    from rbmle.evaluation import EvaluationWarning, evaluate
    from rbmle.evaluation.targets import BASELINE
    from rbmle.service.statistics.logged_lift import LoggedLift

    console = open_console()
    given, lift = _policies(policy, settings, console), LoggedLift()

    def watch(name: str, rounds: "Rounds", weights: Any) -> None:
        if name == BASELINE:
            lift.add(rounds, weights)

    with logged(log, format) as opened, warnings.catch_warnings(), _progress(console) as step:
        warnings.simplefilter("ignore", EvaluationWarning)  # they are shown below
        found = evaluate(
            opened,
            given,
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
            watch=watch if BASELINE in given else None,
        )
    _show(found, log, console)
    if lift.sums.plays:
        console.print(_over_baseline(lift, confidence), highlight=False, soft_wrap=True)
    if records is not None:
        write_text(records, json.dumps([one.as_dict() for one in found.estimates], indent=1))
        console.print(f"The records are in {records}.", highlight=False)


def _policies(text: str, settings: list[str] | None, console: Console) -> dict[str, Any]:
    """Return what is to be judged, by its name."""
    from rbmle.core.bandit import Bandit
    from rbmle.evaluation.targets import BASELINE

    given: dict[str, Any] = {}
    for part in split(text, ","):
        if part == BASELINE:
            given[part] = part
        elif part.endswith(SAVED):
            if not Path(part).is_file():
                raise SettingError(f"there is no file {part!r}; give a bandit that was saved")
            given[part] = Bandit.load(part)
        else:
            specs = named_policies(part, settings, console)
            given |= {part if len(specs) == 1 else one.name: one.policy() for one in specs}
    if not given:
        raise SettingError("no policy is named; give --policy, as in --policy uniform,lin-ucb")
    return given


def _bounds(text: str | None) -> tuple[float, float] | None:
    """Return the smallest and the largest reward."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise SettingError(f"--rewards is {text!r}, but two numbers are expected: 0,1") from None
    return low, high


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function that shows how far it is."""
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


def _show(found: "Evaluation", log: Path, console: Console) -> None:
    """Print all estimates, and before them what must be known of them."""
    for message in found.warnings:
        console.print(Panel(message, title="WARNING", style="bold red"), highlight=False)
    console.print(
        f"{log}: {found.rounds:,} decisions, which earned {found.mean:.4f} each.",
        highlight=False,
        soft_wrap=True,
    )
    first = found.estimates[0]
    percent = f"{100 * first.confidence:g} % from"
    table = Table("policy", "estimator", "value", percent, "to", "effective", "rounds")
    for column in table.columns[2:]:
        column.justify = "right"
    for one in found.estimates:
        if one.estimator == first.estimator and one is not first:
            table.add_section()
        table.add_row(*_row(one))
    console.print(table)
    if any(one.low is None and one.value is not None for one in found.estimates):
        console.print(
            "–: there is no such interval. dm, clipped and switch are biased, replay needs --floor."
        )


def _over_baseline(lift: "LoggedLift", confidence: float) -> str:
    """Return how much more was earned than the baseline action would have."""
    from rbmle.service.statistics.lift_intervals import lift_of

    sums = lift.sums
    text = f"The policy decided {sums.plays:,} of these plays, which earned {sums.reward / sums.plays:.4f} each"
    found = lift_of(sums, confidence)
    if found is None:
        return f"{text}. The lift over the baseline action is not known: some rewards are beyond −1 to 1."
    scale, unit = (100.0, " %") if found.is_relative else (1.0, " a decision")
    value, low, high = (scale * x for x in (found.value, found.low, found.high))
    places = 1 if found.is_relative else 4
    return (
        f"{text}: {value:+.{places}f}{unit} over the baseline action ({low:.{places}f} to {high:.{places}f}, "
        f"{100 * confidence:g} % at every look), computed as the lift of the dashboard."
    )


def _row(one: "Estimate") -> tuple[str, ...]:
    numbers = ["–" if x is None else f"{x:.4f}" for x in (one.value, one.low, one.high)]
    return one.policy, one.estimator, *numbers, f"{one.effective_sample_size:,.0f}", f"{one.n:,}"
