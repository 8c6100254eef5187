"""A trial: a policy plays an environment for some rounds, with a seed."""

import ast
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.events import without_logging
from rbmle.core.policy import Policy
from rbmle.core.types import Decision
from rbmle.environments.base import Environment, delay_of, load_data, log_of, shown_of
from rbmle.experiments.code import Code, outside_code, own_code, versions


class TrialError(RBMLEError, RuntimeError):
    """A trial that failed, with its policy, its dataset and its seed."""


CHUNK = 100  # rounds between two reports
FILE = "file"  # of an environment's settings: where its data were read
CLASS = "class"  # of a part of a policy, among its settings


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Everything that determines a run."""

    policy: Policy[Any]
    name: str  # the policy's, in tables
    environment: Environment
    horizon: int
    seed: int
    # Read when the trial is made, because the process that plays it may not have the files.
    outside: tuple[tuple[str, str], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outside", outside_code(self.policy, self.environment))

    @property
    def code(self) -> Code:
        """The code that the trial depends on, with rbmle's as it is in this process."""
        return replace(own_code(), outside=self.outside)

    @property
    def title(self) -> str:
        return f"{self.name} on {self.environment.settings['name']} with seed {self.seed}"

    @cached_property
    def settings(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "settings": describe(self.policy),
            "environment": self.environment.settings,
            "horizon": self.horizon,
            "seed": self.seed,
            "code": self.code.settings,
        }

    @cached_property
    def id(self) -> str:
        """A hash of the trial's content and code: equal trials have one id.

        A file counts by its content, not its path. The policy counts by its `repr`, so that ids are those of
        earlier versions.
        """
        environment = {k: v for k, v in self.settings["environment"].items() if k != FILE}
        content = self.settings | {"settings": repr(self.policy), "environment": environment}
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out settings and id, because another process may have other code."""
        return {k: v for k, v in vars(self).items() if k not in ("settings", "id")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a trial."""

    id: str
    settings: dict[str, Any]  # of the trial, as JSON
    regrets: Float[np.ndarray, " rounds"]  # of each round, not cumulated
    cpu_seconds: float
    wall_seconds: float
    versions: dict[str, str]
    finished: float = 0.0  # seconds since 1970; 0 if it was not recorded

    @property
    def code(self) -> Code:
        return Code.of(self.settings.get("code"), self.versions.get("rbmle", "unknown"))

    @property
    def dataset(self) -> str:
        return str(self.settings["environment"]["name"])

    @property
    def policy(self) -> str:
        return str(self.settings["policy"])

    @property
    def seed(self) -> int:
        return int(self.settings["seed"])

    @property
    def final_regret(self) -> float:
        return float(self.regrets.sum())


def play(trial: Trial, report: Callable[[int, float], None] | None = None) -> Run:
    """Play a trial; `report` is called with the rounds played and the regret, every CHUNK rounds.

    If rewards are delayed, those that come after the last decision are not learned. If arms are shown as a
    list, regret is relative to the list of the best ones. Learning the log counts in the time.
    """
    world = load_data(trial.environment)
    _compile_kernels(trial, world)
    bandit = _make_bandit(trial, world)
    late, delay, shown = deque[list[tuple[Decision, float]]](), delay_of(world), shown_of(world)
    regrets = np.zeros(trial.horizon, np.float32)
    wall, cpu = time.perf_counter(), time.thread_time()
    if (log := log_of(world, trial.seed)) is not None:
        with without_logging():
            bandit.partial_fit(log.X, log.arms.tolist(), log.rewards)
    for t in range(trial.horizon):
        offer = world.round(t, trial.seed)
        decisions = [bandit.decide(offer.x)] if shown == 1 else bandit.rank(offer.x, shown)
        arms = [int(decision.arm) for decision in decisions]
        late.append(list(zip(decisions, offer.rewards[arms].tolist(), strict=True)))
        if len(late) > delay:
            with without_logging():
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


def describe(value: Any) -> Any:
    """Return a policy, or a part of one, as JSON: a dataclass is its class and its fields.

    >>> from rbmle import LinUCB, Ridge
    >>> describe(Ridge())["class"], describe(LinUCB(exploration=0.5))["exploration"]
    ('Ridge', 0.5)
    """
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: describe(getattr(value, f.name)) for f in fields(value) if f.repr}
        return {CLASS: type(value).__qualname__, **parts}
    if isinstance(value, tuple | list):
        return [describe(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def parse_description(text: str) -> Any:
    """Return the description of a policy from its `repr`, which earlier versions stored in runs.

    Any other text stays as it is.
    """
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return _parse_node(node) if isinstance(node, ast.Call) else text


def _parse_node(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=kind, args=[], keywords=words):
            parts = {str(word.arg): _parse_node(word.value) for word in words}
            return {CLASS: ast.unparse(kind), **parts}
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [_parse_node(item) for item in items]
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)


def _make_bandit(trial: Trial, world: Environment) -> Bandit:
    return Bandit(
        trial.policy,
        arms=world.arms,
        features=world.features,
        encoding=world.encoding,
        seed=trial.seed,
    )


def _compile_kernels(trial: Trial, world: Environment) -> None:
    """Let another bandit play a round, so that the time of a run includes no compilation."""
    other = _make_bandit(trial, world)
    offer = world.round(0, trial.seed)
    decision = other.decide(offer.x)
    other.learn(decision, float(offer.rewards[int(decision.arm)]))
    other.decide(offer.x)
