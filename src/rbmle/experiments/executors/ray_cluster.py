"""A Ray cluster, or Ray on this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbmle.core.errors import SettingError
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial, play


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """Trials as Ray tasks of one core each; runs come back here, and are stored here."""

    address: str | None = None  # such as ray://head:10001; None starts Ray on this machine
    jobs: int = -1  # cores that Ray may use on this machine; −1 for all

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        """Yield the runs as they finish."""
        try:
            import ray
        except ImportError:
            raise SettingError(
                "the executor 'ray' needs Ray, which is not installed; install it with "
                "pip install 'rbmle[ray]', or use --executor processes"
            ) from None
        local = self.address is None
        ray.init(
            address=self.address,
            num_cpus=None if not local or self.jobs < 1 else self.jobs,
            include_dashboard=False if local else None,
            log_to_driver=False,
        )
        try:
            task = ray.remote(num_cpus=1)(play)
            waiting = [task.remote(trial) for trial in trials]
            while waiting:
                ready, waiting = ray.wait(waiting, num_returns=1)
                for run in ray.get(ready):
                    store.put(run)
                    yield run
        finally:
            ray.shutdown()
