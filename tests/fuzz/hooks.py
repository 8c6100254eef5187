"""For schemathesis: what a schema cannot say, done to bodies that it takes for right.

Ids are different, what is named is there, and settings fit together. Bodies that are meant to be wrong
stay as they are.
"""

from typing import Any
from urllib.parse import unquote

import schemathesis  # type: ignore[import-not-found,unused-ignore]  # only `make fuzz` installs it

CREATED = 201
SLOTS: dict[str, list[str]] = {}  # of events that were ranked
WAITS = ("PT5S", "PT10M", "PT90M", "P1D", "P2D")
PERIODS = ("P1D", "P7D", "P1Y", "P1DT0.5S")
GUARD_OFF = {"conservative": 0.0, "lowest_reward": -1.0, "highest_reward": 1.0}


@schemathesis.hook  # type: ignore[untyped-decorator,unused-ignore]  # as above
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Mend the body of a call that is meant to succeed."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = case.operation.definition.raw.get("operationId")
    mend = {
        "rank": mended_rank,
        "put_configuration": mended_configuration,
        "patch_configuration": mended_configuration,
        "erase": mended_erasure,
    }.get(operation)
    if mend is not None and isinstance(case.body, dict):
        case.body = mend(case.body)
    if operation == "reward" and isinstance(case.body, dict):
        id = case.path_parameters["id"]  # as it is, or as it stands in a URL
        case.body = mended_reward(case.body, SLOTS.get(id, SLOTS.get(unquote(id))))


@schemathesis.hook  # type: ignore[untyped-decorator,unused-ignore]  # as above
def after_call(context: Any, case: Any, response: Any) -> None:
    """Remember the slots of an event."""
    operation = case.operation.definition.raw.get("operationId")
    if operation == "rank" and response.status_code == CREATED:
        slots = case.body.get("slots") or []
        SLOTS[response.json()["event"]] = [slot["id"] for slot in slots]


def mended_rank(body: dict[str, Any]) -> dict[str, Any]:
    """Return a rank call whose ids are different and there."""
    actions = _distinct(body["actions"])
    ids = [action["id"] for action in actions]
    changed: dict[str, Any] = {"actions": actions}
    if set(ids) <= set(body.get("excluded", [])):
        changed["excluded"] = ids[1:]
    if body.get("slots"):
        changed["slots"] = [
            slot
            | {"baseline": baseline}
            | {"excluded": [id for id in ids if id in slot.get("excluded", []) and id != baseline]}
            for slot, baseline in zip(_distinct(body["slots"]), ids, strict=False)
        ]
    return body | changed


def mended_reward(body: dict[str, Any], slots: list[str] | None) -> dict[str, Any]:
    """Return a reward with the slots of its event, or none; of an event that nobody ranked, as it is."""
    if slots is None:
        return body
    values = [*(body.get("slots") or {}).values(), body.get("value")]
    value = next((value for value in values if value is not None), 0.5)
    return {"slots": dict.fromkeys(slots, value)} if slots else {"value": value}


def mended_configuration(body: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration in its ranges, with a mode that can be changed to at any time."""
    changed: dict[str, Any] = {}
    for name, choices in (
        ("reward_wait_time", WAITS),
        ("model_export_frequency", PERIODS),
        ("auto_optimization_frequency", PERIODS),
    ):
        if body.get(name) is not None:
            changed[name] = choices[len(body[name]) % len(choices)]
    if body.get("learning_mode") == "Apprentice":
        changed["learning_mode"] = "LoggingOnly"
    days = int(body.get("log_retention_days", -1))  # 3.0 is an integer in a schema, and not here
    days = days if days == -1 else max(days, 3)
    again = int(body.get("model_retrain_days", 0))
    changed["log_retention_days"] = days
    changed["model_retrain_days"] = again if days == -1 else min(again, days)
    # Conservative mode asks for other settings, and for rewards in its range; tests of its own have it.
    changed |= {name: off for name, off in GUARD_OFF.items() if name in body}
    if body.get("shadows"):
        changed["shadows"] = ["lin-ucb"]
    return body | changed


def mended_erasure(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request that names something to erase."""
    return body if body.get("where") or body.get("events") else body | {"events": ["nobody"]}


def _distinct(things: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({thing["id"]: thing for thing in reversed(things)}.values())[::-1]
