"""Never below the baseline: how often the promise is broken, and what it costs in reward."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console

from rbmle.core.bandit import Bandit
from rbmle.core.files import write_text
from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation.conservative import ConservativeBandit, Guard
from rbmle.experiments.tables import Entry, ReportTable, markdown
from rbmle.policies import LinUCB
from rbmle.studies.base import JSONRecord, load_or_measure

NAME, TITLE = (
    "conservative",
    "Never below the baseline: violations in 1,000 runs, and what it costs",
)
RUNS, QUICK_RUNS = 1_000, 4
ROUNDS, QUICK_ROUNDS = 5_000, 100
LONG_RUNS, LONG_ROUNDS = 10, 10_000  # for what it costs with LinUCB
BLOCK = 100  # runs that are kept together
ARMS, FEATURES = 4, 5  # of features there are as many as kinds of visitors
ERROR = 0.05  # δ
TOLERANCE = 0.1  # α, where violations are counted
TOLERANCES = (0.05, 0.1, 0.2)
BASELINE = 0.4  # its mean reward, for any visitor
SPREAD = 0.25  # of the other arms' means
EXPLORING = 0.05  # share of its rounds in which the greedy policy plays any arm
PRIOR = 2.0  # plays with the baseline's mean that it begins with

Means = Float[np.ndarray, "kinds arms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What arms pay to each kind of visitor; arm 0 is the baseline."""

    learns: bool = True  # the policy is greedy by the means so far; else it plays any arm
    turns: bool = False  # after a half, other arms pay nothing
    pays: bool = True  # other arms pay anything at all

    def means(self, rng: np.random.Generator, *, is_late: bool) -> Means:
        means = np.clip(BASELINE + SPREAD * rng.normal(size=(FEATURES, ARMS)), 0.0, 1.0)
        if not self.pays or (self.turns and is_late):
            means[:] = 0.0
        means[:, 0] = BASELINE
        return means


WORLDS = {
    "a policy that learns": World(),
    "other arms stop paying half-way": World(turns=True),
    "uniform play, other arms pay nothing": World(learns=False, pays=False),
}


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Play what the folder lacks, write the tables in Markdown, and return the file."""
    runs, rounds = (QUICK_RUNS, QUICK_ROUNDS) if quick else (RUNS, ROUNDS)
    folder = out / NAME / "runs"
    promises = {
        (name, tolerance): _outcomes(folder, name, tolerance, runs, rounds)
        for name in WORLDS
        for tolerance in (TOLERANCE, None)
    }
    console.print(markdown(promised := promise_table(promises, runs, rounds)))
    runs, rounds = (QUICK_RUNS, QUICK_ROUNDS) if quick else (LONG_RUNS, LONG_ROUNDS)
    costs = {
        tolerance: _outcomes(folder, LINUCB, tolerance, runs, rounds)
        for tolerance in (*TOLERANCES, None)
    }
    text = markdown(promised) + "\n" + markdown(cost_table(costs, runs, rounds))
    return [write_text(out / NAME / f"{NAME}.md", text)]


def _outcomes(
    folder: Path, name: str, tolerance: float | None, runs: int, rounds: int
) -> Float[np.ndarray, "runs outcomes"]:
    """Return the outcomes of all runs; `tolerance` is None for the policy without a guard."""
    outcomes = []
    for first in range(0, runs, BLOCK):
        seeds = range(first, min(first + BLOCK, runs))
        settings = {"world": name, "tolerance": tolerance, "rounds": rounds, "error": ERROR}
        where: JSONRecord = settings | {"seeds": [seeds.start, seeds.stop]}
        measure = partial(_play_all, name, tolerance, seeds, rounds)
        outcomes += load_or_measure(folder, where, measure)["outcomes"]
    return np.array(outcomes)


def _play_all(name: str, tolerance: float | None, seeds: range, rounds: int) -> JSONRecord:
    if name == LINUCB:
        return {"outcomes": [play_lin_ucb(tolerance, seed, rounds) for seed in seeds]}
    return {"outcomes": [play(WORLDS[name], tolerance, seed, rounds) for seed in seeds]}


class Score:
    """The cumulative mean reward beside that of the baseline."""

    def __init__(self) -> None:
        self.rounds = self.opened = 0
        self.played = self.expected = self.baseline = 0.0
        self.least_played = self.least_expected = np.inf

    def add(self, played: float, expected: float, *, is_open: bool) -> None:
        self.rounds += 1
        self.opened += is_open
        self.played += played
        self.expected += expected
        self.baseline += BASELINE
        self.least_played = min(self.least_played, self.played / self.baseline)
        self.least_expected = min(self.least_expected, self.expected / self.baseline)

    def outcomes(self) -> list[float]:
        """Return the smallest shares of the baseline's reward, the mean reward and the share of open rounds."""
        mean, opened = self.played / self.rounds, self.opened / self.rounds
        return [float(self.least_played), float(self.least_expected), mean, opened]


def play(world: World, tolerance: float | None, seed: int, rounds: int) -> list[float]:
    """Return the outcomes of one run of a policy that knows the kind of each visitor."""
    rng = generator(seed, Purpose.ENVIRONMENT, 0)
    pair = [
        world.means(generator(seed, Purpose.ENVIRONMENT, 1), is_late=late) for late in (False, True)
    ]
    guard = None if tolerance is None else Guard(tolerance, ERROR)
    plays, paid = np.full((FEATURES, ARMS), PRIOR), np.full((FEATURES, ARMS), PRIOR * BASELINE)
    kinds = rng.integers(FEATURES, size=rounds).tolist()
    others = rng.integers(ARMS, size=rounds).tolist()
    luck = rng.random((rounds, 3)).tolist()
    score = Score()
    for number in range(rounds):
        kind, (for_arm, for_mix, for_reward) = kinds[number], luck[number]
        means = pair[2 * number >= rounds][kind]
        is_greedy = world.learns and for_arm >= EXPLORING
        proposal = int((paid[kind] / plays[kind]).argmax()) if is_greedy else others[number]
        share = 0.0 if guard is None else guard.share()  # no reward is pending
        chance = 1.0 if proposal == 0 else share
        arm = 0 if for_mix < chance else proposal
        reward = float(for_reward < means[arm])
        if guard is not None:
            guard.add(chance, is_baseline=arm == 0, reward=reward)
        plays[kind, arm] += 1
        paid[kind, arm] += reward
        expected = chance * means[0] + (1 - chance) * means[proposal]
        score.add(float(means[arm]), float(expected), is_open=share < 1)
    return score.outcomes()


LINUCB = "LinUCB"


def play_lin_ucb(tolerance: float | None, seed: int, rounds: int) -> list[float]:
    """Return the outcomes of one run of LinUCB, where arms pay by the features of the visitor."""
    rng = generator(seed, Purpose.ENVIRONMENT, 0)
    theta = SPREAD / 2 * rng.normal(size=(FEATURES, ARMS))
    bandit = Bandit(LinUCB(), arms=ARMS, features=FEATURES + 1, seed=seed, floor=0.01)
    player = (
        bandit
        if tolerance is None
        else ConservativeBandit(bandit, baseline=0, tolerance=tolerance, error=ERROR)
    )
    score = Score()
    for _ in range(rounds):
        x = rng.normal(size=FEATURES)
        means = np.clip(BASELINE + x @ theta, 0.0, 1.0)
        means[0] = BASELINE
        decision = player.decide(np.append(x, 1.0))
        assert decision.probabilities is not None
        arm = int(decision.arm)
        player.learn(decision, float(rng.random() < means[arm]))
        is_open = bool(decision.probabilities[0] < 1)
        score.add(float(means[arm]), float(decision.probabilities @ means), is_open=is_open)
    return score.outcomes()


def promise_table(
    outcomes: dict[tuple[str, float | None], Float[np.ndarray, "runs outcomes"]],
    runs: int,
    rounds: int,
) -> ReportTable:
    """Return in how many runs the cumulative reward was ever too low, with and without the guard."""

    def row(name: str, tolerance: float | None) -> tuple[str, tuple[Entry, ...]]:
        values = outcomes[name, tolerance]
        ever = values[:, :2] < 1 - TOLERANCE
        cells = [
            *(f"{int(count):,} of {runs:,}" for count in ever.sum(axis=0)),
            f"{values[:, 0].min():.3f}",
            f"{values[:, 2].mean():.3f}",
            f"{values[:, 3].mean():.0%}",
        ]
        how = "without a guard" if tolerance is None else f"guarded, α = {tolerance:g}"
        return f"{name}: {how}", tuple(Entry(text=cell) for cell in cells)

    return ReportTable(
        caption=f"Runs in which the cumulative mean reward was ever below {1 - TOLERANCE:g} of the "
        f"baseline's, in {rounds:,} rounds; the baseline earns {BASELINE:g}, δ = {ERROR:g}.",
        corner="World",
        columns=(
            "below, as played",
            "below, as expected",
            "smallest share",
            "mean reward",
            "rounds with the policy",
        ),
        rows=tuple(row(name, tolerance) for name, tolerance in outcomes),
    )


def cost_table(
    outcomes: dict[float | None, Float[np.ndarray, "runs outcomes"]], runs: int, rounds: int
) -> ReportTable:
    """Return what the guard costs where the policy is better than the baseline."""
    free = outcomes[None][:, 2]

    def row(tolerance: float | None) -> tuple[str, tuple[Entry, ...]]:
        values = outcomes[tolerance]
        gain = (values[:, 2].mean() - BASELINE) / (free.mean() - BASELINE)
        cells = [
            f"{values[:, 2].mean():.4f}",
            f"{gain:.0%}",
            f"{values[:, 3].mean():.0%}",
            f"{values[:, 0].min():.3f}",
        ]
        title = "without a guard" if tolerance is None else f"α = {tolerance:g}"
        return title, tuple(Entry(text=cell) for cell in cells)

    return ReportTable(
        caption=f"What the guard costs where LinUCB is better: {rounds:,} rounds, {runs:,} runs.",
        corner="Tolerance",
        columns=(
            "mean reward",
            "gain over the baseline, of the one without",
            "rounds with the policy",
            "smallest share",
        ),
        rows=tuple(map(row, outcomes)),
    )
