"""Spark's data source "lake", for SQL: reads. Spark asks it in Python processes of its own, which connect to the lake
anew.

A view reads the snapshot that is the newest when it is first queried, unless the option `at` names one. Spark prunes
neither columns nor rows of a Python data source: name them in the options `columns` and `where`. Python has a better
way, `lakelib.spark.reader`. Streams have this one alone (`lakelib.spark.stream_source`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.model.changes import ScanView
from lakelib.model.predicate import Constant
from lakelib.model.table import TableInfo
from lakelib.ops.changes import ChangesRequest, hold_changes_for_spark, plan_changes
from lakelib.ops.create import find_table
from lakelib.ops.hold import hold_for_spark
from lakelib.ops.read import ScanRequest, file_by_file, plan_scan
from lakelib.plan.where import bind_where
from lakelib.settings import Settings
from lakelib.spark.lakes import opened
from lakelib.spark.options import FORMAT, is_stream, parse_read
from lakelib.spark.partitions import LakePartition, NothingPartition, changes_partitions, rows_partitions
from lakelib.spark.stream_source import LakeStreamReader, stream_type
from lakelib.work.spark.told import told_in_text
from lakelib.work.spark.types import spark_schema_of

_NO_ROWS = Constant(value=False)
"""Of a plan that asks for none only the columns are of interest: it loads no files from the catalog."""


def data_source(settings: Settings, name: str = FORMAT, table: str | None = None) -> type[DataSource]:
    """The data source of one lake, or of one of its tables. Spark carries the class, and with it the lake's settings,
    as bytes to the Python processes that it asks how to read; to its tasks it carries a source and a reader that have
    forgotten them."""

    class LakeSource(_LakeSource):
        def __init__(self, options: dict[str, str]) -> None:
            super().__init__(options if table is None else {"table": table}, settings)

        @classmethod
        def name(cls) -> str:
            return name

    return LakeSource


class _LakeSource(DataSource):
    def __init__(self, options: dict[str, str], settings: Settings | None) -> None:
        super().__init__(options)
        self._settings = settings

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the class that Spark knows, which has the settings always."""
        return _LakeSource, (dict(self.options), self._settings)

    def schema(self) -> StructType:
        with told_in_text(), opened(self._settings) as lake:
            if is_stream(self.options):
                return stream_type(lake, self.options)
            table, request = _asked(lake, self.options)
            if isinstance(request, ChangesRequest):
                return spark_schema_of(plan_changes(lake.runtime, table, request).target.output_schema)
            plan = plan_scan(lake.runtime, table, replace(request, where=_NO_ROWS))
            bind_where(request.where, plan.schema)
            return spark_schema_of(plan.output_schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Spark asks a source once in a process. What it carries on from there goes to tasks."""
        settings, self._settings = self._settings, None
        return _LakeReader(settings, dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        settings, self._settings = self._settings, None
        return LakeStreamReader(settings, dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        _refuse_writing("frame.write")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        _refuse_writing("frame.writeStream")


def _refuse_writing(name: str) -> NoReturn:
    with told_in_text():
        raise InvalidInputError(
            "Spark writes to a lake through the data frame's own writer only, and not by its own SQL.",
            kind="unsupported_write",
            remedy="Say it to lakelib: lakelib.spark.sql(spark, lake, 'INSERT INTO shop.orders …'). Or call"
            f' lakelib.spark.register(spark) in this Python process, and then {name}.format("lake"): a writer that was'
            " made before does not know the lake.",
        )


class _LakeReader(DataSourceReader):
    """Reads all that the options ask for. Filters are not taken: Spark would apply them wherever the same frame or view
    is used, also where they are not meant (docs/decisions/0015)."""

    def __init__(self, settings: Settings | None, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = settings
        self._options = options
        self._schema = schema

    def __reduce__(self) -> tuple[Any, ...]:
        """A task reads what it is told to, and needs no catalog."""
        return _LakeReader, (None, self._options, self._schema)

    def partitions(self) -> Sequence[InputPartition]:
        with told_in_text(), opened(self._settings) as lake:
            return self._plan(lake) or [NothingPartition()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LakePartition)
        with told_in_text():
            yield from partition.rows(self._schema)

    def _plan(self, lake: Lake) -> list[LakePartition]:
        table, request = _asked(lake, self._options)
        storage = lake.runtime.storage
        if isinstance(request, ChangesRequest):
            changes = plan_changes(lake.runtime, table, request)
            _check_types(table, self._schema, changes.target.output_schema)
            hold_changes_for_spark(lake.runtime, changes)
            return changes_partitions(storage, changes.target, changes.splits)
        if request.view != ScanView.UNMERGED.value:
            request = replace(request, columns=tuple(self._schema.names))
        plan = plan_scan(lake.runtime, table, request)
        _check_types(table, self._schema, plan.output_schema)
        hold_for_spark(lake.runtime, plan)
        if plan.unmerged is not None:
            return changes_partitions(storage, plan.unmerged, file_by_file(plan.splits))
        return rows_partitions(storage, plan.target, plan.splits)


def _asked(lake: Lake, options: Mapping[str, str]) -> tuple[TableInfo, ScanRequest | ChangesRequest]:
    asked = parse_read(options)
    table = find_table(lake.runtime, asked.table)
    return table, asked.changes or ScanRequest(columns=asked.columns, where=asked.where, at=asked.at, view=asked.view)


def _check_types(table: TableInfo, expected: StructType, found: pa.Schema) -> None:
    """The columns were asked for by name: their types may be others by now, or others than a user's own schema says."""
    for wanted, given in zip(expected, spark_schema_of(found), strict=True):
        if (wanted.name, wanted.dataType) != (given.name, given.dataType):
            raise InvalidInputError(
                f"Column {given.name!r} of table {table.full_name} is {given.dataType.simpleString()}, and not"
                f" {wanted.dataType.simpleString()}.",
                kind="schema_changed",
                remedy="Load the table, or create the view, again; give no schema of your own.",
            )
