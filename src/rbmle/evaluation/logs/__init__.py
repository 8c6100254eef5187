"""Logged decisions: one table, read from and written to the formats in which others keep them."""

from rbmle.evaluation.logs.bandit_feedback import from_bandit_feedback, to_bandit_feedback
from rbmle.evaluation.logs.opening import FORMATS, open_log, write_log
from rbmle.evaluation.logs.reading import Reading
from rbmle.evaluation.logs.table import SCHEMA, Log, LogBatch, TableLog

__all__ = [
    "FORMATS",
    "SCHEMA",
    "Log",
    "LogBatch",
    "Reading",
    "TableLog",
    "from_bandit_feedback",
    "open_log",
    "to_bandit_feedback",
    "write_log",
]
