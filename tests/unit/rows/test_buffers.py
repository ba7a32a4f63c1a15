"""Arrow buffers as they come from callers."""

import pyarrow as pa
import pytest

from lakelib.rows import buffers
from lakelib.rows.buffers import takes_more, with_near_buffers

TEXTS = [str(number) * 10 for number in range(100)]


@pytest.mark.parametrize(
    ("kind", "near"), [(pa.large_string(), pa.string()), (pa.large_list(pa.int64()), pa.list_(pa.int64()))]
)
def test_a_slice_far_inside_large_buffers_is_copied(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, near: pa.DataType
) -> None:
    values = TEXTS if pa.types.is_large_string(kind) else [[number] for number in range(100)]
    batch = pa.record_batch({"id": pa.array(range(100)), "v": pa.array(values, kind)}).slice(90, 5)
    assert with_near_buffers(batch) is batch
    monkeypatch.setattr(buffers, "LARGEST_OFFSET", 500)
    found = with_near_buffers(batch)
    assert found == batch
    assert sum(buffer.size for buffer in found.column(1).buffers() if buffer) < 500
    assert found.column(1).cast(near).to_pylist() == values[90:95]


def test_columns_of_32_bits_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "LARGEST_OFFSET", 1)
    batch = pa.record_batch({"v": TEXTS})
    assert with_near_buffers(batch) is batch


def test_a_slice_takes_what_its_own_rows_take() -> None:
    batch = pa.record_batch({"v": pa.array(range(1000), pa.int64())})
    assert takes_more(batch, 7_999)
    assert not takes_more(batch, 8_000)
    assert not takes_more(batch.slice(10, 2), 16)
