"""What the service says of itself while it runs, on standard error, without keys and without features.

On a terminal it is text for people. Elsewhere every line is a JSON object with `event`, `level` and
`timestamp`: messages for the operator, warnings, lines of uvicorn and asyncio, and tracebacks (in `exception`).
"""

import logging
import sys
import threading
from types import TracebackType
from typing import Any

import structlog

from rbmle.engine import notice

Exceptions = tuple[type[BaseException], BaseException, TracebackType | None]


def configure_logging() -> None:
    """Write to standard error: for people on a terminal, else as JSON for machines."""
    is_watched = sys.stderr.isatty()
    steps: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last = structlog.dev.ConsoleRenderer() if is_watched else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*steps, last],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one piece
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *steps],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def take_standard_error() -> None:
    """Let nothing of this process go to standard error in another form than that of its log."""
    configure_logging()
    if sys.stderr.isatty():
        return
    logging.captureWarnings(True)
    notice.compiling.say = tell
    sys.excepthook = _of_main
    threading.excepthook = _of_thread
    sys.unraisablehook = _of_finalizer


def tell(message: str) -> None:
    """Tell the operator something."""
    if not _is_json():
        print(message, file=sys.stderr, flush=True)
    else:
        structlog.get_logger().info(message)


def tell_mistake(message: str) -> None:
    """Tell the operator why the process ends."""
    if not _is_json():
        print(f"rbmle: {message}", file=sys.stderr, flush=True)
    else:
        structlog.get_logger().error(message)


def _is_json() -> bool:
    """Return whether standard error was taken, and nobody watches it."""
    return sys.excepthook is _of_main


def _of_main(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    _write("the process ends with an exception", (kind, error, traceback))


def _of_thread(given: threading.ExceptHookArgs) -> None:
    error = given.exc_value or given.exc_type()
    thread = "" if given.thread is None else given.thread.name
    _write(f"the thread {thread} ends with an exception", (type(error), error, given.exc_traceback))


def _of_finalizer(given: "sys.UnraisableHookArgs") -> None:
    error = given.exc_value or given.exc_type()
    _write("an exception was ignored", (type(error), error, given.exc_traceback))


def _write(message: str, exceptions: Exceptions) -> None:
    structlog.get_logger().error(message, exc_info=exceptions)
