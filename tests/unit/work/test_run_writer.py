"""What a writer holds, how it cuts runs, and who writes the files."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.files import ColumnBounds, NewFile
from lakelib.model.options import MIB, TableOptions
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import Buckets
from lakelib.settings import StorageSettings
from lakelib.storage import parquet_writer
from lakelib.storage.filesystem import Storage, open_storage
from lakelib.storage.parquet_writer import WrittenParquet
from lakelib.work import run_writer
from lakelib.work.run_writer import RunTarget, write_runs

COLUMNS = (
    Column(id=1, name="id", type="bigint"),
    Column(id=2, name="p", type="int"),
    Column(id=3, name="s", type="string"),
)
DYNAMIC = Buckets(mode="dynamic")
WAIT_SECONDS = 20


def target_at(storage: Storage, buckets: Buckets = DYNAMIC, **options: Any) -> RunTarget:
    return RunTarget(
        location=f"{storage.uri}/t",
        schema=TableSchema(id=1, columns=COLUMNS),
        primary_key=COLUMNS[:1],
        partition_by=COLUMNS[1:2],
        order_names=(),
        buckets=buckets,
        options=TableOptions(**options),
        file_kind="upsert",
    )


def batch_of(row_count: int, partitions: int, text: str = "x", first: int = 0) -> pa.RecordBatch:
    numbers = range(first, first + row_count)
    parts = pa.array([number % partitions for number in numbers], pa.int32())
    return pa.record_batch({"id": pa.array(numbers, pa.int64()), "p": parts, "s": [text] * row_count})


def write_all(
    storage: Storage, target: RunTarget, *batches: pa.RecordBatch, buffer_bytes: int = 2**40, **how: Any
) -> tuple[NewFile, ...]:
    return write_runs(storage, target, batches, buffer_bytes=buffer_bytes, threads=2, **how)


@pytest.fixture
def part_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts each arranged batch is held in."""
    counts: list[int] = []
    arrange = run_writer.arrange_rows

    def counted(*given: Any, **named: Any) -> Any:
        parts = arrange(*given, **named)
        counts.append(len(parts))
        return parts

    monkeypatch.setattr(run_writer, "arrange_rows", counted)
    return counts


@pytest.mark.parametrize("buckets", [DYNAMIC, Buckets(mode="fixed", fixed_depth=8)])
def test_rows_of_many_partitions_are_held_in_one_part_a_partition(
    local_storage: Storage, part_counts: list[int], buckets: Buckets
) -> None:
    files = write_all(local_storage, target_at(local_storage, buckets), batch_of(30_000, 60))
    assert part_counts == [60]
    assert len(files) == 60


def test_small_batches_are_arranged_together(local_storage: Storage, part_counts: list[int]) -> None:
    batches = [batch_of(100, 50, first=first) for first in range(0, 3000, 100)]
    files = write_all(local_storage, target_at(local_storage), *batches)
    assert part_counts == [50]
    assert [file.row_count for file in files] == [60] * 50


def test_rows_of_few_partitions_are_split_by_bucket_as_they_come(
    local_storage: Storage, part_counts: list[int]
) -> None:
    target = target_at(local_storage, Buckets(mode="fixed", fixed_depth=2), min_bucket_file_bytes=0)
    files = write_all(local_storage, target, batch_of(30_000, 2))
    assert part_counts == [8]
    assert sorted((file.partition_path, file.prefix) for file in files) == [
        (f"p={part}", prefix) for part in range(2) for prefix in range(4)
    ]


def test_no_run_outgrows_what_one_array_can_hold(local_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "LARGEST_BUFFER_BYTES", 100_000)
    monkeypatch.setattr(run_writer, "_ARRANGED_BYTES", 20_000)
    joined: list[int] = []
    monkeypatch.setattr(run_writer._RunWriter, "_sorted", lambda self, rows: joined.append(rows.nbytes) or rows)
    files = write_all(local_storage, target_at(local_storage), batch_of(1000, 1, "x" * 1000), batch_of(5, 1))
    assert max(joined) <= 100_000
    assert [file.run for file in files] == list(range(len(joined)))
    assert sum(file.row_count for file in files) == 1005


def test_a_row_larger_than_the_buffer_is_a_run_of_its_own(
    local_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "LARGEST_BUFFER_BYTES", 10_000)
    monkeypatch.setattr(run_writer, "_ARRANGED_BYTES", 5_000)
    sizes = [100, 50_000, 100, 100]
    batches = [batch_of(1, 1, "x" * size, first=number) for number, size in enumerate(sizes)]
    files = write_all(local_storage, target_at(local_storage), *batches)
    assert [file.row_count for file in files] == [1, 1, 2]


def test_the_largest_buffer_cannot_be_asked_to_grow(local_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "LARGEST_BUFFER_BYTES", 10_000)
    with pytest.raises(InvalidInputError) as caught:
        write_all(local_storage, target_at(local_storage), batch_of(1000, 1, "x" * 100), single_run=True)
    assert caught.value.remedy.startswith("Write fewer rows")


@pytest.mark.parametrize(("uri", "together"), [("s3://bucket/w", 12), ("file:///nowhere", 4)])
def test_small_files_wait_for_the_store_together(monkeypatch: pytest.MonkeyPatch, uri: str, together: int) -> None:
    barrier = threading.Barrier(together)
    monkeypatch.setattr(run_writer, "write_file", _writing(lambda: barrier.wait(WAIT_SECONDS)))
    storage = open_storage(uri, StorageSettings(s3_region="us-east-1"))
    files = write_all(storage, target_at(storage), batch_of(12, 12))
    assert [file.partition_path for file in files] == [f"p={number}" for number in range(12)]


@pytest.mark.parametrize(("uri", "partitions"), [("s3://bucket/w", 1), ("file:///nowhere", 4)])
def test_a_few_small_files_need_no_thread(monkeypatch: pytest.MonkeyPatch, uri: str, partitions: int) -> None:
    threads: list[int] = []
    monkeypatch.setattr(run_writer, "write_file", _writing(lambda: threads.append(threading.get_ident())))
    storage = open_storage(uri, StorageSettings(s3_region="us-east-1"))
    write_all(storage, target_at(storage), batch_of(10, partitions))
    assert threads == [threading.get_ident()] * partitions


def test_large_files_are_written_by_as_many_threads_as_there_are_processors(
    local_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "_WAITING_BYTES", 1000)
    lock = threading.Lock()
    busy = highest = 0

    def work() -> None:
        nonlocal busy, highest
        with lock:
            busy += 1
            highest = max(highest, busy)
        threading.Event().wait(0.02)
        with lock:
            busy -= 1

    monkeypatch.setattr(run_writer, "write_file", _writing(work))
    write_all(local_storage, target_at(local_storage), batch_of(8000, 8, "x" * 100))
    assert highest == 2


def test_after_a_failed_file_no_further_one_is_begun(local_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def fail() -> None:
        begun.append(1)
        raise InvalidInputError("no", kind="unwritable")

    monkeypatch.setattr(run_writer, "write_file", _writing(fail))
    with pytest.raises(InvalidInputError):
        write_all(local_storage, target_at(local_storage), batch_of(200, 200))
    assert len(begun) < 200


def _writing(work: Callable[[], object]) -> Callable[..., WrittenParquet]:
    """Stands for `write_file`: does some work, writes nothing."""

    def write(storage: Storage, path: str, batches: Any, *rest: Any) -> WrittenParquet:
        work()
        row_count = sum(rows.num_rows for rows in batches)
        return WrittenParquet(path=path, row_count=row_count, size_bytes=1, bounds=ColumnBounds())

    return write


def test_long_rows_are_split_by_bucket_some_batches_at_a_time(
    local_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: list[int] = []
    deepen = run_writer.deepen_parts

    def counted(parts: Any, *given: Any) -> Any:
        split.append(sum(part.rows.nbytes for part in parts))
        return deepen(parts, *given)

    monkeypatch.setattr(run_writer, "deepen_parts", counted)
    monkeypatch.setattr(run_writer, "_ARRANGED_BYTES", MIB)
    target = target_at(local_storage, Buckets(mode="fixed", fixed_depth=2), min_bucket_file_bytes=0)
    rows = (batch_of(1, 1, text="x" * 256_000, first=number) for number in range(64))
    files = write_all(local_storage, target, *rows)
    assert sorted(file.prefix for file in files) == [0, 1, 2, 3]
    assert len(split) >= 16
    assert max(split) <= 2 * MIB


def test_a_sample_of_long_rows_is_small(local_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[int] = []
    count = parquet_writer.pc.count_distinct

    def counted(column: Any) -> Any:
        sampled.append(column.nbytes)
        return count(column)

    monkeypatch.setattr(parquet_writer.pc, "count_distinct", counted)
    write_all(local_storage, target_at(local_storage, Buckets(mode="postpone")), batch_of(64, 1, text="x" * MIB))
    assert max(sampled) <= 5 * MIB


def test_a_run_is_written_while_the_next_is_collected(local_storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only so much of it: the third batch waits until the first is written."""
    is_collected, is_written = threading.Event(), threading.Event()
    given: list[int] = []

    def write() -> None:
        assert is_collected.wait(WAIT_SECONDS)
        is_written.set()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch_of(70_000, 1)
        yield batch_of(70_000, 1, first=70_000)
        is_collected.set()
        for number in range(2, 6):
            yield batch_of(70_000, 1, first=number * 70_000)
            given.append(is_written.is_set())

    one = batch_of(70_000, 1).nbytes
    monkeypatch.setattr(run_writer, "_AHEAD_BYTES", one)
    monkeypatch.setattr(run_writer, "write_file", _writing(write))
    files = write_runs(local_storage, target_at(local_storage), batches(), buffer_bytes=one, threads=2)
    assert [(file.run, file.row_count) for file in files] == [(number, 70_000) for number in range(6)]
    assert given[-1]


def test_an_error_of_a_run_that_was_left_to_be_written_is_told(
    local_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise InvalidInputError("no", kind="unwritable")

    monkeypatch.setattr(run_writer, "write_file", _writing(fail))
    with pytest.raises(InvalidInputError, match="no"):
        write_all(local_storage, target_at(local_storage), batch_of(70_000, 1), buffer_bytes=1000)


@pytest.mark.parametrize("threads", [1, 2])
def test_whoever_leaves_leaves_no_file_of_any_run(local_storage: Storage, threads: int) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield batch_of(70_000, 3, first=number * 70_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_runs(local_storage, target_at(local_storage), batches(), buffer_bytes=1000, threads=threads)
    assert not list(local_storage.at(f"{local_storage.uri}/t").list_files())
