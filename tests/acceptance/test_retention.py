"""Expiry and vacuum: what is forgotten, what is deleted, and what never is. On local files and on S3."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, NotFoundError, Table
from lakelib.catalog.connect import Catalog
from lakelib.model.table import Proposal
from lakelib.ops import vacuum
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.acceptance.support import NewTable, data, stored_files
from tests.staging_hooks import before_staging

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
NOW = timedelta(0)
LONG_AGO = "00" * 16


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def table(new_table: NewTable, lake: Lake) -> Table:
    """Five snapshots; each replaced the file of the one before. Other tests' leftovers are gone."""
    lake.vacuum(grace=NOW)
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"])
    for number in range(1, 6):
        table.overwrite(data(SCHEMA, (number, "mon")))
    return table


@pytest.fixture
def catalog(module_catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_catalog_url, autocommit=True) as connection:
        yield connection


def content(table: Table, at: int | str | None = None) -> list[int]:
    return sorted(table.scan(at=at).to_arrow()["id"].to_pylist())


def live_files(table: Table) -> set[str]:
    return {file.path for snapshot in table.history() for file in table.files(at=snapshot.id)}


def write_strange_file(table: Table, storage: StorageSettings, name: str) -> str:
    """As somebody may have left it under the table's location."""
    open_storage(table.location, storage).write_bytes(name, b"strange")
    return name


def test_expired_snapshots_are_not_there_any_more(table: Table) -> None:
    moments = {snapshot.id: snapshot.committed_at for snapshot in table.history()}
    result = table.expire(keep_last=2)
    assert (result.snapshots, result.oldest_id, result.dry_run) == ((1, 2, 3), 4, False)
    assert [snapshot.id for snapshot in table.history()] == [5, 4]
    for gone in (1, 3, moments[1], moments[3]):
        with pytest.raises(NotFoundError, match="the oldest that is left is 4") as caught:
            table.scan(at=gone)
        assert caught.value.kind == "snapshot_expired"
    assert [content(table, at) for at in (4, None)] == [[4], [5]]
    assert table.scan(at=moments[4]).snapshot_id == 4


def test_a_moment_of_an_expired_snapshot_is_not_answered_by_an_older_one(table: Table) -> None:
    table.tag("two", at=2)
    third = next(snapshot for snapshot in table.history() if snapshot.id == 3)
    table.expire(keep_last=1)
    with pytest.raises(NotFoundError, match="the oldest that is left is 2"):
        table.scan(at=third.committed_at)
    assert table.scan(at=third.committed_at - timedelta(microseconds=1)).snapshot_id == 2
    with pytest.raises(NotFoundError, match="its oldest is of"):
        table.scan(at=datetime(2020, 1, 1, tzinfo=UTC))


def test_without_a_rule_the_last_ten_and_the_last_week_stay(table: Table) -> None:
    for number in range(6, 13):
        table.overwrite(data(SCHEMA, (number, "mon")))
    assert table.expire().snapshots == ()
    assert table.expire(keep_last=10, older_than=timedelta(days=7)).snapshots == ()
    assert table.expire(keep_last=10).snapshots == (1, 2)
    assert table.expire(older_than=NOW).snapshots == tuple(range(3, 12))


def test_a_dry_run_of_an_expiry_tells_what_would_go_and_changes_nothing(table: Table) -> None:
    staged = table.stage_upsert(data(SCHEMA, (9, "tue")))
    table.tag("two", at=2)
    told = table.expire(keep_last=1, staged_older_than=NOW, dry_run=True)
    assert len(table.history()) == 5
    assert staged.state == "staged"
    done = table.expire(keep_last=1, staged_older_than=NOW)
    assert told == replace(done, dry_run=True)
    assert (done.snapshots, done.files, done.commits) == ((1, 3, 4), 4, 1)
    assert "dry run" in repr(told)
    assert ", for ever): 1 snapshot (2)" in repr(done)


def test_files_go_only_after_their_grace_and_only_those_that_no_snapshot_needs(
    table: Table, lake: Lake, storage: StorageSettings
) -> None:
    table.tag("two", at=2)
    before = stored_files(table, storage)
    assert table.expire(keep_last=2).files == 2
    waiting = lake.vacuum()
    assert waiting.files == 0
    assert waiting.waiting >= 2
    assert stored_files(table, storage) == before

    table.upsert(data(SCHEMA, (6, "mon")))
    assert table.expire(keep_last=2, grace=NOW).snapshots == (4,)
    assert lake.vacuum().files == 1
    assert len(stored_files(table, storage)) == len(before)
    assert [content(table, at) for at in ("tag:two", 5, None)] == [[2], [5], [5, 6]]


def test_after_a_vacuum_without_grace_there_is_what_the_snapshots_need_and_nothing_else(
    table: Table, lake: Lake, storage: StorageSettings
) -> None:
    table.tag("two", at=2)
    table.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    assert stored_files(table, storage) == live_files(table)
    assert len(live_files(table)) == 2


def test_a_dry_run_of_a_vacuum_names_exactly_what_would_go(
    table: Table, lake: Lake, storage: StorageSettings, new_table: NewTable
) -> None:
    dropped = new_table(SCHEMA)
    dropped.append(data(SCHEMA, (1, "mon")))
    lake.drop_table(dropped.name)
    orphan = write_strange_file(table, storage, f"day=mon/upsert-{LONG_AGO}-00000.parquet")
    table.expire(keep_last=1, grace=NOW)
    everything = stored_files(table, storage)

    would_go: list[str] = []
    told = lake.vacuum(dry_run=True, grace=NOW, tell=would_go.append)
    assert stored_files(table, storage) == everything
    went: list[str] = []
    done = lake.vacuum(grace=NOW, tell=went.append)

    assert sorted(would_go) == sorted(went) == sorted(told.sample) == sorted(done.sample)
    assert told == replace(done, dry_run=True, sample=told.sample)
    assert f"{table.location}/{orphan}" in went
    assert (done.files, done.orphans, done.dropped_tables) == (5, 1, (dropped.name,))
    assert stored_files(table, storage) == live_files(table)
    assert stored_files(dropped, storage) == set()
    assert lake.vacuum(dry_run=True, grace=NOW).sample == ()


def test_only_files_that_lakelib_has_named_are_orphans(table: Table, lake: Lake, storage: StorageSettings) -> None:
    kept = [
        write_strange_file(table, storage, name)
        for name in (
            "_SUCCESS",
            "day=mon/_SUCCESS",
            "day=mon/part-00000.parquet",
            "notes.txt",
            f"day=mon/_upsert-{LONG_AGO}-00000.parquet",
            f"day=mon/upsert-{LONG_AGO}-00000.parquet.bak",
            f"day=mon/upsert-{LONG_AGO[:-1]}-00000.parquet",
        )
    ]
    orphan = write_strange_file(table, storage, f"upsert-{LONG_AGO}-00001.parquet")
    assert lake.vacuum(orphans=False, grace=NOW).orphans == 0
    assert lake.vacuum().orphans == 0
    assert lake.vacuum(grace=NOW).orphans == 1
    left = stored_files(table, storage)
    assert set(kept) <= left
    assert orphan not in left


def test_files_of_staged_and_rejected_commits_are_no_orphans(table: Table, lake: Lake) -> None:
    staged = table.stage_upsert(data(SCHEMA, (7, "tue")))
    rejected = table.stage_upsert(data(SCHEMA, (8, "wed")))
    rejected.reject("looks wrong")
    table.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    assert [commit.scan(scope="staged").count() for commit in (staged, rejected)] == [1, 1]
    staged.publish()
    assert content(table) == [5, 7]


def vacuum_before_staging(lake: Lake, patch: pytest.MonkeyPatch) -> None:
    """A vacuum for which everything is old comes once files are written, before they are staged."""

    def vacuum(catalog: Catalog, proposal: Proposal) -> None:
        assert lake.vacuum(grace=NOW).orphans

    before_staging(patch, vacuum)


def test_a_write_that_takes_longer_than_the_grace_is_refused_and_can_be_done_again(
    table: Table, lake: Lake, storage: StorageSettings
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        vacuum_before_staging(lake, patch)
        with pytest.raises(ConflictError, match="longer than the longest") as caught:
            table.upsert(data(SCHEMA, (7, "tue")))
    assert caught.value.kind == "files_reclaimed"
    assert content(table) == [5]
    assert stored_files(table, storage) >= live_files(table)
    table.upsert(data(SCHEMA, (7, "tue")))
    assert content(table) == [5, 7]


def test_a_compaction_that_takes_longer_than_the_grace_leaves_the_table_as_it_is(table: Table, lake: Lake) -> None:
    table.upsert(data(SCHEMA, (6, "mon")))
    with pytest.MonkeyPatch.context() as patch:
        vacuum_before_staging(lake, patch)
        assert table.compact(full=True).snapshots == ()
    assert content(table) == [5, 6]
    assert len(table.compact(full=True).snapshots) == 1
    assert content(table) == [5, 6]


def test_a_vacuum_with_a_grace_leaves_a_write_alone(table: Table, lake: Lake) -> None:
    with pytest.MonkeyPatch.context() as patch:
        before_staging(patch, lambda *_: lake.vacuum(grace=timedelta(minutes=6)) and None)
        table.upsert(data(SCHEMA, (7, "tue")))
    assert content(table) == [5, 7]


def test_a_reader_finishes_though_its_snapshot_is_the_oldest(table: Table, lake: Lake) -> None:
    table.upsert(data(SCHEMA, (1, "tue"), (2, "wed")))
    batches = table.scan().to_batches()
    first = next(batches)
    table.overwrite(data(SCHEMA, (9, "mon")))
    result = table.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    assert [(held.id, held.hold.kind) for held in result.kept_back] == [(6, "lease")]
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 3
    assert table.expire(keep_last=1, grace=NOW).snapshots == (6,)


def test_a_dropped_table_goes_after_the_grace_unless_somebody_reads_it(
    table: Table, lake: Lake, storage: StorageSettings
) -> None:
    table.upsert(data(SCHEMA, (1, "tue")))
    write_strange_file(table, storage, "day=mon/_SUCCESS")
    staged = table.stage_upsert(data(SCHEMA, (7, "tue")))
    batches = table.scan().to_batches()
    first = next(batches)
    lake.drop_table(table.name)

    assert lake.vacuum().dropped_tables == ()
    assert lake.vacuum(grace=NOW).dropped_tables == ()
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 2
    assert lake.vacuum(grace=NOW).dropped_tables == (table.name,)
    assert stored_files(table, storage) == set()
    lake.vacuum(grace=NOW)
    with pytest.raises(NotFoundError):
        _ = staged.state


def test_a_dropped_table_is_not_forgotten_before_a_late_writers_files_are_old_enough_to_go(
    table: Table, lake: Lake, storage: StorageSettings, catalog: psycopg.Connection[Any]
) -> None:
    lake.drop_table(table.name)
    late = write_strange_file(table, storage, f"day=mon/upsert-{LONG_AGO}-00000.parquet")
    catalog.execute("update lake.\"table\" set dropped_at = dropped_at - interval '1 hour'")

    assert lake.vacuum(grace=timedelta(minutes=30)).dropped_tables == (table.name,)
    assert stored_files(table, storage) == {late}
    lake.vacuum(grace=NOW)
    assert stored_files(table, storage) == set()


def test_a_clock_that_runs_ahead_makes_no_file_and_no_dropped_table_old(
    table: Table, lake: Lake, storage: StorageSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write_strange_file(table, storage, f"day=mon/upsert-{LONG_AGO}-00000.parquet")

    class DayAfterTomorrow(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(days=2)

    monkeypatch.setattr(vacuum, "datetime", DayAfterTomorrow)
    assert lake.vacuum().orphans == 0
    lake.drop_table(table.name)
    assert lake.vacuum().dropped_tables == ()
    assert written in stored_files(table, storage)


def test_a_namesake_of_a_dropped_table_keeps_its_files(lake: Lake, storage_kind: str) -> None:
    name = f"{storage_kind}.again"
    for number in (1, 2):
        made = lake.create_table(name, SCHEMA)
        made.append(data(SCHEMA, (number, "mon")))
        if number == 1:
            lake.drop_table(name)
    lake.vacuum(grace=NOW)
    lake.vacuum(grace=NOW)
    assert content(made) == [2]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table: table.expire(keep_last=0),
        lambda table: table.expire(keep_last=True),
        lambda table: table.expire(keep_last="3"),
        lambda table: table.expire(older_than=7),
        lambda table: table.expire(older_than=timedelta(days=-1)),
        lambda table: table.expire(staged_older_than=timedelta(days=-1)),
        lambda table: table.expire(grace=timedelta(days=-1)),
        lambda table: table.expire(grace=3, dry_run=True),
        lambda table: table.expire(older_than=timedelta.max),
        lambda table: table.expire(staged_older_than=timedelta.max),
        lambda table: table.expire(staged_older_than=timedelta.max, dry_run=True),
        lambda table: table.expire(grace=timedelta.max),
        lambda table: table.expire(older_than=timedelta(days=365_000, microseconds=1), dry_run=True),
    ],
)
def test_wrong_rules_are_refused(table: Table, wrong: Callable[[Table], object]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        wrong(table)
    assert caught.value.kind == "invalid_retention"
    assert len(table.history()) == 5


@pytest.mark.parametrize("wrong", [timedelta(seconds=-1), 5, timedelta.max, timedelta.min])
def test_a_wrong_grace_is_refused(lake: Lake, wrong: timedelta) -> None:
    with pytest.raises(InvalidInputError, match="grace"):
        lake.vacuum(grace=wrong)


def test_the_longest_lengths_of_time_keep_all(lake: Lake, table: Table) -> None:
    longest = timedelta(days=365_000)
    staged = table.stage_append(data(SCHEMA, (9, "tue")))
    for dry_run in (True, False):
        kept = table.expire(older_than=longest, staged_older_than=longest, grace=longest, dry_run=dry_run)
        assert (kept.snapshots, kept.commits) == ((), 0)
        assert lake.vacuum(dry_run, grace=longest).orphans == 0
    assert (len(table.history()), staged.state) == (5, "staged")
