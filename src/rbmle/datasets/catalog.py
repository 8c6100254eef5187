"""Types for datasets, and the datasets that are known by name: the six of the paper, and digits."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import RBMLEError

if TYPE_CHECKING:
    import pandas as pd  # it takes half a second to import


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


class DatasetError(RBMLEError, ValueError):
    """A dataset is unknown, out of reach or damaged, or a file is not a table of labelled rows."""


def first_line(error: Exception) -> str:
    """Return the class of an error, and the first line of its message."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def sha256(path: Path) -> str:
    """Return the checksum of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read ({error.strerror}); check its permissions"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """How a file was read, and how its columns were used."""

    file: str
    rows: int
    target: str
    separator: str = ","
    decimal: str = "."
    dropped: tuple[str, ...] = ()  # by the user
    ids: tuple[tuple[str, str], ...] = ()  # left out by the reader, and why
    dates: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()  # used as features, though they are named like ids

    @property
    def settings(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A published dataset: its shape, its checksum, and how to cite it."""

    name: str
    label: str = ""  # in tables; its name if empty
    title: str
    file: str | None  # None: it comes with scikit-learn
    rows: int
    features: int
    counts: tuple[int, ...]  # rows of each class, in the order of the classes
    sha256: str  # of the file; of pixels and labels as bytes if there is no file
    licence: str
    citation: str
    doi: str
    openml_id: int | None  # None: OpenML does not have it, or has other rows
    openml_version: int | None
    shipped: bool  # is it part of this package or of one it needs?

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def url(self) -> str:
        return f"https://doi.org/{self.doi}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The raw rows of a file; labels are 0 … K − 1, and classes are their names."""

    name: str
    frame: "pd.DataFrame" = field(repr=False)
    labels: Int[np.ndarray, " rows"] = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    digest: str  # sha256 of the file
    reading: FileReading | None = None  # of a user's file


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Labelled rows; classes are 0 … K − 1."""

    name: str
    X: Float[np.ndarray, "rows features"] = field(repr=False)
    labels: Int[np.ndarray, " rows"] = field(repr=False)
    preprocessing: str = "none"
    digest: str = ""  # sha256 of the file it was read from; empty for arrays of the caller's own
    content: str = ""  # blake2b of X, so that a changed preprocessing is seen
    reading: FileReading | None = None  # of a user's file
    frame: "pd.DataFrame | None" = field(default=None, repr=False)  # raw, if X depends on the order
    classes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", int(self.labels.max()) + 1)


SOURCES = (
    # Does a person of the 1994 US census earn more than 50,000 dollars a year?
    Source(
        name="adult",
        label="Adult",
        title="Adult (Census Income)",
        file="adult.parquet",
        rows=48_842,
        features=14,
        counts=(37_155, 11_687),
        sha256="7fc6d5e5c3c9f1a6d74f4fa24a184edf424172d731e883e41a0d403c3b48eb37",
        licence="CC BY 4.0",
        citation="Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.",
        doi="10.24432/C5XW20",
        openml_id=1590,
        openml_version=2,
        shipped=True,
    ),
    # Which of seven kinds of forest grows on a patch of 30 × 30 metres?
    Source(
        name="covertype",
        label="Covertype",
        title="Covertype",
        file="covertype.parquet",
        rows=581_012,
        features=54,
        counts=(211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510),
        sha256="4a7e007aba1b1a36162af430c4b932740a90a51191949e1c6454d5db2d73e49c",
        licence="CC BY 4.0",
        citation="Blackard, J. (1998). Covertype. UCI Machine Learning Repository.",
        doi="10.24432/C50K5N",
        openml_id=1596,
        openml_version=3,
        shipped=False,
    ),
    # Was the shower of light in a telescope made by a gamma ray or by a hadron?
    Source(
        name="magic",
        label="MagicTelescope",
        title="MAGIC Gamma Telescope",
        file="magic.parquet",
        rows=19_020,
        features=10,
        counts=(12_332, 6_688),
        sha256="aaa2ee1390d9f20d60850925320e48de20fd87689c335369d887119cb0f08a34",
        licence="CC BY 4.0",
        citation="Bock, R. (2004). MAGIC Gamma Telescope. UCI Machine Learning Repository.",
        doi="10.24432/C52C8B",
        openml_id=1120,
        openml_version=1,
        shipped=True,
    ),
    # Handwritten digits of 28 × 28 pixels.
    Source(
        name="mnist",
        label="MNIST",
        title="MNIST",
        file="mnist.parquet",
        rows=70_000,
        features=784,
        counts=(6_903, 7_877, 6_990, 7_141, 6_824, 6_313, 6_876, 7_293, 6_825, 6_958),
        sha256="74e34295734f36115cd9ef472116d6aab50cb5723223f338930bc06c581e1c3a",
        licence="CC BY-SA 3.0 (as commonly given)",
        citation="LeCun, Y., Bottou, L., Bengio, Y. and Haffner, P. (1998). Gradient-based "
        "learning applied to document recognition. Proceedings of the IEEE 86(11).",
        doi="10.1109/5.726791",
        openml_id=554,
        openml_version=1,
        shipped=False,
    ),
    # Is a mushroom of a field guide edible or poisonous?
    Source(
        name="mushroom",
        label="Mushroom",
        title="Mushroom",
        file="mushroom.parquet",
        rows=8_124,
        features=22,
        counts=(4_208, 3_916),
        sha256="926cf782232eb4ace1c83cf3104187706d3d6c0839142397783073078b898346",
        licence="CC BY 4.0",
        citation="Mushroom (1981). UCI Machine Learning Repository.",
        doi="10.24432/C5959T",
        openml_id=24,
        openml_version=1,
        shipped=True,
    ),
    # In which of seven states are the radiators of a space shuttle?
    Source(
        name="shuttle",
        label="Shuttle",
        title="Statlog (Shuttle)",
        file="shuttle.parquet",
        rows=58_000,
        features=9,
        counts=(45_586, 50, 171, 8_903, 3_267, 10, 13),
        sha256="7f63f49b06a0246ed688132f7823c3e10b57f4e3d283be872db16d3a669a8980",
        licence="CC BY 4.0",
        citation="Catlett, J. Statlog (Shuttle). UCI Machine Learning Repository.",
        doi="10.24432/C5WS31",
        openml_id=40685,
        openml_version=1,
        shipped=True,
    ),
    # Handwritten digits of 8 × 8 pixels.
    Source(
        name="digits",
        title="Optical Recognition of Handwritten Digits (test part)",
        file=None,
        rows=1_797,
        features=64,
        counts=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
        sha256="87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826",
        licence="CC BY 4.0",
        citation="Alpaydin, E. and Kaynak, C. (1998). Optical Recognition of Handwritten Digits. "
        "UCI Machine Learning Repository.",
        doi="10.24432/C50P49",
        openml_id=None,
        openml_version=None,
        shipped=True,
    ),
)
DATASETS: dict[str, Source] = {source.name: source for source in SOURCES}
