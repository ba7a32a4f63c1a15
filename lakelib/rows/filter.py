"""Pure. Finds the rows for which a predicate is TRUE, with SQL's three-valued logic."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
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
    Matches,
    Not,
    Or,
    Predicate,
    Raw,
    Tested,
)
from lakelib.model.schema import Column
from lakelib.model.sortable import decode
from lakelib.rows.compute import joined_failures, values_of
from lakelib.rows.convert import shown_row
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.regex import re2_of

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a predicate says of each row."""

    truth: _Truth
    failed: pa.Array | None = None
    """TRUE where it cannot be said, FALSE elsewhere; None: it can be said of each row."""
    reason: str = ""


def matching_rows(predicate: Predicate, table: pa.Table | pa.RecordBatch, among: "np.ndarray | None" = None) -> Mask:
    """A mask without NULL that is TRUE for exactly the rows that match; where the predicate is NULL a row does not.

    Columns are found by name, and have the types that the predicate was bound to. NaN equals NaN and is above all
    numbers; -0.0 equals 0.0; text and binaries compare bytewise. `among` are the rows that count: others may be said to
    match. Raises InvalidInputError for one of those of which it cannot be said, such as by a division by zero.
    """
    answer = _answer(predicate, table)
    if answer.failed is not None:
        _check_failed(answer, table, among)
    truth = answer.truth
    if isinstance(truth, pa.Scalar):
        return pa.array(np.full(table.num_rows, truth.as_py() is True))
    return pc.fill_null(truth, False) if truth.null_count else truth


def _check_failed(answer: _Answer, table: pa.Table | pa.RecordBatch, among: "np.ndarray | None") -> None:
    assert answer.failed is not None
    failed = answer.failed.to_numpy(zero_copy_only=False)
    failed = failed if among is None else failed & among
    if not failed.any():
        return
    shown = shown_row(table, int(np.flatnonzero(failed)[0]))
    raise InvalidInputError(
        f"The predicate cannot be computed for a row: {answer.reason}. The row is {shown}.",
        kind="failed_predicate",
        remedy="Leave such rows out by a condition before it, with AND; or write TRY_CAST, or cast to a type with more"
        " room.",
    )


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


def _answer(predicate: Predicate, table: pa.Table | pa.RecordBatch) -> _Answer:
    match predicate:
        case Constant(value=value):
            return _Answer(truth=pa.scalar(value, pa.bool_()))
        case Compare(column=column, op=op, value=raw):
            return _of_values(column, table, lambda values: _compare(values, op, column.type, raw))
        case CompareColumns(left=left, op=op, right=right):
            found, others = values_of(left, table), values_of(right, table)
            asked = joined_failures((found, others), found.array)
            truth = _compare_columns(found.array, op, others.array)
            return _Answer(truth=truth, failed=asked.failed, reason=asked.reason)
        case In(column=column, values=raws):
            return _of_values(column, table, lambda values: _is_in(values, column.type, raws))
        case IsNull(column=column):
            return _of_values(column, table, lambda values: values.is_null())
        case Like(column=column, pattern=pattern):
            return _of_values(column, table, lambda values: _like(values, pattern))
        case Matches(column=column, pattern=pattern):
            return _of_values(column, table, lambda values: pc.match_substring_regex(values, _re2_of(pattern)))
        case Not(part=part):
            answer = _answer(part, table)
            return replace(answer, truth=pc.invert(answer.truth))
        case And(parts=parts):
            return _joined(parts, table, pc.and_kleene, pa.scalar(True))
        case Or(parts=parts):
            return _joined(parts, table, pc.or_kleene, pa.scalar(False))


_re2_of = lru_cache(maxsize=64)(re2_of)


def _of_values(tested: Tested, table: pa.Table | pa.RecordBatch, ask: Callable[[Mask], _Truth]) -> _Answer:
    found = values_of(tested, table)
    return _Answer(truth=ask(found.array), failed=found.failed, reason=found.reason)


def _joined(
    parts: Sequence[Predicate],
    table: pa.Table | pa.RecordBatch,
    join: Callable[[_Truth, _Truth], _Truth],
    neutral: pa.BooleanScalar,
) -> _Answer:
    """In order: a part is not asked of a row that is decided."""
    found = _Answer(truth=neutral)
    for part in parts:
        answer = _answer(part, table)
        failed, reason = found.failed, found.reason
        if answer.failed is not None:
            open_rows = pc.fill_null(pc.equal(found.truth, neutral), True)
            counts = pc.and_(answer.failed, open_rows)
            failed = counts if failed is None else pc.or_(failed, counts)
            reason = reason or answer.reason
        found = _Answer(truth=join(found.truth, answer.truth), failed=failed, reason=reason)
    return found


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
