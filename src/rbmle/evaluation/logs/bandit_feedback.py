"""Open Bandit Pipeline's `bandit_feedback`: a dictionary of arrays, with one reward for each round."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from rbmle.evaluation.logs.lines import objects
from rbmle.evaluation.logs.table import SCHEMA, DecisionLog, LogReading, TableLog
from rbmle.evaluation.results import LogFileError


def from_bandit_feedback(feedback: Mapping[str, Any]) -> TableLog:
    """Return the log of a `bandit_feedback`; its arms have the ids "0", "1", …

    `action_context` are features of the arms, unless it is the identity, which adds nothing to their ids.
    Several positions are refused, because the probability of an arm depends on them.
    """
    missing = [
        name for name in ("n_actions", "context", "action", "reward") if name not in feedback
    ]
    if missing:
        raise LogFileError(
            f"the dictionary has no {', '.join(missing)}; give bandit_feedback as OBP's datasets return it"
        )
    n, arms = len(feedback["action"]), int(feedback["n_actions"])
    position = feedback.get("position")
    if position is not None and np.any(np.asarray(position) != 0):
        raise LogFileError("`position` has several values, but logs with one position are read")
    items = feedback.get("action_context")
    plain = items is None or (
        np.shape(items) == (arms, arms) and np.array_equal(items, np.eye(arms))
    )
    encode = msgspec.json.Encoder().encode
    actions = encode(
        [
            {"id": str(arm)}
            if plain
            else {"id": str(arm), "features": np.asarray(items)[arm].tolist()}
            for arm in range(arms)
        ]
    ).decode()
    contexts = np.asarray(feedback["context"], float).reshape(n, -1).tolist()
    chances = feedback.get("pscore")
    return TableLog(
        {
            "event_id": pa.array([str(i) for i in range(n)]),
            "context": pa.array([encode(x).decode() for x in contexts]),
            "actions": pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [actions]),
            "arm": pa.array([str(arm) for arm in np.asarray(feedback["action"]).tolist()]),
            "propensity": pa.nulls(n, pa.float64())
            if chances is None
            else np.asarray(chances, float),
            "reward": np.asarray(feedback["reward"], float),
            "probabilities": pa.nulls(n, SCHEMA.field("probabilities").type)
            if feedback.get("pi_b") is None
            else pa.array(
                np.asarray(feedback["pi_b"], float).reshape(n, arms, -1)[:, :, 0].tolist()
            ),
        },
        "the bandit feedback",
    )


def to_bandit_feedback(log: DecisionLog) -> dict[str, Any]:
    """Return a log as `bandit_feedback`; contexts must be arrays of numbers, and all rounds have equal arms."""
    decode = msgspec.json.decode
    contexts, arms, rewards, chances, menus = [], [], [], [], set()
    for batch in log.batches(LogReading()):
        contexts += [decode(text) for text in batch.table["context"].to_pylist()]
        arms += batch.table["arm"].to_pylist()
        rewards.append(np.asarray(batch.table["reward"]))
        chances.append(batch.table["propensity"].to_numpy(zero_copy_only=False))
        menus |= set(batch.table["actions"].to_pylist())
    if len(menus) != 1:
        raise LogFileError(
            f"{log.name} has {len(menus)} different lists of actions, but bandit_feedback has one"
        )
    offers = [
        action if isinstance(action, dict) else {"id": action} for action in decode(menus.pop())
    ]
    ids = [str(action["id"]) for action in offers]
    features = [action.get("features") for action in offers]
    has_own = all(
        isinstance(vector, list) and vector and objects(vector)[0] is not vector[0]
        for vector in features
    )
    try:
        X = np.array(contexts, float)
    except (TypeError, ValueError):
        raise LogFileError(
            f"{log.name} has contexts that are not arrays of numbers, which bandit_feedback needs"
        ) from None
    return {
        "n_rounds": len(arms),
        "n_actions": len(ids),
        "context": X,
        "action_context": np.array(features, float) if has_own else np.eye(len(ids)),
        "action": np.array([ids.index(arm) for arm in arms]),
        "position": None,
        "reward": np.concatenate(rewards),
        "expected_reward": None,
        "pi_b": None,
        "pscore": np.concatenate(chances),
    }
