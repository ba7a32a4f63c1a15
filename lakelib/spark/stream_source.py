"""Reads a table as a stream. Spark asks it, in a Python process that lives as long as the query, how far to read, in
others what its tasks read, and tells it what is done.

A position names snapshots, never files (`lakelib.ops.stream`), and stands in the query's checkpoint.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakelib.catalog.leases import Lease
from lakelib.errors import InvalidInputError, LakeError
from lakelib.lake import Lake
from lakelib.model.positions import BEGINNING, parse_position
from lakelib.model.table import TableInfo
from lakelib.ops.changes import ChangesPlan, hold_changes_for_spark
from lakelib.ops.create import find_table
from lakelib.ops.hold import hold_for_spark
from lakelib.ops.stream import StreamRequest, keep_unread, next_position, plan_batch, stream_schema
from lakelib.settings import Settings
from lakelib.spark.lakes import opened
from lakelib.spark.options import SCHEMA, is_stream, parse_stream, table_of
from lakelib.spark.partitions import LakePartition, changes_partitions, rows_partitions
from lakelib.work.spark.told import told_in_text
from lakelib.work.spark.types import spark_schema_of

_NO_LIMIT = 2**31 - 1
_IDLE_SECONDS = 0.1
"""Where there is nothing new Spark asks again at once: a hundred times a second."""


def stream_type(lake: Lake, options: Mapping[str, str]) -> StructType:
    """The schema of a stream."""
    table, request = _asked(lake, options)
    return spark_schema_of(stream_schema(lake.runtime, table, request))


def _asked(lake: Lake, options: Mapping[str, str]) -> tuple[TableInfo, StreamRequest]:
    return find_table(lake.runtime, table_of(options)), parse_stream(options, int(options[SCHEMA]))


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks of a stream."""

    def __init__(self, settings: Settings | None, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = settings
        self._options = options
        self._schema = schema
        self._lake: Lake | None = None
        self._until: int | None = None
        self._held: list[tuple[dict[str, Any], list[Lease]]] = []
        """What keeps the files of batches that are not known to be done, by where they end."""
        if not is_stream(options):
            with told_in_text():
                raise _not_registered()

    def __reduce__(self) -> tuple[Any, ...]:
        """A task reads what it is told to, and needs no catalog."""
        return LakeStreamReader, (None, self._options, self._schema)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The same whenever it is asked: it is not written down."""
        return BEGINNING

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Spark knows no limit of snapshots; what it tells later is whether there is one at all."""
        with told_in_text():
            request = parse_stream(self._options, 0)
        if request.most_rows is None and request.most_snapshots is None:
            return ReadAllAvailable()
        return ReadMaxRows(request.most_rows or _NO_LIMIT)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        with told_in_text():
            table, _ = self._asked()
            self._until = table.head_id

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        is_limited = not isinstance(limit, ReadAllAvailable)
        with told_in_text():
            table, request = self._asked()
            found = next_position(
                self._open().runtime, table, request, parse_position(start), until=self._until, is_limited=is_limited
            )
        end = start if found is None else found.as_dict()
        if end == start and self._until is None:
            time.sleep(_IDLE_SECONDS)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        last = parse_position(end)
        if start == end or last is None:
            return []
        with told_in_text():
            table, request = self._asked()
            runtime = self._open().runtime
            batch = plan_batch(runtime, table, request, parse_position(start), last)
            if isinstance(batch.plan, ChangesPlan):
                self._held.append((end, hold_changes_for_spark(runtime, batch.plan)))
                return changes_partitions(runtime.storage, batch.plan.target, batch.plan.splits)
            self._held.append((end, hold_for_spark(runtime, batch.plan)))
            told_in = self._schema.names[-1]
            return rows_partitions(runtime.storage, batch.plan.target, batch.splits, told_in)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LakePartition)
        with told_in_text():
            yield from partition.rows(self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """What comes after this position may still be asked for; what comes before it is done."""
        position = parse_position(end)
        if position is None:
            return
        with told_in_text():
            table, request = self._asked()
            keep_unread(self._open().runtime, table, request, position)
        self._let_go(end)

    def stop(self) -> None:
        if self._lake is not None:
            self._let_go(None)
            self._lake.close()
            self._lake = None

    def _let_go(self, end: dict[str, Any] | None) -> None:
        """What was held up to this position; everything for None."""
        ends = [each for each, _ in self._held]
        if end is not None and end not in ends:
            return
        count = len(ends) if end is None else ends.index(end) + 1
        for _, leases in self._held[:count]:
            for lease in leases:
                with suppress(LakeError):  # it ends by itself
                    lease.release()
        del self._held[:count]

    def _open(self) -> Lake:
        if self._lake is None:
            self._lake = opened(self._settings)
        return self._lake

    def _asked(self) -> tuple[TableInfo, StreamRequest]:
        return _asked(self._open(), self._options)


def _not_registered() -> InvalidInputError:
    return InvalidInputError(
        "Spark reads a stream of a lake through the session's own reader only.",
        kind="not_registered",
        remedy='Call lakelib.spark.register(spark) in this Python process, and then spark.readStream.format("lake").',
    )
