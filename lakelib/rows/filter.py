"""Pure. Finds the rows for which a predicate is TRUE, with SQL's three-valued logic."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.files import Partition
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Raw,
)
from lakelib.model.schema import Column
from lakelib.model.sortable import decode
from lakelib.rows.raw_arrays import arrow_values

Mask: TypeAlias = "pa.Array | pa.ChunkedArray"
"""One boolean a row."""

_Truth: TypeAlias = "pa.Array | pa.ChunkedArray | pa.BooleanScalar"
"""TRUE, FALSE or NULL a row, or one for all rows."""

_KERNELS: dict[Comparison, Callable[..., _Truth]] = {
    Comparison.EQ: pc.equal,
    Comparison.NE: pc.not_equal,
    Comparison.LT: pc.less,
    Comparison.LE: pc.less_equal,
    Comparison.GT: pc.greater,
    Comparison.GE: pc.greater_equal,
}

_OPERATORS: dict[Comparison, Callable[[float, float], bool]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}


def matching_rows(predicate: Predicate, table: pa.Table | pa.RecordBatch) -> Mask:
    """A mask without NULL that is TRUE for exactly the rows that match; where the predicate is NULL a row does not.

    Columns are found by name, and have the types that the predicate was bound to. NaN equals NaN and is above all
    numbers; -0.0 equals 0.0; text and binaries compare bytewise.
    """
    truth = _truth(predicate, table)
    if isinstance(truth, pa.Scalar):
        return pa.array(np.full(table.num_rows, truth.as_py() is True))
    return pc.fill_null(truth, False) if truth.null_count else truth


def matching_partitions(
    predicate: Predicate, partition_by: Sequence[Column], partitions: Mapping[int, Partition]
) -> set[int]:
    """The ids of the partitions whose values match, of those that the catalog has found: it does not look into every
    predicate. The predicate is over partition columns alone."""
    if not partition_by or not partitions:
        return set(partitions)
    keys = [partition.key for partition in partitions.values()]
    columns = {
        column.name: arrow_values(column.type, [None if part is None else decode(column.type, part) for part in parts])
        for column, parts in zip(partition_by, zip(*keys, strict=True), strict=True)
    }
    mask = matching_rows(predicate, pa.table(columns)).to_pylist()
    return {partition_id for partition_id, matches in zip(partitions, mask, strict=True) if matches}


def _truth(predicate: Predicate, table: pa.Table | pa.RecordBatch) -> _Truth:
    match predicate:
        case Constant(value=value):
            return pa.scalar(value, pa.bool_())
        case Compare(column=column, op=op, value=raw):
            return _compare(table.column(column.name), op, column.type, raw)
        case CompareColumns(left=left, op=op, right=right):
            return _compare_columns(table.column(left.name), op, table.column(right.name))
        case In(column=column, values=values):
            return _is_in(table.column(column.name), column.type, values)
        case IsNull(column=column):
            return table.column(column.name).is_null()
        case Like(column=column, pattern=pattern):
            return _like(table.column(column.name), pattern)
        case Not(part=part):
            return pc.invert(_truth(part, table))
        case And(parts=parts):
            return reduce(pc.and_kleene, (_truth(part, table) for part in parts), pa.scalar(True))
        case Or(parts=parts):
            return reduce(pc.or_kleene, (_truth(part, table) for part in parts), pa.scalar(False))


def _compare(values: Mask, op: Comparison, type_text: str, raw: Raw) -> _Truth:
    if pa.types.is_floating(values.type):
        return _compare_float(values, op, float(raw))
    return _KERNELS[op](values, arrow_values(type_text, [raw])[0])


def _compare_float(values: Mask, op: Comparison, number: float) -> _Truth:
    if math.isnan(number):
        return _compare_nan(values, op)
    truth = _KERNELS[op](values.cast(pa.float64()), pa.scalar(number))
    return pc.or_(truth, pc.is_nan(values)) if op in (Comparison.GT, Comparison.GE) else truth


def _compare_nan(values: Mask, op: Comparison) -> _Truth:
    """Rows are NaN or below it: compare 1 or 0 with 1."""
    nan_rows, other_rows = _OPERATORS[op](1, 1), _OPERATORS[op](0, 1)
    return pc.if_else(pc.is_nan(values), nan_rows, other_rows)


def _compare_columns(left: Mask, op: Comparison, right: Mask) -> _Truth:
    truth = _KERNELS[op](left, right)
    if not pa.types.is_floating(left.type):
        return truth
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    ranks = _KERNELS[op](left_nan, right_nan)
    return pc.if_else(pc.or_(left_nan, right_nan), ranks, truth)


def _is_in(values: Mask, type_text: str, raws: Sequence[Raw]) -> _Truth:
    if pa.types.is_floating(values.type):
        found = _is_float_in(values, [float(raw) for raw in raws])
    else:
        found = pc.is_in(values, value_set=arrow_values(type_text, raws).cast(values.type))
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_())) if values.null_count else found


def _is_float_in(values: Mask, numbers: Sequence[float]) -> _Truth:
    """Adding 0.0 makes every -0.0 a 0.0."""
    wide = pc.add(values.cast(pa.float64()), 0.0)
    others = [number + 0.0 for number in numbers if not math.isnan(number)]
    found = pc.is_in(wide, value_set=pa.array(others, pa.float64()))
    return found if len(others) == len(numbers) else pc.or_(found, pc.is_nan(wide))


ANY_TEXT = "%"
ANY_CHARACTER = "_"


def split_pattern(pattern: str) -> list[tuple[str, bool]]:
    """The pieces of a LIKE pattern: (text, False) stands for itself, ("%", True) and ("_", True) are wild."""
    pieces: list[tuple[str, bool]] = []
    for found in re.finditer(r"\\(.)|([%_])|(.)", pattern, re.DOTALL):
        escaped, wild, plain = found.groups()
        if wild:
            pieces.append((wild, True))
        elif pieces and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0] + (escaped or plain), False)
        else:
            pieces.append((escaped or plain, False))
    return pieces


def _like(values: Mask, pattern: str) -> _Truth:
    pieces = split_pattern(pattern)
    wild = (ANY_TEXT, True)
    match pieces:
        case []:
            return pc.equal(values, "")
        case [(text, False)]:
            return pc.equal(values, text)
        case [(text, False), last] if last == wild:
            return pc.starts_with(values, text)
        case [first, (text, False)] if first == wild:
            return pc.ends_with(values, text)
        case [first, (text, False), last] if first == wild and last == wild:
            return pc.match_substring(values, text)
    return pc.match_substring_regex(values, "".join((r"(?s)\A", *map(_piece_regex, pieces), r"\z")))


def _piece_regex(piece: tuple[str, bool]) -> str:
    text, is_wild = piece
    if not is_wild:
        return "".join(character if character.isalnum() else _escaped(character) for character in text)
    return ".*" if text == ANY_TEXT else "."


def _escaped(character: str) -> str:
    return rf"\x{{{ord(character):x}}}"
