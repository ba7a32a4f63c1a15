"""Work. Finds and reads the files that somebody else has written and whose rows are to become a table's.

No catalog knows these files: what is wrong with one is wrong input, and is said with the file's name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import (
    CorruptionError,
    InvalidInputError,
    LakeError,
    LostFileError,
    MissingFileError,
    RetryableError,
    WrongValuesError,
)
from lakelib.rows.align import places_by_name
from lakelib.rows.wrong import tell_wrong
from lakelib.storage.failures import missing_file, translated_reading
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import arrange_leaves
from lakelib.storage.parquet import open_stream
from lakelib.storage.paths import NULL_VALUE, complete_uri, join_uri, split_uri
from lakelib.work.source_log import LoggedFile, Reached

_BATCH_ROWS = 131_072
_WILD = re.compile(r"[*?\[{]")
_HIDDEN = (".", "_")
_UNFINISHED = re.compile(r"(\._copying_|\.(tmp|temp|part|partial|filepart|inprogress|crdownload)|~)\Z", re.IGNORECASE)
"""How programs call a file that they are still writing, before they give it its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file as it was listed."""

    uri: str
    size_bytes: int
    version: str
    schema: pa.Schema | None = None
    """What it has itself, as far as that was looked at."""
    row_bytes: int = 0
    """About what a row of it takes, as far as that was looked at."""
    folder_values: tuple[tuple[str, str | None], ...] = ()
    """Names and values that the file's folders say, below the one that was asked for: `dt=2026-11-18`."""
    logged: LoggedFile | None = None
    """What the log of the table that the file is of says of it; None for a file of no such table."""

    @property
    def names(self) -> frozenset[str]:
        """Of its columns, casefolded."""
        return frozenset(name.casefold() for name in (self.schema or pa.schema([])).names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a file with rows tells at a glance."""

    schema: pa.Schema
    row_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    row_count: int
    memory_bytes: int
    """About what the wanted columns' rows take once they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """Rows of one file, the first of which is the file's row `first_row` (from 0)."""

    first_row: int
    batch: pa.RecordBatch
    numbers: Sequence[int] | None = None
    """Which rows of the file they are, where some between them are left out."""


def find_source_files(storage: Storage, given: str) -> list[SourceFile]:
    """The files that a file's name, a folder's, or a pattern of either (`*`, `?`, `[…]`, `{a,b}`) means, by name.

    As for Spark, names that begin with `_` or `.` are hidden, unless they say a value; and so are those of files that
    are being written: `.tmp`, `._COPYING_` and their kind. Raises NotFoundError for none, and for a link that leads
    nowhere.
    """
    uri = complete_uri(given, storage.settings.default_fs)
    found = _matching(storage, uri) if _WILD.search(uri) else _named(storage, uri)
    if not found:
        raise MissingFileError(f"There is no file at {uri}.", remedy="Correct the path, or wait for its files.")
    return sorted(found, key=lambda file: file.uri)


def _named(storage: Storage, uri: str) -> list[SourceFile]:
    folder, _, name = uri.rpartition("/")
    found = storage.at(_root(folder)).find_file(name) if split_uri(uri)[2].strip("/") and name else None
    if found is not None:
        return [SourceFile(uri=uri, size_bytes=found.size_bytes, version=found.version)]
    return _below(storage, uri, lambda path: path)


def _matching(storage: Storage, uri: str) -> list[SourceFile]:
    plain = uri[: _WILD.search(uri).start()].rpartition("/")[0]  # type: ignore[union-attr]
    pattern = re.compile(f"{_pattern(uri[len(plain) :].lstrip('/'))}(?:/|\\Z)")

    def rest(path: str) -> str | None:
        matched = pattern.match(path)
        return path[matched.end() :] if matched else None

    return _below(storage, _root(plain), rest)


def _root(folder: str) -> str:
    """A local file may lie right below the root, whose name is the slash that a folder's name ends before."""
    return "file:///" if folder == "file://" else folder


def _below(storage: Storage, folder: str, rest: Callable[[str], str | None]) -> list[SourceFile]:
    """The visible files below a folder whose path has a `rest`: what lies below the folder that was asked for."""
    found = []
    for entry in storage.at(folder).list_files(follow_links=True):
        inner = rest(entry.path)
        if inner is not None and not _is_hidden(entry.path):
            uri = join_uri(folder, entry.path)
            values = _folder_values(inner)
            found.append(SourceFile(uri=uri, size_bytes=entry.size_bytes, version=entry.version, folder_values=values))
    return found


def _is_hidden(path: str) -> bool:
    if _UNFINISHED.search(path):
        return True
    return any(part.startswith(_HIDDEN) and "=" not in part for part in path.split("/"))


@contextmanager
def unchanged(storage: Storage, file: SourceFile) -> Iterator[None]:
    """Meanwhile the file is the one that was listed: raises RetryableError if it is another one, or gone, when the
    block ends or fails."""
    with if_unchanged(storage, file):
        yield
    _check_version(storage, file, None)


@contextmanager
def if_unchanged(storage: Storage, file: SourceFile) -> Iterator[None]:
    """What fails in the block fails so only if the file is the one that was listed: else with RetryableError."""
    try:
        yield
    except Exception as error:
        _check_version(storage, file, error)
        raise


def _check_version(storage: Storage, file: SourceFile, cause: Exception | None) -> None:
    found = storage.at(file.uri).find_file(file.uri)
    if found is None or found.version != file.version:
        raise _changed(file.uri, "is gone" if found is None else "has changed") from cause


def check_listing(storage: Storage, paths: Sequence[str], listed: Sequence[SourceFile]) -> None:
    """Raises RetryableError unless the files of the paths are those that were listed."""
    now = {file.uri: file.version for path in paths for file in find_source_files(storage, path)}
    before = {file.uri: file.version for file in listed}
    for uri in sorted(now.keys() | before.keys()):
        if now.get(uri) != before.get(uri):
            raise _changed(uri, "is gone" if uri not in now else "has changed" if uri in before else "has come")


def _changed(uri: str, became: str) -> RetryableError:
    return RetryableError(
        f"The file {uri} {became} since it was listed.",
        kind="source_changed",
        remedy="Try again when nobody writes it any more; deliver files under their names when they are complete.",
    )


def _folder_values(path: str) -> tuple[tuple[str, str | None], ...]:
    said = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return tuple((unquote(name), None if value == NULL_VALUE else unquote(value)) for name, _, value in said)


def _pattern(glob: str) -> str:
    """The regular expression of a pattern of names."""
    signs = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", "[": "[", "]": "]"}
    depth, parts = 0, []
    for sign in glob:
        depth += (sign == "{") - (sign == "}")
        parts.append("|" if sign == "," and depth else signs.get(sign) or re.escape(sign))
    try:
        return re.compile("".join(parts).replace("[\\^", "[^").replace("[!", "[^").replace("\\-", "-")).pattern
    except re.error as error:
        raise InvalidInputError(
            f"The pattern {glob!r} is not complete: {error}.", kind="invalid_path", remedy="Close its brackets."
        ) from None


# Parquet


def look_into_parquet(storage: Storage, file: SourceFile) -> Looked | None:
    """None if it has no row."""
    with _opened(storage, file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
    if not metadata.num_rows:
        return None
    if file.logged is not None:
        reached = file.logged.columns.reach(schema)
        schema = pa.schema([*(each.field for each in reached), *file.logged.columns.lacking(reached)])
    size_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return Looked(schema=schema, row_bytes=size_bytes // metadata.num_rows)


def list_row_groups(storage: Storage, file: SourceFile, columns: Sequence[str] | None) -> list[RowGroup]:
    with _opened(storage, file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
    wanted = [(each.field.type, each.leaves) for each in _reached(file, schema, columns)]
    return [_weighed(metadata.row_group(number), wanted) for number in range(metadata.num_row_groups)]


def _reached(file: SourceFile, schema: pa.Schema, columns: Sequence[str] | None) -> list[Reached]:
    """The wanted columns of a file of this schema, as they are called outside of it."""
    if file.logged is not None:
        found = file.logged.columns.reach(schema)
    else:
        leaves = arrange_leaves(schema)
        found = [Reached(inside=field.name, field=field, leaves=tuple(leaves[field.name])) for field in schema]
    return [each for each in found if _is_wanted(each.field.name, columns)]


def _weighed(group: Any, wanted: Sequence[tuple[pa.DataType, Sequence[int]]]) -> RowGroup:
    """Values of a fixed width weigh that; others what they do in the file, uncompressed, and their places."""
    memory_bytes = 0
    for kind, places in wanted:
        if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            memory_bytes += group.num_rows * kind.bit_width // 8
        else:
            stored = sum(group.column(place).total_uncompressed_size for place in places)
            memory_bytes += stored + 8 * group.num_rows * len(places)
    return RowGroup(row_count=group.num_rows, memory_bytes=memory_bytes)


def read_parquet(
    storage: Storage, file: SourceFile, columns: Sequence[str] | None, row_groups: Sequence[int] | None
) -> Iterator[SourceRows]:
    """The wanted columns, in the file's order; None is all columns, or all row groups. Of a file that a log knows just
    the rows that it has not deleted."""
    with _opened(storage, file) as parquet:
        places_by_name(parquet.schema_arrow)
        reached = _reached(file, parquet.schema_arrow, columns)
        lacking = _lacking(file, parquet.schema_arrow, columns)
        places = [place for each in reached for place in each.leaves]
        groups = list(range(parquet.num_row_groups) if row_groups is None else row_groups)
        first_row = sum(parquet.metadata.row_group(number).num_rows for number in range(min(groups, default=0)))
        batches = parquet.reader.iter_batches(_BATCH_ROWS, groups, places, use_threads=False)
        while True:
            with reading(file.uri, "Parquet"):
                batch = next(batches, None)
            if batch is None:
                return
            if file.logged is None:
                yield SourceRows(first_row=first_row, batch=batch)
            else:
                yield from _logged_rows(file.logged, reached, lacking, first_row, batch)
            first_row += batch.num_rows


def _lacking(file: SourceFile, schema: pa.Schema, columns: Sequence[str] | None) -> list[pa.Field]:
    """The wanted columns that a file of this schema does not have, and its log has."""
    if file.logged is None:
        return []
    lacking = file.logged.columns.lacking(file.logged.columns.reach(schema))
    return [each for each in lacking if _is_wanted(each.name, columns)]


def _logged_rows(
    logged: LoggedFile,
    reached: Sequence[Reached],
    lacking: Sequence[pa.Field],
    first_row: int,
    batch: pa.RecordBatch,
) -> Iterator[SourceRows]:
    """The rows under the names that the log gives them, without those that it has deleted."""
    arrays = [each.named(batch.column(each.inside)) for each in reached]
    arrays += [pa.nulls(batch.num_rows, each.type) for each in lacking]
    schema = pa.schema([*(each.field for each in reached), *lacking])
    renamed = pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch
    kept, numbers = logged.keep(renamed, first_row)
    if kept.num_rows:
        yield SourceRows(first_row=first_row, batch=kept, numbers=numbers)


@contextmanager
def _opened(storage: Storage, file: SourceFile) -> Iterator[Any]:
    with storage.at(file.uri).open_input(file.uri) as stream:
        with reading(file.uri, "Parquet"):
            parquet = open_stream(stream, is_far=not storage.at(file.uri).is_local)
        yield parquet


def _is_wanted(name: str, columns: Sequence[str] | None) -> bool:
    return columns is None or name.casefold() in {column.casefold() for column in columns}


# What all formats share


@contextmanager
def reading(uri: str, what: str) -> Iterator[None]:
    """Raises InvalidInputError, naming the file, if its content makes no sense; the store's errors as lakelib's."""
    try:
        with translated_reading(uri):
            yield
    except CorruptionError as error:
        raise _as_input(error, uri, what) from error.__cause__


def _as_input(error: CorruptionError, uri: str, what: str) -> LakeError:
    if isinstance(error, LostFileError):
        return missing_file(uri, named_by_catalog=False)
    said = str(error.__cause__).rstrip(". \n")
    return InvalidInputError(
        f"The file {uri} cannot be read as {what}: {said}.",
        kind="unreadable_file",
        remedy="Correct or remove the file, or name its true format.",
    )


FindLines = Callable[[Sequence[int]], Mapping[int, int]]
"""Tells in which lines of a file its rows are, as far as that is known. Both by their numbers: rows from 0, lines from
1."""


@contextmanager
def naming(
    uri: str, first_row: int = 0, find_lines: FindLines | None = None, numbers: Sequence[int] | None = None
) -> Iterator[None]:
    """Says of wrong rows which file they are in, and where in it. The first row at hand has that number in the file, or
    each its own."""
    try:
        yield
    except InvalidInputError as error:
        told = error.message
        if isinstance(error, WrongValuesError):
            told = _told_in_file(error, lambda row: first_row + row if numbers is None else numbers[row], find_lines)
        raise InvalidInputError(f"In the file {uri}: {told}", kind=error.kind, remedy=error.remedy) from error


def _told_in_file(error: WrongValuesError, number_of: Callable[[int], int], find_lines: FindLines | None) -> str:
    rows = [number_of(each.row) for each in error.found]
    lines = {} if find_lines is None else find_lines(rows)

    return tell_wrong(error.found, error.count, lambda row: named_row(number_of(row), lines)).message


def named_row(row: int, lines: Mapping[int, int]) -> str:
    return f"line {lines[row]}" if row in lines else f"row {row} (counted from 0)"
