"""Another number of buckets, beside readers and writers: answers stay, and files come to lie as the table says."""

import threading
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, Table
from tests.acceptance.support import Engine, NewTable, data, in_process, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("s", pa.string())])
OPTIONS = {"min_bucket_file_bytes": 0, "target_file_bytes": 65_536, "write_buffer_bytes": 65_536}


def _load(engine: Engine, table: Table, count: int = 400) -> list[tuple[Any, ...]]:
    rows = [(number, "ab"[number % 2], 0, "x" * 50) for number in range(count)]
    engine.write(table, "upsert", data(SCHEMA, *rows))
    newer = [(number, "ab"[number % 2], 1, "y") for number in range(0, count, 7)]
    engine.write(table, "upsert", data(SCHEMA, *newer))
    return sorted({row[0]: row for row in (*rows, *newer)}.values(), key=repr)


def _depths(table: Table) -> set[int]:
    return {file.depth for file in table.files()}


@pytest.mark.parametrize(("before", "after"), [(4, 16), (16, 2), (1, 8), (8, 1), ("dynamic", 4), ("postpone", 4)])
def test_files_come_to_lie_in_the_buckets_and_answers_stay(
    engine: Engine, new_table: NewTable, before: Any, after: int
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=before, options=OPTIONS)
    expected = _load(engine, table)
    scan = table.scan()
    session = getattr(engine, "session", None)
    result = table.rebucket(after, session=session)
    assert (result.units > 0, [each.kind for each in result.snapshots]) == (True, ["compact"])
    assert _depths(table) == {after.bit_length() - 1}
    assert Counter(file.prefix for file in table.files()) == dict.fromkeys(range(after), 2)
    assert rows_of(engine, table.scan()) == rows_of(engine, scan) == expected
    assert rows_of(engine, table.scan(at=2)) == expected
    assert table.rebucket(after, session=session).units == 0
    engine.write(table, "upsert", data(SCHEMA, *((number, "a", 9, "z") for number in range(0, 400, 2))))
    assert max(_depths(table)) == after.bit_length() - 1
    table.compact(full=True)
    assert _depths(table) == {after.bit_length() - 1}


@in_process
@pytest.mark.parametrize("after", ["dynamic", "postpone", 4])
def test_what_the_catalog_says_is_all_that_changes_where_no_file_has_to(
    engine: Engine, new_table: NewTable, after: Any
) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=16, options=OPTIONS)
    expected = _load(engine, table)
    before = {file.path for file in table.files()}
    result = table.rebucket(after, rewrite=False) if after == 4 else table.rebucket(after)
    assert (result.snapshots, {file.path for file in table.files()}) == ((), before)
    assert rows_of(engine, table.scan()) == expected
    if after == "postpone":
        engine.write(table, "upsert", data(SCHEMA, *((number, "a", 9, "z" * 500) for number in range(500))))
        assert sum(file.depth == 0 for file in table.files()) >= 1
    if after == 4:
        table.compact(full=True)
        assert _depths(table) == {2}


@in_process
def test_small_partitions_get_no_more_files_than_their_size_asks_for(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=1)
    expected = _load(engine, table, 10)
    assert table.rebucket(64).units == 0
    assert (_depths(table), rows_of(engine, table.scan())) == ({0}, expected)


@in_process
def test_only_the_partitions_that_are_chosen_are_rewritten(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=1, options=OPTIONS)
    _load(engine, table)
    table.rebucket(8, where="p = 'a'")
    assert {file.depth for file in table.files() if "p=a" in file.path} == {3}
    assert {file.depth for file in table.files() if "p=b" in file.path} == {0}
    table.rebucket(8)
    assert _depths(table) == {3}


@in_process
@pytest.mark.parametrize("wrong", [3, 0, -4, 2**17, True, 1.5, "many", None, "8"])
def test_what_is_no_number_of_buckets_is_refused(engine: Engine, new_table: NewTable, wrong: Any) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=4)
    with pytest.raises(InvalidInputError, match="buckets"):
        table.rebucket(wrong)
    with pytest.raises(InvalidInputError, match="partitioned by"):
        table.rebucket(8, where="v = 1")
    assert table.info.buckets.fixed_depth == 2


@in_process
def test_rows_without_a_key_are_in_no_buckets(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA)
    with pytest.raises(InvalidInputError, match="no primary key"):
        table.rebucket(4)


@in_process
def test_what_was_staged_by_the_old_layout_is_published_by_the_new_one(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], buckets=16, options=OPTIONS)
    _load(engine, table)
    upsert = table.stage_upsert(data(SCHEMA, *((number, "a", 7, "late") for number in range(400))))
    overwrite = table.stage_overwrite(data(SCHEMA, (1, "a", 8, "all")))
    assert table.rebucket(2).units_skipped > 0, "an overwrite is to take these files out"
    upsert.publish()
    assert {row[2] for row in rows_of(engine, table.scan())} == {7}
    assert max(_depths(table)) == 4
    assert overwrite.state == "staged"
    overwrite.reject("no more")
    table.rebucket(2)
    assert _depths(table) == {1}
    assert {row[2] for row in rows_of(engine, table.scan())} == {7}


@in_process
def test_remembered_buckets_are_looked_up_again(engine: Engine, lake: Lake, new_table: NewTable) -> None:
    """A handle of another process writes small rows by what it remembers of the table."""
    table = new_table(SCHEMA, primary_key=["id"], buckets=4, options=OPTIONS)
    _load(engine, table)
    table.upsert(data(SCHEMA, (1, "a", 1, "")))
    table.info  # noqa: B018
    lake.runtime.catalog.run(
        lambda db: db.execute(
            "update lake.\"table\" set bucket_mode = 'postpone', bucket_depth = null where id = %s", [table.info.id]
        )
    )
    table.upsert(data(SCHEMA, *((number, "a", 2, "") for number in range(100))))
    newest = max(file.added_snapshot for file in table.files())
    assert {file.depth for file in table.files() if file.added_snapshot == newest} == {0}


@in_process
def test_writers_and_readers_beside_it_notice_nothing(engine: Engine, lake: Lake, new_table: NewTable) -> None:
    """Three writers count up their own keys and delete some, one reads, and one changes the buckets again and again."""
    table = new_table("id bigint, v bigint", primary_key=["id"], buckets=1, options=OPTIONS)
    failed: list[BaseException] = []
    done = threading.Event()
    expected: dict[int, int] = {}

    def guarded(work: Any, *args: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*args)
            except BaseException as error:
                failed.append(error)
                done.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def write(writer: int) -> None:
        own = lake.table(table.name)
        keys = range(writer * 100, writer * 100 + 60)
        for turn in range(10):
            own.upsert(pa.table({"id": list(keys), "v": [turn] * len(keys)}))
            expected.update(dict.fromkeys(keys, turn))
            gone = list(keys)[turn : turn + 3]
            own.delete_keys(pa.table({"id": gone}))
            for key in gone:
                expected.pop(key, None)

    def look() -> None:
        own = lake.table(table.name)
        while not done.is_set():
            rows = own.scan().to_arrow().column("id").to_pylist()
            assert len(rows) == len(set(rows))

    reader = guarded(look)
    writers = [guarded(write, writer) for writer in range(3)]
    asked: list[Any] = [8, 2, "dynamic", 16, "postpone", 4]
    while any(each.is_alive() for each in writers):
        asked.append(asked.pop(0))
        table.rebucket(asked[-1])
    for each in writers:
        each.join()
    done.set()
    reader.join()
    assert failed == []
    assert dict(rows_of(engine, table.scan())) == expected
    table.rebucket(8)  # what writers have staged by older layouts stays where the oldest files lie right
    table.rebucket(4)
    assert _depths(table) == {2}
    assert dict(rows_of(engine, table.scan())) == expected
