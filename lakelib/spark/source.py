"""Spark's data source "lake": reads. Spark asks it in Python processes of its own, which connect to the lake anew.

Spark prunes no columns of a Python data source: name them in the option `columns`, or use `Scan.to_spark`, which also
lets Spark read files itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, Filter, InputPartition
from pyspark.sql.types import StructType

from lakelib.distribute.filters import predicate_of
from lakelib.distribute.reader import group_parts, spark_schema
from lakelib.distribute.tasks import ReadPart, read_parts
from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.model.predicate import And, Predicate
from lakelib.ops.create import find_table
from lakelib.ops.read import ScanPlan, ScanRequest, hold_for_spark, plan_scan
from lakelib.plan.where import bind_where
from lakelib.settings import Settings
from lakelib.storage.filesystem import Storage
from lakelib.storage.split_reader import ReadTarget

_OPTIONS = ("path", "table", "at", "columns", "where")
_SLOTS = 8
"""Spark does not tell a data source how many tasks it runs at once."""


def data_source(settings: Settings) -> type[DataSource]:
    """The data source of one lake: Spark carries the class, and with it the lake's settings, to where it asks it."""

    class LakeSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "lake"

        def schema(self) -> StructType:
            with Lake(settings) as lake:
                return spark_schema(_open_plan(lake, self.options).target.output_schema)

        def reader(self, schema: StructType) -> DataSourceReader:
            return _LakeReader(settings, dict(self.options), schema.names)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            raise InvalidInputError(
                "Spark writes to a lake through the data frame's own writer only.",
                kind="unsupported_write",
                remedy='Call lakelib.spark.register(spark) in this Python process, then frame.write.format("lake").',
            )

    return LakeSource


class _LakeReader(DataSourceReader):
    def __init__(self, settings: Settings, options: Mapping[str, str], columns: Sequence[str]) -> None:
        self._settings = settings
        self._options = options
        self._columns = tuple(columns)
        self._pushed: list[Predicate] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes the filters that lakelib decides exactly as Spark does, and gives back the others."""
        with Lake(self._settings) as lake:
            schema = _open_plan(lake, self._options).schema
        for each in filters:
            predicate = predicate_of(each, schema)
            if predicate is None:
                yield each
            else:
                self._pushed.append(predicate)

    def partitions(self) -> Sequence[InputPartition]:
        with Lake(self._settings) as lake:
            plan = _open_plan(lake, self._options, self._columns, self._pushed)
            hold_for_spark(lake.runtime, plan)
            storage = lake.runtime.storage
        groups = group_parts(storage, plan.target, plan.splits, _SLOTS)
        return [_Group(storage, plan.target, parts) for parts in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Group)
        return read_parts(partition.storage, partition.target, partition.parts)


class _Group(InputPartition):
    """What one task reads."""

    def __init__(self, storage: Storage, target: ReadTarget, parts: Sequence[ReadPart]) -> None:
        super().__init__(None)
        self.storage = storage
        self.target = target
        self.parts = parts


def _open_plan(
    lake: Lake, options: Mapping[str, str], columns: Sequence[str] | None = None, pushed: Sequence[Predicate] = ()
) -> ScanPlan:
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise InvalidInputError(
            f"Unknown option {unknown[0]!r} to read a lake.",
            kind="unknown_option",
            remedy=f"Known: {', '.join(_OPTIONS)}.",
        )
    name = options.get("path") or options.get("table")
    if not name:
        raise InvalidInputError(
            "No table is named.", kind="missing_table", remedy='Give its name: load("shop.orders").'
        )
    table = find_table(lake.runtime, name)
    request = ScanRequest(
        columns=tuple(columns) if columns is not None else _names(options.get("columns")),
        where=options.get("where"),
        at=_at(options.get("at")),
    )
    if pushed:
        own = bind_where(request.where, plan_scan(lake.runtime, table, request).schema)
        parts = (*pushed, own) if own is not None else tuple(pushed)
        request = replace(request, where=And(parts=parts))
    return plan_scan(lake.runtime, table, request)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _at(text: str | None) -> int | str | datetime | None:
    """A snapshot id, "tag:…" or a moment, from text."""
    if text is None or text.startswith("tag:"):
        return text
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
