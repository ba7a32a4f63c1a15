"""Use case: files that somebody else has written become rows that a table's writes take, in this process."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from lakelib.dataclass import dataclass
from lakelib.errors import EmptySourceError, InvalidInputError
from lakelib.model.table import TableInfo
from lakelib.ops.request import WriteRequest, target_columns
from lakelib.ops.runtime import Runtime
from lakelib.work.source_files import SourceFile
from lakelib.work.source_reader import FORMATS
from lakelib.work.source_rows import FileRows, find_all_files, look_into_files
from lakelib.work.source_text import COMPRESSIONS

_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """The files at some paths, none of which was opened."""

    files: tuple[SourceFile, ...]
    format: str

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def find_files(runtime: Runtime, paths: Sequence[str], format: str | None) -> FoundFiles:
    """The files at paths, which are files, folders or patterns of either; their format is what their names say, unless
    told. Raises NotFoundError for a path without files, and InvalidInputError for names that say no format, or
    several."""
    files = find_all_files(runtime.storage, paths)
    return FoundFiles(files=files, format=_format_of(files) if format is None else format)


def open_files(
    runtime: Runtime, table: TableInfo, found: FoundFiles, options: Mapping[str, str], request: WriteRequest
) -> FileRows:
    """The files' rows, as the table's writes take them: text has the table's types. Only schemas are read yet. Raises
    InvalidInputError for a file that is not what it should be, or does not fit the table."""
    target = target_columns(table, request)
    return look_into_files(runtime.storage, found.files, found.format, options=options, target=target)


def check_has_rows(table_name: str, rows: FileRows) -> None:
    """Raises EmptySourceError for files that are empty: most likely they did not arrive whole."""
    if not any(batch.num_rows for batch in rows.batches()):
        raise EmptySourceError(
            f"The files have no rows for {table_name}.",
            remedy="Look whether they are whole. `lake delete` takes rows away.",
        )


def _format_of(files: Sequence[SourceFile]) -> str:
    said = {file.uri: _said_by(file.uri) for file in files}
    formats = {format for format in said.values() if format is not None}
    if len(formats) == 1 and None not in said.values():
        return formats.pop()
    if len(formats) > 1:
        raise InvalidInputError(
            f"The files are of several formats: {', '.join(sorted(formats))}.",
            kind="unknown_format",
            remedy="Load those of one format at a time, or name the format.",
        )
    nameless = [uri for uri, format in said.items() if format is None]
    raise InvalidInputError(
        f"No format is said by the name of {', '.join(nameless[:_SHOWN])}{', …' if len(nameless) > _SHOWN else ''}.",
        kind="unknown_format",
        remedy=f"Name it: {', '.join(FORMATS)}.",
    )


def _said_by(uri: str) -> str | None:
    """The format that a file's name tells."""
    suffixes = [suffix.lower() for suffix in PurePosixPath(uri).suffixes]
    told = [suffix for suffix in suffixes if suffix not in COMPRESSIONS]
    return _SUFFIXES.get(told[-1]) if told else None
