"""Tells Spark how large the rows are that Python makes, and asks it how large it takes a frame to be, and of how many
parts.

Spark knows nothing of what a function makes of its rows: it takes as many for granted as went in. From its estimates
follow which side of a join is sent to all executors, and how many tasks a shuffle has.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelib.model.options import KIB
from lakelib.work.spark.sessions import is_connect

_ROW_BYTES = 8
_WIDE_FIELDS = 50
_WIDE_TYPE = f"STRUCT<{','.join(f'w{place}: BINARY' for place in range(_WIDE_FIELDS))}>"
_NUMBER_BYTES = (16 + 100 * _WIDE_FIELDS) // 2
"""Of a number with the wide column beside it: a number by itself has 8 bytes in Spark's eyes, but a row of them 16."""

_LONG_ROW_BYTES = 64 * KIB
"""Of longer rows a thousand would be more than Spark itself hands over at a time."""

_WEIGHT = "lakelib_weight"
_LONG_WEIGHT = "lakelib_weight_of_long_rows"

_LARGE_BYTES = 2**40
"""Beyond this Spark makes no difference that would be worth the numbers."""

_MADE_BY_PYTHON = ("MapInArrow", "MapInPandas")
_KEEPS_PARTITIONS = ("BroadcastHashJoin", "Project", "Filter", "ColumnarToRow", "InputAdapter", "WholeStageCodegen")
"""What makes of each partition of its one child, or of the one that is not sent to everybody, one of its own."""
_UNKNOWN_BYTES = 2**50
"""Of what it cannot estimate Spark says that it is larger than anything."""

_DEFAULT_BYTES = {"string": 20, "binary": 100, "bool": 1}
_LONG_DECIMAL_DIGITS = 18


def are_long(row_bytes: Iterable[int]) -> bool:
    """Whether rows are to be handed over by their bytes, given about what some of them take."""
    return any(each >= _LONG_ROW_BYTES for each in row_bytes)


def sized_numbers(session: Any, count: int, size_bytes: int, *, long_rows: bool = False) -> DataFrame:
    """The numbers below `count`, a partition each, in the first column. Spark takes what Arrow makes of them for as
    large as they are themselves: here for about so many bytes. To that end there is a column of a wide type, always
    NULL, and a filter that leaves most of more numbers out, as to which Spark assumes nothing. The column's name says
    whether the rows are long."""
    told_bytes = min(size_bytes, _LARGE_BYTES)
    step = max(1, -(-told_bytes // (_NUMBER_BYTES * max(1, count))))
    numbers: DataFrame = session.range(0, count * step, 1, max(1, count))
    if step > 1:
        numbers = numbers.where(f"id % {step}L = 0")
    weight = _LONG_WEIGHT if long_rows else _WEIGHT
    return numbers.selectExpr(f"id div {step}L AS id", f"CAST(NULL AS {_WIDE_TYPE}) AS {weight}")


def row_bytes(schema: pa.Schema) -> int:
    """What a row takes, as Spark guesses it from the types."""
    return _ROW_BYTES + sum(_value_bytes(field.type) for field in schema)


def _value_bytes(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_value_bytes(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _value_bytes(kind.key_type) + _value_bytes(kind.item_type)
    if pa.types.is_list(kind):
        return _value_bytes(kind.value_type)
    if pa.types.is_decimal(kind):
        return 16 if kind.precision > _LONG_DECIMAL_DIGITS else 8
    known = _DEFAULT_BYTES.get(str(kind))
    return kind.bit_width // 8 if known is None else known


def estimated_bytes(frame: Any) -> int | None:
    """What Spark's optimizer takes the frame's rows to have; None if it knows nothing, or is not to be asked, as over
    Spark Connect. To it a join has as many rows as both sides multiplied: no more are believed than all that is read
    has together."""
    if is_connect(frame.sparkSession):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()
    read = sum(_bytes_of(each) * _row_bytes_of(plan) // _row_bytes_of(each) for each in _what_is_read(plan))
    size_bytes = min(_bytes_of(plan), read)
    return size_bytes if size_bytes < _UNKNOWN_BYTES else None


def has_long_rows(frame: Any) -> bool:
    """Whether Python reads long rows for the frame, as far as that is known: over Spark Connect it is not."""
    if is_connect(frame.sparkSession):
        return False
    return _LONG_WEIGHT in str(frame._jdf.queryExecution().optimizedPlan().toString())


def partition_count(frame: Any) -> int | None:
    """Of how many partitions a classic frame is; None where rows change places on the way, for Spark may decide it
    then. What is joined without that, by sending a side to everybody, has those of the other side."""
    # A frame is planned once: what was cached since then, only a frame of its own knows.
    plan = frame.select("*")._jdf.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    while plan is not None and _moves_rows(plan):
        plan = _which_stays(plan)
    return None if plan is None else int(plan.execute().getNumPartitions())


def _moves_rows(plan: Any) -> bool:
    """Whether anything of the plan does."""
    return "Exchange" in plan.nodeName() or any(map(_moves_rows, _children(plan)))


def _which_stays(plan: Any) -> Any:
    """What has as many partitions as the plan itself, of all that is below it; None if that is not known."""
    if not plan.nodeName().startswith(_KEEPS_PARTITIONS):
        return None
    staying = [child for child in _children(plan) if child.nodeName() != "BroadcastExchange"]
    return staying[0] if len(staying) == 1 else None


def _children(plan: Any) -> list[Any]:
    children = plan.children()
    return [children.apply(place) for place in range(children.size())]


def _what_is_read(plan: Any) -> Iterator[Any]:
    """The parts of a plan that nothing is known to be below."""
    children = _children(plan)
    if not children or plan.nodeName() in _MADE_BY_PYTHON:
        yield plan
    else:
        yield from (part for child in children for part in _what_is_read(child))


def _bytes_of(plan: Any) -> int:
    return int(plan.stats().sizeInBytes())


def _row_bytes_of(plan: Any) -> int:
    return _ROW_BYTES + int(plan.schema().defaultSize())
