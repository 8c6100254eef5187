"""A trial: a policy plays an environment for some rounds, with a seed."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.events import unlogged
from rbmle.core.policy import Policy
from rbmle.core.types import Decision
from rbmle.environments.base import Environment, delay_of, log_of, shown_of
from rbmle.experiments.code import Code, outside_code, own_code
from rbmle.experiments.versions import versions

CHUNK = 100  # rounds between two reports
FILE = "file"  # of an environment's settings: where its data were read


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All that determines a run."""

    policy: Policy[Any]
    name: str  # the policy's, in tables
    environment: Environment
    horizon: int
    seed: int
    # Where a trial is played, the modules of a policy from outside may have no file.
    outside: tuple[tuple[str, str], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read the code that is not rbmle's."""
        object.__setattr__(self, "outside", outside_code(self.policy, self.environment))

    @property
    def code(self) -> Code:
        """Return the code that decides the trial, rbmle's as it is in this process."""
        return replace(own_code(), outside=self.outside)

    @property
    def title(self) -> str:
        """Return the trial in a few words."""
        return f"{self.name} on {self.environment.settings['name']} with seed {self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the trial as JSON, the whole truth."""
        return {
            "policy": self.name,
            "settings": repr(self.policy),
            "environment": self.environment.settings,
            "horizon": self.horizon,
            "seed": self.seed,
            "code": self.code.settings,
        }

    @property
    def id(self) -> str:
        """Return a hash of the trial's content and code: equal trials have one id.

        A file is known by what is in it, not by where it is.
        """
        content = self.settings
        content["environment"] = {k: v for k, v in content["environment"].items() if k != FILE}
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened in a trial."""

    id: str
    settings: dict[str, Any]  # of the trial
    regrets: Float[np.ndarray, " rounds"]  # of each round, not cumulated
    cpu_seconds: float
    wall_seconds: float
    versions: dict[str, str]
    finished: float = 0.0  # seconds since 1970; 0 if it was not recorded

    @property
    def code(self) -> Code:
        """Return the code that the run was made by."""
        return Code.of(self.settings.get("code"), self.versions.get("rbmle", "unknown"))

    @property
    def dataset(self) -> str:
        """Return the name of the environment."""
        return str(self.settings["environment"]["name"])

    @property
    def policy(self) -> str:
        """Return the name of the policy."""
        return str(self.settings["policy"])

    @property
    def seed(self) -> int:
        """Return the seed."""
        return int(self.settings["seed"])

    @property
    def final_regret(self) -> float:
        """Return the cumulative regret at the end."""
        return float(self.regrets.sum())


def play(trial: Trial, report: Callable[[int, float], None] | None = None) -> Run:
    """Play a trial; `report` is called with the rounds played and the regret, now and then.

    Where rewards come late, the last ones come after the last decision, and are not learned. Where arms are
    shown as a list, regret is against the list of the best ones. What a log takes to learn is part of the time.
    """
    world = trial.environment
    _compile(trial)
    bandit = _bandit(trial)
    late, delay, shown = deque[list[tuple[Decision, float]]](), delay_of(world), shown_of(world)
    regrets = np.zeros(trial.horizon, np.float32)
    wall, cpu = time.perf_counter(), time.thread_time()
    if (log := log_of(world, trial.seed)) is not None:
        with unlogged():
            bandit.partial_fit(log.X, log.arms.tolist(), log.rewards)
    for t in range(trial.horizon):
        offer = world.round(t, trial.seed)
        decisions = [bandit.decide(offer.x)] if shown == 1 else bandit.rank(offer.x, shown)
        arms = [int(decision.arm) for decision in decisions]
        late.append(list(zip(decisions, offer.rewards[arms].tolist(), strict=True)))
        if len(late) > delay:
            with unlogged():
                for decision, reward in late.popleft():
                    bandit.learn(decision, reward)
        best = offer.means.max() if shown == 1 else np.sort(offer.means)[-shown:].sum()
        regrets[t] = best - offer.means[arms].sum()
        if report is not None and (t % CHUNK == CHUNK - 1 or t == trial.horizon - 1):
            report(t + 1, float(regrets.sum()))
    return Run(
        id=trial.id,
        settings=trial.settings,
        regrets=regrets,
        cpu_seconds=time.thread_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
        versions=versions(),
        finished=time.time(),
    )


def _bandit(trial: Trial) -> Bandit:
    """Return the bandit of a trial, before any data."""
    world = trial.environment
    return Bandit(
        trial.policy,
        arms=world.arms,
        features=world.features,
        encoding=world.encoding,
        seed=trial.seed,
    )


def _compile(trial: Trial) -> None:
    """Let another bandit play a round, so that no compilation is part of the time of a run."""
    other = _bandit(trial)
    offer = trial.environment.round(0, trial.seed)
    decision = other.decide(offer.x)
    other.learn(decision, float(offer.rewards[int(decision.arm)]))
    other.decide(offer.x)
