"""Turns what a job is told of its rows into data that a table takes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lakelib import Lake
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.ops.request import WriteRequest, target_columns
from lakelib.pipeline.arguments import Files, FileView, Query
from lakelib.plan.declare import declare_schema
from lakelib.storage.paths import complete_uri
from lakelib.work.source_files import SourceFile, check_listing
from lakelib.work.source_reader import find_obstacle
from lakelib.work.spark.files import find_all_files, open_files
from lakelib.work.spark.frames import open_frame
from lakelib.work.spark.sessions import is_reached_by_jvm


@contextmanager
def opened_rows(
    session: Any, lake: Lake, table: TableInfo, source: Files | Query, write: WriteRequest
) -> Iterator[Any]:
    """The rows as the table's writes take them, as long as the block lasts. Nothing but schemas is read yet."""
    if isinstance(source, Files):
        yield open_rows_of_files(session, lake, table, source, write)
        return
    names = [view.name for view in source.file_views] + [view.name for view in source.lake_views]
    try:
        yield _run_query(session, lake, source)
    finally:
        for name in names:
            session.catalog.dropTempView(name)


# Files


def open_rows_of_files(
    session: Any,
    lake: Lake,
    table: TableInfo,
    files: Files,
    write: WriteRequest,
    listed: Sequence[SourceFile] | None = None,
) -> Any:
    """Without Spark's own reader where that can be. `listed` are the files at the paths, if they are known already."""
    declared = declare_schema(files.schema) if files.schema else ()
    obstacle = find_obstacle(files.format, files.options, declared or _columns_taken(table, files))
    storage = lake.runtime.storage
    if obstacle:
        _check_reached(lake, files, obstacle)
    found = find_all_files(storage, files.paths) if listed is None else listed
    if obstacle:
        frame = _filtered(_read_by_spark(session, lake, files), files)
        return open_frame(frame, lambda: check_listing(storage, files.paths, found))
    source = open_files(
        session,
        storage,
        found,
        files.format,
        options=files.options,
        columns=files.columns,
        declared=declared,
        target=target_columns(table, write),
    )
    return replace(source, where=files.where)


def _columns_taken(table: TableInfo, files: Files) -> tuple[Column, ...]:
    if files.columns is None:
        return table.schema.columns
    return tuple(column for column in map(table.schema.find, files.columns) if column is not None)


def _filtered(frame: Any, files: Files) -> Any:
    frame = frame if files.where is None else frame.where(files.where)
    return frame if files.columns is None else frame.select(*(f"`{name.replace('`', '``')}`" for name in files.columns))


def _check_reached(lake: Lake, files: Files, obstacle: str) -> None:
    uris = [complete_uri(path, lake.runtime.storage.settings.default_fs) for path in files.paths]
    unreached = next((uri for uri in uris if not is_reached_by_jvm(uri)), None)
    if unreached is not None:
        raise InvalidInputError(
            f"To read {unreached} takes Spark's own reader, for {obstacle}; and Spark does not reach that store.",
            kind="unsupported_source",
            remedy="Convert the files to Parquet, or copy them to where Spark reaches them.",
        )


def _read_by_spark(session: Any, lake: Lake, files: Files) -> Any:
    uris = [complete_uri(path, lake.runtime.storage.settings.default_fs) for path in files.paths]
    reader = session.read.format(files.format).options(**_reader_options(files.format, files.options))
    return (reader.schema(files.schema) if files.schema else reader).load(uris)


def _reader_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Files mean the same whoever reads them: they have the columns of all of them, moments in text without a zone are
    in UTC, and a wrong value is an error."""
    meant = {"timeZone": "UTC", "mode": "FAILFAST"} if format in ("csv", "json") else {"mergeSchema": "true"}
    return {name: value for name, value in meant.items() if name.casefold() not in map(str.casefold, options)} | dict(
        options
    )


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
    storage = lake.runtime.storage
    return open_files(session, storage, find_all_files(storage, [view.path]), view.format, options=options).frame()
