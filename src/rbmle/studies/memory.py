"""How much memory this process may still take."""

from pathlib import Path

KIB = 1024
MEMINFO = Path("/proc/meminfo")
CONTROL_GROUP = Path("/sys/fs/cgroup")


def free_bytes(meminfo: Path = MEMINFO, group: Path = CONTROL_GROUP) -> int:
    """Return the free memory of the machine, or of its container if that has less; 0 if not known."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * KIB
    except (OSError, ValueError, KeyError):
        return 0
    try:
        limit = int((group / "memory.max").read_text())
        return max(min(free, limit - int((group / "memory.current").read_text())), 0)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free
