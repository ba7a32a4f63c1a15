"""Text that is no UTF-8 is found wherever it is, and nothing else is."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import plan_alignment
from lakelib.rows.types import type_text
from lakelib.rows.wrong import first_wrong_text

WRONG = (b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", "日".encode()[:2])


def texts(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """An array of text with any bytes, as C programs and Spark hand them over."""
    stored = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind or pa.string(), len(stored), stored.buffers())


def nested(leaf: pa.Array) -> dict[str, pa.Array]:
    """The texts inside of all types that hold others, one a row."""
    each = pa.array(range(len(leaf) + 1), pa.int32())
    numbers = pa.array(range(len(leaf)))
    struct = pa.StructArray.from_arrays([numbers, leaf], names=["n", "t"])
    return {
        "struct": struct,
        "list": pa.ListArray.from_arrays(each, leaf),
        "keys": pa.MapArray.from_arrays(each, leaf.fill_null("k"), numbers),
        "values": pa.MapArray.from_arrays(each, numbers, leaf),
        "list of structs": pa.ListArray.from_arrays(each, struct),
        "struct of maps": pa.StructArray.from_arrays([pa.MapArray.from_arrays(each, numbers, leaf)], names=["m"]),
        "large_list": pa.LargeListArray.from_arrays(each.cast(pa.int64()), leaf),
        "fixed_size_list": pa.FixedSizeListArray.from_arrays(leaf, 1),
    }


def run_end_encoded(leaf: pa.Array) -> pa.Array:
    ends = pa.array(range(1, len(leaf) + 1), pa.int32())
    return pa.Array.from_buffers(pa.run_end_encoded(pa.int32(), pa.string()), len(leaf), [None], children=[ends, leaf])


def spellings(*values: bytes | None) -> dict[str, pa.Array]:
    """The same texts in all of Arrow's ways to have them."""
    plain = texts(*values)
    return {
        "string": plain,
        "large_string": texts(*values, kind=pa.large_string()),
        "string_view": plain.cast(pa.string_view()),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int32()), plain),
        "run_end_encoded": run_end_encoded(plain),
        **nested(plain),
    }


ROWS = (b"a", None, "ü".encode(), b"caf\xe9", b"z", b"\xff")


def written(array: pa.Array) -> pa.RecordBatch:
    batch = pa.record_batch({"id": pa.array(range(len(array))), "c": array})
    kind = "string" if pa.types.is_run_end_encoded(array.type) else type_text(array.type)
    columns = (Column(id=1, name="id", type="bigint"), Column(id=2, name="c", type=kind))
    schema = TableSchema(id=1, columns=columns)
    return plan_alignment(batch.schema, schema, required_ids=frozenset()).apply(batch)


@pytest.mark.parametrize("kind", list(spellings(*ROWS)))
@pytest.mark.parametrize("start", [0, 1, 3], ids=lambda start: f"from {start}")
def test_text_that_is_no_utf_8_is_refused_by_column_and_row(kind: str, start: int) -> None:
    array = spellings(*ROWS)[kind]
    with pytest.raises(InvalidInputError, match=rf"^Column 'c', row {3 - start} .*caf\\xe9.* UTF-8") as refused:
        written(array.slice(start))
    assert refused.value.kind == "wrong_value"
    assert f"id = {3 - start}" in refused.value.message


@pytest.mark.parametrize("kind", list(spellings(*ROWS)))
def test_text_in_utf_8_is_taken(kind: str) -> None:
    """Also a slice whose neighbours are wrong."""
    array = spellings(*ROWS)[kind].slice(0, 3)
    assert len(written(array).column("c")) == 3


def test_what_a_null_hides_is_not_looked_at() -> None:
    leaf = texts(b"\xff", b"a")
    hidden = pa.array([True, False])
    struct = pa.StructArray.from_arrays([leaf], fields=[pa.field("t", pa.string())], mask=hidden)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), leaf, mask=hidden)
    assert [first_wrong_text(array) for array in (struct, lists)] == [None, None]


@pytest.mark.parametrize("wrong", WRONG)
def test_all_that_python_cannot_decode_is_found(wrong: bytes) -> None:
    assert first_wrong_text(texts(b"", b"a", wrong)) == (2, wrong)


@given(st.lists(st.none() | st.binary(max_size=5) | st.text(max_size=3).map(str.encode), max_size=8), st.integers(0, 4))
def test_the_first_row_that_python_cannot_decode_is_named(values: list[Any], start: int) -> None:
    array = texts(*values).slice(start)
    wrong = [(row, value) for row, value in enumerate(values[start:]) if value is not None and not _decodes(value)]
    assert first_wrong_text(array) == (wrong[0] if wrong else None)


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
