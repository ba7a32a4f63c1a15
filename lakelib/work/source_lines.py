"""Work. Finds in which lines of a text file its rows are: a row may be several lines long, and a line empty.

Only for what is told of rows that are wrong: the file is read anew, as far as the last of them.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

_READ_BYTES = 1024 * 1024
MOST_ROWS = 20_000_000
"""Rows further down are told by their number: to find their lines would take minutes."""


def lines_of_csv_rows(stream: pa.NativeFile, rows: Sequence[int], *, header: bool, **format: Any) -> Mapping[int, int]:
    """By number of a row, from 0, the line in which it begins, from 1. `format` is as for Python's own reader."""
    reader = csv.reader((line.decode(errors="replace") for line in _lines(stream)), **format)
    return _places(islice(_beginnings(reader), int(header), None), rows)


def _beginnings(reader: Any) -> Iterator[int]:
    line = 1
    for values in reader:
        if values:
            yield line
        line = reader.line_num + 1


def lines_of_json_rows(stream: pa.NativeFile, rows: Sequence[int]) -> Mapping[int, int]:
    """As `lines_of_csv_rows`, of JSON lines."""
    return _places((number for number, line in enumerate(_lines(stream), start=1) if line.strip()), rows)


def _places(lines: Iterable[int], rows: Sequence[int]) -> dict[int, int]:
    wanted = {row for row in rows if row < MOST_ROWS}
    return {row: line for row, line in zip(range(max(wanted, default=-1) + 1), lines, strict=False) if row in wanted}


def _lines(stream: pa.NativeFile) -> Iterator[bytes]:
    """With their ends."""
    rest = b""
    while read := stream.read(_READ_BYTES):
        *whole, rest = (rest + read).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest
