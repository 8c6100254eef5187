"""What a learner needs before it learns: kernels, and the newest checkpoint."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rbmle.engine.notice import seconds_compiled
from rbmle.service.learning.checkpoints import Checkpoints, Restored
from rbmle.service.learning.model import ModelSettings
from rbmle.service.log.base import Log


def prepared(
    log: Log, model: ModelSettings, checkpoints: Checkpoints, notify: Callable[[str], None]
) -> Restored | None:
    """Load kernels while the newest checkpoint that fits the log is read; return it, or None."""
    with ThreadPoolExecutor(1) as beside:
        warm = beside.submit(_warm_up, model)
        found = _restored(log, checkpoints, notify)
        warm.result()
    return found


def _warm_up(model: ModelSettings) -> None:
    """Load the kernels that decide; if they had to be compiled, those that learn are too, before all else."""
    before = seconds_compiled()
    model.warm_up(is_learning=False)
    if seconds_compiled() > before:
        model.warm_up()


def _restored(log: Log, checkpoints: Checkpoints, notify: Callable[[str], None]) -> Restored | None:
    for found in checkpoints.restore(log):
        if found.state is not None:
            return found
        notify(f"{found.path.name} is not used: {found.why}")
    return None
