"""Whether a file's rows are what the catalog promises, looked at a piece at a time."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakelib.model.files import ColumnBounds, DataFile
from lakelib.model.schema import Column
from lakelib.model.sortable import encode
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.verify import Promise, Verifier

ID = Column(id=1, name="id", type="bigint", nullable=False)
DAY = Column(id=2, name="day", type="string")
FILE = DataFile(
    id=1, path="f", partition_id=1, depth=0, prefix=0, run=0, level=0, row_count=4, delete_count=0, size_bytes=1,
    schema_id=1, sequence=3, added_snapshot=3, removed_snapshot=None, bounds=ColumnBounds(),
)  # fmt: skip
PROMISE = Promise(file=FILE, columns=(ID, DAY), primary_key=(ID,), partition_by=(DAY,), partition_key=(b"mon",))


def rows(*ids: int | None, day: str | None = "mon", commit: int | None = None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([day] * len(ids), pa.string()),
            "_commit": pa.array([commit] * len(ids), pa.int64()),
        }
    )


def found(promise: Promise, *pieces: pa.Table) -> list[str]:
    verifier = Verifier(promise)
    for piece in pieces:
        verifier.look(piece)
    return [breach.kind for breach in verifier.finish()]


def promised(**facts: Any) -> Promise:
    return replace(PROMISE, file=replace(FILE, **facts))


def test_rows_as_promised_are_no_breach() -> None:
    assert found(PROMISE, rows(1, 2), rows(), rows(3, 4)) == []


@pytest.mark.parametrize("pieces", [(rows(1, 3), rows(2, 4)), (rows(1, 2), rows(2, 3)), (rows(4, 3, 2, 1),)])
def test_keys_rise_also_from_one_piece_to_the_next(pieces: tuple[pa.Table, ...]) -> None:
    assert found(PROMISE, *pieces) == ["wrong_order"]


def test_a_key_is_never_null() -> None:
    assert found(PROMISE, rows(1, 2, 3, None)) == ["wrong_order"]


def test_an_append_table_has_no_order() -> None:
    assert found(replace(PROMISE, primary_key=()), rows(4, 4, 1, 2)) == []


def test_rows_and_delete_marks_are_counted() -> None:
    assert found(PROMISE, rows(1, 2, 3)) == ["wrong_rows"]
    marks = rows(1, 2, 3, 4).append_column("_op", pa.array([0, 1, 0, 0], pa.int8()))
    assert found(PROMISE, marks) == ["wrong_rows"]
    assert found(promised(delete_count=1), marks) == []


def test_keys_are_of_the_files_bucket() -> None:
    prefixes = hash_prefixes(key_hashes([pa.array(range(100), pa.int64())]), 2)
    ours = [number for number in range(100) if prefixes[number] == 2][:4]
    assert found(promised(depth=2, prefix=2), rows(*ours)) == []
    assert found(promised(depth=2, prefix=1), rows(*ours)) == ["wrong_bucket"]


def test_null_is_a_partition_of_its_own() -> None:
    assert found(PROMISE, rows(1, 2, 3, 4, day=None)) == ["wrong_partition"]
    assert found(replace(PROMISE, partition_key=(None,)), rows(1, 2, 3, 4, day=None)) == []


@pytest.mark.parametrize(("lower", "upper", "nulls"), [(2, 4, 0), (1, 3, 0), (1, 4, 1)])
def test_values_and_nulls_are_within_what_readers_go_by(lower: int, upper: int, nulls: int) -> None:
    def bounds(least: int, most: int, empty: int) -> ColumnBounds:
        low, high = encode("bigint", least), encode("bigint", most)
        return ColumnBounds(lower=(low,), upper=(high,), null_counts=(empty,))

    assert found(promised(bounds=bounds(1, 4, 0)), rows(1, 2, 3, 4)) == []
    assert found(promised(bounds=bounds(lower, upper, nulls)), rows(1, 2, 3, 4)) == ["wrong_bounds"]


def test_rewritten_rows_say_their_commit_and_none_is_newer_than_the_file() -> None:
    rewritten = promised(sequence=2)
    assert found(rewritten, rows(1, 2, 3, 4, commit=1)) == []
    assert found(rewritten, rows(1, 2, 3, 4)) == ["wrong_commit"]
    assert found(rewritten, rows(1, 2, 3, 4, commit=4)) == ["wrong_commit"]


def test_text_that_is_no_utf_8_is_told_and_the_rest_is_looked_at() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    piece = rows(1).set_column(1, "day", broken)
    assert found(PROMISE, piece, rows(2, 3, 2)) == ["invalid_text", "wrong_order"]
