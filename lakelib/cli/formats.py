"""Rows as text and files: tables for people, JSON lines, CSV and Parquet for programs. Batch by batch: memory does not
grow with the rows."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lakelib.cli.command import PIPE_WIDTH, Session
from lakelib.cli.show import Answer, Sentence
from lakelib.cli.values import counted, escaped, json_text, readable_value

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelib.changes import Changes
    from lakelib.result import Result
    from lakelib.scan import Scan

FORMATS = ("table", "json", "csv", "parquet")
_PAGE_ROWS = 500
"""A table is laid out, and held, so many rows at a time."""
_PART_ROWS = 4096
_LONGEST_CELL = 60
_LONGEST_FIELD = 1000
"""Of a row that is shown field by field: its text goes over several lines."""
_NULL = "NULL"


def write_rows(
    session: Session, scan: "Scan | Changes | Result", format: str, most: int | None, output: Path | None, *, told: bool
) -> Answer | None:
    """Writes up to so many rows; gives what there is to say of a file. `told`: the limit was asked for, so that nobody
    has to be told of it."""
    batches = _limited(scan, most)
    if format == "table":
        count = _show_pages(session, scan.schema, batches)
        _note_limit(session, count, most, told)
        return None
    if format == "parquet":
        assert output is not None
        count = _write_parquet(scan.schema, batches, output)
    else:
        with _opened(output, text=format != "csv") as stream:
            count = _WRITERS[format](scan.schema, batches, stream)
    if output is None:
        return None
    return Answer({"rows": count, "output": output}, Sentence(f"{counted(count, 'row')} written to {output}"))


def _limited(scan: "Scan | Changes | Result", most: int | None) -> Iterator["pa.RecordBatch"]:
    left = most
    batches = scan.to_batches()
    try:
        while left is None or left > 0:
            batch = next(batches, None)
            if batch is None:
                return
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
    finally:
        batches.close()  # type: ignore[attr-defined]


def _note_limit(session: Session, count: int, most: int | None, told: bool) -> None:
    if count == 0:
        session.note("no rows")
    elif count == most and not told:
        session.note(f"the first {counted(count, 'row')} found; --limit N shows more, --limit 0 all")


@contextmanager
def _opened(output: Path | None, *, text: bool) -> Iterator[Any]:
    """The output, or a draft that takes the file's name once it is complete."""
    if output is None:
        yield sys.stdout if text else sys.stdout.buffer
        return
    draft = _draft_of(output)
    try:
        with draft.open("w", encoding="utf-8") if text else draft.open("wb") as stream:
            yield stream
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)


def _draft_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.{os.getpid()}")


# JSON


def _write_json(schema: "pa.Schema", batches: Iterator["pa.RecordBatch"], stream: IO[str]) -> int:
    count = 0
    for part in _parts(batches):
        columns = [_json_column(column) for column in part.columns]
        for values in zip(*columns, strict=True):
            stream.write(json_text(dict(zip(schema.names, values, strict=True))) + "\n")
        count += part.num_rows
    return count


def _parts(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """So many rows as are turned into Python's values at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, _PART_ROWS):
            yield batch.slice(start, _PART_ROWS)


def _json_column(array: "pa.Array") -> list[Any]:
    """Values that JSON can hold, of every type and every range."""
    import pyarrow as pa

    kind = array.type
    if isinstance(array, pa.DictionaryArray):
        return _json_column(array.dictionary_decode())
    if pa.types.is_struct(kind):
        parts = [_json_column(array.field(place)) for place in range(kind.num_fields)]
        names = [field.name for field in kind]
        rows = zip(*parts, strict=True) if parts else (() for _ in range(len(array)))
        return _where_valid(array, [dict(zip(names, values, strict=True)) for values in rows])
    if pa.types.is_map(kind):
        return _json_maps(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [None if item is None else _json_column(item) for item in _items(array)]
    return _json_leaves(array)


def _json_leaves(array: "pa.Array") -> list[Any]:
    import pyarrow as pa

    from lakelib.rows.types import type_text
    from lakelib.rows.values import python_value, raw_values

    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal(kind):
        text = type_text(kind)
        return [None if raw is None else python_value(text, raw) for raw in raw_values(array)]
    values: list[Any] = array.to_pylist()
    return values


def _json_maps(array: "pa.Array") -> list[Any]:
    """An object where the keys are text, else a list of keys and values."""
    import pyarrow as pa

    found: list[Any] = []
    for item in _items(array):
        if item is None:
            found.append(None)
            continue
        keys, values = _json_column(item.field(0)), _json_column(item.field(1))
        if pa.types.is_string(array.type.key_type):
            found.append(dict(zip(keys, values, strict=True)))
        else:
            found.append([{"key": key, "value": value} for key, value in zip(keys, values, strict=True)])
    return found


def _items(array: "pa.Array") -> Iterator[Any]:
    for item in array:
        yield item.values if item.is_valid else None


def _where_valid(array: "pa.Array", values: list[Any]) -> list[Any]:
    valid = array.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


# CSV


def _write_csv(schema: "pa.Schema", batches: Iterator["pa.RecordBatch"], stream: IO[bytes]) -> int:
    """NULL is nothing, '' is two quotes; what CSV has no form for is JSON."""
    import pyarrow as pa
    from pyarrow import csv

    plain = pa.schema([pa.field(field.name, _csv_type(field.type)) for field in schema])
    count = 0
    with csv.CSVWriter(stream, plain) as writer:
        for part in _parts(batches):
            arrays = [_csv_array(column) for column in part.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
            count += part.num_rows
    return count


def _csv_type(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    return kind if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else pa.string()


def _csv_array(array: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    wanted = _csv_type(array.type)
    if wanted == array.type:
        return array
    if pa.types.is_floating(array.type):
        return pa.array([None if value is None else readable_value(value) for value in array.to_pylist()], wanted)
    return pa.array([_csv_text(value) for value in _json_column(array)], wanted)


def _csv_text(value: Any) -> str | None:
    from lakelib.cli.values import json_value

    shown = json_value(value)
    return shown if shown is None or isinstance(shown, str) else json_text(shown)


# Parquet


def _write_parquet(schema: "pa.Schema", batches: Iterator["pa.RecordBatch"], output: Path) -> int:
    from lakelib.storage.parquet_writer import write_plain_file

    draft = _draft_of(output)
    try:
        count = write_plain_file(str(draft), schema, batches)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
    return count


# Tables


def _show_pages(session: Session, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]) -> int:
    count = 0
    for page in _pages(batches):
        columns = [[_text(value) for value in _json_column(column)] for column in page.columns]
        rows = list(zip(*columns, strict=True))
        _show_page(session, schema, rows, first_number=count + 1)
        count += len(rows)
    return count


def _pages(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """The rows in pages that are full, but for the last."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        for start in range(0, batch.num_rows, _PAGE_ROWS):
            held.append(batch.slice(start, _PAGE_ROWS))
            if sum(each.num_rows for each in held) >= _PAGE_ROWS:
                whole = pa.concat_batches(held)
                yield whole.slice(0, _PAGE_ROWS)
                held = [whole.slice(_PAGE_ROWS)]
    if sum(each.num_rows for each in held):
        yield pa.concat_batches(held)


def _show_page(session: Session, schema: "pa.Schema", rows: Sequence[Sequence[str]], first_number: int) -> None:
    """As a table, or where that is too wide for the terminal, row by row."""
    names = [escaped(name) for name in schema.names]
    if session.is_piped and all(text.isascii() for row in (names, *rows) for text in row):
        lines = _plain_table(names, [_is_number(field.type) for field in schema], rows)
        if len(lines[0]) <= PIPE_WIDTH:
            print("\n".join(lines))
            return None
    from rich.cells import cell_len

    cells = [[_cut(text, _LONGEST_CELL) for text in row] for row in rows] if session.out.is_terminal else rows
    widths = [max(cell_len(name), max(cell_len(row[place]) for row in cells)) for place, name in enumerate(names)]
    if sum(widths) + 3 * len(widths) <= session.out.width or not session.out.is_terminal:
        return _show_table(session, schema, cells)
    return _show_records(session, names, rows, first_number)


def _plain_table(names: Sequence[str], on_the_right: Sequence[bool], rows: Sequence[Sequence[str]]) -> list[str]:
    """As `_show_table` lays it out for programs, without what that takes to load."""
    widths = [max(map(len, cells)) for cells in zip(names, *rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(row, widths, on_the_right, strict=True)
        )
        for row in (names, *rows)
    ]


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _show_table(session: Session, schema: "pa.Schema", rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    on_terminal = session.out.is_terminal
    table = Table(
        box=box.SIMPLE_HEAD if on_terminal else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1) if on_terminal else (0, 2, 0, 0),
        header_style="bold" if on_terminal else "",
    )
    for field in schema:
        is_number = _is_number(field.type)
        table.add_column(Text(escaped(field.name)), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style="dim" if cell == _NULL else "") for cell in row))
    session.out.print(table)


def _show_records(session: Session, names: Sequence[str], rows: Sequence[Sequence[str]], first_number: int) -> None:
    from rich.table import Table
    from rich.text import Text

    for number, row in enumerate(rows, first_number):
        session.out.print(f"row {number:,}", style="bold", highlight=False)
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            grid.add_row(Text(f"  {name}"), Text(_cut(cell, _LONGEST_FIELD), style="dim" if cell == _NULL else ""))
        session.out.print(grid)


def _text(value: Any) -> str:
    return repr(value) if value == _NULL else readable_value(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


_WRITERS: dict[str, Callable[["pa.Schema", Iterator["pa.RecordBatch"], Any], int]] = {
    "json": _write_json,
    "csv": _write_csv,
}
