"""Waits for the files of a partition: for their marker, or where none is wanted for one that matches.

A worker looks first. What is not there yet is waited for by the triggerer, which looks again and again and needs no
process for it. Whatever brings a worker back (the time is over, the trigger has failed, no triggerer runs), the worker
looks itself and goes by what it sees.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout
from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

from lake_dags.runs import clear_number_of, partition_of
from lakelib.errors import InvalidInputError, RetryableError
from lakelib.specs.table_spec import TableSpec

LONGEST_WAIT_SECONDS = 1800.0
"""A worker looks again after so long at the latest: it may be that no triggerer runs."""


class SourceSensor(BaseOperator):
    """Succeeds when the source of the run's partition is complete. Between two looks it takes no worker.

    It fails for good, and says what it waited for, when the spec's `source.arrival.timeout` is over.
    """

    ui_color = "#f3ead7"

    def __init__(self, *, spec: TableSpec, **kwargs: Any) -> None:
        if spec.source is None:
            raise ValueError(f"{spec.table} has no source to wait for.")
        super().__init__(**kwargs)
        self.spec = spec
        self.poll, self.timeout = spec.source.arrival.poll, spec.source.arrival.timeout

    def execute(self, context: Context) -> None:
        self._look_or_wait(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> None:
        failed = (next_kwargs or {}).get("traceback")
        if failed:
            self.log.warning("The triggerer could not look, so a worker does:\n%s", "".join(failed))
        self._look_or_wait(context, is_triggerer_able=not failed)

    def _look_or_wait(self, context: Context, *, is_triggerer_able: bool = True) -> None:
        path, marker = self._place(context)
        arrival = look(path, marker)
        if arrival.is_complete:
            self.log.info("%s is there", arrival.missing)
            return
        left = _waits_since(context) + self.timeout - datetime.now(UTC)
        if left <= timedelta(0):
            raise AirflowSensorTimeout(
                f"{arrival.missing} did not come within {self.timeout.total_seconds():,.0f} s. Once it is there, clear"
                " this task."
            )
        longest = min(left, timedelta(seconds=LONGEST_WAIT_SECONDS))
        self.log.info("%s is not there yet; a worker looks again within %s", arrival.missing, longest)
        trigger = (
            SourceTrigger(path=path, marker=marker, poll_seconds=self.poll.total_seconds())
            if is_triggerer_able
            else TimeDeltaTrigger(self.poll)
        )
        self.defer(trigger=trigger, method_name="execute", timeout=longest)

    def _place(self, context: Context) -> tuple[str, str | None]:
        try:
            key = partition_of(context, self.spec)
            return self.spec.source_path(key, os.environ), self.spec.marker_path(key, os.environ)
        except (InvalidInputError, ValueError) as error:
            raise AirflowFailException(str(error)) from None


class SourceTrigger(BaseTrigger):
    """Looks until the source is complete, and then ends the task as a success. It knows where, and is told nothing of
    the spec: the triggerer needs the lake's settings and the same places as the workers, and no more.

    A store out of reach is looked at again. Any other error is a worker's to see and to tell.
    """

    def __init__(self, *, path: str, marker: str | None, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.path = path
        self.marker = marker
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.{type(self).__name__}", {
            "path": self.path,
            "marker": self.marker,
            "poll_seconds": self.poll_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while not await asyncio.to_thread(self._is_there):
            await asyncio.sleep(self.poll_seconds)
        yield TaskSuccessEvent()

    def _is_there(self) -> bool:
        try:
            arrival = look(self.path, self.marker)
        except RetryableError as error:
            self.log.warning("%s", error)
            return False
        self.log.info("%s %s", arrival.missing, "is there" if arrival.is_complete else "is not there yet")
        return bool(arrival.is_complete)


def look(path: str, marker: str | None) -> Any:
    """What has arrived, on local disks, S3 or HDFS; the settings are those of the lake."""
    from lakelib.ops.arrival import look_for
    from lakelib.settings import load_settings
    from lakelib.storage.filesystem import open_storage

    settings = load_settings(environ=os.environ)
    try:
        return look_for(open_storage(settings.warehouse, settings.storage), path, marker)
    except InvalidInputError as error:
        raise AirflowFailException(str(error)) from None


def _waits_since(context: Context) -> datetime:
    """When the task began to wait, whatever has become of its processes and tries; a task that was cleared begins
    anew."""
    store, key = context["task_state_store"], f"waits_since_{clear_number_of(context)}"
    known = store.get(key)
    if known is None:
        known = datetime.now(UTC).isoformat()
        store.set(key, known)
    return datetime.fromisoformat(str(known))
