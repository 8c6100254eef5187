"""Processes under load, each on a port of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RBMLE = ("-c", "from rbmle.cli import main; main()")


@contextmanager
def listening(*command: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a Python process that listens on a port, which is its last argument."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running(*command, str(port)) as process:
        _wait_for(port, process)
        yield process, port


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a Python process, which is stopped in the end."""
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has taken."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_of(pid: int) -> int:
    """Return a number that grows with the time at which a process was started; 0 if it has ended."""
    with suppress(OSError):
        return int(_stat(pid)[19])
    return 0


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in family(int(child)))]


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}; start it by hand to see why")
