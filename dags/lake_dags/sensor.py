"""Waits for the files of a partition: for their marker, or where none is wanted for one that matches."""

import os
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout

from lake_dags.runs import partition_of
from lakelib.errors import InvalidInputError
from lakelib.specs.table_spec import TableSpec


class SourceSensor(BaseSensorOperator):
    """Succeeds when the source of the run's partition is complete. Between two looks it takes no worker.

    It fails for good, and says what it waited for, when the spec's `source.arrival.timeout` is over.
    """

    ui_color = "#f3ead7"

    def __init__(self, *, spec: TableSpec, **kwargs: Any) -> None:
        if spec.source is None:
            raise ValueError(f"{spec.table} has no source to wait for.")
        arrival = spec.source.arrival
        kwargs = {"poke_interval": arrival.poll, "timeout": arrival.timeout, "mode": "reschedule", **kwargs}
        super().__init__(**kwargs)
        self.spec = spec

    def execute(self, context: Context) -> None:
        try:
            super().execute(context)
        except AirflowSensorTimeout as error:
            raise AirflowSensorTimeout(
                f"{self._look(context).missing} did not come within {self.timeout:,.0f} s. Once it is there, clear this"
                " task."
            ) from error

    def poke(self, context: Context) -> bool:
        arrival = self._look(context)
        self.log.info("%s %s", arrival.missing, "is there" if arrival.is_complete else "is not there yet")
        return bool(arrival.is_complete)

    def _look(self, context: Context) -> Any:
        """What has arrived, on local disks, S3 or HDFS; the settings are those of the lake."""
        from lakelib.ops.arrival import find_arrival
        from lakelib.settings import load_settings
        from lakelib.storage.filesystem import open_storage

        settings = load_settings(environ=os.environ)
        try:
            key = partition_of(context, self.spec)
            return find_arrival(open_storage(settings.warehouse, settings.storage), self.spec, key, os.environ)
        except (InvalidInputError, ValueError) as error:
            raise AirflowFailException(str(error)) from None
