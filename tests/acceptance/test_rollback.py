"""A table is brought back to an older snapshot: its rows are those of then, and nothing is lost on the way."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.settings import StorageSettings
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import Engine, NewTable, data, raised, rows_of, stored_files

SCHEMA = "id BIGINT, dt DATE, v BIGINT"
KINDS = {"id": pa.int64(), "dt": pa.date32(), "v": pa.int64()}
MON, TUE = date(2026, 11, 16), date(2026, 11, 17)
NOW = timedelta(0)
FEW = """
name: few
expectations:
  - type: expect_table_row_count_to_be_between
    kwargs: {max_value: 1}
    scope: table
"""
DEFINITIONS: dict[str, dict[str, Any]] = {
    "fixed": {"primary_key": ["id"], "buckets": 4},
    "dynamic": {"primary_key": ["id"], "buckets": "dynamic"},
    "postpone": {"primary_key": ["id"], "buckets": "postpone"},
    "sequenced": {"primary_key": ["id"], "sequence_by": ["v"]},
    "append": {},
}


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(DEFINITIONS))
def table(new_table: NewTable, request: pytest.FixtureRequest) -> Table:
    return new_table(SCHEMA, partition_by=["dt"], **DEFINITIONS[request.param])


@pytest.fixture
def keyed(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"], partition_by=["dt"])


def rows(*given: tuple[int, date, int]) -> pa.Table:
    return data(KINDS, *given)


def read(table: Table, at: int | None = None) -> list[tuple[Any, ...]]:
    found = table.scan(columns=["id", "dt", "v", "_commit"], at=at).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_the_rows_are_those_of_the_snapshot_with_their_commits(engine: Engine, table: Table) -> None:
    for number in range(3):
        engine.write(table, "append", rows((1, MON, number), (number, TUE, number)))
    table.delete("id = 1")
    engine.write(table, "overwrite", rows((9, MON, 9)), partitions="dynamic")
    engine.compact(table, full=True)
    states = {snapshot.id: read(table, snapshot.id) for snapshot in table.history()}
    for target, state in sorted(states.items()):
        snapshot = table.rollback(target)
        assert (snapshot.kind, snapshot.summary["restores"]) == ("rollback", target)
        assert read(table) == state
        assert sorted(rows_of(engine, table.scan(columns=["id", "dt", "v", "_commit"]))) == state
    assert {snapshot: read(table, snapshot) for snapshot in states} == states


def test_later_rows_win_over_those_that_came_back(table: Table) -> None:
    table.append(rows((1, MON, 1)))
    table.append(rows((2, MON, 2)))
    table.rollback(1)
    table.append(rows((1, MON, 7)))
    assert (1, MON, 7, 4) in read(table)
    table.compact(full=True)
    assert (1, MON, 7, 4) in read(table)
    assert (2, MON, 2, 2) not in read(table)


def test_it_is_said_by_tag_by_moment_and_as_text(keyed: Table) -> None:
    first = keyed.upsert(rows((1, MON, 1)))
    keyed.tag("good")
    keyed.upsert(rows((1, MON, 2)))
    for to in ("tag:good", first.committed_at, first.committed_at.isoformat(), "1", 1):
        assert keyed.rollback(to).summary["restores"] == 1
        assert read(keyed) == [(1, MON, 1, 1)]
        keyed.upsert(rows((1, MON, 2)))


def test_to_the_head_it_is_a_snapshot_that_changes_nothing(table: Table) -> None:
    table.append(rows((1, MON, 1)))
    table.mark_done({"dt": MON})
    plan = table.preview_rollback(1)
    assert (plan.files_restored, plan.files_removed, plan.partitions) == (0, 0, ())
    snapshot = table.rollback(1)
    assert (snapshot.id, snapshot.summary["files_added"], snapshot.summary["files_removed"]) == (2, 0, 0)
    assert (read(table), table.is_done({"dt": MON})) == ([(1, MON, 1, 1)], True)


def test_where_only_compactions_have_been_their_files_stay(keyed: Table) -> None:
    for number in range(3):
        keyed.upsert(rows((1, MON, number), (2, TUE, number)))
    good = keyed.head.id
    keyed.compact(full=True)
    assert keyed.preview_rollback(good).partitions == ()
    keyed.upsert(rows((2, TUE, 9)))
    keyed.mark_done({"dt": MON})
    keyed.mark_done({"dt": TUE})
    plan = keyed.preview_rollback(good)
    assert (plan.partitions, plan.files_restored, plan.files_removed) == (({"dt": TUE},), 3, 2)
    keyed.rollback(good)
    assert [one.values["dt"] for one in keyed.touched_partitions()] == [TUE]
    assert (keyed.is_done({"dt": MON}), keyed.is_done({"dt": TUE})) == (True, False)
    assert read(keyed) == read(keyed, good)


def test_a_rollback_is_rolled_back(table: Table) -> None:
    table.append(rows((1, MON, 1)))
    table.append(rows((2, TUE, 2)))
    table.rollback(1)
    table.rollback(2)
    assert read(table) == read(table, 2)
    table.rollback(3)
    assert read(table) == read(table, 1)
    assert not list(table.diff(1, 5).to_arrow().to_pylist())


@pytest.mark.parametrize("keeps_target", [True, False])
def test_expiry_and_vacuum_afterwards_lose_nothing(
    lake: Lake, table: Table, storage: StorageSettings, keeps_target: bool
) -> None:
    table.append(rows((1, MON, 1), (2, TUE, 1)))
    table.append(rows((1, MON, 2)))
    table.overwrite(rows((5, MON, 5)))
    if keeps_target:
        table.tag("target", at=1)
    wanted = read(table, 1)
    table.rollback(1)
    told = table.expire(keep_last=1, grace=NOW, dry_run=True)
    done = table.expire(keep_last=1, grace=NOW)
    assert (told.files, told.size_bytes) == (done.files, done.size_bytes)
    lake.vacuum(grace=NOW)
    assert read(table) == wanted
    assert stored_files(table, storage) == {file.path for file in table.files()}
    assert not [found for found in lake.doctor().findings if found.table == table.name]


def test_a_file_that_came_back_is_freed_once_by_its_last_end(
    lake: Lake, table: Table, storage: StorageSettings
) -> None:
    table.append(rows((1, MON, 1)))
    table.overwrite(rows((2, MON, 2)))
    table.rollback(1)
    table.rollback(2)
    table.overwrite(rows((3, MON, 3)))
    stored = len(stored_files(table, storage))
    told = table.expire(keep_last=1, grace=NOW, dry_run=True)
    done = table.expire(keep_last=1, grace=NOW)
    assert (told.files, done.files) == (stored - 1, stored - 1)
    assert lake.vacuum(grace=NOW).files == stored - 1
    assert stored_files(table, storage) == {file.path for file in table.files()}


def test_a_staged_rollback_that_ends_takes_no_live_file_along(
    lake: Lake, keyed: Table, storage: StorageSettings
) -> None:
    keyed.upsert(rows((1, MON, 1)))
    keyed.overwrite(rows((2, MON, 2)))
    staged = keyed.stage_rollback(1)
    assert staged.scan().to_arrow().to_pylist() == [{"id": 1, "dt": MON, "v": 1}]
    keyed.rollback(1)
    told = keyed.expire(keep_last=1, staged_older_than=NOW, grace=NOW, dry_run=True)
    done = keyed.expire(keep_last=1, staged_older_than=NOW, grace=NOW)
    assert (told.files, done.files, done.commits) == (1, 1, 1)
    lake.vacuum(grace=NOW)
    assert read(keyed) == [(1, MON, 1, 1)]
    assert stored_files(keyed, storage) == {file.path for file in keyed.files()}


def test_a_staged_rollback_holds_what_it_brings_back(keyed: Table) -> None:
    keyed.upsert(rows((1, MON, 1)))
    keyed.overwrite(rows((2, MON, 2)))
    keyed.upsert(rows((3, MON, 3)))
    staged = keyed.stage_rollback(1)
    result = keyed.expire(keep_last=1, grace=NOW)
    assert (result.snapshots, [(each.id, each.hold.kind) for each in result.kept_back]) == (
        (2,),
        [(1, "staged rollback")],
    )
    assert staged.publish().id == 4
    assert read(keyed) == [(1, MON, 1, 1)]


def test_a_staged_rollback_is_published_over_compactions(table: Table) -> None:
    for number in range(3):
        table.append(rows((1, MON, number), (2, TUE, number)))
    table.append(rows((3, TUE, 3)))
    staged = table.stage_rollback(3)
    table.compact(full=True)
    assert staged.publish().kind == "rollback"
    assert read(table) == read(table, 3)


def test_a_staged_rollback_does_not_undo_what_nobody_has_seen(keyed: Table) -> None:
    keyed.upsert(rows((1, MON, 1)))
    keyed.upsert(rows((1, MON, 2)))
    changes = {
        "rows_added": lambda: keyed.upsert(rows((2, TUE, 2))),
        "schema_changed": lambda: keyed.evolve(add=[("note", "string")]),
        "input_gone": lambda: keyed.rollback(1),
    }
    for kind, change in changes.items():
        staged = keyed.stage_rollback(1)
        change()
        with raised(lakelib.ConflictError, kind):
            staged.publish()


def test_a_gate_judges_what_its_readers_would_see(table: Table) -> None:
    table.append(rows((1, MON, 1), (2, MON, 1)))
    table.overwrite(rows((3, MON, 1)))
    with raised(lakelib.RejectedError, "gate_rejected"):
        table.rollback(1, gate=parse_suite(FEW))
    assert table.head.id == 2
    table.overwrite(rows((4, MON, 1), (5, MON, 1)))
    assert table.rollback(2, gate=parse_suite(FEW)).id == 4
    table.require_gate(parse_suite(FEW))
    with raised(lakelib.RejectedError, "gate_rejected"):
        table.rollback(1)
    staged = table.stage_rollback(1)
    with raised(lakelib.RejectedError, "verdict_missing"):
        staged.publish()
    assert staged.publish(by="ada", reason="it was better").properties["approved_by"] == "ada"
    assert read(table) == read(table, 1)


def test_work_that_was_done_is_not_done_again(keyed: Table) -> None:
    keyed.upsert(rows((1, MON, 1)), idempotency_key=("etl", 1))
    keyed.upsert(rows((1, MON, 2)), idempotency_key=("etl", 2))
    first = keyed.rollback(1, idempotency_key=("mend", 1), properties={"why": "wrong day"})
    again = keyed.rollback(1, idempotency_key=("mend", 1))
    assert (again.id, again.replayed, first.properties) == (3, True, {"why": "wrong day"})
    assert keyed.upsert(rows((1, MON, 2)), idempotency_key=("etl", 2)).id == 2
    assert read(keyed) == [(1, MON, 1, 1)]


def test_rows_are_read_in_the_columns_of_now(table: Table) -> None:
    table.evolve(add=[("a", "int"), ("b", "string")])
    more = rows((1, MON, 1)).append_column("a", pa.array([7], pa.int32())).append_column("b", pa.array(["x"]))
    good = table.append(more)
    table.evolve(drop=["b"], widen={"a": "bigint"}, rename={"v": "w"})
    table.evolve(add=[("b", "string"), ("c", "double")])
    table.overwrite(data({"id": pa.int64(), "dt": pa.date32(), "w": pa.int64()}, (2, MON, 2)))
    table.rollback(good.id)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "dt": MON, "w": 1, "a": 7, "b": None, "c": None}]
    assert table.scan(where="a = 7 and b is null").count() == 1
    assert table.scan(where="b = 'x'").count() == 0


def test_what_is_no_snapshot_is_refused_and_nothing_is_changed(keyed: Table) -> None:
    with raised(lakelib.NotFoundError, "snapshot_not_found"):
        keyed.rollback(1)
    for _ in range(3):
        keyed.upsert(rows((1, MON, 1)))
    keyed.expire(keep_last=1)
    refused: list[tuple[Any, str]] = [
        (1, "snapshot_expired"),
        (0, "snapshot_not_found"),
        (-1, "snapshot_not_found"),
        (9, "snapshot_not_found"),
        ("tag:none", "tag_not_found"),
        (None, "invalid_at"),
        ("soon", "invalid_at"),
        (True, "invalid_at"),
        (datetime.now(UTC) + timedelta(days=1), "moment_to_come"),
    ]
    for to, kind in refused:
        for work in (keyed.rollback, keyed.stage_rollback, keyed.preview_rollback):
            with raised(lakelib.LakeError, kind):
                work(to)
    with raised(lakelib.InvalidInputError, "invalid_rollback"):
        keyed.rollback(3, merge_schema=True)
    with raised(lakelib.InvalidInputError, "unknown_option"):
        keyed.rollback(3, too=1)  # type: ignore[call-arg]
    assert keyed.head.id == 3


def test_a_snapshot_whose_files_are_gone_is_refused(lake: Lake, keyed: Table) -> None:
    keyed.upsert(rows((1, MON, 1)))
    (lost,) = keyed.files()
    keyed.overwrite(rows((2, MON, 2)))
    lake.runtime.storage.at(keyed.location).delete_files([lost.path])
    for work in (keyed.rollback, keyed.stage_rollback, keyed.preview_rollback):
        with raised(lakelib.CorruptionError, "missing_file"):
            work(1)
    assert read(keyed) == [(2, MON, 2, 2)]


def test_a_partition_that_came_back_was_changed_by_the_rollback(keyed: Table) -> None:
    keyed.upsert(rows((1, MON, 1), (2, TUE, 2)))
    keyed.delete(f"dt = '{MON}'")
    keyed.rollback(1)
    assert {one.values["dt"]: one.newest_snapshot for one in keyed.partitions()} == {MON: 3, TUE: 1}
    keyed.overwrite(rows((1, MON, 1)), partitions="dynamic")
    (same,) = keyed.touched_partitions()
    assert (same.is_same, same.previous_snapshot) == (True, 3)
