"""Logs to judge policies on."""

import numpy as np

from rbmle.service.log.base import Log, Stored
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    EVALUATIONS,
    EvaluationAsked,
    Modelled,
    OfferedAction,
    Record,
    Ticked,
    pack_features,
)
from tests.service.exports.samples import (
    START,
    USUAL,
    WAIT,
    Told,
    configured,
    decided,
    play,
    rewarded,
    tell,
)

IDS = ("tea", "coffee")


def day(rounds: int = 400, log: Log | None = None) -> Log:
    """Return a log whose visitors like tea in the morning, and coffee else; nothing else matters."""
    rng = np.random.default_rng(0)
    story: list[Told] = [(0, "", Modelled(settings={"seed": 0})), configured(USUAL)]
    for number in range(rounds):
        is_morning, chosen = bool(rng.random() < 0.5), int(rng.random() < 0.75)
        context = {"time": "am" if is_morning else "pm", "noise": float(rng.normal())}
        event = f"e{number}"
        choice = play(probabilities=[0.25, 0.75], chosen=chosen)
        actions = [OfferedAction(id=id, features=pack_features([{"hot": True}])) for id in IDS]
        likes = 0 if is_morning else 1
        story += [
            (
                number,
                event,
                decided(context=pack_features([context]), actions=actions, plays=[choice]),
            ),
            (number, event, rewarded(float(chosen == likes))),
        ]
    story.append((rounds + WAIT + 1_000, "\x1f", Ticked()))
    log = MemoryLog() if log is None else log
    tell(log, *story)
    return log


def asked(**changes: object) -> EvaluationAsked:
    usual: dict[str, object] = {"id": "one", "name": "one", "start": START, "end": START + WAIT}
    return EvaluationAsked(**usual | changes)  # type: ignore[arg-type]  # they are of its fields


def ask(log: Log, record: Record) -> Stored:
    """Write a record of evaluations, and return it."""
    tell(log, (2 * WAIT, EVALUATIONS, record))
    return log.of_event(EVALUATIONS)[-1]
