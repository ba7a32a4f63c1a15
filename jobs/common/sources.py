"""Turns what a job is told of its rows into data that a table takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobs.common.arguments import Files, FileView, Query
from lakelib import Lake
from lakelib.distribute.files import open_files
from lakelib.distribute.sessions import is_reached_by_jvm
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.plan.declare import declare_schema
from lakelib.storage.paths import complete_uri
from lakelib.storage.source_reader import find_obstacle


@contextmanager
def opened_rows(session: Any, lake: Lake, table: TableInfo, source: Files | Query) -> Iterator[Any]:
    """The rows as the table's writes take them, as long as the block lasts. Nothing but schemas is read yet."""
    if isinstance(source, Files):
        yield open_rows_of_files(session, lake, table, source)
        return
    names = [view.name for view in source.file_views] + [view.name for view in source.lake_views]
    try:
        yield _run_query(session, lake, source)
    finally:
        for name in names:
            session.catalog.dropTempView(name)


# Files


def open_rows_of_files(session: Any, lake: Lake, table: TableInfo, files: Files) -> Any:
    """Without the JVM where that can be. A condition on Parquet is best judged by Spark, where it reaches the files."""
    declared = declare_schema(files.schema) if files.schema else ()
    obstacle = find_obstacle(files.format, files.options, declared or _columns_taken(table, files))
    by_spark = files.where is not None and files.format == "parquet" and _are_reached(lake, files.paths)
    if obstacle or by_spark:
        return _filtered(_read_by_spark(session, lake, files, obstacle), files)
    source = open_files(
        session,
        lake.runtime.storage,
        files.paths,
        files.format,
        options=files.options,
        columns=files.columns,
        declared=declared,
        known=table.schema.columns,
        required=[column.name for column in (*table.primary_key, *table.partition_by, *table.sequence_by)],
    )
    return source if files.where is None else source.frame().where(files.where)


def _columns_taken(table: TableInfo, files: Files) -> tuple[Column, ...]:
    if files.columns is None:
        return table.schema.columns
    return tuple(column for column in map(table.schema.find, files.columns) if column is not None)


def _filtered(frame: Any, files: Files) -> Any:
    frame = frame if files.where is None else frame.where(files.where)
    return frame if files.columns is None else frame.select(*(f"`{name.replace('`', '``')}`" for name in files.columns))


def _read_by_spark(session: Any, lake: Lake, files: Files, obstacle: str | None) -> Any:
    uris = [complete_uri(path, lake.runtime.storage.settings.default_fs) for path in files.paths]
    unreached = next((uri for uri in uris if not is_reached_by_jvm(uri)), None)
    if unreached is not None:
        raise InvalidInputError(
            f"To read {unreached} takes Spark's own reader, for {obstacle}; and Spark does not reach that store.",
            kind="unsupported_source",
            remedy="Convert the files to Parquet, or copy them to where Spark reaches them.",
        )
    reader = session.read.format(files.format).options(**_reader_options(files.format, files.options))
    return (reader.schema(files.schema) if files.schema else reader).load(uris)


def _reader_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Text means the same whoever reads it: moments without a zone are in UTC, and a wrong value is an error."""
    if format not in ("csv", "json"):
        return dict(options)
    return {"timeZone": "UTC", "mode": "FAILFAST"} | dict(options)


def _are_reached(lake: Lake, paths: tuple[str, ...]) -> bool:
    return all(is_reached_by_jvm(complete_uri(path, lake.runtime.storage.settings.default_fs)) for path in paths)


# Queries


def _run_query(session: Any, lake: Lake, query: Query) -> Any:
    for view in query.file_views:
        _open_view(session, lake, view, query.options).createOrReplaceTempView(view.name)
    for each in query.lake_views:
        lake.table(each.table).scan(at=each.at).to_spark(session).createOrReplaceTempView(each.name)
    return session.sql(query.text)


def _open_view(session: Any, lake: Lake, view: FileView, options: Mapping[str, str]) -> Any:
    """Read by Spark where it reaches the files, which saves it a way through Python."""
    if _are_reached(lake, (view.path,)):
        uri = complete_uri(view.path, lake.runtime.storage.settings.default_fs)
        return session.read.format(view.format).options(**_reader_options(view.format, options)).load(uri)
    return open_files(session, lake.runtime.storage, [view.path], view.format, options=options).frame()
