"""An executor is a map over trials: the same runs come out, whichever ran them."""

from rbmle.core.errors import SettingError
from rbmle.experiments.executors.base import Executor
from rbmle.experiments.executors.processes import Processes
from rbmle.experiments.executors.ray_cluster import RayCluster
from rbmle.experiments.executors.serial import Serial

NAMES = ("serial", "processes", "ray")


def executor(name: str, jobs: int = -1) -> Executor:
    """Return an executor by its name; `ray` may have an address, as in ray://head:10001."""
    if jobs == 0 or jobs < -1:
        raise SettingError(
            f"the number of jobs must be at least 1, or -1 for one on each core, got {jobs}"
        )
    if name.startswith("ray://"):
        return RayCluster(address=name, jobs=jobs)
    match name:
        case "serial":
            return Serial()
        case "processes":
            return Processes(jobs=jobs)
        case "ray":
            return RayCluster(jobs=jobs)
    raise SettingError(
        f"there is no executor {name!r}; use {', '.join(NAMES)}, or a ray:// address"
    )


__all__ = ["NAMES", "Executor", "Processes", "RayCluster", "Serial", "executor"]
