"""Notices: what an operator should know now, from any part of the service.

The learner puts its notices into its report, a front end adds its own, and the dashboard and `/metrics` show
all of them. To add one, append a `Notice` to `Report.notices` (learner) or to `FrontEnd.notices` (front end)
for as long as it is true. Nothing else has to change.
"""

from typing import Literal

import msgspec

Level = Literal["info", "warning", "alarm"]
LEVELS: tuple[Level, ...] = ("alarm", "warning", "info")  # the most urgent first


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is true now.

    >>> Notice(code="model-reset", level="info", title="The model was reset.", text="Rewards fell.").code
    'model-reset'
    """

    code: str  # a stable name for machines, in lower case with hyphens
    title: str  # one sentence
    text: str = ""  # what it means, and what to do
    level: Level = "warning"
    since: int | None = None  # when it began, in milliseconds since the epoch; None: unknown


def by_urgency(notices: list[Notice]) -> list[Notice]:
    """Return notices with the most urgent first; equally urgent ones keep their order."""
    return sorted(notices, key=lambda notice: LEVELS.index(notice.level))
