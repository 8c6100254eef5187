"""The files of a user that can be read, told by their endings."""

from pathlib import Path

TEXT = (".csv", ".tsv", ".txt")
PARQUET = ".parquet"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")  # of text; Parquet is compressed inside
EXPECTED = ".csv, .tsv or .txt (also compressed: .gz, .bz2, .xz, .zst, .zip), or .parquet"


def is_text(path: Path) -> bool:
    """Say whether a name is that of a file of text, compressed or not."""
    return _plain(path).suffix.lower() in TEXT


def is_table(path: Path) -> bool:
    """Say whether a name is that of a file that can be read."""
    return is_text(path) or path.suffix.lower() == PARQUET


def title(path: Path) -> str:
    """Return the name of a file without its endings: `clicks.csv.gz` is `clicks`."""
    return _plain(path).stem


def _plain(path: Path) -> Path:
    """Return a path without the ending of a compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
