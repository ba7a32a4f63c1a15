"""Alignment never loses a value silently: what comes out equals what went in, or the data is refused."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import merge_source_columns, plan_alignment
from lakelib.rows.types import arrow_type

SOURCES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300),
    pa.uint64(): st.integers(0, 2**64 - 1) | st.integers(0, 300),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.integers(-300, 300).map(float),
    pa.decimal128(6, 2): st.integers(-999_999, 999_999).map(lambda unscaled: Decimal(unscaled) / 100),
    pa.bool_(): st.booleans(),
}
TARGETS = ["boolean", "tinyint", "int", "bigint", "float", "double", "decimal(5,1)", "decimal(7,2)", "decimal(38,0)"]

INEXACT_TARGETS = ("float", "double")
"""Into these an explicit cast takes the nearest number; and a float becomes a decimal that reads as the same float."""


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(list(SOURCES)))
    return pa.array(draw(st.lists(st.none() | SOURCES[kind], max_size=5)), kind)


def nested(array: pa.Array, shape: str) -> pa.Array:
    if shape == "array":
        return pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)
    if shape == "struct":
        return pa.StructArray.from_arrays([array], names=["X"])
    return array


def nested_text(text: str, shape: str) -> str:
    return {"array": f"array<{text}>", "struct": f"struct<x:{text}>"}.get(shape, text)


def inner(value: Any, shape: str) -> Any:
    if value is None or shape == "plain":
        return value
    return value[0] if shape == "array" else next(iter(value.values()))


def is_same(before: Any, after: Any) -> bool:
    if before is None or after is None:
        return before is after
    if isinstance(before, float) and math.isnan(before):
        return isinstance(after, float) and math.isnan(after)
    return bool(Decimal(str(before + 0)) == Decimal(str(after + 0)) or before == after)


@given(
    array=columns(),
    text=st.sampled_from(TARGETS),
    shape=st.sampled_from(["plain", "array", "struct"]),
    explicit_cast=st.booleans(),
)
def test_an_aligned_value_equals_the_given_one(array: pa.Array, text: str, shape: str, explicit_cast: bool) -> None:
    source = pa.record_batch({"v": nested(array, shape)})
    target = TableSchema(id=1, columns=(Column(id=1, name="v", type=nested_text(text, shape)),))
    try:
        plan = plan_alignment(source.schema, target, required_ids=frozenset(), explicit_cast=explicit_cast)
        result = plan.apply(source)
    except InvalidInputError:
        return
    result.validate(full=True)
    before, after = array.to_pylist(), [inner(value, shape) for value in result["v"].to_pylist()]
    assert len(after) == len(before)
    if explicit_cast and text in INEXACT_TARGETS:
        before = [nearest(value, arrow_type(text)) for value in before]
    if explicit_cast and text.startswith("decimal") and pa.types.is_floating(array.type):
        after = [nearest(value, array.type) for value in after]
    assert all(is_same(a, b) for a, b in zip(before, after, strict=True))


def nearest(value: Any, kind: pa.DataType) -> Any:
    """The float of that type nearest to a number."""
    return None if value is None else pa.scalar(float(value), kind).as_py()


@given(
    values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_an_aligned_timestamp_is_the_same_moment(values: list[int | None], unit: str) -> None:
    stamps = pa.array(values, pa.int64()).view(pa.timestamp(unit, "Europe/Berlin"))
    target = TableSchema(id=1, columns=(Column(id=1, name="v", type="timestamp"),))
    batch = pa.record_batch({"v": stamps})
    nanoseconds = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    try:
        result = plan_alignment(batch.schema, target, required_ids=frozenset()).apply(batch)
    except InvalidInputError:
        exact = [value * nanoseconds for value in values if value is not None]
        assert any(value % 1000 or not -(2**63) <= value // 1000 < 2**63 for value in exact)
    else:
        after = result["v"].view(pa.int64()).to_pylist()
        assert [value and value * 1000 for value in after] == [value and value * nanoseconds for value in values]


@given(array=columns(), text=st.sampled_from(TARGETS))
def test_data_fits_the_schema_that_merging_it_makes(array: pa.Array, text: str) -> None:
    batch = pa.record_batch({"v": array})
    target = TableSchema(id=1, columns=(Column(id=1, name="V", type=text),))
    try:
        merged = merge_source_columns(batch.schema, target, 2, explicit_cast=False) or target
    except InvalidInputError:
        return
    result = plan_alignment(batch.schema, merged, required_ids=frozenset()).apply(batch)
    assert all(is_same(a, b) for a, b in zip(array.to_pylist(), result["V"].to_pylist(), strict=True))
