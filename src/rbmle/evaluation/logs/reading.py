"""What is noticed while a log is read: bad rows, which stop it or are counted, and missing rewards."""

from dataclasses import dataclass, field

from rbmle.evaluation.errors import LogFileError

SHOWN = 20  # messages that are kept; the rest are counted


@dataclass(slots=True, kw_only=True)
class Reading:
    """How bad rows are met, and how many there were so far."""

    skips_bad: bool = False
    bad: int = 0
    messages: list[str] = field(default_factory=list)  # of the first bad rows
    unlabelled: int = 0  # rows whose decision was never shown, or let go: they tell nothing
    unrewarded: int = 0  # rows without a reward, which got the default one

    def fault(self, place: str, why: str) -> None:
        """Count a bad row, or raise LogFileError if bad rows are not to be skipped."""
        message = f"{place}: {why}"
        if not self.skips_bad:
            raise LogFileError(
                f"{message}; mend the log, or leave bad rows out with --skip-bad (skips_bad=True)"
            )
        self.bad += 1
        if len(self.messages) < SHOWN:
            self.messages.append(message)
