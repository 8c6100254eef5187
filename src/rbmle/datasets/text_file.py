"""A file of text, compressed or not, as lines."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from rbmle.datasets.errors import DatasetError

ENCODING = "utf-8-sig"  # UTF-8, with or without the mark that spreadsheets put first
DAMAGED = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Yield the text of a file; what goes wrong while it is read becomes a DatasetError."""
    try:
        with _bytes(path) as file, io.TextIOWrapper(file, ENCODING, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{str(path)!r} is not UTF-8 text (byte 0x{error.object[error.start]:02x}: {error.reason}); "
            "save it with the encoding UTF-8"
        ) from error
    except DAMAGED as error:
        raise DatasetError(
            f"{str(path)!r} cannot be unpacked ({error}); it is damaged, or is not compressed as its "
            f"ending {path.suffix} says"
        ) from error
    except OSError as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read ({error.strerror or error}); check the file and its permissions"
        ) from error


def _bytes(path: Path) -> IO[bytes]:
    """Return the content of a file, unpacked as its ending says."""
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".bz2":
            return cast(IO[bytes], bz2.open(path))
        case ".xz":
            return cast(IO[bytes], lzma.open(path))
        case ".zst":
            import pyarrow as pa  # it takes a moment to import

            return cast(IO[bytes], pa.input_stream(str(path), compression="zstd"))
        case ".zip":
            return _only_member(path)
    return path.open("rb")


def _only_member(path: Path) -> IO[bytes]:
    """Return the one file of a ZIP archive."""
    archive = zipfile.ZipFile(path)
    names = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
    if len(names) != 1:
        raise DatasetError(f"{str(path)!r} holds {len(names)} files; expected one; unpack it first")
    return archive.open(names[0])
