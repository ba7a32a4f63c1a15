"""Two versions work on one catalog between the phases of a migration; then the older one is shut out."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake
from lakelib.specs.suite import parse_suite
from tests.releases.client import OldLake, running
from tests.releases.released import ROOT, Release, environment_of, releases
from tests.waiting import wait_until

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64())])
EMBEDDED = """
import sys, lakelib, pyarrow
with lakelib.connect() as lake:
    lake.create_namespace("shop")
    table = lake.create_table("shop.t", "id BIGINT", primary_key=["id"], if_not_exists=True)
    table.upsert(pyarrow.table({"id": [int(sys.argv[1])]}))
    told = [sorted(table.scan().to_arrow()["id"].to_pylist())]
    if hasattr(lakelib, "migrate"):
        told.append(sorted({step.phase.value for step in lakelib.migrate(dry_run=True).due}))
    print(*told)
"""
SUITE = "name: few\nexpectations:\n  - {{type: expect_table_row_count_to_be_between, kwargs: {{max_value: {most}}}}}\n"


@pytest.fixture(scope="module")
def release() -> Release:
    return releases()[-1]


@pytest.fixture(scope="module")
def code(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.unpack_code(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def shared(
    release: Release, code: Path, module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lake, OldLake]]:
    """One lake, opened by both: by the older one before it is migrated."""
    place = _restore(release, module_database_url, tmp_path_factory.mktemp("warehouse"))
    with running(code, **place) as old:
        lakelib.migrate(**place)
        with lakelib.connect(**place) as new:
            yield new, old


@pytest.fixture
def new(shared: tuple[Lake, OldLake]) -> Lake:
    """With an empty table `shop.t`."""
    lake = shared[0]
    if "t" in lake.tables("shop"):
        lake.drop_table("shop.t")
    lake.create_table("shop.t", SCHEMA, primary_key=["id"], partition_by=["day"])
    return lake


@pytest.fixture
def old(shared: tuple[Lake, OldLake]) -> OldLake:
    return shared[1]


@pytest.fixture
def place(release: Release, catalog_url: str, tmp_path: Path) -> dict[str, str]:
    """Where another lake is that nobody has migrated yet: arguments of `connect`."""
    return _restore(release, catalog_url, tmp_path / "warehouse")


def _restore(release: Release, catalog_url: str, warehouse: Path) -> dict[str, str]:
    release.restore_lake(catalog_url, warehouse)
    return {"warehouse": warehouse.as_uri(), "catalog": catalog_url}


def rows(*ids: int, value: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "day": ["mon"] * len(ids), "value": [value] * len(ids)}, schema=SCHEMA)


def content(lake: Lake | OldLake) -> dict[int, int]:
    found = lake.table("shop.t").scan().to_arrow().to_pylist()
    return {row["id"]: row["value"] for row in found}


def test_it_is_the_released_code_that_runs(old: OldLake, code: Path) -> None:
    assert old.process.ask("code") == str(code / "lakelib")


def test_the_older_version_works_on_between_the_phases_and_is_shut_out_by_the_second(
    place: dict[str, str], code: Path
) -> None:
    lakelib.migrate(**place)
    with running(code, **place) as old:
        events = old.table("shop.events")
        before = events.head.id
        events.append(pa.table({"kind": ["b"], "count": pa.array([1], pa.int32())}))
        lakelib.migrate(**place, post=True)

        with pytest.raises(lakelib.LakeError, match="too old to publish") as late:
            events.append(pa.table({"kind": ["c"], "count": pa.array([1], pa.int32())}))
        assert (late.value.kind, events.head.id) == ("catalog_failed", before + 1)

    with pytest.raises(lakelib.InvalidInputError) as caught, running(code, **place):
        pass
    assert caught.value.kind == "catalog_too_new"


@pytest.fixture
def open_folder() -> Iterator[str]:
    """A server may reach it that runs as another user: every start of pytest closes its own folders to others."""
    with tempfile.TemporaryDirectory(prefix="lakelib-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


def test_both_work_in_turn_on_an_embedded_lake_which_the_newer_one_has_migrated_by_itself(
    open_folder: str, code: Path
) -> None:
    def work(code: Path, number: int) -> str:
        program = [sys.executable, "-P", "-c", EMBEDDED, str(number)]
        surroundings = {name: value for name, value in environment_of(code).items() if not name.startswith("LAKE_")}
        return subprocess.run(
            program, cwd=open_folder, env=surroundings, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    assert work(code, 1) == "[1]\n"
    assert work(ROOT, 2) == "[1, 2] ['post']\n"
    assert work(code, 3) == "[1, 2, 3]\n"


def test_a_migration_under_way_stops_no_writer_of_the_older_version(place: dict[str, str], code: Path) -> None:
    is_migrated = Event()

    def write(old: OldLake) -> int:
        """The number of appends: as long as the migration is under way, and a few more."""
        for number in count():
            old.table("shop.events").append(pa.table({"kind": ["w"], "count": pa.array([number], pa.int32())}))
            if is_migrated.is_set() and number > 5:
                return number + 1
        raise AssertionError

    with running(code, **place) as old, ThreadPoolExecutor(1) as pool:
        before = head_of(place, "events")
        writing = pool.submit(write, old)
        try:
            wait_until(lambda: head_of(place, "events") > before)
            assert lakelib.migrate(**place).done
        finally:
            is_migrated.set()
        written = writing.result()

    with lakelib.connect(**place) as new:
        found = new.table("shop.events").scan(columns=["count"], where="kind = 'w'").to_arrow()
        assert sorted(found["count"].to_pylist()) == list(range(written))


def head_of(place: dict[str, str], name: str) -> int:
    with psycopg.connect(place["catalog"]) as connection:
        found = connection.execute('select head_id from lake."table" where name = %s', (name,)).fetchone()
        return int(found[0]) if found else 0


def test_the_older_version_is_shut_out_of_a_lake_that_this_one_has_made(
    catalog_url: str, tmp_path: Path, code: Path
) -> None:
    place = {"warehouse": tmp_path.as_uri(), "catalog": catalog_url}
    lakelib.connect(**place).close()

    with pytest.raises(lakelib.InvalidInputError) as caught, running(code, **place):
        pass

    assert caught.value.kind == "catalog_too_new"


def test_each_reads_what_the_other_has_written(new: Lake, old: OldLake) -> None:
    assert new.table("shop.t").upsert(rows(1, 2, value=1)).id == 1
    assert old.table("shop.t").upsert(rows(2, 3, value=2)).id == 2
    new.table("shop.t").delete("value = 1")
    old.table("shop.t").compact(full=True)

    assert content(new) == content(old) == {2: 2, 3: 2}


def test_work_that_one_has_done_the_other_does_not_do_again(new: Lake, old: OldLake) -> None:
    one = new.table("shop.t").upsert(rows(1), idempotency_key=("app", 1))
    two = old.table("shop.t").upsert(rows(2), idempotency_key=("app", 2))

    assert old.table("shop.t").upsert(rows(8), idempotency_key=("app", 1)).id == one.id
    assert new.table("shop.t").upsert(rows(9), idempotency_key=("app", 2)).id == two.id
    assert content(new) == {1: 0, 2: 0}


def test_a_newer_attempt_of_either_takes_over(new: Lake, old: OldLake) -> None:
    first = old.table("shop.t").stage_upsert(rows(1), idempotency_key=("app", 1))
    second = new.table("shop.t").stage_upsert(rows(2), idempotency_key=("app", 1))
    third = old.table("shop.t").stage_upsert(rows(3), idempotency_key=("app", 1))

    assert (first.state, second.state, third.state) == ("expired", "expired", "staged")
    new.staged(third.id).publish()
    assert content(old) == {3: 0}


def test_either_publishes_what_the_other_has_staged(new: Lake, old: OldLake) -> None:
    one = old.table("shop.t").stage_upsert(rows(1))
    two = new.table("shop.t").stage_upsert(rows(2))

    new.staged(one.id).publish()
    old.process.ask("commit", str(two.id), "publish")

    assert content(new) == content(old) == {1: 0, 2: 0}


def test_conflicts_are_seen_across_versions(new: Lake, old: OldLake) -> None:
    new.table("shop.t").upsert(rows(1))
    by_old = old.table("shop.t").stage_delete("value = 0")
    by_new = new.table("shop.t").stage_delete("value = 0")
    new.table("shop.t").upsert(rows(2))
    old.table("shop.t").upsert(rows(3))

    with pytest.raises(lakelib.ConflictError) as of_old:
        by_old.publish()
    with pytest.raises(lakelib.ConflictError) as of_new:
        by_new.publish()
    assert (of_old.value.kind, of_new.value.kind) == ("rows_added", "rows_added")


def test_a_compaction_leaves_what_the_other_version_is_to_take_out(new: Lake, old: OldLake) -> None:
    for number in range(3):
        new.table("shop.t").upsert(rows(number))
    staged = old.table("shop.t").stage_overwrite(rows(9), partitions="all")
    assert new.table("shop.t").compact(full=True).snapshots == ()
    staged.reject("enough")
    other = new.table("shop.t").stage_overwrite(rows(9), partitions="all")
    assert list(old.table("shop.t").compact(full=True).snapshots) == []

    other.publish()
    assert content(old) == {9: 0}


def test_marks_end_with_rows_of_either(new: Lake, old: OldLake) -> None:
    new.table("shop.t").upsert(rows(1))
    new.table("shop.t").mark_done({"day": "mon"})
    old.table("shop.t").upsert(rows(2))
    assert not new.table("shop.t").is_done({"day": "mon"})

    old.table("shop.t").mark_done({"day": "mon"})
    new.table("shop.t").upsert(rows(3))
    assert not old.table("shop.t").is_done({"day": "mon"})


def test_expiry_keeps_what_the_other_version_holds(new: Lake, old: OldLake) -> None:
    for number in range(4):
        new.table("shop.t").upsert(rows(number))
    held = old.table("shop.t").stage_delete("id = 1")
    old.table("shop.t").tag("first", at=1)
    for number in range(4, 8):
        old.table("shop.t").upsert(rows(number))

    new.table("shop.t").expire(keep_last=1)
    assert [each.id for each in new.table("shop.t").history()] == [8, 7, 6, 5, 4, 1]
    held.reject("enough")
    later = new.table("shop.t").stage_delete("id = 7")
    old.table("shop.t").upsert(rows(9))
    old.table("shop.t").expire(keep_last=1)

    assert later.state == "staged"
    assert 8 in [each.id for each in old.table("shop.t").history()]


def test_a_transaction_takes_commits_of_both(new: Lake, old: OldLake) -> None:
    new.create_table("shop.u", SCHEMA, primary_key=["id"], partition_by=["day"])
    one = old.table("shop.t").stage_upsert(rows(1))
    two = new.table("shop.u").stage_upsert(rows(2))

    assert [each.id for each in old.transact([one.id, str(two.id)])] == [1, 1]

    assert content(new) == {1: 0}


def test_writers_of_both_at_once_lose_nothing(new: Lake, old: OldLake) -> None:
    def write(table: Any, first: int) -> None:
        for number in range(first, first + 20):
            table.upsert(rows(number, value=first))
            if number % 5 == 0:
                table.delete(f"id = {number}")
            if number % 7 == 0:
                table.compact()

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(write, lake.table("shop.t"), first) for lake, first in ((new, 0), (old, 100))]
    for each in done:
        each.result()

    expected = {number: first for first in (0, 100) for number in range(first, first + 20) if number % 5}
    assert content(new) == content(old) == expected


def test_a_required_suite_holds_for_the_older_version_too(new: Lake, old: OldLake, tmp_path: Path) -> None:
    """It knows the gate's name only: a suite of that name that lets more through does not pass for the one required."""
    new.table("shop.t").require_gate(parse_suite(SUITE.format(most=1)))
    lax = tmp_path / "few.yaml"
    lax.write_text(SUITE.format(most=100))
    old.table("shop.t").set_options({"required_gate": ""})

    staged = old.table("shop.t").stage_upsert(rows(1, 2))
    with pytest.raises(lakelib.LakeError, match="verdict_missing"):
        staged.publish()
    staged.judge(str(lax))
    with pytest.raises(lakelib.LakeError, match="verdict_of_another_suite"):
        staged.publish()
    assert content(new) == {}

    fine = old.table("shop.t").stage_upsert(rows(3))
    new.staged(fine.id).judge()
    fine.publish()
    assert content(new) == {3: 0}


def test_a_verdict_on_what_a_commit_was_does_not_let_it_through_the_older_version(new: Lake, old: OldLake) -> None:
    new.table("shop.t").upsert(rows(1))
    staged = new.table("shop.t").stage_upsert(rows(2))
    staged.judge(parse_suite(SUITE.format(most=10)))
    new.runtime.catalog.run(lambda db: db.execute("update lake.commit set amendment = 1 where id = %s", (staged.id,)))

    with pytest.raises(lakelib.LakeError, match="verdict_stale"):
        old.process.ask("commit", str(staged.id), "publish")
