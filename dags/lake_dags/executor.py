"""Airflow's LocalExecutor, whose workers find loaded what tasks of the lake load.

Workers are forks of the scheduler, and each task is one of a worker: what the scheduler has loaded before, a task need
not. Where Airflow starts workers in another way, this is LocalExecutor. Whoever upgrades lakelib starts the scheduler
again.
"""

import importlib

from airflow.executors.local_executor import LocalExecutor

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
    """Takes a second and 100 MB to start, which tasks then share."""

    def start(self) -> None:
        if self.is_mp_using_fork:
            for name in _LOADED_BY_TASKS:
                importlib.import_module(name)
        super().start()
