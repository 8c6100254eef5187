"""Files that are written whole or not at all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(path: Path, *, is_synced: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a scratch file, which replaces the path in one step once it is written.

    With `is_synced`, it is on disk by then. The umask is applied to the mode.
    """
    if path.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, "This is a folder; give the name of a file", str(path)
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(scratch, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        if error.filename == str(scratch):  # the user does not know that name
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        with suppress(OSError):
            scratch.unlink()
    if not is_synced:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name is on disk too
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> Path:
    """Write a text, whole or not at all, and return its path."""
    with written_whole(path) as file:
        file.write(text.encode())
    return path
