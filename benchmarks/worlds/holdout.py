"""The lift over a holdout against the truth, in worlds where every action's chance is known.

`python -m benchmarks.worlds.holdout` plays the service, without its network, in a world with a holdout. The
true lift is what the policy would earn minus what the baseline would, in all events, those of the holdout
included. With `--coverage` it counts, over many made-up experiments, how often the interval misses the truth
at any of its looks.
"""

from collections import deque
from itertools import islice

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.worlds.in_process import PER_SECOND, TOGETHER, append, request_of
from benchmarks.worlds.worlds import WORLDS, Event
from rbmle.service.front.decider import assign_units, choose_plays
from rbmle.service.front.requests import RankRequest
from rbmle.service.learner.fold import Fold
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    CELLS,
    OPERATOR,
    Configured,
    Decided,
    Modelled,
    Play,
    Record,
    Rewarded,
)
from rbmle.service.model.published import Published
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.lift import ArmSums, HoldoutSums
from rbmle.service.statistics.lift_intervals import HoldoutLift, holdout_lift, lift_of
from rbmle.service.statistics.summary import Statistics

LATE = 1_000  # events after which a reward is known
WAIT = LATE / PER_SECOND  # seconds
LOOK = 1_000  # events between two looks at the interval


def play(world: str, seed: int, events: int, share: float) -> None:
    """Play a world, and print the lift and the truth at ten looks."""
    stream = islice(WORLDS[world](np.random.default_rng(seed)), events)
    configuration = ServiceConfiguration.from_json(
        {"holdout": share, "reward_wait_time": f"PT{WAIT:.0f}S"}
    )
    log, time, statistics = MemoryLog(), 1_000_000, Statistics()
    fold = Fold(log=log, make=ModelSettings.from_json, watcher=statistics)
    first = [
        Modelled(settings=ModelSettings(seed=seed).to_json()),
        Configured(configuration=configuration.to_json()),
    ]
    append(fold, log, [(OPERATOR, record) for record in first], time)
    waiting: deque[tuple[str, float]] = deque()
    truths: list[float] = []
    while some := list(islice(stream, TOGETHER)):
        due = [waiting.popleft() for _ in range(len(waiting) + 2 * TOGETHER - LATE)]
        append(fold, log, [(id, Rewarded(values={"": reward})) for id, reward in due], time)
        assert fold.bandit is not None
        assert isinstance(fold.model, ModelSettings)
        published = Published(
            model=fold.model, bandit=fold.bandit, configuration=configuration, time=time
        )
        names = [f"e{len(truths) + i}" for i in range(len(some))]
        requests = [_with_unit(name, event) for name, event in zip(names, some, strict=True)]
        assignments = assign_units(names, requests, configuration)
        free = choose_plays(names, requests, published)  # what the policy would show to all
        truths += [_lift(event, plays[0]) for event, plays in zip(some, free, strict=True)]
        shown = choose_plays(names, requests, published, assignments)
        decided: list[tuple[str, Record]] = []
        for name, event, request, plays, assignment in zip(
            names, some, requests, shown, assignments, strict=True
        ):
            record = Decided(
                context=request.context,
                actions=request.actions,
                plays=plays,
                digest="",
                learned=fold.bandit.round,
                assignment=assignment,
            )
            decided.append((name, record))
            waiting.append((name, event.reward(plays[0].chosen)))
        append(fold, log, decided, time)
        time += 1_000 * len(some) // PER_SECOND
        if len(truths) % (events // 10) == 0:
            _print(statistics, truths)


def _with_unit(name: str, event: Event) -> RankRequest:
    unit = event.context.get("user", {}).get("id")
    return msgspec.structs.replace(request_of(name, event), unit=unit)


def _lift(event: Event, play: Play) -> float:
    return float(np.dot(play.probabilities, event.chances) - event.chances[play.baseline])


def _print(statistics: Statistics, truths: list[float]) -> None:
    truth = np.mean(truths[: max(len(truths) - LATE, 1)])
    lift, without = (
        holdout_lift(statistics.holdout),
        lift_of(statistics.ranges.total().over_baseline),
    )
    line = f"{len(truths):8,} events: true lift {truth:+.4f}"
    if lift is not None:
        line += f", over the holdout {_words(lift)}"
    if without is not None:
        value = without.value
        line += f", without it {value:+.3f} ({without.low:+.3f} to {without.high:+.3f})"
        line += " relative" if without.is_relative else ""
    typer.echo(line)


def _words(lift: HoldoutLift) -> str:
    difference = lift.difference
    return f"{difference.value:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"


def coverage(runs: int, units: int, events: int, share: float, spread: float) -> None:
    """Print in how many experiments the interval ever missed the true difference, and how wide it was.

    A unit's chance of a click is 0.2 plus a normal effect of its own, of standard deviation `spread`, and 0.04
    more where the policy decides. With 0 units, each event is a unit of its own.
    """
    misses, last_misses, widths = 0, 0, []
    for run in range(runs):
        rng = np.random.default_rng(run)
        n = units or events
        held, cells = rng.random(n) < share, rng.integers(CELLS, size=n)
        base = np.clip(0.2 + spread * rng.normal(size=n), 0.02, 0.9)
        sums, truth, is_missed = HoldoutSums(share=share, play="baseline"), 0.04, False
        who = rng.integers(units, size=events) if units else np.arange(events)
        rewards = (rng.random(events) < base[who] + 0.04 * ~held[who]).astype(float)
        lift = None
        for start in range(0, events, LOOK):
            at = who[start : start + LOOK]
            for arm, chosen in ((sums.held, held[at]), (sums.policy, ~held[at])):
                _add(arm, cells[at][chosen], rewards[start : start + LOOK][chosen])
            lift = holdout_lift(sums)
            is_out = lift is not None and not lift.difference.low <= truth <= lift.difference.high
            is_missed |= is_out
        if lift is None:  # too few units are held out
            continue
        misses += is_missed
        last_misses += is_out
        widths.append(lift.difference.high - lift.difference.low)
    kind = f"{units:,} units with a spread of {spread}" if units else "each event a unit"
    typer.echo(
        f"{kind}: the interval missed at some look in {misses} of {runs} experiments, at the last one in "
        f"{last_misses}; width at the end {np.mean(widths):.4f}"
    )


def _add(arm: ArmSums, cells: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
    for cell, reward in zip(cells.tolist(), rewards.tolist(), strict=True):
        arm.add(cell, reward)


def main(
    world: str = typer.Option("ids of users", help="A world of benchmarks/worlds."),
    seed: int = typer.Option(0),
    events: int = typer.Option(40_000),
    share: float = typer.Option(0.1, help="The holdout."),
    is_coverage: bool = typer.Option(False, "--coverage", help="Count misses instead."),
    runs: int = typer.Option(1_000, help="Of --coverage."),
) -> None:
    """Compare the lift over the holdout with the truth."""
    if not is_coverage:
        play(world, seed, events, share)
        return
    for units, spread in ((0, 0.0), (2_000, 0.0), (2_000, 0.1), (500, 0.15)):
        coverage(runs, units, events, share, spread)


if __name__ == "__main__":
    typer.run(main)
