"""Why a request is not answered as it was meant: from what went wrong to the bytes of a refusal."""

import traceback
from dataclasses import replace

import structlog

from rbmle.core.errors import FeatureError, FileError, SettingError
from rbmle.service.api.dialects import Wire
from rbmle.service.api.faults import Fault, Problem, TooLargeError, TooSlowError
from rbmle.service.api.replies import Answer
from rbmle.service.deciding.decider import ConflictError, InFlightError
from rbmle.service.front_end import NotReadyError
from rbmle.service.log.errors import LogUnavailable

RETRY_SECONDS = 1

FAULTS: dict[type[Exception], Fault] = {
    FeatureError: Fault.MALFORMED,
    FileError: Fault.MALFORMED,
    SettingError: Fault.MALFORMED,
    ConflictError: Fault.CONFLICT,
    TooLargeError: Fault.TOO_LARGE,
    TooSlowError: Fault.TIMEOUT,
    LogUnavailable: Fault.UNAVAILABLE,
    NotReadyError: Fault.UNAVAILABLE,
    InFlightError: Fault.UNAVAILABLE,
}

_log = structlog.get_logger()


def problem_of(wire: Wire, operation: str, error: BaseException) -> Problem:
    """Return the refusal of what went wrong; what nobody foresaw is logged, without the request."""
    what = next((FAULTS[kind] for kind in FAULTS if isinstance(error, kind)), None)
    if what is None:
        frames = traceback.format_tb(error.__traceback__)  # the message may have features in it
        _log.error("unforeseen", operation=operation, error=type(error).__name__, frames=frames)
        return wire.fault(Fault.INTERNAL, "the service has a fault of its own; its log has more")
    said = error.told if isinstance(error, LogUnavailable) else str(error)
    problem = wire.fault(what, said)
    return replace(problem, retry_after=RETRY_SECONDS) if what is Fault.UNAVAILABLE else problem


def refusal(wire: Wire, problem: Problem, path: bytes) -> Answer:
    """Return the answer of a refusal."""
    answer = wire.refuse(problem, path)
    headers = answer.headers
    if problem.retry_after is not None:
        headers += ((b"retry-after", b"%d" % problem.retry_after),)
    if problem.status == Fault.TIMEOUT.value:
        headers += ((b"connection", b"close"),)  # the rest of its body is not waited for
    return replace(answer, headers=headers)
