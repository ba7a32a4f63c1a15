"""Masks: kept once for all readers, right for every snapshot, and gone with the snapshots that need them."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.catalog import masks as kept_masks
from lakelib.catalog import tables
from lakelib.model.files import FOLDER, Mask
from lakelib.ops import masks as making
from lakelib.storage.vectors import decode_positions, encode_positions, read_vector, write_vector
from tests.integration.catalog.town import Town
from tests.masked import masks_of, seen_rows, unmasked_rows

NOW = timedelta(0)
SCHEMA = "id BIGINT, day STRING, amount DOUBLE"
NAMES = ["id", "day"]
IDS = [1, 2]
MANY = 40_000
"""More than fit into a vector that is kept in the catalog."""


def rows(ids: range, amount: float = 1.0, day: str = "mon") -> pa.Table:
    count = len(ids)
    return pa.table({"id": pa.array(ids), "day": [day] * count, "amount": [amount] * count})


def scattered(seed: int) -> pa.Table:
    """Rows whose places in the file are far from each other."""
    chosen = np.random.default_rng(seed).choice(MANY * 2, MANY // 4, replace=False)
    return pa.table({"id": chosen, "day": ["mon"] * len(chosen), "amount": [float(seed)] * len(chosen)})


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("shop.orders", SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)


@pytest.fixture
def large(table: Table) -> Table:
    """Its masks are files."""
    table.upsert(rows(range(MANY * 2)))
    table.upsert(scattered(1))
    return table


def vector_files(table: Table) -> set[str]:
    folder = Path(urlsplit(table.location).path) / FOLDER
    return {f"{FOLDER}/{file.name}" for file in folder.iterdir()} if folder.is_dir() else set()


def check(lake: Lake, table: Table, *snapshots: int) -> None:
    for at in snapshots:
        assert unmasked_rows(lake, table, at, IDS) == seen_rows(table, at, NAMES)


def test_masks_name_what_no_reader_sees_at_each_snapshot(lake: Lake, table: Table) -> None:
    table.upsert(rows(range(10)))
    table.upsert(rows(range(5, 15), 2.0))
    table.upsert(rows(range(3), 3.0, "tue"))
    table.delete_keys(pa.table({"id": [7, 99], "day": ["mon", "mon"]}))
    table.upsert(rows(range(7, 9), 4.0))
    check(lake, table, 5, 2, 4, 1, 3)


def test_a_row_that_comes_late_is_masked_itself(lake: Lake) -> None:
    table = lake.create_table("shop.late", SCHEMA, primary_key=["id"], partition_by=["day"], sequence_by=["amount"])
    table.upsert(rows(range(10), 5.0))
    table.upsert(rows(range(5), 4.0))
    check(lake, table, 2)
    assert sum(mask.cardinality for mask in masks_of(lake, table, 2).values()) == 5
    table.upsert(rows(range(3), 6.0))
    check(lake, table, 3)


def test_an_older_snapshot_has_its_masks_after_its_key_was_renamed(lake: Lake, table: Table) -> None:
    table.upsert(rows(range(10)))
    table.upsert(rows(range(5), 2.0))
    table.evolve(rename={"id": "number"})
    assert unmasked_rows(lake, table, 2, IDS) == seen_rows(table, 2, NAMES)


def test_a_thousand_small_files_have_their_masks(lake: Lake, table: Table) -> None:
    for number in range(300):
        table.upsert(rows(range(number % 7, number % 7 + 2), float(number)))
    check(lake, table, 300)
    table.upsert(rows(range(2), 7.0))
    check(lake, table, 301)


def test_what_was_found_once_is_kept_for_all(lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    found = masks_of(lake, large, 2)
    assert {mask.path for mask in found.values()} == vector_files(large) != set()
    monkeypatch.setattr(making.engines, "find_masked", lambda *_, **__: pytest.fail("masks are found again"))
    assert masks_of(lake, large, 2) == found


def test_only_what_a_commit_touched_is_found_anew(lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before = masks_of(lake, large, 2)
    large.upsert(rows(range(10), 3.0, "tue"))
    monkeypatch.setattr(making.engines, "find_masked", lambda *_, **__: pytest.fail("masks are found again"))
    assert masks_of(lake, large, 3) == before


def test_a_small_commit_is_sought_in_the_row_groups_that_may_have_its_keys(
    lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = masks_of(lake, large, 2)
    large.upsert(rows(range(1), 3.0))
    works = []
    real = making.engines.find_masked
    monkeypatch.setattr(
        making.engines, "find_masked", lambda *args, **options: works.extend(args[1]) or real(*args, **options)
    )
    after = masks_of(lake, large, 3)
    assert {len(work.fresh_ids) for work in works} == {1}
    assert sum(mask not in before.values() for mask in after.values()) <= 2
    check(lake, large, 3)


def test_files_of_masks_stay_where_the_answer_was_lost_that_they_are_kept(
    lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = kept_masks.keep_masks

    def twice(*given: Any) -> set[int]:
        keep(*given)
        return keep(*given)

    with monkeypatch.context() as patched:
        patched.setattr(kept_masks, "keep_masks", twice)
        masks_of(lake, large, 2)

    named = {mask.path for mask in masks_of(lake, large, 2).values()}
    assert vector_files(large) == named != set()
    check(lake, large, 2)


def test_a_compaction_makes_masks_vanish(lake: Lake, large: Table) -> None:
    masks_of(lake, large, 2)
    large.compact(full=True)
    assert masks_of(lake, large, large.head.id) == {}
    check(lake, large, 2, large.head.id)


def test_what_a_compaction_left_keeps_its_mask(lake: Lake, table: Table) -> None:
    table.upsert(rows(range(100)))
    for number in range(5):
        table.upsert(rows(range(number * 2, number * 2 + 5), float(number)))
        check(lake, table, table.head.id)
        table.compact()
        check(lake, table, table.head.id)


def test_rows_that_a_rollback_brings_back_are_seen(lake: Lake, large: Table) -> None:
    masks_of(lake, large, 2)
    large.upsert(scattered(3))
    check(lake, large, 3)
    large.rollback(2)
    check(lake, large, 4, 3, 2)
    large.upsert(scattered(5))
    check(lake, large, 5)


def test_an_older_snapshot_is_answered_without_being_kept(lake: Lake, large: Table) -> None:
    masks_of(lake, large, 2)
    large.upsert(scattered(3))
    large.upsert(scattered(4))
    masks_of(lake, large, 4)
    files = vector_files(large)
    older = masks_of(lake, large, 3)
    assert {mask.path for mask in older.values()} == {None}
    assert vector_files(large) == files
    check(lake, large, 3, 4)


def test_masks_go_with_the_snapshots_that_need_them(lake: Lake, large: Table) -> None:
    large.tag("kept", at=2)
    masks_of(lake, large, 2)
    large.upsert(scattered(3))
    masks_of(lake, large, 3)
    large.upsert(scattered(4))
    now = masks_of(lake, large, 4)
    large.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    tagged = masks_of(lake, large, 2)
    assert vector_files(large) == {mask.path for mask in (*now.values(), *tagged.values()) if mask.path}
    check(lake, large, 2, 4)
    large.delete_tag("kept")
    large.compact(full=True)
    large.expire(keep_last=1, grace=NOW)
    lake.vacuum(grace=NOW)
    assert vector_files(large) == set()


def test_masks_of_a_dropped_table_go_with_it(lake: Lake, large: Table) -> None:
    masks_of(lake, large, 2)
    lake.drop_table("shop.orders")
    lake.vacuum(grace=NOW)
    assert vector_files(large) == set()


def test_a_vector_that_no_mask_names_is_an_orphan_and_one_that_is_named_is_none(lake: Lake, large: Table) -> None:
    kept = {mask.path for mask in masks_of(lake, large, 2).values()}
    orphan = f"{FOLDER}/deletion_vector_00000000-0000-4000-8000-000000000000.bin"
    write_vector(lake.runtime.storage.at(large.location), orphan, encode_positions(np.arange(3)))
    assert lake.doctor(grace=NOW).counts == {"orphaned_file": 1}
    lake.vacuum(grace=NOW)
    assert vector_files(large) == kept


def test_of_two_who_find_masks_at_once_one_keeps_them(lake: Lake, large: Table) -> None:
    barrier = threading.Barrier(4)
    found: list[dict[int, Mask]] = []

    def find() -> None:
        barrier.wait()
        found.append(dict(masks_of(lake, large, 2)))

    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = masks_of(lake, large, 2)
    assert vector_files(large) == {mask.path for mask in now.values()}
    counts = {file_id: mask.cardinality for file_id, mask in now.items()}
    assert [{file_id: mask.cardinality for file_id, mask in each.items()} for each in found] == [counts] * 4


def test_a_maker_that_is_killed_before_he_keeps_them_leaves_the_next_one_to_it(
    lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(kept_masks, "keep_masks", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            masks_of(lake, large, 2)
    left = vector_files(large)
    check(lake, large, 2)
    lake.vacuum(grace=NOW)
    assert vector_files(large) & left == set()
    check(lake, large, 2)


@pytest.fixture
def of_town(town: Town) -> Iterator[Table]:
    made = town.root.create_table("shop.masked", SCHEMA, primary_key=["id"], partition_by=["day"])
    made.upsert(rows(range(MANY)))
    made.upsert(rows(range(0, MANY, 3), 2.0))
    yield made
    town.root.drop_table("shop.masked")


@pytest.mark.parametrize("role", ["reader", "writer", "publisher"])
def test_who_may_not_maintain_has_masks_for_himself_alone(town: Town, of_town: Table, role: str) -> None:
    own = town.lakes[role]
    assert {mask.path for mask in masks_of(own, own.table("shop.masked"), 2).values()} == {None}
    check(own, own.table("shop.masked"), 2)
    assert vector_files(of_town) == set()


def test_a_restored_lake_makes_its_own_masks(lake: Lake, large: Table, tmp_path: Path) -> None:
    masks_of(lake, large, 2)
    lake.backup(str(tmp_path / "backup"), with_files=True)
    lakelib.lake.restore(str(tmp_path / "backup"), warehouse=str(tmp_path / "second"))
    with lakelib.connect(warehouse=str(tmp_path / "second")) as second:
        assert vector_files(second.table("shop.orders")) == set()
        check(second, second.table("shop.orders"), 2)


def test_where_a_vector_is_lost_masks_are_found_anew(lake: Lake, large: Table) -> None:
    kept = masks_of(lake, large, 2)
    for path in vector_files(large):
        Path(urlsplit(large.location).path, path).unlink()
    loaded = tables.load_table(lake.runtime.catalog, large._ref)
    plan = making.plan_scan(lake.runtime, loaded, making.ScanRequest())
    found = making.vectors_at(lake.runtime, plan)
    assert {file_id: len(decode_positions(vector)) for file_id, vector in found.items()} == {
        file_id: mask.cardinality for file_id, mask in kept.items()
    }
    large.upsert(scattered(3))
    check(lake, large, 3)


def test_the_doctor_tells_of_lost_masks_until_a_compaction(lake: Lake, large: Table) -> None:
    masks_of(lake, large, 2)
    assert lake.doctor().findings == ()
    lost = sorted(vector_files(large))
    folder = Path(urlsplit(large.location).path)
    (folder / lost[0]).unlink()
    for path in lost[1:]:
        (folder / path).write_bytes(b"else")
    report = lake.doctor(large.name)
    assert (report.is_healthy, report.counts) == (True, {"lost_mask": len(lost)})
    assert [each.place.endswith(path) for each, path in zip(report.findings, lost, strict=True)] == [True] * len(lost)
    assert all("cannot be read" in each.detail for each in report.findings)
    large.compact(full=True)
    large.expire(keep_last=1, older_than=timedelta(0), grace=timedelta(0))
    assert "lost_mask" not in lake.doctor(large.name).counts


def test_a_vector_whose_bytes_are_others_is_told(lake: Lake, large: Table) -> None:
    path = next(iter(vector_files(large) or {mask.path for mask in masks_of(lake, large, 2).values()}))
    assert path is not None
    file = Path(urlsplit(large.location).path) / path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(lakelib.CorruptionError, match="its checksum is another"):
        read_vector(lake.runtime.storage.at(large.location), path)
