"""Changes: what they tell of each kind of commit, in which columns, and what is said of bounds that are wrong."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Changes, InvalidInputError, NotFoundError, Table
from tests.acceptance.support import Engine, NewTable, data

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.string())])
VIEWS = ("latest", "all", "net")


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Three rows; one of them is written again, one is deleted, and one comes."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(data(SCHEMA, (1, "a", "one"), (2, "a", "two"), (3, "b", "three")))
    table.upsert(data(SCHEMA, (1, "a", "ONE"), (4, "b", "four")))
    table.delete("value = 'two'")
    return table


@pytest.fixture
def append_table(new_table: NewTable) -> Table:
    table = new_table(SCHEMA)
    table.append(data(SCHEMA, (1, "a", "one"), (1, "a", "one"), (2, "a", "two")))
    table.append(data(SCHEMA, (3, "b", "three")))
    table.delete("id = 2")
    return table


def told(engine: Engine, changes: Changes) -> list[tuple[Any, ...]]:
    """What became of it, the commit, and the row: in the order of commits and keys."""
    rows = engine.read(changes).to_pylist()  # type: ignore[arg-type]
    what = "_change" if changes.view == "net" else "_op"
    found = [(row[what], row["_commit"], row["id"], row["day"], row["value"]) for row in rows]
    return sorted(found, key=lambda each: (each[1], each[2], each[0]))


# What they tell


def test_without_bounds_it_is_the_newest_commit_that_changed_rows(engine: Engine, table: Table) -> None:
    assert told(engine, table.changes()) == [("delete", 3, 2, "a", None)]
    table.compact(full=True)
    assert told(engine, table.changes()) == [("delete", 3, 2, "a", None)]


def test_the_view_latest_has_each_key_once_as_it_is_in_the_end(engine: Engine, table: Table) -> None:
    assert told(engine, table.changes(after=0)) == [
        ("upsert", 1, 3, "b", "three"),
        ("upsert", 2, 1, "a", "ONE"),
        ("upsert", 2, 4, "b", "four"),
        ("delete", 3, 2, "a", None),
    ]


def test_the_view_all_has_every_row_and_delete_of_each_commit(engine: Engine, table: Table) -> None:
    assert told(engine, table.changes(after=0, view="all")) == [
        ("upsert", 1, 1, "a", "one"),
        ("upsert", 1, 2, "a", "two"),
        ("upsert", 1, 3, "b", "three"),
        ("upsert", 2, 1, "a", "ONE"),
        ("upsert", 2, 4, "b", "four"),
        ("delete", 3, 2, "a", None),
    ]


def test_the_view_net_has_what_differs_with_the_rows_before(engine: Engine, table: Table) -> None:
    assert told(engine, table.changes(after=1, view="net")) == [
        ("update_before", 1, 1, "a", "one"),
        ("delete", 1, 2, "a", "two"),
        ("update_after", 2, 1, "a", "ONE"),
        ("insert", 2, 4, "b", "four"),
    ]


def test_a_diff_goes_both_ways(engine: Engine, table: Table) -> None:
    assert told(engine, table.diff(1, 3)) == told(engine, table.changes(after=1, until=3, view="net"))
    assert told(engine, table.diff(3, 1)) == [
        ("update_after", 1, 1, "a", "one"),
        ("insert", 1, 2, "a", "two"),
        ("update_before", 2, 1, "a", "ONE"),
        ("delete", 2, 4, "b", "four"),
    ]
    assert told(engine, table.diff(3, 3)) == []


def test_a_diff_back_over_a_wider_column_has_room_for_both_sides(engine: Engine, new_table: NewTable) -> None:
    table = new_table(pa.schema([("id", pa.int64()), ("value", pa.int32())]), primary_key=["id"])
    table.upsert(pa.table({"id": [1], "value": pa.array([7], pa.int32())}))
    table.evolve(widen={"value": "bigint"}, add=["more STRING"])
    table.upsert(pa.table({"id": [1, 2], "value": [2**40, 2**41], "more": ["x", "y"]}))
    rows = engine.read(table.diff(3, 1)).to_pylist()  # type: ignore[arg-type]
    assert sorted((row["_change"], row["id"], row["value"]) for row in rows) == [
        ("delete", 2, 2**41),
        ("update_after", 1, 7),
        ("update_before", 1, 2**40),
    ]
    assert table.diff(3, 1).schema.names == ["id", "value", "_commit", "_change"]


def test_an_overwrite_is_deletes_of_what_it_took_out_and_the_rows_it_brought(engine: Engine, table: Table) -> None:
    table.overwrite(data(SCHEMA, (3, "b", "three"), (5, "b", "five")), {"day": "b"})
    assert told(engine, table.changes(view="all")) == [
        ("delete", 4, 3, "b", None),
        ("upsert", 4, 3, "b", "three"),
        ("delete", 4, 4, "b", None),
        ("upsert", 4, 5, "b", "five"),
    ]
    assert told(engine, table.changes()) == [
        ("upsert", 4, 3, "b", "three"),
        ("delete", 4, 4, "b", None),
        ("upsert", 4, 5, "b", "five"),
    ]
    assert told(engine, table.changes(view="net")) == [("delete", 2, 4, "b", "four"), ("insert", 4, 5, "b", "five")]


def test_a_partition_that_is_dropped_is_a_delete_of_each_row(engine: Engine, table: Table) -> None:
    table.delete("day = 'b'")
    for view in ("latest", "all"):
        assert told(engine, table.changes(view=view)) == [("delete", 4, 3, "b", None), ("delete", 4, 4, "b", None)]
    assert told(engine, table.changes(view="net")) == [("delete", 1, 3, "b", "three"), ("delete", 2, 4, "b", "four")]


def test_rows_that_are_written_again_as_they_were_are_no_net_change(engine: Engine, table: Table) -> None:
    table.upsert(table.scan().to_arrow())
    assert told(engine, table.changes(view="net")) == []
    assert [row[:3] for row in told(engine, table.changes())] == [("upsert", 4, 1), ("upsert", 4, 3), ("upsert", 4, 4)]


def test_a_table_without_a_key_has_inserts_and_deletes_of_rows(engine: Engine, append_table: Table) -> None:
    assert told(engine, append_table.changes(after=0, view="all")) == [
        ("upsert", 1, 1, "a", "one"),
        ("upsert", 1, 1, "a", "one"),
        ("upsert", 1, 2, "a", "two"),
        ("upsert", 2, 3, "b", "three"),
        ("delete", 3, 2, "a", "two"),
    ]
    assert told(engine, append_table.changes(after=1)) == [("upsert", 2, 3, "b", "three"), ("delete", 3, 2, "a", "two")]
    assert told(engine, append_table.changes(after=1, view="net")) == [
        ("delete", 1, 2, "a", "two"),
        ("insert", 2, 3, "b", "three"),
    ]


def test_a_late_row_that_lost_is_no_change(engine: Engine, new_table: NewTable) -> None:
    table = new_table("id BIGINT, day STRING, value STRING, at BIGINT", primary_key=["id"], sequence_by=["at"])
    rows = [{"id": 1, "day": "a", "value": "new", "at": 5}, {"id": 2, "day": "a", "value": "new", "at": 5}]
    table.upsert(pa.Table.from_pylist(rows))
    late = [{"id": 1, "day": "a", "value": "old", "at": 3}, {"id": 2, "day": "a", "value": "newer", "at": 7}]
    table.upsert(pa.Table.from_pylist(late))
    assert told(engine, table.changes()) == [("upsert", 2, 2, "a", "newer")]
    net = [("update_before", 1, 2, "a", "new"), ("update_after", 2, 2, "a", "newer")]
    assert told(engine, table.changes(view="net")) == net
    assert [row[2] for row in told(engine, table.changes(view="all"))] == [1, 2]


def test_changes_are_in_the_columns_of_the_last_snapshot(engine: Engine, table: Table) -> None:
    table.evolve(add=["more BIGINT"], rename={"value": "text"})
    table.upsert(pa.table({"id": [1], "day": ["a"], "text": ["1"], "more": [7]}))
    rows = engine.read(table.changes(after=1)).to_pylist()  # type: ignore[arg-type]
    by_id = {row["id"]: row for row in rows}
    assert list(by_id[1]) == ["id", "day", "text", "more", "_commit", "_op"]
    assert (by_id[1]["text"], by_id[1]["more"], by_id[4]["text"], by_id[4]["more"]) == ("1", 7, "four", None)
    assert list(table.changes(after=0, until=1).schema.names) == ["id", "day", "value", "_commit", "_op"]


def test_columns_that_are_named_come_with_what_became_of_the_row(engine: Engine, table: Table) -> None:
    rows = engine.read(table.changes(after=1, columns=["value"])).to_pylist()  # type: ignore[arg-type]
    expected = [
        {"value": "ONE", "_commit": 2, "_op": "upsert"},
        {"value": "four", "_commit": 2, "_op": "upsert"},
        {"value": None, "_commit": 3, "_op": "delete"},
    ]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    assert engine.read(table.changes(after=1, view="net", columns=["day"])).num_rows == 2  # type: ignore[arg-type]


def test_a_predicate_is_asked_of_the_changes(engine: Engine, table: Table) -> None:
    assert told(engine, table.changes(after=0, where="value = 'ONE'")) == [
        ("upsert", 2, 1, "a", "ONE"),
        ("delete", 3, 2, "a", None),
    ]
    assert told(engine, table.changes(after=0, where="value = 'ONE' and day = 'a' and id < 2")) == [
        ("upsert", 2, 1, "a", "ONE")
    ]
    assert told(engine, table.changes(after=0, where="value = 'one'", view="all")) == [
        ("upsert", 1, 1, "a", "one"),
        ("delete", 3, 2, "a", None),
    ]
    assert told(engine, table.changes(after=1, where="value = 'one'", view="net")) == [
        ("update_before", 1, 1, "a", "one")
    ]
    assert told(engine, table.changes(after=0, where="_commit > 1 and day = 'b'")) == [("upsert", 2, 4, "b", "four")]


def test_all_ways_to_take_them_give_the_same(table: Table) -> None:
    changes = table.changes(after=0)
    whole = changes.to_arrow()
    assert whole.schema == changes.schema
    assert pa.Table.from_batches(changes.to_batches(), changes.schema).sort_by("id") == whole.sort_by("id")
    assert changes.to_reader().read_all().sort_by("id") == whole.sort_by("id")
    assert pa.table(changes).sort_by("id") == whole.sort_by("id")
    assert len(changes.to_pandas()) == changes.count() == whole.num_rows == 4


def test_the_view_all_streams_in_the_order_of_commits(table: Table) -> None:
    for number in range(20):
        table.upsert(data(SCHEMA, (number, "a", str(number)), (number + 1, "b", str(number))))
    commits = [commit for batch in table.changes(after=0, view="all").to_batches() for commit in batch["_commit"]]
    assert commits == sorted(commits, key=lambda commit: commit.as_py())


# Bounds


def test_bounds_are_numbers_tags_moments_and_consumers(engine: Engine, table: Table) -> None:
    table.tag("first", at=1)
    table.consumer("reader", after=1)
    moments = {snapshot.id: snapshot.committed_at for snapshot in table.history()}
    expected = told(engine, table.changes(after=1, until=2))
    assert len(expected) == 2
    for after in ("tag:first", "1", "consumer:reader", moments[1], moments[2] - timedelta(microseconds=1)):
        assert told(engine, table.changes(after=after, until=2)) == expected
    assert told(engine, table.changes(until=2)) == expected
    assert told(engine, table.changes(after=datetime(2000, 1, 1, tzinfo=UTC), until=1)) == told(
        engine, table.changes(after=0, until=1)
    )


def test_a_table_that_holds_nothing_has_no_changes(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"])
    for view in VIEWS:
        assert told(engine, table.changes(after=0, view=view)) == []


@pytest.mark.parametrize(
    ("bounds", "error", "kind"),
    [
        ({"after": 3, "until": 1}, InvalidInputError, "invalid_range"),
        ({"after": -1}, InvalidInputError, "invalid_after"),
        ({"after": 99}, NotFoundError, "snapshot_not_found"),
        ({"until": 2**70}, NotFoundError, "snapshot_not_found"),
        ({"until": "head"}, InvalidInputError, "invalid_until"),
        ({"after": True}, InvalidInputError, "invalid_after"),
        ({"after": 1.5}, InvalidInputError, "invalid_after"),
        ({"after": datetime(2026, 1, 1)}, InvalidInputError, "invalid_after"),
        ({"until": datetime(2200, 1, 1, tzinfo=UTC)}, NotFoundError, "moment_to_come"),
        ({"after": "tag:nothing"}, NotFoundError, "tag_not_found"),
        ({"after": "consumer:nobody"}, NotFoundError, "consumer_not_found"),
        ({"view": "everything"}, InvalidInputError, "invalid_view"),
        ({"view": None}, InvalidInputError, "invalid_view"),
        ({"columns": ["nothing"]}, InvalidInputError, "unknown_column"),
        ({"where": "nothing = 1"}, InvalidInputError, "unknown_column"),
    ],
)
def test_what_is_wrong_is_said(table: Table, bounds: dict[str, Any], error: type[Exception], kind: str) -> None:
    with pytest.raises(error) as raised:
        table.changes(**bounds)
    assert raised.value.kind == kind  # type: ignore[attr-defined]


def test_what_has_expired_is_an_error_that_says_from_where_it_can_be_told(table: Table) -> None:
    table.tag("kept", at=2)
    table.expire(keep_last=1, older_than=timedelta(0))
    with pytest.raises(NotFoundError, match="from snapshot 2 on") as raised:
        table.changes(after=1, view="net")
    assert raised.value.kind == "changes_expired"
    assert table.changes(after=2, view="net").count() == 1
    assert table.changes(after=0).count() == 3


def test_where_to_begin_anew_is_a_snapshot_that_can_be_read(table: Table) -> None:
    """The changes can be told from the one before on, which has expired itself."""
    table.upsert(data(SCHEMA, (5, "b", "five")))
    table.expire(keep_last=1, older_than=timedelta(0))
    with pytest.raises(NotFoundError, match=r"from snapshot 3 on\. Read the table at snapshot 4,"):
        table.changes(after=1)
    assert table.changes(after=3).count() == 1
    assert table.scan(at=4).count() == 4


def test_a_read_that_is_under_way_keeps_what_it_reads(table: Table) -> None:
    """A compaction has replaced the files of the commits, and an expiry lets their snapshots go."""
    table.compact(full=True)
    batches = table.changes(after=1, until=3, view="all").to_batches()
    first = next(batches)
    table.expire(keep_last=1, older_than=timedelta(0))
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 3


# How it is found


def test_only_files_of_the_commits_are_opened_where_they_are_there(table: Table) -> None:
    told_before = table.changes(after=1, until=2).explain()
    table.compact(full=True)
    explained = table.changes(after=1, until=2).explain()
    assert explained == told_before
    assert (explained.files, explained.ways) == (2, ("rows of the commits' own files",))
    assert "rows of the commits' own files" in str(explained)


def test_files_are_pruned_by_the_predicate(table: Table) -> None:
    explained = table.changes(after=1, until=2, where="day = 'b'").explain()
    assert (explained.files, explained.files_moved, explained.files_pruned) == (1, 2, 1)


def test_both_snapshots_are_held_against_each_other_where_files_were_taken_out(table: Table) -> None:
    table.overwrite(data(SCHEMA, (3, "b", "three")), {"day": "b"})
    explained = table.changes(after=1).explain()
    assert explained.ways == ("rows of the commits' own files", "both snapshots compared")


def test_changes_say_what_they_are(table: Table) -> None:
    changes = table.changes(after=1, where="day = 'a'")
    assert repr(changes) == f"<Changes (latest) of {table.name} after snapshot 1 until 3 where day = 'a'>"
    assert "_commit" in changes._repr_html_()
    assert (changes.after_id, changes.until_id, changes.view) == (1, 3, "latest")
