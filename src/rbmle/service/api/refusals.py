"""Refusals: from what went wrong to the reply that says so."""

import traceback
from dataclasses import replace

import msgspec
import structlog

from rbmle.core.errors import FeatureError, FileError, SettingError
from rbmle.service.api.base import Dialect, Reply
from rbmle.service.api.decoding import target_of
from rbmle.service.api.faults import Fault, Refusal, RefusedError, TooLargeError, TooSlowError
from rbmle.service.deciding.decider import ConflictError, InFlightError
from rbmle.service.deciding.requests import RequestError
from rbmle.service.features.offered import TooManyProductsError
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


def refusal(dialect: Dialect, operation: str, error: BaseException, path: bytes) -> Reply:
    """Return the reply that refuses an operation because of an error."""
    problem = _problem(dialect, operation, error)
    reply = dialect.refuse(problem, path)
    headers = reply.headers
    if problem.retry_after is not None:
        headers += ((b"retry-after", b"%d" % problem.retry_after),)
    if problem.status == Fault.TIMEOUT.value:
        headers += ((b"connection", b"close"),)  # the rest of its body is not waited for
    return msgspec.structs.replace(reply, headers=headers)


def fault_of(error: BaseException) -> Fault | None:
    """Return what kind of fault an error is; None for an unexpected one."""
    return next((FAULTS[kind] for kind in FAULTS if isinstance(error, kind)), None)


def _problem(dialect: Dialect, operation: str, error: BaseException) -> Refusal:
    """Return why a request is refused; an unexpected error is logged, without the request."""
    if isinstance(error, RefusedError):
        return error.problem
    if isinstance(error, RequestError):
        target = target_of(error.target, {}) or None
        return replace(dialect.fault(Fault.MALFORMED, str(error)), target=target)
    what = fault_of(error)
    if what is None:
        frames = traceback.format_tb(error.__traceback__)  # the message may have features in it
        _log.error(
            "unexpected error", operation=operation, error=type(error).__name__, frames=frames
        )
        return dialect.fault(
            Fault.INTERNAL, "the service failed on this request; its own log says why"
        )
    message = error.public_message if isinstance(error, LogUnavailable) else str(error)
    problem = dialect.fault(what, message)
    if isinstance(error, TooManyProductsError):
        problem = replace(problem, target="actions")
    return replace(problem, retry_after=RETRY_SECONDS) if what is Fault.UNAVAILABLE else problem
