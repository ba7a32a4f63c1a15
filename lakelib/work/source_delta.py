"""Work. A Delta table as a source: which files its log names at a version, and what it says of them. The only place
with `deltalake`, which reads the log; the files' rows are read as those of every source."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, MissingFileError
from lakelib.storage.filesystem import Storage
from lakelib.storage.paths import complete_uri, join_uri
from lakelib.work.source_files import SourceFile
from lakelib.work.source_log import LoggedColumn, LoggedColumns, LoggedFile, pack_deleted

_UNDERSTOOD = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    )
)
"""What a table may ask of its readers."""
_NEWEST_READER = 3
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_COLUMN_ID = "delta.columnMapping.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVersion:
    """A Delta table as of a version."""

    uri: str
    version: int
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[SourceFile, ...]
    """In the order in which the log's writers made them, partition by partition."""


def open_delta(storage: Storage, given: str, version: int | None = None) -> DeltaVersion:
    """The Delta table at a path, as it is or as of a version. Raises NotFoundError if there is none there, or a file
    that it names is gone; InvalidInputError for what its log asks of readers and lakelib does not know, and for a
    version that it does not have."""
    uri = complete_uri(given, storage.settings.default_fs).rstrip("/")
    table = _opened(storage, uri, version)
    _check_understood(uri, table.protocol())
    by_id = table.metadata().configuration.get("delta.columnMapping.mode") == "id"
    partition_by = tuple(table.metadata().partition_columns)
    declared = json.loads(table.schema().to_json())
    stored = [field for field in declared["fields"] if field["name"] not in partition_by]
    schema = _schema(table, uri)
    columns = LoggedColumns(
        tuple(replace(_logged_column(field, by_id), kind=schema.field(field["name"]).type) for field in stored)
    )
    return DeltaVersion(
        uri=uri,
        version=table.version(),
        schema=schema,
        partition_by=partition_by,
        files=tuple(_files(storage, uri, table, columns, partition_by)),
    )


def _opened(storage: Storage, uri: str, version: int | None) -> Any:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError
    except ImportError as error:
        raise InvalidInputError(
            "Reading the log of a Delta table takes deltalake, which is not installed.",
            kind="delta_missing",
            remedy='pip install "lakelib[delta]".',
        ) from error
    if next(iter(storage.at(f"{uri}/_delta_log").list_files()), None) is None:
        raise _no_table(uri)
    place = uri.removeprefix("file://") if uri.startswith("file:") else uri
    options = delta_options(storage)
    try:
        found = DeltaTable(place, storage_options=options)
        if version is not None and not 0 <= version <= found.version():
            raise InvalidInputError(
                f"The Delta table at {uri} has no version {version}; its newest is {found.version()}.",
                kind="snapshot_not_found",
                remedy="Name a version that it has.",
            )
        if version is not None and version != found.version():
            found = DeltaTable(place, version=version, storage_options=options)
        return found
    except TableNotFoundError as error:
        raise _no_table(uri) from error
    except DeltaProtocolError as error:
        raise _unsupported(uri, str(error)) from error
    except DeltaError as error:
        raise InvalidInputError(
            f"The log of the Delta table at {uri} cannot be read: {_told(error)}.",
            kind="unreadable_log",
            remedy="Is it whole? Of an older version the log may have been cleaned up: import the newest one.",
        ) from error


def delta_options(storage: Storage) -> dict[str, str]:
    """How deltalake reaches the store that this process reaches with these settings."""
    settings = storage.settings
    named = {
        "AWS_ENDPOINT_URL": settings.s3_endpoint,
        "AWS_REGION": settings.s3_region,
        "AWS_ACCESS_KEY_ID": settings.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": settings.s3_secret_key,
        "AWS_SESSION_TOKEN": settings.s3_session_token,
    }
    options = {name: value for name, value in named.items() if value}
    if (settings.s3_endpoint or "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _schema(table: Any, uri: str) -> pa.Schema:
    try:
        return pa.schema(table.schema().to_arrow())
    except Exception as error:  # deltalake raises what it likes for a type that Arrow lacks
        raise InvalidInputError(
            f"The columns of the Delta table at {uri} have types that cannot be read: {_told(error)}.",
            kind="unsupported_type",
            remedy="Leave them out: write the table anew without them, or import a query's result.",
        ) from error


def _check_understood(uri: str, protocol: Any) -> None:
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version > _NEWEST_READER:
        raise _unsupported(uri, f"it asks for readers of version {protocol.min_reader_version}")
    unknown = sorted(features - _UNDERSTOOD)
    if unknown:
        raise _unsupported(uri, f"it asks of its readers to know {', '.join(unknown)}")


def _logged_column(field: Mapping[str, Any], by_id: bool) -> LoggedColumn:
    told = field.get("metadata") or {}
    return LoggedColumn(
        name=field["name"],
        inside=told.get(_PHYSICAL_NAME, field["name"]),
        id=told.get(_COLUMN_ID) if by_id else None,
        parts=_logged_parts(field["type"], by_id),
    )


def _logged_parts(kind: Any, by_id: bool) -> tuple[LoggedColumn, ...]:
    """Elements, keys and values have names of Parquet's own."""
    match kind:
        case {"type": "struct", "fields": fields}:
            return tuple(_logged_column(field, by_id) for field in fields)
        case {"type": "array", "elementType": element}:
            return (LoggedColumn(name="", inside="", parts=_logged_parts(element, by_id)),)
        case {"type": "map", "keyType": key, "valueType": value}:
            return tuple(LoggedColumn(name="", inside="", parts=_logged_parts(each, by_id)) for each in (key, value))
    return ()


def _files(
    storage: Storage, uri: str, table: Any, columns: LoggedColumns, partition_by: Sequence[str]
) -> Iterator[SourceFile]:
    added = pa.table(table.get_add_actions(flatten=True))
    values = [added.column(f"partition.{name}").combine_chunks() for name in partition_by]
    orderable = [_orderable(each) for each in values]
    rows = [
        (*(each[row] for each in orderable), added["modification_time"][row].as_py(), path.as_py(), row)
        for row, path in enumerate(added["path"])
    ]
    named = {unquote(path) for *_, path, _ in rows}
    deleted = _deleted_rows(table) if "deletionVectors" in (table.protocol().reader_features or ()) else {}
    found = {entry.path: entry for entry in storage.at(uri).list_files() if entry.path in named} if rows else {}
    for *_, path, row in sorted(rows):
        name = unquote(path)
        place = name if "://" in name or name.startswith("/") else join_uri(uri, name)
        place = complete_uri(place, storage.settings.default_fs)
        entry = found.get(name) or storage.at(place.rpartition("/")[0]).find_file(place)
        if entry is None:
            raise MissingFileError(
                f"The Delta table at {uri} names the file {place}, which is gone.",
                remedy="Was it vacuumed since? Import the newest version.",
            )
        logged = LoggedFile(
            columns=columns,
            values=tuple((name, each[row]) for name, each in zip(partition_by, values, strict=True)),
            deleted=deleted.get(place),
        )
        yield SourceFile(uri=place, size_bytes=entry.size_bytes, version=entry.version, logged=logged)


def _orderable(values: pa.Array) -> list[tuple[bool, Any]]:
    """Days and moments as they are stored, for Python may not have them."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [(value is not None, 0 if value is None else value) for value in values.to_pylist()]


def _deleted_rows(table: Any) -> dict[str, bytes]:
    """By the file's URI."""
    deleted: dict[str, bytes] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for path, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            place = path.as_py()
            place = unquote(place) if place.startswith("file:") else place
            deleted[complete_uri(place)] = pack_deleted(kept.values)
    return deleted


def _no_table(uri: str) -> MissingFileError:
    return MissingFileError(
        f"There is no Delta table at {uri}.",
        remedy="Name the folder that has the folder _delta_log; for a folder of Parquet files use import_parquet.",
    )


def _unsupported(uri: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"The Delta table at {uri} cannot be imported: {why}.",
        kind="unsupported_feature",
        remedy=f"Known are {', '.join(sorted(_UNDERSTOOD))}. Take the feature out of the table, or write it anew.",
    )


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if len(text) <= 300 else text[:300] + "…").rstrip(". ")
