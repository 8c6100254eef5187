"""What an event is worth: in the end, so far, and when a reward comes that is late."""

from collections.abc import Collection

from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.decision_cache import DecisionRow
from rbmle.service.learning.events import Counts, Pending, Settled
from rbmle.service.learning.foresight import Foresight
from rbmle.service.log.records import Play

SECOND = 1_000  # milliseconds


def deadline_of(time: int, configuration: ServiceConfiguration) -> int:
    """Return when an event is over: at the first whole second after its wait."""
    return -(-(time + configuration.wait_milliseconds) // SECOND) * SECOND


def finals(
    pending: Pending, decision: DecisionRow, default: float | None, counts: Counts
) -> list[Settled]:
    """Settle the slots of an event that have a reward, or all of them if there is a default."""
    found = []
    for play in decision[1].plays:
        value, time = pending.values.get(play.slot, (default, None))
        if play.slot in pending.settled or value is None:
            continue
        pending.settled += (play.slot,)
        if time is None:
            counts.defaulted += 1
        else:
            counts.joined += 1
        found.append(_settled(decision, play, value, time, is_learned=pending.learned))
    return found


def so_far(pending: Pending, decision: DecisionRow, default: float) -> list[Settled]:
    """Return what each slot of an event is worth so far, with the default where there is no reward."""
    return [
        _settled(decision, play, *pending.values.get(play.slot, (default, None)), is_learned=True)
        for play in decision[1].plays
    ]


def late(
    pending: Pending,
    decision: DecisionRow,
    slots: Collection[str],
    foresight: Foresight,
    default: float,
) -> list[Settled]:
    """Return what is to be learned of some slots that got a reward after they were learned without one."""
    return [
        _settled(decision, play, foresight.late(value, default), time, is_learned=True)
        for play in decision[1].plays
        if play.slot in slots
        for value, time in [pending.values[play.slot]]
    ]


def _settled(
    decision: DecisionRow, play: Play, reward: float, time: int | None, *, is_learned: bool
) -> Settled:
    stored, decided = decision
    return Settled(
        stored=stored,
        decided=decided,
        play=play,
        reward=reward,
        reward_time=time,
        is_learned=is_learned,
    )
