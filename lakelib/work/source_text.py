"""Work. Reads CSV and JSON lines that somebody else has written.

Text says no types: values are of the types that the reader wants, and what does not convert exactly is an error that
shows file, line and value.
"""

import csv as python_csv
import io
import json as python_json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import csv, json

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.options import MIB
from lakelib.model.schema import Column
from lakelib.rows.align import plan_column_conversion, try_convert
from lakelib.rows.convert import Rules, failing_rows, first_failing_row
from lakelib.rows.types import arrow_type, type_text
from lakelib.rows.wrong import MOST_TOLD, WrongValue, others_told, wrong_values
from lakelib.storage.filesystem import Storage
from lakelib.work.source_files import FindLines, Looked, SourceFile, SourceRows, named_row, naming, reading
from lakelib.work.source_lines import lines_of_csv_rows, lines_of_json_rows

_BLOCK_BYTES = 8 * MIB
_LOOKED_AT_BYTES = MIB
"""So much of a JSON file tells its fields."""

_UNPACKED_FACTOR = 5
_HEAD_BYTES = 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 200
_MOST_WRONG_LINES = 100
_EXPLICIT = Rules(explicit=True)
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    header: bool = False
    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    """None: a quote within quotes is doubled."""
    null_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTypes:
    """The wanted types of columns by casefolded name. Others are text in CSV; in JSON they are what they look like."""

    columns: Mapping[str, Column] = field(default_factory=dict)

    def of(self, name: str) -> Column | None:
        return self.columns.get(name.casefold())


def _open_text(storage: Storage, file: SourceFile, stack: ExitStack) -> pa.NativeFile:
    stream = stack.enter_context(storage.at(file.uri).open_input(file.uri))
    compression = _compression(file)
    return stream if compression is None else stack.enter_context(pa.CompressedInputStream(stream, compression))


def _compression(file: SourceFile) -> str | None:
    return next((each for ending, each in COMPRESSIONS.items() if file.uri.lower().endswith(ending)), None)


def text_bytes(file: SourceFile) -> int:
    """About what the file takes unpacked."""
    return file.size_bytes * (1 if _compression(file) is None else _UNPACKED_FACTOR)


# CSV


def look_into_csv(storage: Storage, file: SourceFile, dialect: CsvDialect, types: TextTypes) -> Looked | None:
    """None if the file has no row."""
    names, row_bytes = _csv_head(storage, file, dialect)
    if not row_bytes:
        return None
    return Looked(schema=pa.schema([_csv_field(name, types) for name in names]), row_bytes=row_bytes)


def _csv_field(name: str, types: TextTypes) -> pa.Field:
    column = types.of(name)
    return pa.field(name, pa.string()) if column is None else pa.field(name, arrow_type(column.type))


def _csv_head(storage: Storage, file: SourceFile, dialect: CsvDialect) -> tuple[list[str], int]:
    """The names of the columns, and the length of the first row; 0 if there is none. Without a header columns are named
    as Spark names them."""
    with ExitStack() as stack, reading(file.uri, "CSV"):
        lines = _first_lines(_open_text(storage, file, stack), 2)
        if not lines:
            return [], 0
        names: list[str] = _csv_reader(io.BytesIO(lines[0] + b"\n"), dialect, _read_options(dialect)).schema.names
    rows = lines[1:] if dialect.header else lines
    if not dialect.header:
        names = [f"_c{place}" for place in range(len(names))]
    return names, len(rows[0]) if rows else 0


def _first_lines(stream: pa.NativeFile, count: int) -> list[bytes]:
    """The first lines that are not empty; of the last one perhaps only its beginning."""
    head = b""
    while True:
        read = stream.read(_HEAD_BYTES)
        head += read
        lines = [line for line in head.removeprefix(_BYTE_ORDER_MARK).splitlines() if line]
        if len(lines) >= count or not read or len(head) > _BLOCK_BYTES:
            return lines[:count]


def read_csv(
    storage: Storage, file: SourceFile, dialect: CsvDialect, types: TextTypes, is_wanted: Callable[[str], bool]
) -> Iterator[SourceRows]:
    """The wanted columns; what the others hold does not matter."""
    names, _ = _csv_head(storage, file, dialect)
    schema = pa.schema([_csv_field(name, types) for name in names if is_wanted(name)])
    if not len(schema):
        return
    texts = dict.fromkeys(schema.names, pa.string())
    options = _read_options(dialect, None if dialect.header else names)
    wrong = _WrongRows()
    find_lines = partial(find_csv_lines, storage, file, dialect)
    with ExitStack() as stack:
        with reading(file.uri, "CSV"):
            batches = _csv_reader(_open_text(storage, file, stack), dialect, options, texts, wrong.note)
        first_row = 0
        while True:
            with reading(file.uri, "CSV"):
                batch = next(batches, None)
            if wrong.count:
                raise wrong.error(file.uri, dialect, find_lines)
            if batch is None:
                return
            with naming(file.uri, first_row, find_lines):
                converted = _converted(batch, schema, types)
            yield SourceRows(first_row=first_row, batch=converted)
            first_row += batch.num_rows


class _WrongRows:
    """Rows of a CSV file that have more or fewer values than it has columns."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[csv.InvalidRow] = []

    def note(self, row: csv.InvalidRow) -> str:
        self.count += 1
        if len(self._first) < MOST_TOLD:
            self._first.append(row)
        return "skip"

    def error(self, uri: str, dialect: CsvDialect, find_lines: FindLines) -> InvalidInputError:
        numbers = [row.number - 1 - dialect.header for row in self._first]
        lines = find_lines(numbers)
        told = [
            f"{named_row(number, lines)}: Expected {row.expected_columns} columns, got {row.actual_columns}"
            for row, number in zip(self._first, numbers, strict=True)
        ]
        return InvalidInputError(
            f"The file {uri} cannot be read as CSV: {told[0]}. The line: {_shown(self._first[0].text)}"
            f"{others_told(told[1:], self.count, is_least=False)}",
            kind="unreadable_file",
            remedy="Correct the lines, or name the file's true separator and quotes.",
        )


def find_csv_lines(storage: Storage, file: SourceFile, dialect: CsvDialect, rows: Sequence[int]) -> Mapping[int, int]:
    """In which lines the rows are; nothing where that cannot be told."""
    form: dict[str, Any] = {
        "delimiter": dialect.delimiter,
        "quotechar": dialect.quote,
        "escapechar": dialect.escape,
        "doublequote": dialect.escape is None,
        "quoting": python_csv.QUOTE_NONE if dialect.quote is None else python_csv.QUOTE_MINIMAL,
    }
    with ExitStack() as stack, suppress(LakeError, OSError, python_csv.Error):
        return lines_of_csv_rows(_open_text(storage, file, stack), rows, header=dialect.header, **form)
    return {}


def _read_options(dialect: CsvDialect, names: list[str] | None = None) -> csv.ReadOptions:
    return csv.ReadOptions(
        use_threads=False,
        block_size=_BLOCK_BYTES,
        column_names=names,
        autogenerate_column_names=not dialect.header and names is None,
    )


def _csv_reader(
    stream: pa.NativeFile | io.BytesIO,
    dialect: CsvDialect,
    options: csv.ReadOptions,
    types: Mapping[str, pa.DataType] | None = None,
    note: Callable[[csv.InvalidRow], str] | None = None,
) -> csv.CSVStreamingReader:
    """Of the columns that `types` names; None is all, in whatever types."""
    return csv.open_csv(
        stream,
        read_options=options,
        parse_options=csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            double_quote=dialect.escape is None,
            escape_char=dialect.escape or False,
            invalid_row_handler=note,
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=None if types is None else list(types),
            null_values=[dialect.null_text],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


# JSON lines


def look_into_json(storage: Storage, file: SourceFile) -> Looked | None:
    """The fields of the file's first lines; None if it has no line. A type that nothing tells is null."""
    with ExitStack() as stack:
        for _, block in _blocks(storage, file, stack, _LOOKED_AT_BYTES):
            rows = _parse(block, pa.schema([]), "infer", file.uri)
            schema = pa.schema([field.with_type(_looked_type(field.type)) for field in rows.schema])
            return Looked(schema=schema, row_bytes=len(block) // max(1, rows.num_rows))
    return None


def _looked_type(found: pa.DataType) -> pa.DataType:
    """What looks like a moment is text, as long as nobody says otherwise."""
    return _each_leaf(found, lambda kind: pa.string() if pa.types.is_timestamp(kind) else kind)


def told_type(found: pa.DataType) -> pa.DataType:
    """What was never more than null, in all files, is text."""
    return _each_leaf(found, lambda kind: pa.string() if pa.types.is_null(kind) else kind)


def _each_leaf(found: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    if pa.types.is_list(found):
        return pa.list_(_each_leaf(found.value_type, change))
    if pa.types.is_struct(found):
        return pa.struct([each.with_type(_each_leaf(each.type, change)) for each in found])
    return change(found)


def read_json(
    storage: Storage, file: SourceFile, schema: pa.Schema, types: TextTypes, *, strict: bool
) -> Iterator[SourceRows]:
    """The fields of the schema, whatever the case of their names in the file; others are an error if `strict`, else
    left out."""
    own = {field.name.casefold(): field for field in file.schema or ()}
    written = pa.schema([_written_field(each, own.get(each.name.casefold())) for each in schema])
    beyond = "error" if strict else "ignore"
    with ExitStack() as stack:
        first_row = 0
        for lines_before, block in _blocks(storage, file, stack):
            rows = _parse(block, written, beyond, file.uri, lines_before)
            if not strict:
                _check_spelling(block, rows, written, file.uri)
            for batch in rows.select(written.names).combine_chunks().to_batches():
                with naming(file.uri, first_row, partial(find_json_lines, storage, file)):
                    converted = _converted(batch, schema, types)
                yield SourceRows(first_row=first_row, batch=converted)
                first_row += batch.num_rows


def find_json_lines(storage: Storage, file: SourceFile, rows: Sequence[int]) -> Mapping[int, int]:
    """As `find_csv_lines`."""
    with ExitStack() as stack, suppress(LakeError, OSError):
        return lines_of_json_rows(_open_text(storage, file, stack), rows)
    return {}


def _written_field(wanted: pa.Field, own: pa.Field | None) -> pa.Field:
    """A field by the names that it has in the file."""
    kind = _json_type(wanted.type)
    return pa.field(wanted.name, kind) if own is None else pa.field(own.name, _spelt(kind, own.type))


def _spelt(wanted: pa.DataType, own: pa.DataType) -> pa.DataType:
    if pa.types.is_list(wanted) and pa.types.is_list(own):
        return pa.list_(_spelt(wanted.value_type, own.value_type))
    if pa.types.is_struct(wanted) and pa.types.is_struct(own):
        names = {field.name.casefold(): field for field in own}
        return pa.struct([_written_field(each, names.get(each.name.casefold())) for each in wanted])
    return wanted


def _check_spelling(block: bytes, rows: pa.Table, written: pa.Schema, uri: str) -> None:
    """Where other fields are passed over, one that is spelt differently further down would be too."""
    lacking = [name for name in written.names if rows.column(name).null_count]
    if not lacking:
        return
    folded = block.lower()
    if all(folded.count(f'"{name.lower()}"'.encode()) == block.count(f'"{name}"'.encode()) for name in lacking):
        return
    given = {name for line in block.splitlines() if line.strip() for name in python_json.loads(line)}
    for name in lacking:
        other = next((each for each in given if each != name and each.casefold() == name.casefold()), None)
        if other is not None:
            raise InvalidInputError(
                f"The file {uri} has two fields that differ at most by case: {name!r} and {other!r}.",
                kind="duplicate_column",
                remedy="Write each field in one way.",
            )


def _json_type(wanted: pa.DataType) -> pa.DataType:
    """JSON has no dates and moments: they are written as text."""
    return pa.string() if pa.types.is_temporal(wanted) else wanted


def is_in_json(wanted: pa.DataType) -> bool:
    """Whether values of a type are read from JSON here, rather than by Spark."""
    if pa.types.is_list(wanted):
        return is_in_json(wanted.value_type) and not pa.types.is_temporal(wanted.value_type)
    if pa.types.is_struct(wanted):
        return all(is_in_json(each.type) and not pa.types.is_temporal(each.type) for each in wanted)
    return not pa.types.is_map(wanted) and not pa.types.is_binary(wanted)


def _blocks(
    storage: Storage, file: SourceFile, stack: ExitStack, block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about a block of them at a time, each with the number of lines before."""
    with reading(file.uri, "JSON"):
        stream = _open_text(storage, file, stack)
    rest, line = b"", 0
    while True:
        with reading(file.uri, "JSON"):
            read = stream.read(block_bytes)
        whole, newline, tail = (rest + read).rpartition(b"\n")
        block, rest = (whole + newline, tail) if read else (rest, b"")
        if block.strip():
            yield line, block
        line += block.count(b"\n")
        if not read:
            return


def _parse(block: bytes, schema: pa.Schema, beyond: str, uri: str, lines_before: int = 0) -> pa.Table:
    def parse(lines: bytes) -> pa.Table:
        return json.read_json(
            io.BytesIO(lines),
            read_options=json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=beyond),
        )

    try:
        return parse(block)
    except pa.ArrowException as error:
        raise _wrong_lines(block, parse, error, uri, lines_before) from error


def _wrong_lines(
    block: bytes, parse: Callable[[bytes], pa.Table], error: Exception, uri: str, lines_before: int
) -> InvalidInputError:
    """Of lines that cannot be read: the first ones, and how many more."""
    numbered = [(lines_before + place, line) for place, line in enumerate(block.split(b"\n"), 1) if line.strip()]

    def parse_rows(part: pa.Array) -> pa.Array:
        if len(part):
            parse(b"\n".join(part.to_pylist()))
        return part

    lines = pa.array([line for _, line in numbered], pa.binary())
    rows = failing_rows(parse_rows, lines, _MOST_WRONG_LINES) or [first_failing_row(parse_rows, lines)]
    why = [_why_wrong(numbered[row][1], parse, error) for row in rows[:MOST_TOLD]]
    told = [f"line {numbered[row][0]}: {said}" for row, said in zip(rows, why, strict=False)]
    others = others_told(told[1:], len(rows), is_least=len(rows) == _MOST_WRONG_LINES)
    return InvalidInputError(
        f"The file {uri} cannot be read as JSON lines: {told[0]}. The line: {_shown(numbered[rows[0]][1])}{others}",
        kind="unknown_column" if why[0] == "unexpected field" else "unreadable_file",
        remedy="Correct the line, or the types that are wanted (the table's, or those of the schema that was given).",
    )


def _why_wrong(line: bytes, parse: Callable[[bytes], pa.Table], error: Exception) -> str:
    """What is wrong with it by itself; else with all of them together."""
    try:
        parse(line)
    except pa.ArrowException as own:
        error = own
    return str(error).removeprefix("JSON parse error: ").partition(" in row ")[0].rstrip(". \n")


def _shown(line: bytes | str) -> str:
    try:
        shown = line.strip() if isinstance(line, str) else line.decode().strip()
    except UnicodeDecodeError:
        shown = str(line)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


# Types


def _converted(batch: pa.RecordBatch, schema: pa.Schema, types: TextTypes) -> pa.RecordBatch:
    """The batch in the types of the schema. Raises WrongValuesError with columns, rows and values."""
    arrays, wrong = [], list[WrongValue]()
    for place, wanted in enumerate(schema):
        array = batch.column(place)
        if array.type != wanted.type:
            column = types.of(wanted.name) or Column(id=1, name=wanted.name, type=type_text(wanted.type))
            convert = plan_column_conversion(array.type, column, _EXPLICIT)
            array = array if convert is None else try_convert(array, column, convert, wrong)
        arrays.append(array)
    if wrong:
        raise wrong_values(wrong, batch)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
