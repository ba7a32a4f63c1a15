"""Promises of `spark.readStream.format("lake")`: what a stream gives, where it goes on, and when it ends."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelib import Lake, LakeError, Table
from tests.spark.conftest import NewTable
from tests.spark.streams import SCHEMA, Streams, batch


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(spark=spark, checkpoint=tmp_path / "checkpoint")


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Two commits."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"], buckets=2)
    table.upsert(batch((1, "a", "x"), (2, "b", "y"), (3, "a", "z")))
    table.upsert(batch((1, "a", "x2")))
    return table


def commit_more(table: Table) -> None:
    """An upsert, a delete, a compaction, an overwrite: snapshots 3 to 6."""
    table.upsert(batch((2, "b", "y2")))
    table.delete_keys(pa.table({"id": [1], "dt": ["a"]}))
    table.compact(full=True)
    table.overwrite(batch((4, "b", "n")), {"dt": "b"})


MORE = [
    [(2, "b", "y2", 3, "upsert")],
    [(1, "a", None, 4, "delete")],
    [(2, "b", None, 6, "delete"), (4, "b", "n", 6, "upsert")],
]


def test_the_snapshot_comes_first_and_then_each_commit(streams: Streams, table: Table) -> None:
    first = streams.read(table.name, maxRowsPerTrigger=1)
    assert sorted((row for rows in first for row in rows), key=repr) == [
        (1, "a", "x2", 2, "upsert"),
        (2, "b", "y", 1, "upsert"),
        (3, "a", "z", 1, "upsert"),
    ]
    assert len(first) > 1  # parts of the snapshot

    commit_more(table)
    table.compact(full=True)
    assert streams.read(table.name, maxSnapshotsPerTrigger=1) == MORE
    assert streams.read(table.name) == []


def test_a_reader_may_be_used_twice(spark: Any, table: Table) -> None:
    reader = spark.readStream.format("lake").option("columns", "id")
    assert [reader.load(table.name).columns for _ in range(2)] == [["id", "_commit", "_op"]] * 2


def test_a_stream_of_a_table_without_rows_begins_with_its_first(streams: Streams, new_table: NewTable) -> None:
    table = new_table("id bigint, v string")
    assert streams.read(table.name) == [[]]
    table.append(pa.table({"id": [1, 1], "v": ["a", "a"]}))
    assert streams.read(table.name) == [[(1, "a", 1, "upsert")] * 2]
    table.append(pa.table({"id": [2], "v": ["b"]}))
    table.delete("id = 1")
    assert streams.read(table.name, maxRowsPerTrigger=1) == [
        [(2, "b", 2, "upsert")],
        [(1, "a", 3, "delete")] * 2,
    ]


@pytest.mark.parametrize("after", ["2", "tag:here", "consumer:there"])
def test_a_stream_begins_after_what_is_named(streams: Streams, table: Table, after: str) -> None:
    table.tag("here")
    table.consumer("there", after=2)
    commit_more(table)
    [found] = streams.read(table.name, startingAfter=after, view="latest", columns="id, v", where="id < 4")
    assert found == [(1, None, 4, "delete"), (2, None, 6, "delete")]


def test_what_was_not_read_is_kept_from_expiry(streams: Streams, table: Table) -> None:
    streams.read(table.name, consumer="follower", keepFor="3d")
    commit_more(table)
    table.expire(keep_last=1, older_than=timedelta(0))
    [kept] = table.consumers()
    assert (kept.name, kept.position, kept.keep_for) == ("follower", 2, timedelta(days=3))
    assert streams.read(table.name, consumer="follower", maxSnapshotsPerTrigger=1) == MORE

    table.upsert(batch((5, "a", "q")))
    table.consumer("follower").remove()
    table.upsert(batch((6, "a", "q")))
    table.expire(keep_last=1, older_than=timedelta(0))
    with pytest.raises(Exception, match=r"\[(changes_expired|snapshot_expired)\]"):
        streams.read(table.name)


def test_other_columns_stop_a_stream_until_it_is_told_to_follow(streams: Streams, table: Table) -> None:
    streams.read(table.name)
    running = streams.load(table.name)
    table.upsert(batch((5, "a", "before")))
    table.evolve(add=[("more", "string")])
    found: list[Any] = []
    query = running.writeStream.foreachBatch(lambda frame, number: found.extend(frame.collect()))
    query = query.option("checkpointLocation", str(streams.checkpoint)).start()
    with pytest.raises(Exception, match=r"schema_changed\] The columns of .* have changed in snapshot 4"):
        query.awaitTermination(60)
    assert [tuple(row) for row in found] == [(5, "a", "before", 3, "upsert")]

    with pytest.raises(Exception, match=r"schema_changed.*others than those that the stream began with"):
        streams.read(table.name)
    table.upsert(batch((6, "a", "after")))
    assert streams.read(table.name, schemaChanges="follow") == [[(6, "a", "after", None, 5, "upsert")]]


def test_columns_that_are_not_read_may_change(streams: Streams, table: Table) -> None:
    streams.read(table.name, columns="id, dt")
    table.evolve(add=[("more", "string")], widen={})
    table.upsert(batch((5, "a", "q")))
    assert streams.read(table.name, columns="id, dt") == [[(5, "a", 4, "upsert")]]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"startingafter": "99"}, "snapshot_not_found"),
        ({"startingAfter": "tag:none"}, "tag_not_found"),
        ({"startingAfter": "consumer:none"}, "consumer_not_found"),
        ({"startingAfter": "yesterday"}, "invalid_starting_after"),
        ({"view": "some"}, "invalid_view"),
        ({"maxRowsPerTrigger": "0"}, "invalid_option"),
        ({"maxSnapshotsPerTrigger": "many"}, "invalid_option"),
        ({"keepFor": "long"}, "invalid_option"),
        ({"schemaChanges": "ignore"}, "invalid_option"),
        ({"columns": "id, none"}, "unknown_column"),
        ({"where": "none = 1"}, "unknown_column"),
        ({"at": "1"}, "unknown_option"),
    ],
)
def test_what_a_stream_cannot_be_told_is_said_at_once(
    streams: Streams, table: Table, options: dict[str, str], kind: str
) -> None:
    with pytest.raises(LakeError) as caught:
        streams.load(table.name, **options)
    assert caught.value.kind == kind
    assert list(table.consumers()) == []


def test_a_table_that_is_not_there_is_no_stream(streams: Streams, lake: Lake) -> None:
    with pytest.raises(LakeError) as caught:
        streams.load("shop.nothing")
    assert caught.value.kind == "table_not_found"


def test_a_checkpoint_is_of_one_table_and_of_what_was_asked(streams: Streams, lake: Lake, table: Table) -> None:
    streams.read(table.name, startingAfter=0)
    table.upsert(batch((5, "a", "q")))
    with pytest.raises(Exception, match="stream_differs"):
        streams.read(table.name, where="id > 1")
    lake.drop_table(table.name)
    lake.create_table(table.name, SCHEMA, primary_key=["id"], partition_by=["dt"]).upsert(batch((1, "a", "x")))
    with pytest.raises(Exception, match="table_differs"):
        streams.read(table.name)
