"""Airflow's LocalExecutor, whose workers find loaded what tasks of the lake load.

Workers are forks of the scheduler, and each task is one of a worker: what the scheduler has loaded before, a task need
not. Where Airflow starts workers in another way, this is LocalExecutor. Whoever upgrades lakelib starts the scheduler
again.
"""

import importlib
import os

from airflow.executors.local_executor import LocalExecutor

from .forks import ADDRESS, Forks
from .places import job_environment

_LOADED_BY_TASKS = (
    "airflow.providers.standard.operators.hitl",
    "airflow.providers.standard.triggers.temporal",
    "airflow.sdk.execution_time.supervisor",
    "lakelib.ops.arrival",
    "lakelib.pipeline.following",
)
"""None of DAG files, for those may change while Airflow runs; and nothing that starts threads of which its forks would
know."""


class WarmExecutor(LocalExecutor):
    """Takes a second and 100 MB to start, which tasks then share; and has the process of which their jobs are forks."""

    _forks: Forks | None = None

    def start(self) -> None:
        if self.is_mp_using_fork:
            self._forks = Forks(job_environment())
            self._forks.ensure()
            os.environ[ADDRESS] = self._forks.address
            for name in _LOADED_BY_TASKS:
                importlib.import_module(name)
        super().start()

    def sync(self) -> None:
        if self._forks is not None:
            self._forks.ensure()
        super().sync()

    def end(self) -> None:
        super().end()
        if self._forks is not None:
            self._forks.end()
