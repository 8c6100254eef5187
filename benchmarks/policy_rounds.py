"""Rounds per CPU second of every policy, through `decide` and `learn`."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from rich.table import Table

from rbmle import POLICIES, Bandit
from rbmle.core.policy import Policy
from rbmle.models.regression import Regression
from rbmle.policies import REFERENCES

ARMS, FEATURES, STEPS, WARM, ROUNDS, TURNS = 10, 20, 100, 100, 1000, 5
AT_LEAST = {"neural-ucb": 4000, "neural-rbmle-pc": 4000, "neural-rbmle-ga": 1500}


def policy_rounds() -> Table:
    """Return rounds per CPU second for each policy, the best of some turns."""
    table = Table("policy", "rounds per CPU second", "against neural-ucb", "at least")
    table.title = f"K = {ARMS}, d = {FEATURES}, J = {STEPS}, one thread, best of {TURNS} turns"
    kinds = {name: kind for name, kind in POLICIES.items() if name not in REFERENCES}
    best = dict.fromkeys(kinds, 0.0)
    for _ in range(TURNS):
        for name, kind in kinds.items():
            best[name] = max(best[name], _rounds_per_second(with_steps(kind())))
    for name, speed in best.items():
        ratio = f"{speed / best['neural-ucb']:.2f}"
        table.add_row(
            name, f"{speed:,.0f}", ratio, f"{AT_LEAST[name]:,}" if name in AT_LEAST else ""
        )
    return table


def with_steps(policy: Any) -> Policy[Any]:
    """Return a policy whose network, if it has one, takes J steps a round, as many as in the paper."""
    model = getattr(policy, "model", None)
    if not isinstance(model, Regression):
        return policy
    training = replace(model.training, steps=STEPS)
    return replace(policy, model=replace(model, training=training))


def _rounds_per_second(policy: Policy[Any]) -> float:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(WARM + ROUNDS, FEATURES)) / FEATURES**0.5
    right = (X @ rng.normal(size=(FEATURES, ARMS))).argmax(axis=1)
    bandit = Bandit(policy, arms=ARMS, features=FEATURES, seed=0)
    for t, x in enumerate(X):
        if t == WARM:
            started = time.process_time()
        decision = bandit.decide(x)
        bandit.learn(decision, float(decision.arm == right[t]))
    return ROUNDS / (time.process_time() - started)
