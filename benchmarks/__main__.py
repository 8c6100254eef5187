"""Measure the engine against C, the policies in rounds per second, many arms, and late rounds.

All in one run, as ratios where it can be: machines differ, and are busy.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy starts its threads

import typer
from rich.console import Console

from benchmarks.late_rounds import late_rounds
from benchmarks.many_arms import many_arms
from benchmarks.policy_rounds import policy_rounds
from benchmarks.replay_steps import replay_steps


def main(late: int = typer.Option(50_000, help="The late round of the last benchmark.")) -> None:
    """Print four tables."""
    console = Console(width=100)
    console.print(replay_steps())
    console.print(policy_rounds())
    console.print(many_arms())
    console.print(late_rounds(late))


typer.run(main)
