"""A table with a Delta log, as engines that know nothing of lakelib read it: each version is the snapshot's rows."""

import json
import os
import random
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import lakelib
from lakelib import ConflictError, CorruptionError, InvalidInputError, Lake, Table
from lakelib.ops import delta_content, masks
from lakelib.ops.delta_content import find_vectors
from tests.delta_readers import READERS, folder_of, read_delta_rs, read_duckdb, rows_in, rows_of
from tests.random_history import SCHEMA, TABLES, change_once

NewTable = Callable[..., Table]

_LATE = {"columnMapping": ("polars",), "typeWidening": ("polars", "delta-rs"), "deletionVectors": ()}
"""Which reader refuses a table once it has the feature."""


_NUMBERS = count()


@pytest.fixture
def new_table(lake: Lake) -> NewTable:
    def make(schema: Any, **definition: Any) -> Table:
        return lake.create_table(f"shop.t{next(_NUMBERS)}", schema, **definition)

    return make


def log_of(table: Table) -> Path:
    return Path(folder_of(table)) / "_delta_log"


def versions_of(table: Table) -> list[int]:
    return sorted(int(path.stem) for path in log_of(table).glob("*.json"))


def actions_of(table: Table, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (log_of(table) / f"{version:020d}.json").read_text().split("\n") if line]


def features_of(table: Table, version: int) -> set[str]:
    return set(actions_of(table, version)[0]["commitInfo"]["lake"]["features"])


def assert_told(table: Table, version: int | None = None) -> None:
    """All readers that may read it have the rows of the snapshot."""
    at = version if version is not None else table.head.id - 1  # type: ignore[union-attr]
    expected = table.scan(at=at + 1).to_arrow()
    refusing = {name for feature in features_of(table, at) for name in _LATE.get(feature, ())}
    for name, read in READERS.items():
        if name not in refusing:
            assert rows_in(name, read(folder_of(table), version)) == rows_in(name, expected), (name, at)


def rows(numbers: list[int], part: Any = "a", **others: list[Any]) -> pa.Table:
    return pa.table({"id": numbers, "part": pa.array([part] * len(numbers), pa.string()), **others})


# Each version is what the snapshot is


@pytest.mark.parametrize("seed", range(int(os.environ.get("LAKE_DELTA_RUNS", "2"))))
@pytest.mark.parametrize("kind", TABLES)
def test_each_version_of_a_random_history_is_the_snapshot_of_it(new_table: NewTable, kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    options = {"delta": "head", "delta_checkpoint_versions": 4}
    table = new_table(SCHEMA, partition_by=["part"], options=options, **TABLES[kind])

    for _ in range(14):
        change_once(table, chance, renames_partition=True)
        if table.head is not None:
            assert table.export_delta().is_complete
            assert_told(table)

    for version in versions_of(table):
        assert_told(table, version)
    table.compact()
    assert table.export_delta().is_complete
    assert_told(table)
    shutil.rmtree(log_of(table))
    assert table.export_delta().is_complete
    for version in versions_of(table):
        assert_told(table, version)


def test_compactions_and_changes_of_the_schema_change_no_data(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    table.append(rows([1]))
    table.append(rows([2]), idempotency_key=("loader", 7))
    table.compact(full=True)
    table.evolve(add=[("note", "string")])

    told = [actions_of(table, version) for version in range(4)]

    flags = [{each["dataChange"] for action in one for each in action.values() if "dataChange" in each} for one in told]
    assert flags == [{True}, {True}, {False}, set()]
    assert [each["txn"] | {"lastUpdated": 0} for each in told[1] if "txn" in each] == [
        {"appId": "loader", "version": 7, "lastUpdated": 0}
    ]
    assert [one[0]["commitInfo"]["operation"] for one in told] == ["WRITE", "WRITE", "OPTIMIZE", "CHANGE COLUMNS"]
    assert not any("protocol" in action for one in told[1:] for action in one)


def test_comments_order_and_not_null_are_told_with_the_schema(new_table: NewTable) -> None:
    table = new_table("id bigint not null comment 'the key', part string, n bigint not null", options={"delta": "head"})
    table.append(rows([1], n=[1]))
    table.evolve(nullable=["n"], move={"n": "first"}, comment={"n": "how many", "id": ""})
    fields = json.loads(actions_of(table, 1)[-1]["metaData"]["schemaString"])["fields"]
    assert [(each["name"], each["nullable"], each["metadata"]) for each in fields] == [
        ("n", True, {"comment": "how many"}),
        ("id", False, {}),
        ("part", True, {}),
    ]
    table.append(rows([2], n=[None]))
    assert_told(table)


def test_a_decimal_of_another_scale_is_read_by_those_who_know_wider_types(new_table: NewTable) -> None:
    table = new_table("id bigint, v decimal(6,2)", options={"delta": "head"})
    table.append(pa.table({"id": [1], "v": pa.array([Decimal("99.00")], pa.decimal128(6, 2))}))
    table.evolve(widen={"v": "decimal(9,5)"})
    table.append(pa.table({"id": [2], "v": pa.array([Decimal("0.50000")], pa.decimal128(9, 5))}))
    changes = json.loads(actions_of(table, 1)[-1]["metaData"]["schemaString"])["fields"][1]["metadata"]
    assert changes == {"delta.typeChanges": [{"fromType": "decimal(6,2)", "toType": "decimal(9,5)"}]}
    assert_told(table)


def test_a_feature_enters_when_it_is_needed(new_table: NewTable) -> None:
    table = new_table("id bigint, part string, n bigint", options={"delta": "head"})
    table.append(rows([1], n=[1]))
    table.evolve(drop=["part"])
    table.evolve(add=[("wall", "timestamp_ntz")])
    table.evolve(rename={"n": "m"})

    protocols = [
        [action["protocol"] for action in actions_of(table, version) if "protocol" in action] for version in range(4)
    ]

    assert protocols[:2] == [[{"minReaderVersion": 1, "minWriterVersion": 2}], []]
    assert protocols[2][0]["readerFeatures"] == ["timestampNtz"]
    assert protocols[3][0]["readerFeatures"] == ["columnMapping", "timestampNtz"]
    assert_told(table)


@pytest.mark.parametrize("partition_by", [[], ["part"]])
@pytest.mark.parametrize("key", [[], ["id"]])
def test_a_rename_is_told_at_once(new_table: NewTable, key: list[str], partition_by: list[str]) -> None:
    """Also of the column that the table is partitioned by, and of the key."""
    schema = "id bigint NOT NULL, part string, n bigint"
    table = new_table(schema, primary_key=key, partition_by=partition_by, options={"delta": "head"})
    table.append(rows([1, 2], n=[1, 2]))
    table.evolve(rename={"part": "piece", "id": "number"})
    table.append(pa.table({"number": [2, 3], "piece": ["a", "a"], "n": [3, 4]}))
    table.evolve(rename={"number": "piece", "piece": "number"})
    table.append(pa.table({"piece": [3, 4], "number": ["a", "b"], "n": [5, 6]}))
    table.delete("piece = 2 AND number = 'a'")
    table.compact(full=True)

    assert versions_of(table) == list(range(7))
    added = [sum("add" in action for action in actions_of(table, version)) for version in (1, 3)]
    assert added == ([1, 0] if partition_by else [0, 0])  # once, for now they are read from the files
    for version in range(7):
        assert_told(table, version)


def test_a_name_that_was_dropped_and_comes_again_is_told_at_once(new_table: NewTable) -> None:
    table = new_table("id bigint, part string, n bigint", options={"delta": "head"})
    table.append(rows([1], n=[1]))
    table.evolve(drop=["n"])
    table.append(rows([2], n=["two"]), merge_schema=True)
    table.evolve(drop=["part"], add=[("Part", "bigint")])
    table.append(pa.table({"id": [3], "n": ["three"], "Part": [3]}))

    assert versions_of(table) == list(range(5))
    for version in range(5):
        assert_told(table, version)


def test_a_log_waits_for_files_of_one_name_where_a_column_was_renamed_before_it(new_table: NewTable) -> None:
    table = new_table("id bigint, part string")
    table.append(rows([1]))
    table.evolve(rename={"part": "piece"})
    table.append(pa.table({"id": [2], "piece": ["b"]}))
    table.set_options({"delta": "head"})

    waiting = table.export_delta()
    table.compact()
    table.append(pa.table({"id": [3], "piece": ["c"]}))

    assert (waiting.version, waiting.is_complete) == (1, False)
    assert "'piece'" in str(waiting.waits_for)
    assert table.export_delta().is_complete
    assert versions_of(table) == [0, 1, 3, 4]
    for version in (0, 1, 3, 4, None):
        assert_told(table, version)


def test_a_partition_that_delta_has_no_value_for_is_a_column_like_others(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", partition_by=["part"], options={"delta": "head"})
    table.append(rows([1], None))
    table.append(rows([2], ""))
    table.append(rows([3], "__HIVE_DEFAULT_PARTITION__"))

    for version in range(3):
        assert_told(table, version)
    columns = [
        action["metaData"]["partitionColumns"]
        for v in range(3)
        for action in actions_of(table, v)
        if "metaData" in action
    ]
    assert columns == [["part"], []]


@pytest.mark.parametrize("type_", ["timestamp", "decimal(20,3)", "binary"])
def test_partitions_of_types_that_readers_differ_in_are_read_from_the_files(new_table: NewTable, type_: str) -> None:
    values = {
        "timestamp": datetime(1965, 1, 1, 1, 2, 3, 456789, tzinfo=UTC),
        "decimal(20,3)": Decimal("-12345678901234567.125"),
        "binary": b"\xff\x00",
    }
    table = new_table(f"id bigint, part {type_}", partition_by=["part"], options={"delta": "head"})
    table.append(pa.Table.from_pylist([{"id": 1, "part": values[type_]}, {"id": 2}], schema=table.schema))

    assert_told(table)


def test_statistics_are_exact_or_absent(new_table: NewTable) -> None:
    table = new_table("id bigint, s string, x double, d decimal(5,2), raw binary", options={"delta": "head"})
    table.append(
        pa.Table.from_pylist(
            [
                {"id": 1, "s": "x" * 80, "x": float("nan"), "d": Decimal("1.25"), "raw": b"a"},
                {"id": -3, "s": "a", "x": 2.5, "d": Decimal("-7.5")},
            ],
            schema=table.schema,
        )
    )

    (add,) = (action["add"] for action in actions_of(table, 0) if "add" in action)
    told = json.loads(add["stats"])

    assert told == {
        "numRecords": 2,
        "minValues": {"id": -3, "s": "a", "x": 2.5, "d": -7.5},
        "maxValues": {"id": 1, "d": 1.25},
        "nullCount": {"id": 0, "s": 0, "x": 0, "d": 0, "raw": 1},
    }


def test_what_is_compacted_is_told_to_readers_without_vectors(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", primary_key=["id"], options={"delta": "compacted"})
    table.upsert(rows([1, 2]))
    table.upsert(rows([2, 3], "b"))
    table.compact(full=True)
    table.delete_keys(pa.table({"id": [1]}))

    for version in range(4):
        expected = table.scan(at=version + 1, view="read_optimized").to_arrow()
        for name, read in READERS.items():
            assert rows_in(name, read(folder_of(table), version)) == rows_in(name, expected), (name, version)
    assert {actions_of(table, version)[0]["commitInfo"]["lake"]["mode"] for version in range(4)} == {"compacted"}
    assert len(actions_of(table, 3)) == 1


def test_many_small_changes_of_a_partition_are_told_at_once(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    table = new_table("id bigint NOT NULL, part string NOT NULL", primary_key=["part", "id"], buckets=2)
    for number in range(20):
        numbers = chance.sample(range(12), 4)
        if number % 5 == 4:
            table.delete(f"id = {numbers[0]}")
        else:
            table.upsert(
                rows(numbers, chance.choice("ab"), **({"note": [number] * 4} if number > 9 else {})), merge_schema=True
            )
    monkeypatch.setattr("lakelib.ops.delta_content.find_vectors", _not_asked)

    assert table.export_delta().is_complete

    for version in range(20):
        assert_told(table, version)


def _not_asked(*arguments: object) -> Any:
    if arguments[-1] is not None:  # a checkpoint's or a first version's are of all partitions
        raise AssertionError("masks were found one by one")
    return find_vectors(*arguments)  # type: ignore[arg-type]


def test_large_vectors_are_the_files_of_the_masks(
    new_table: NewTable, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelib.ops.masks._MOST_INLINE_BYTES", 0)
    table = new_table("id bigint NOT NULL, part string", primary_key=["id"], options={"delta": "head"})
    for part in "abc":
        table.upsert(rows([1, 2, ord(part)], part))
    table.delete("id = 2")

    vectors = [action["add"].get("deletionVector") for action in actions_of(table, 3) if "add" in action]
    table.expire(keep_last=1, older_than=timedelta(0), grace=timedelta(0))
    lake.vacuum(grace=timedelta(0))

    assert vectors
    assert {(each["storageType"], each["pathOrInlineDv"][:6], each["offset"]) for each in vectors} == {
        ("u", "_masks", 1)
    }
    assert_told(table)


def test_what_goes_is_named_as_the_log_has_it(
    new_table: NewTable, lake: Lake, module_catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mask that nobody has kept is another one the next time, of the same rows."""
    table = new_table("id bigint NOT NULL, part string", primary_key=["id"], options={"delta": "head"})
    table.upsert(rows([1, 2, 3]))
    with monkeypatch.context() as patched:
        patched.setattr("lakelib.ops.masks._may_keep", lambda runtime: False)
        table.upsert(rows([1], "b"))
    monkeypatch.setattr("lakelib.ops.masks._MOST_INLINE_BYTES", 0)
    with lakelib.connect(folder_of(table).partition("/shop/")[0], module_catalog_url) as other:
        other.table(table.name).upsert(rows([2], "c"))
        other.table(table.name).upsert(rows([4], "c"))
    table.compact(full=True)

    for version in range(5):
        assert_told(table, version)


# The log


def test_an_export_writes_what_is_missing_and_no_more(new_table: NewTable) -> None:
    table = new_table("id bigint, part string")
    for number in range(5):
        table.append(rows([number]))

    first, second = table.export_delta(), table.export_delta()

    assert (first.written, second.written, second.version) == (5, 0, 4)
    assert_told(table)


def test_checkpoints_tell_all_even_in_parts(new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelib.interop.delta.log.PART_ACTIONS", 3)
    table = new_table("id bigint, part string", options={"delta": "head", "delta_checkpoint_versions": 3})
    for number in range(8):
        table.append(rows([number]), idempotency_key=("loader", number))

    for path in log_of(table).glob("0000000000000000000[0-5].json"):
        path.unlink()

    assert json.loads((log_of(table) / "_last_checkpoint").read_text()) == {"version": 6, "size": 10, "parts": 4}
    assert_told(table)
    assert DeltaTable(folder_of(table)).transaction_version("loader") == 7
    assert table.export_delta().is_complete


def test_what_expired_before_it_was_told_is_left_out(new_table: NewTable) -> None:
    table = new_table("id bigint, part string")
    for number in range(6):
        table.append(rows([number]))
    table.expire(keep_last=2, older_than=timedelta(0))
    begun = table.export_delta()
    for number in range(6, 10):
        table.append(rows([number]))
    table.expire(keep_last=1, older_than=timedelta(0))
    went_on = table.export_delta()

    assert (begun.skipped, begun.written, went_on.skipped) == (4, 2, 3)
    assert versions_of(table) == [4, 5, 9]
    assert_told(table)
    table.append(rows([10]))
    table.export_delta()
    assert_told(table)
    assert rows_of(read_duckdb(folder_of(table), 9)) == rows_of(table.scan(at=10).to_arrow())


def test_what_an_expired_snapshot_had_is_known_from_the_log(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", partition_by=["part"], options={"delta": "head"})
    table.append(rows([1]))
    table.append(rows([2], "b"))
    table.set_options({"delta": ""})
    table.overwrite(rows([3]), partitions="dynamic")
    table.expire(keep_last=1, older_than=timedelta(0))
    table.set_options({"delta": "head"})

    told = table.export_delta()

    assert (told.skipped, versions_of(table)) == (0, [0, 1, 2])
    assert [len([1 for action in actions_of(table, 2) if kind in action]) for kind in ("add", "remove")] == [1, 1]
    assert_told(table)


def test_an_expiry_tells_first_and_keeps_files_for_older_versions(new_table: NewTable, lake: Lake) -> None:
    table = new_table("id bigint, part string")
    table.append(rows([1]))
    table.overwrite(rows([2]))
    table.set_options({"delta": "head", "delta_keep_hours": 5})

    table.expire(keep_last=1, older_than=timedelta(0), grace=timedelta(0))
    lake.vacuum(grace=timedelta(0), orphans=False)

    assert versions_of(table) == [0, 1]
    assert rows_of(read_delta_rs(folder_of(table), 0)) == rows_of(rows([1]))


def test_old_files_of_the_log_go_behind_a_checkpoint_if_asked_for(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table("id bigint, part string", options={"delta": "head", "delta_checkpoint_versions": 2})
    for number in range(6):
        table.append(rows([number]))
    monkeypatch.setattr("lakelib.catalog.retention.load_now", lambda catalog: datetime.now(UTC) + timedelta(days=8))

    kept = table.export_delta()
    table.set_options({"delta_log_days": 7})
    cleaned = table.export_delta()

    assert (kept.deleted, cleaned.deleted, versions_of(table)) == (0, 5, [4, 5])
    assert_told(table)
    table.append(rows([6]))
    assert table.export_delta().is_complete
    assert_told(table)


def test_a_vacuum_leaves_the_log_alone_until_the_table_is_dropped(new_table: NewTable, lake: Lake) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    table.append(rows([1]))
    lake.vacuum(grace=timedelta(0))
    assert_told(table)

    lake.drop_table(table.name)
    lake.vacuum(grace=timedelta(0))

    assert not list(log_of(table).glob("*"))


# Beside others


@pytest.mark.parametrize("key", [[], ["id"]])
def test_exporters_beside_each_other_write_one_log(new_table: NewTable, lake: Lake, key: list[str]) -> None:
    table = new_table("id bigint NOT NULL, part string", partition_by=["part"], primary_key=key)
    for number in range(24):
        table.append(rows([number % 10], chr(97 + number % 3)))
    started, written = threading.Barrier(4), []

    def export() -> None:
        started.wait()
        written.append(lake.table(table.name).export_delta().written)

    exporters = [threading.Thread(target=export) for _ in range(4)]
    for each in exporters:
        each.start()
    for each in exporters:
        each.join()

    assert (sum(written), versions_of(table)) == (24, list(range(24)))
    for version in (0, 11, 23):
        assert_told(table, version)


def test_a_publish_stands_whatever_becomes_of_the_log(new_table: NewTable, caplog: pytest.LogCaptureFixture) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    log_of(table).parent.mkdir(parents=True, exist_ok=True)
    log_of(table).write_text("in the way")

    snapshot = table.append(rows([1]))

    assert snapshot.id == 1
    assert f"snapshot 1 is not in the Delta log yet (`lake delta {table.name}` makes up for it)" in caplog.text
    log_of(table).unlink()
    table.append(rows([2]))
    assert versions_of(table) == [0, 1]


def test_staged_commits_and_transactions_are_told_by_whoever_publishes(new_table: NewTable, lake: Lake) -> None:
    first, second = (new_table("id bigint, part string", options={"delta": "head"}) for _ in range(2))
    with lake.transaction() as transaction:
        for table in (first, second):
            transaction.add(table.stage_append(rows([1])))
    first.stage_append(rows([2])).publish()

    assert (versions_of(first), versions_of(second)) == ([0, 1], [0])


def test_the_version_of_another_writer_is_refused_and_stays(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    table.append(rows([1]))
    write_deltalake(folder_of(table), rows([100]), mode="append")
    foreign = (log_of(table) / f"{1:020d}.json").read_bytes()

    table.append(rows([2]))
    with pytest.raises(ConflictError, match="Version 1 of the Delta log") as caught:
        table.export_delta()
    table.append(rows([3]))

    assert caught.value.kind == "foreign_delta_version"
    assert versions_of(table) == [0, 1]
    assert (log_of(table) / f"{1:020d}.json").read_bytes() == foreign


def test_a_log_of_somebody_else_is_refused_before_anything(new_table: NewTable) -> None:
    table = new_table("id bigint, part string")
    table.append(rows([1]))
    write_deltalake(folder_of(table), rows([100]))

    with pytest.raises(ConflictError) as by_option:
        table.set_options({"delta": "head"})
    with pytest.raises(ConflictError) as by_export:
        table.export_delta()

    assert {by_option.value.kind, by_export.value.kind} == {"foreign_delta_log"}
    assert (table.options, versions_of(table)) == ({}, [0])


def test_a_checkpoint_of_a_version_that_is_yet_to_come_is_somebody_elses(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", options={"delta": "head", "delta_checkpoint_versions": 1})
    for number in range(3):
        table.append(rows([number]))
    shutil.copy(log_of(table) / f"{2:020d}.checkpoint.parquet", log_of(table) / f"{3:020d}.checkpoint.parquet")

    with pytest.raises(ConflictError) as caught:
        table.export_delta()

    assert caught.value.kind == "foreign_delta_log"


@pytest.mark.parametrize("damage", ["gap", "begin", "torn", "cut between lines", "nested"])
def test_a_log_that_is_not_whole_is_refused(new_table: NewTable, damage: str) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    for number in range(4):
        table.append(rows([number]))
    paths = sorted(log_of(table).glob("*.json"))
    if damage == "torn":
        paths[-1].write_bytes(paths[-1].read_bytes()[:100])
    elif damage == "cut between lines":
        paths[-1].write_bytes(paths[-1].read_bytes().splitlines(keepends=True)[0])
    elif damage == "nested":
        paths[-1].write_text('{"commitInfo": ' + "[" * 100_000)
    else:
        paths[0 if damage == "begin" else 1].unlink()

    with pytest.raises(CorruptionError) as caught:
        table.export_delta()

    assert caught.value.kind == ("broken_delta_log" if damage in ("gap", "begin") else "unreadable_delta_log")
    assert str(log_of(table)) in str(caught.value)


_KEEPING: dict[str, dict[str, Any]] = {
    "a sequence": {"sequence_by": ["u"]},
    "first_row": {"merge": "first_row"},
    "groups": {
        "merge": {
            "engine": "partial_update",
            "groups": [{"sequence": ["u"], "columns": ["v"]}],
            "on_delete": "groups",
        }
    },
    "retract": {"merge": {"engine": "aggregate", "functions": {"u": "sum"}, "retract": True}},
}


@pytest.mark.parametrize("kind", _KEEPING)
def test_a_log_of_what_is_compacted_masks_the_marks_that_stay(new_table: NewTable, kind: str) -> None:
    """They count for what comes later; the file that has them holds the rows of its bucket all the same."""
    table = new_table(
        "id bigint, u bigint, v string", primary_key=["id"], buckets=1, options={"delta": "compacted"}, **_KEEPING[kind]
    )
    for round_ in range(3):
        table.upsert(pa.table({"id": [1, 2, 3], "u": [round_] * 3, "v": ["a", "b", f"{round_}"]}))
        table.delete_keys(pa.table({"id": [2, 9], "u": [round_ + 1] * 2}))
        table.compact(full=True)
        table.export_delta()
        expected = table.scan().to_arrow()
        assert expected.num_rows > 1
        for name, read in READERS.items():
            assert rows_in(name, read(folder_of(table), None)) == rows_in(name, expected), (name, round_)


def test_the_log_of_the_head_does_not_become_that_of_what_is_compacted(new_table: NewTable) -> None:
    table = new_table("id bigint, part string", options={"delta": "head"})
    table.append(rows([1]))

    with pytest.raises(InvalidInputError) as caught:
        table.set_options({"delta": "compacted"})

    assert caught.value.kind == "delta_mode"


def test_only_known_modes_are_taken(new_table: NewTable) -> None:
    with pytest.raises(InvalidInputError, match="Give head, compacted"):
        new_table("id bigint", options={"delta": "tail"})


def test_a_table_without_snapshots_has_nothing_to_tell(new_table: NewTable) -> None:
    told = new_table("id bigint", options={"delta": "head"}).export_delta()

    assert (told.version, told.head_version, told.is_complete) == (None, None, True)


def test_long_vectors_wait_for_who_may_keep_them(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Short ones are told in the log itself, and so are long ones up to a size."""
    chance = random.Random(1)
    table = new_table("id BIGINT, n BIGINT", primary_key=["id"], options={"delta": "head"})
    table.upsert(pa.table({"id": range(200_000), "n": [0] * 200_000}))

    def change(count: int) -> None:
        ids = chance.sample(range(200_000), count)
        table.upsert(pa.table({"id": ids, "n": [1] * count}))

    with monkeypatch.context() as patched:
        patched.setattr(delta_content, "has_right", lambda *_: False)
        patched.setattr(masks, "has_right", lambda *_: False)
        change(10_000)
        assert [each["add"]["deletionVector"]["storageType"] for each in vectors_in(table, 1)] == ["i"]
        patched.setattr(delta_content, "_MOST_UNKEPT_BYTES", 10_000)
        change(10_000)
        change(100)
        assert versions_of(table) == [0, 1]
        assert "somebody with the right to maintain tells of it" in caplog.text
    told = table.export_delta()
    assert (told.written, told.skipped, told.waits_for) == (2, 0, None)
    assert [each["add"]["deletionVector"]["storageType"] for each in vectors_in(table, 3)] == ["u", "i", "i"]
    for version in range(4):
        assert_told(table, version)


def vectors_in(table: Table, version: int) -> list[dict[str, Any]]:
    found = [each for each in actions_of(table, version) if (each.get("add") or {}).get("deletionVector")]
    return sorted(found, key=lambda each: -each["add"]["deletionVector"]["sizeInBytes"])
