"""What the learner tells of itself: front ends show it, and decide without it."""

import msgspec

from rbmle.service.learning.events import Counts
from rbmle.service.notices import Notice
from rbmle.service.statistics import StatisticsSummary

DAYS = "days"  # the name of the publication of what was counted day by day
DAYS_SECONDS = 60.0  # between two of them


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How the learner is, and what it has counted."""

    time: int  # when it was written, in milliseconds since the epoch
    origin: str = ""  # of the log
    seq: int = 0  # the last record that was learned
    counted: int = 0  # the last record that the counts and the summary know, which never goes back
    records: int = 0  # in the log, at that time
    observations: int = 0  # that the model has learned
    pending: int = 0  # events that are not settled
    counts: Counts = msgspec.field(default_factory=Counts)
    summary: StatisticsSummary = msgspec.field(default_factory=StatisticsSummary)
    log_bytes: int = 0
    unavailable_since: int | None = None  # milliseconds; None: the log can be read
    unavailable_why: str = ""
    broken: str = ""  # why it has stopped, and will not go on
    has_slots: bool = False  # an event that it has read since its start has slots
    notices: list[Notice] = []  # what the operator should know
    learner: str = ""  # the machine, the folder and the process that wrote it
