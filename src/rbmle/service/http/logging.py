"""What the service says of itself while it runs: lines of JSON, without keys and without features."""

import logging
import sys

import structlog


def configure_logging() -> None:
    """Write to standard error: for people on a terminal, else as JSON for machines."""
    is_watched = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if is_watched else structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
