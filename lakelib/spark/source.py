"""Spark's data source "lake", for SQL: reads. Spark asks it in Python processes of its own, which connect to the lake
anew.

A view reads the snapshot that is the newest when it is first queried, unless the option `at` names one. Spark prunes
neither columns nor rows of a Python data source: name them in the options `columns` and `where`. Python has a better
way, `lakelib.spark.reader`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.types import StructType

from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.model.predicate import Constant
from lakelib.model.table import TableInfo
from lakelib.ops.create import find_table
from lakelib.ops.hold import hold_for_spark
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan
from lakelib.plan.where import bind_where
from lakelib.settings import Settings
from lakelib.spark.options import FORMAT, parse_read
from lakelib.storage.filesystem import Storage
from lakelib.work.read import ReadTarget
from lakelib.work.spark.read import deal_parts
from lakelib.work.spark.tasks import ReadPart, read_parts
from lakelib.work.spark.told import told_in_text
from lakelib.work.spark.types import spark_schema_of

_SLOTS = 8
"""Spark does not tell a data source how many tasks it runs at once."""

_NO_ROWS = Constant(value=False)
"""Of a plan that asks for none only the columns are of interest: it loads no files from the catalog."""


def data_source(settings: Settings) -> type[DataSource]:
    """The data source of one lake. Spark carries the class, and with it the lake's settings, as bytes to the Python
    processes that it asks how to read; to its tasks it carries a source and a reader that have forgotten them."""

    class LakeSource(_LakeSource):
        def __init__(self, options: dict[str, str]) -> None:
            super().__init__(options, settings)

    return LakeSource


class _LakeSource(DataSource):
    def __init__(self, options: dict[str, str], settings: Settings | None) -> None:
        super().__init__(options)
        self._settings = settings

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the class that Spark knows, which has the settings always."""
        return _LakeSource, (dict(self.options), self._settings)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        with told_in_text(), _opened(self._settings) as lake:
            table, request = _asked(lake, self.options)
            plan = plan_scan(lake.runtime, table, replace(request, where=_NO_ROWS))
            bind_where(request.where, plan.schema)
            return spark_schema_of(plan.target.output_schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Spark asks a source once in a process. What it carries on from there goes to tasks."""
        settings, self._settings = self._settings, None
        return _LakeReader(settings, dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        with told_in_text():
            raise InvalidInputError(
                "Spark writes to a lake through the data frame's own writer only, and not by SQL.",
                kind="unsupported_write",
                remedy="Call lakelib.spark.register(spark) in this Python process, and then"
                ' frame.write.format("lake"): a writer that was made before does not know the lake.',
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
        with told_in_text(), _opened(self._settings) as lake:
            plan = self._plan(lake)
            hold_for_spark(lake.runtime, plan)
            storage = lake.runtime.storage
            dealt = deal_parts(storage, plan.target, plan.splits, _SLOTS)
        # Of no partitions Spark makes one that knows nothing.
        return [_TaskParts(storage, plan.target, parts) for parts in dealt or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _TaskParts)
        # A user's own schema may let columns be NULL that cannot: Spark takes batches of exactly the schema asked for.
        fields = zip(partition.target.output_schema, self._schema, strict=True)
        schema = pa.schema([found.with_nullable(wanted.nullable) for found, wanted in fields])
        with told_in_text():
            for batch in read_parts(partition.storage, partition.target, partition.parts):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _plan(self, lake: Lake) -> ScanPlan:
        table, request = _asked(lake, self._options)
        plan = plan_scan(lake.runtime, table, replace(request, columns=tuple(self._schema.names)))
        _check_types(table, self._schema, spark_schema_of(plan.target.output_schema))
        return plan


class _TaskParts(InputPartition):
    """What one task reads."""

    def __init__(self, storage: Storage, target: ReadTarget, parts: Sequence[ReadPart]) -> None:
        super().__init__(None)
        self.storage = storage
        self.target = target
        self.parts = parts


def _opened(settings: Settings | None) -> Lake:
    if settings is None:
        raise RuntimeError("Spark asked for a plan where it reads.")
    return Lake(settings)


def _asked(lake: Lake, options: Mapping[str, str]) -> tuple[TableInfo, ScanRequest]:
    asked = parse_read(options)
    return find_table(lake.runtime, asked.table), ScanRequest(columns=asked.columns, where=asked.where, at=asked.at)


def _check_types(table: TableInfo, expected: StructType, found: StructType) -> None:
    """The columns were asked for by name: their types may be others by now, or others than a user's own schema says."""
    for wanted, given in zip(expected, found, strict=True):
        if wanted.dataType != given.dataType:
            raise InvalidInputError(
                f"Column {given.name!r} of table {table.full_name} is {given.dataType.simpleString()}, and not"
                f" {wanted.dataType.simpleString()}.",
                kind="schema_changed",
                remedy="Load the table, or create the view, again; give no schema of your own.",
            )
