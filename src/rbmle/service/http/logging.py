"""The service's own log, on standard error, without keys and without features.

On a terminal it is text for people. Elsewhere every line is a JSON object with `event`, `level` and
`timestamp`: messages for the operator, warnings, lines of uvicorn and asyncio, and tracebacks (in `exception`).
"""

import logging
import sys
import threading
from types import TracebackType
from typing import Any

import structlog

from rbmle.engine.compiled import compiling

Exceptions = tuple[type[BaseException], BaseException, TracebackType | None]


def configure_logging() -> None:
    """Write logs to standard error: as text on a terminal, else as JSON."""
    is_watched = sys.stderr.isatty()
    steps: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last = structlog.dev.ConsoleRenderer() if is_watched else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*steps, last],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # writes each line at once
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *steps],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # Failed statements reach us as exceptions; psycopg also warns of each one in a pipeline, and a client that
    # repeats a request is no reason for a warning.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def take_standard_error() -> None:
    """Configure logging, and send warnings and uncaught exceptions through it."""
    configure_logging()
    if sys.stderr.isatty():
        return
    logging.captureWarnings(True)
    compiling.say = tell
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_thread_exception
    sys.unraisablehook = _log_unraisable


def tell(message: str) -> None:
    """Write a message for the operator."""
    if not _is_json():
        print(message, file=sys.stderr, flush=True)
    else:
        structlog.get_logger().info(message)


def tell_mistake(message: str) -> None:
    """Write why the process ends."""
    if not _is_json():
        print(f"rbmle: {message}", file=sys.stderr, flush=True)
    else:
        structlog.get_logger().error(message)


def _is_json() -> bool:
    return sys.excepthook is _log_uncaught


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    exceptions: Exceptions = (kind, error, traceback)
    structlog.get_logger().error("the process ends with an exception", exc_info=exceptions)


def _log_thread_exception(args: threading.ExceptHookArgs) -> None:
    error = args.exc_value or args.exc_type()
    name = "" if args.thread is None else args.thread.name
    exceptions: Exceptions = (type(error), error, args.exc_traceback)
    structlog.get_logger().error(f"the thread {name} ends with an exception", exc_info=exceptions)


def _log_unraisable(args: "sys.UnraisableHookArgs") -> None:
    error = args.exc_value or args.exc_type()
    exceptions: Exceptions = (type(error), error, args.exc_traceback)
    structlog.get_logger().error("an exception was ignored", exc_info=exceptions)
