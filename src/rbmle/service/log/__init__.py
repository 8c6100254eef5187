"""Where the service keeps what happened: one durable, totally ordered log, in SQLite or PostgreSQL."""

from rbmle.service.log.base import Log, Row, Stored
from rbmle.service.log.errors import (
    DuplicateRequest,
    LeaseLost,
    LogDamaged,
    LogError,
    LogRefused,
    LogUnavailable,
)
from rbmle.service.log.opening import open_log

__all__ = [
    "DuplicateRequest",
    "LeaseLost",
    "Log",
    "LogDamaged",
    "LogError",
    "LogRefused",
    "LogUnavailable",
    "Row",
    "Stored",
    "open_log",
]
