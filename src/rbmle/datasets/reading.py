"""What was decided when a user's file was read, so that it can be said and repeated."""

from dataclasses import dataclass
from typing import Any

from rbmle.datasets.csv_file import SEPARATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file was read, and what became of its columns."""

    file: str
    rows: int
    target: str
    separator: str = ","
    decimal: str = "."
    dropped: tuple[str, ...] = ()  # by the user
    ids: tuple[tuple[str, str], ...] = ()  # left out by the reader, and why
    dates: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()  # kept, though they are called ids

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was not as usual, as JSON."""
        stated = {
            "separator": SEPARATORS[self.separator] if self.separator != "," else "",
            "decimal": "comma" if self.decimal == "," else "",
            "dropped": list(self.dropped),
            "left_out": [name for name, _ in self.ids],
            "dates": list(self.dates),
        }
        return {name: value for name, value in stated.items() if value}

    @property
    def notice(self) -> str:
        """Return all of it in one line."""
        parts = [f"{self.rows:,} rows", f"target {self.target}"]
        if self.separator != ",":
            decimal = ", decimal commas" if self.decimal == "," else ""
            parts.append(f"columns separated by {SEPARATORS[self.separator]}{decimal}")
        left_out = [*self.dropped, *(f"{name} ({why})" for name, why in self.ids)]
        if left_out:
            parts.append(f"left out: {', '.join(left_out)}")
        if self.dates:
            what = "a date" if len(self.dates) == 1 else "dates"
            parts.append(f"{', '.join(self.dates)} read as {what}")
        if self.suspects:
            names = ",".join(self.suspects)
            parts.append(
                f"if {' and '.join(self.suspects)} only names rows, leave it out with --drop {names}"
            )
        return f"{self.file}: {'; '.join(parts)}"
