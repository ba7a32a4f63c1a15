"""Mark done: a promise to downstream that stands until other rows come, on local files and on S3."""

import json
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, NotFoundError, RetryableError, Table
from lakelib.catalog import commits
from lakelib.ops import done_files
from lakelib.ops import mark_done as mark_done_module
from lakelib.ops.done_files import sweep
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.acceptance.support import NewTable, data

SCHEMA = "id BIGINT, dt DATE, v BIGINT"
DAY = {"dt": "2026-11-18"}
OTHER_DAY = {"dt": "2026-11-19"}


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(new_table: NewTable) -> Table:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])
    table.upsert(rows(1))
    return table


def rows(*ids: int, day: str = "2026-11-18") -> pa.Table:
    kinds = {"id": pa.int64(), "dt": pa.date32(), "v": pa.int64()}
    return data(kinds, *((number, date.fromisoformat(day), 1) for number in ids))


def success_file(table: Table, storage: StorageSettings, folder: str = "dt=2026-11-18") -> dict[str, int] | None:
    """What the file in a partition's folder says; None if there is none."""
    path = f"{folder}/_SUCCESS".lstrip("/")
    opened = open_storage(table.location, storage)
    return json.loads(opened.read_bytes(path)) if opened.exists(path) else None


def test_a_partition_is_marked_in_the_catalog_and_in_its_folder(table: Table, storage: StorageSettings) -> None:
    assert not table.is_done(DAY)
    before = datetime.now(UTC)

    done = table.mark_done(DAY)

    assert (done.values, done.path, done.snapshot_id, done.is_done) == (
        {"dt": date(2026, 11, 18)},
        "dt=2026-11-18",
        1,
        True,
    )
    assert before <= done.created_at == done.modified_at
    milliseconds = round(done.created_at.timestamp() * 1000)
    assert success_file(table, storage) == {"creationTime": milliseconds, "modificationTime": milliseconds}
    assert table.is_done(DAY)
    assert table.done_partitions() == [done]


def test_marking_again_keeps_the_time_of_creation(table: Table, storage: StorageSettings) -> None:
    first = table.mark_done(DAY)
    table.upsert(rows(2, day="2026-11-19"))
    again = table.mark_done(DAY)

    assert (again.created_at, again.snapshot_id) == (first.created_at, 2)
    assert again.modified_at > first.modified_at
    assert success_file(table, storage) == {
        "creationTime": round(first.created_at.timestamp() * 1000),
        "modificationTime": round(again.modified_at.timestamp() * 1000),
    }


def upsert(table: Table) -> None:
    table.upsert(rows(1))


def delete_rows(table: Table) -> None:
    table.delete("id = 1")


def delete_keys(table: Table) -> None:
    table.delete_keys(rows(1).select(["id", "dt"]))


def overwrite_dynamically(table: Table) -> None:
    table.overwrite(rows(7), partitions="dynamic")


def empty_the_table(table: Table) -> None:
    table.overwrite(rows())


@pytest.mark.parametrize("change", [upsert, delete_rows, delete_keys, overwrite_dynamically, empty_the_table])
def test_a_mark_is_reset_when_rows_come_or_go(table: Table, storage: StorageSettings, change: Any) -> None:
    created = table.mark_done(DAY).created_at

    change(table)

    assert not table.is_done(DAY)
    assert success_file(table, storage) is None
    assert table.done_partitions() == []
    (reset,) = table.done_partitions(with_reset=True)
    assert reset.reset_at is not None
    assert table.mark_done(DAY).created_at == created
    assert table.is_done(DAY)
    assert success_file(table, storage) is not None


def test_what_changes_no_row_of_the_partition_leaves_its_mark(table: Table, storage: StorageSettings) -> None:
    table.mark_done(DAY)

    table.upsert(rows(2, day="2026-11-19"))
    table.upsert(rows())
    table.evolve(add=[("note", "string")])
    table.stage_upsert(rows(3)).reject("not this one")
    table.delete("id = 99")

    assert table.is_done(DAY)
    assert success_file(table, storage) is not None


def test_who_took_marks_back_makes_them_again(table: Table, storage: StorageSettings) -> None:
    first = table.mark_done(DAY)
    table.mark_done({"dt": "2026-11-17"})
    snapshot = table.upsert(pa.concat_tables([rows(2), rows(3, day="2026-11-19")]))
    assert not table.is_done(DAY)

    (again,) = table.mark_done_again(snapshot.id)

    assert (again.values, again.snapshot_id) == ({"dt": date(2026, 11, 18)}, snapshot.id)
    assert table.is_done(DAY)
    assert not table.is_done(OTHER_DAY)
    assert success_file(table, storage) == {
        "creationTime": round(first.created_at.timestamp() * 1000),
        "modificationTime": round(again.modified_at.timestamp() * 1000),
    }


def test_a_service_that_was_not_told_when_marks_were_made_again_is_told_by_the_next_try(table: Table) -> None:
    table.mark_done(DAY)
    snapshot = table.upsert(rows(2))
    with pytest.raises(RetryableError):
        table.mark_done_again(
            snapshot.id, [{"http_report": {"url": "http://127.0.0.1:9/nobody", "timeout_seconds": 1}}]
        )
    assert table.is_done(DAY)
    assert [again.values for again in table.mark_done_again(snapshot.id)] == [{"dt": date(2026, 11, 18)}]


def test_a_mark_that_somebody_else_took_back_is_left_to_them(table: Table) -> None:
    table.mark_done(DAY)
    first, second = table.upsert(rows(2)), table.upsert(rows(3))
    assert table.mark_done_again(second.id) == []
    assert not table.is_done(DAY)
    assert [again.snapshot_id for again in table.mark_done_again(first.id)] == [second.id]
    table.upsert(rows(4))
    assert table.mark_done_again(first.id) == []


def test_a_staged_commit_resets_the_mark_when_it_is_published(table: Table) -> None:
    table.mark_done(DAY)
    staged = table.stage_upsert(rows(3))
    assert table.is_done(DAY)
    staged.publish()
    assert not table.is_done(DAY)
    table.mark_done(DAY)
    staged.publish()  # again: it changes nothing
    assert table.is_done(DAY)


def test_a_transaction_resets_the_marks_of_all_its_tables(
    lake: Lake, table: Table, new_table: NewTable, storage: StorageSettings
) -> None:
    other = new_table(SCHEMA, partition_by=["dt"])
    table.mark_done(DAY)
    other.mark_done(OTHER_DAY)
    with lake.transaction() as tx:
        tx.add(table.stage_upsert(rows(3)))
        tx.add(other.stage_append(rows(3, day="2026-11-19")))
    assert not table.is_done(DAY)
    assert not other.is_done(OTHER_DAY)
    assert success_file(table, storage) is None
    assert success_file(other, storage, "dt=2026-11-19") is None


def test_a_day_without_rows_is_done_too(table: Table, storage: StorageSettings) -> None:
    table.mark_done(OTHER_DAY)

    assert table.is_done(OTHER_DAY)
    assert not table.is_done(DAY)
    assert success_file(table, storage, "dt=2026-11-19") is not None
    assert [partition.values["dt"] for partition in table.partitions()] == [date(2026, 11, 18)]
    table.upsert(rows(5, day="2026-11-19"))
    assert not table.is_done(OTHER_DAY)


def test_a_table_without_a_snapshot_or_partitions_is_marked_as_a_whole(
    new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id BIGINT")
    assert table.mark_done({}).snapshot_id == 0
    assert success_file(table, storage, "") is not None
    table.append(data({"id": pa.int64()}, (1,)))
    assert not table.is_done({})
    assert success_file(table, storage, "") is None


def test_null_and_empty_text_and_odd_values_are_partitions_of_their_own(
    new_table: NewTable, storage: StorageSettings
) -> None:
    table = new_table("id BIGINT, p STRING, n INT", partition_by=["p", "n"])
    marked = [{"p": value, "n": None} for value in (None, "", "a/b", "%41", "ü", "__HIVE_DEFAULT_PARTITION__")]
    for number, values in enumerate(marked):
        assert not table.is_done(values)
        table.mark_done(values)
        assert len(table.done_partitions()) == number + 1
    assert sorted(map(repr, marked)) == sorted(repr(done.values) for done in table.done_partitions())
    files = [found.path for found in open_storage(table.location, storage).list_files()]
    assert len({path for path in files if path.endswith("/_SUCCESS")}) == len(marked)


@pytest.mark.parametrize(
    ("partition", "named"),
    [
        ({}, "lacks 'dt'"),
        ("2026-11-18", "The partition is"),
        ({"dt": "yesterday"}, "yesterday"),
        ({"day": "2026-11-18"}, "'day' is no partition column"),
        ({"dt": "2026-11-18", "id": 1}, "'id' is no partition column"),
    ],
)
def test_a_partition_that_is_none_is_refused(table: Table, partition: Any, named: str) -> None:
    for ask in (table.mark_done, table.is_done):
        with pytest.raises(InvalidInputError, match=named) as caught:
            ask(partition)
        assert caught.value.kind == "invalid_partitions"
        assert caught.value.remedy
    assert table.done_partitions(with_reset=True) == []


@pytest.mark.parametrize(
    "actions",
    [
        ["sucess_file"],
        [{"http_report": {}}],
        [{"http_report": {"url": "ftp://there/x"}}],
        [{"http_report": {"url": "http://user:secret@there/x"}}],
        [{"http_report": {"url": "http://there/x", "params": {"n": float("nan")}}}],
        [{"http_report": {"url": "http://there/x", "timeout_seconds": 0}}],
        [{"http_report": {"url": "http://there/x", "retries": 3}}],
        [7],
    ],
)
def test_an_action_that_is_wrong_is_refused_before_anything_is_marked(table: Table, actions: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.mark_done(DAY, actions)
    assert caught.value.remedy
    assert "secret" not in str(caught.value)
    assert not table.is_done(DAY)


def test_without_a_file_being_asked_for_none_is_written(table: Table, storage: StorageSettings) -> None:
    table.mark_done(DAY, ["done_partition"])
    assert table.is_done(DAY)
    assert success_file(table, storage) is None


def test_a_dropped_table_cannot_be_marked_and_its_files_go(lake: Lake, table: Table, storage: StorageSettings) -> None:
    table.mark_done(DAY)
    lake.drop_table(table.name)
    with pytest.raises(NotFoundError):
        table.mark_done(DAY)
    lake.vacuum()
    assert success_file(table, storage) is None


def publish_and_die(lake: Lake, staged_id: UUID) -> None:
    """The publish transaction ends, and with it the process."""
    commits.publish(lake.runtime.catalog, [staged_id], epoch=lake.runtime.ownership.confirm())


def test_the_file_of_a_publisher_that_died_is_deleted_by_the_next_one(
    lake: Lake, table: Table, storage: StorageSettings
) -> None:
    table.mark_done(DAY)
    publish_and_die(lake, table.stage_upsert(rows(2)).id)
    assert not table.is_done(DAY)
    assert success_file(table, storage) is not None

    table.mark_done(OTHER_DAY)
    table.upsert(rows(2, day="2026-11-19"))

    assert success_file(table, storage) is None


def test_the_file_of_a_publisher_that_died_is_deleted_by_a_sweep(
    lake: Lake, table: Table, storage: StorageSettings
) -> None:
    table.mark_done(DAY)
    publish_and_die(lake, table.stage_upsert(rows(2)).id)
    assert sweep(lake.runtime) == 1
    assert success_file(table, storage) is None
    assert sweep(lake.runtime) == 0


def test_compaction_and_vacuum_leave_mark_and_file(table: Table, lake: Lake, storage: StorageSettings) -> None:
    table.upsert(rows(1))
    table.mark_done(DAY)
    assert table.compact(full=True).snapshots
    lake.vacuum(grace=timedelta(0))
    assert table.is_done(DAY)
    assert success_file(table, storage) is not None


def test_a_mark_that_comes_before_the_sweep_keeps_its_file(lake: Lake, table: Table, storage: StorageSettings) -> None:
    table.mark_done(DAY)
    publish_and_die(lake, table.stage_upsert(rows(2)).id)
    table.mark_done(DAY)
    assert sweep(lake.runtime) == 0
    assert success_file(table, storage) is not None


def test_rows_that_come_while_the_file_is_written_leave_no_file(
    lake: Lake, table: Table, storage: StorageSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upsert finds no file to delete: whoever marks deletes what it has written."""
    settle = mark_done_module.settle_file

    def rows_come_first(*given: Any) -> Any:
        publish_and_die(lake, table.stage_upsert(rows(2)).id)
        return settle(*given)

    monkeypatch.setattr(mark_done_module, "settle_file", rows_come_first)
    done = table.mark_done(DAY, ["success_file", {"http_report": {"url": "http://127.0.0.1:9/nobody-is-told"}}])
    assert not done.is_done
    assert success_file(table, storage) is None


@pytest.mark.parametrize("again", [None, ["done_partition"]])
def test_a_file_that_comes_after_its_deletion_leaves_again(
    lake: Lake, table: Table, storage: StorageSettings, monkeypatch: pytest.MonkeyPatch, again: list[str] | None
) -> None:
    """Rows come, and their publisher looks for the file, just before it is written: then nobody would know of it."""
    write = done_files.write_success_file

    def publisher_comes_first(*given: Any, **times: Any) -> None:
        monkeypatch.setattr(done_files, "write_success_file", write)
        table.upsert(rows(2))
        if again is not None:
            table.mark_done(DAY, again)
        write(*given, **times)

    monkeypatch.setattr(done_files, "write_success_file", publisher_comes_first)
    done = table.mark_done(DAY, ["success_file"])
    assert done.is_done == (again is not None)
    assert success_file(table, storage) is None


def test_mark_and_file_agree_however_marks_and_rows_race(table: Table, storage: StorageSettings) -> None:
    failed: list[BaseException] = []

    def repeat(work: Any) -> None:
        try:
            for _ in range(12):
                work()
        except BaseException as error:
            failed.append(error)

    works = [lambda: table.mark_done(DAY), lambda: table.mark_done(DAY), lambda: table.upsert(rows(2))]
    threads = [threading.Thread(target=repeat, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (success_file(table, storage) is not None) == table.is_done(DAY)
    table.upsert(rows(2))
    assert success_file(table, storage) is None


def test_a_file_that_cannot_be_deleted_fails_no_publish(
    lake: Lake, table: Table, storage: StorageSettings, storage_kind: str, tmp_path: Path
) -> None:
    """A folder of the file's name cannot be deleted; on S3 there are no folders, and the object goes."""
    table.mark_done(DAY)
    if storage_kind == "local":
        file = Path(table.location.removeprefix("file://"), "dt=2026-11-18", "_SUCCESS")
        file.unlink()
        file.mkdir()
    assert table.upsert(rows(2)).id == 2
    assert not table.is_done(DAY)
    if storage_kind == "local":
        file.rmdir()
    lake.vacuum()
    assert success_file(table, storage) is None


def test_reading_is_not_disturbed_by_the_file(table: Table, lake: Lake) -> None:
    table.mark_done(DAY)
    assert table.scan().count() == 1
    assert len(table.files()) == 1
