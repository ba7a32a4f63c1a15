"""The rows of one partition in this process, as a table's spec has them made: from files, from a query over files and
tables. Nothing here loads Spark; what takes Spark is said before a row is read, or by the row that takes it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakelib import Lake
from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError
from lakelib.local.database import Database, QueryRows, opened_database
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.ops.arrival import Arrival
from lakelib.ops.engine import check_size, query_of
from lakelib.ops.overwrite import parse_target
from lakelib.ops.request import WriteRequest, target_columns
from lakelib.pipeline.partitions import Making, PartitionRows, PinnedRead
from lakelib.pipeline.view_rows import ViewRows
from lakelib.plan.declare import declare_schema
from lakelib.plan.local_query import LocalQuery, translate_query
from lakelib.specs.table_fields import SOURCE_VIEW, Source
from lakelib.specs.table_spec import TableSpec
from lakelib.work.source_reader import find_obstacle
from lakelib.work.source_rows import FileRows, look_into_files, uniform_columns


@contextmanager
def opened_locally(making: Making) -> Iterator[PartitionRows]:
    """As `opened_partition`, without Spark. Raises OnlySparkError for what takes it."""
    lake, table, spec = making.lake, making.table, making.spec
    rows = None
    if spec.source is not None and making.arrival is not None:
        rows = _look_into(lake, table, spec.source, making.arrival, making.write)
    if spec.transform_path is None or (rows is not None and rows.is_empty):
        yield PartitionRows(rows=rows, is_transformed=False)
        return
    if rows is not None:
        values = spec.partition_value(making.key)
        rows = rows.filled(parse_target(table, values).constants if values else {})
        rows.check_roles(rows.reader.target.roles & rows.folded_names)
    with opened_database(spec.local.memory_bytes, lake.runtime.threads) as database:
        yield PartitionRows(rows=_queried(lake, database, spec, making.key, rows, making.reads), is_transformed=True)


def _look_into(lake: Lake, table: TableInfo, source: Source, arrival: Arrival, write: WriteRequest) -> FileRows:
    declared = declare_schema(source.columns) if source.columns else ()
    obstacle = find_obstacle(source.format.lower(), source.options, declared or table.schema.columns)
    if obstacle:
        raise OnlySparkError(obstacle)
    return look_into_files(
        lake.runtime.storage,
        arrival.files,
        source.format.lower(),
        options=source.options,
        declared=declared,
        target=target_columns(table, write),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    name: str
    columns: Sequence[Column]

    def those_of(self, query: LocalQuery) -> list[Column]:
        """The columns that the query looks at; one at least, for rows have to be counted."""
        used = query.uses.get(self.name, ())
        return [column for column in self.columns if column.name in used] or [self.columns[0]]


def _queried(
    lake: Lake,
    database: Database,
    spec: TableSpec,
    key: str,
    rows: FileRows | None,
    reads: Sequence[PinnedRead],
) -> QueryRows:
    tables = {read.view: ViewRows(lake, read) for read in reads}
    views = [_View(name=view, columns=found.columns) for view, found in tables.items()]
    if rows is not None:
        views.append(_View(name=SOURCE_VIEW, columns=uniform_columns(rows.schema)))
    known = {view.name: [(column.name, column.type) for column in view.columns] for view in views}
    query = translate_query(query_of(spec), known, key)
    used = [view for view in views if view.name in query.uses]
    for view in used:
        database.load(view.name, view.those_of(query), ())
    database.rows(query)  # binds it, before a row is read
    looked = {
        view.name: tables[view.name].narrowed(view.those_of(query), query.where.get(view.name))
        for view in used
        if view.name in tables
    }
    source_bytes = sum(file.size_bytes for file in rows.files) if rows is not None else 0
    check_size(spec, source_bytes + sum(found.size_bytes for found in looked.values()))
    for view in used:
        chosen = view.those_of(query)
        if view.name in looked:
            database.load(view.name, chosen, looked[view.name].batches())
        elif rows is not None:
            names = [column.name for column in chosen]
            database.load(view.name, chosen, (batch.select(names) for batch in rows.batches()))
    return database.rows(query)
