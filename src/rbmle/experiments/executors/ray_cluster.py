"""A Ray cluster, or Ray on this machine."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbmle.core.errors import SettingError
from rbmle.experiments.executors.base import played
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial


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
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}} if local else None,
        )
        if not local:  # elsewhere there is no file of a policy from outside
            for name in {name for trial in trials for name, _ in trial.outside}:
                ray.cloudpickle.register_pickle_by_value(sys.modules[name])
        try:
            task = ray.remote(num_cpus=1)(played)
            waiting = [task.remote(trial) for trial in trials]
            while waiting:
                ready, waiting = ray.wait(waiting, num_returns=1)
                for run in ray.get(ready):
                    store.put(run)
                    yield run
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        finally:
            ray.shutdown()
