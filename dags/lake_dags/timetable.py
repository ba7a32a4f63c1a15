"""When the runs of a table that is filled by the clock start, and which partition each is about: what the table's
calendar says, to Airflow."""

import datetime
from collections.abc import Iterator
from typing import Any

import pendulum
from airflow.exceptions import InvalidPartitionKeyError
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from airflow.utils.strings import get_random_string

from lakelib.errors import InvalidInputError
from lakelib.specs.calendar import calendar_of, moment_of
from lakelib.specs.partition_keys import Step


class CalendarTimetable(Timetable):
    """One run a partition, when it is due. Scheduled, backfilled or typed by hand, a key means the same moment: the
    beginning of its step, the run's `partition_date`.

    The scheduler and the API server know it by the plugin `lake_timetables`.
    """

    partitioned = True

    def __init__(self, *, every: Step, cron: str, timezone: str) -> None:
        self._said = {"every": every, "cron": cron, "timezone": timezone}
        self._calendar = calendar_of(every, cron, timezone)
        self.description = f"Each {every} once, at the first tick of {cron!r} in {timezone} after it is over"

    @property
    def summary(self) -> str:
        return self._said["cron"]

    def serialize(self) -> dict[str, Any]:
        return self._said

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "CalendarTimetable":
        return cls(**data)

    def next_dagrun_info_v2(
        self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        now = datetime.datetime.now(datetime.UTC)
        last = None if last_dagrun_info is None else self._key_of(last_dagrun_info)
        info = self._info(self._calendar.next_key(last, restriction.earliest, catchup=restriction.catchup, now=now))
        return None if restriction.latest is not None and info.run_after > restriction.latest else info

    def iter_partition_dagrun_infos(
        self, *, earliest: datetime.datetime, latest: datetime.datetime
    ) -> Iterator[DagRunInfo]:
        """Those of the steps that begin in the range. A step that is not over yet waits until it is due."""
        bounds = (self.localize_partition_datetime(bound) for bound in (earliest, latest))
        yield from map(self._info, self._calendar.keys_from(*bounds))

    def localize_partition_datetime(self, dt: datetime.datetime) -> pendulum.DateTime:
        """Airflow says a day as its midnight in UTC, and means that of the schedule's zone."""
        return pendulum.instance(moment_of(dt.replace(tzinfo=None), self._calendar.zone))

    def _decode_partition_date(self, partition_key: str) -> datetime.datetime:
        try:
            return pendulum.instance(self._calendar.begin_of(partition_key))
        except InvalidInputError as error:
            raise InvalidPartitionKeyError(str(error)) from None

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """A run by hand is about the partition that its form names, whenever it starts."""
        return DataInterval.exact(run_after)

    def generate_run_id(
        self, *, run_type: Any, run_after: pendulum.DateTime, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """Several partitions may be due at one tick, and one may be made again."""
        said = [run_after.isoformat(), extra.get("partition_key"), get_random_string()]  # type: ignore[no-untyped-call]
        return str(run_type.generate_run_id(suffix="__".join(each for each in said if each)))

    def _info(self, key: str) -> DagRunInfo:
        return DagRunInfo(
            run_after=pendulum.instance(self._calendar.due(key)),
            data_interval=None,
            partition_date=pendulum.instance(self._calendar.begin_of(key)),
            partition_key=key,
        )

    def _key_of(self, run: DagRunInfo) -> str:
        """A run of which somebody has taken the key away was about the partition that had ended when it started."""
        return run.partition_key or self._calendar.key_before(run.run_after)
