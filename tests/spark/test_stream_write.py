"""Promises of `frame.writeStream.format("lake")`: what a batch becomes, and that it becomes it once."""

import os
import shutil
from dataclasses import replace
from math import ceil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lakelib.spark
from lakelib import Lake, LakeError, Table
from tests.spark.conftest import NewTable
from tests.spark.streams import SCHEMA, Change, Streams, as_it_is, batch, rows_in

COMMITS = int(os.environ.get("LAKE_STREAM_COMMITS", "27"))
_SUMS = {"engine": "aggregate", "functions": {"n": "sum", "last": "last"}}
REFUSES_ALL = """
name: none
expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {column: v, value_set: [nothing]}
"""


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(spark=spark, checkpoint=tmp_path / "checkpoint")


@pytest.fixture
def orders(new_table: NewTable) -> Table:
    orders = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"], buckets=2)
    orders.upsert(batch((1, "a", "x"), (2, "b", "y"), (3, "a", "z")))
    return orders


@pytest.fixture
def copy(new_table: NewTable) -> Table:
    return new_table("id bigint, dt string, v string not null", primary_key=["id"], partition_by=["dt"], buckets=2)


@pytest.fixture
def sums(new_table: NewTable) -> Table:
    """How many rows of a day there were, and the newest of them."""
    return new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"], merge=_SUMS)


def upserts(frame: DataFrame) -> DataFrame:
    return frame.where("_op = 'upsert'").drop("_op", "_commit")


def test_a_copy_of_a_table_ends_equal(streams: Streams, orders: Table, copy: Table) -> None:
    """Deletes, overwrites, and rows that come back, in batches of several commits. `make soak` has more of them."""
    made = 1
    for round_ in range(ceil((COMMITS - 1) * 5 / 11)):
        made += 2 + (round_ % 5 == 4)
        orders.upsert(batch(*((key, "ab"[key % 2], f"{round_}") for key in range(round_, round_ + 6))))
        orders.delete_keys(pa.table({"id": [round_ + 1], "dt": ["ab"[(round_ + 1) % 2]]}))
        if round_ % 5 == 4:
            orders.overwrite(batch((100 + round_, "a", "o"), (round_ + 2, "a", "o")), {"dt": "a"})
            orders.compact(full=True)
    streams.copy(orders.name, copy.name, read={"startingAfter": 0, "maxSnapshotsPerTrigger": 9})
    assert rows_in(copy) == rows_in(orders)
    assert made >= COMMITS
    batches = [int(snapshot.properties["stream.batch"]) for snapshot in copy.history()]
    assert batches == [*reversed(range(ceil(made / 9)))]


@pytest.mark.parametrize(("key", "change"), [(("id",), as_it_is), ((), upserts)])
def test_a_batch_that_runs_again_is_known(
    streams: Streams, orders: Table, new_table: NewTable, key: tuple[str, ...], change: Change
) -> None:
    """Also after another writer, a compaction of both tables, and whoever starts the query."""
    target = new_table(SCHEMA, primary_key=key, partition_by=["dt"])
    streams.copy(orders.name, target.name, change=change)
    target.append(batch((77, "z", "other")))
    orders.upsert(batch((9, "a", "new")))
    target.compact(full=True)
    orders.compact(full=True)
    streams.forget_last_commit()
    streams.copy(orders.name, target.name, change=change)
    assert rows_in(target) == [*rows_in(orders), (77, "z", "other")]


def test_a_lost_checkpoint_costs_nothing_where_batches_are_the_same(
    streams: Streams, orders: Table, new_table: NewTable
) -> None:
    target = new_table(SCHEMA)
    orders.upsert(batch((4, "a", "new")))
    told = {"startingAfter": 0, "maxSnapshotsPerTrigger": 1}
    streams.copy(orders.name, target.name, change=upserts, read=told, application="copier")
    shutil.rmtree(streams.checkpoint)
    orders.upsert(batch((5, "a", "newer")))
    streams.copy(orders.name, target.name, change=upserts, read=told, application="copier")
    assert rows_in(target) == rows_in(orders)

    shutil.rmtree(streams.checkpoint)
    with pytest.raises(Exception, match="batch_differs"):  # one batch of all: which of its rows are there already?
        streams.copy(orders.name, target.name, change=upserts, application="copier")
    assert rows_in(target) == rows_in(orders)


def test_a_complete_result_takes_the_place_of_the_one_before(
    streams: Streams, orders: Table, new_table: NewTable
) -> None:
    sums = new_table("dt string, n bigint", primary_key=["dt"])

    def count(frame: DataFrame) -> DataFrame:
        return frame.where("_op = 'upsert'").groupBy("dt").agg(sf.count("*").alias("n"))

    sums.upsert(pa.table({"dt": ["old"], "n": [1]}))
    streams.copy(orders.name, sums.name, change=count, mode="complete")
    assert rows_in(sums) == [("a", 2), ("b", 1)]
    orders.upsert(batch((9, "b", "q")))
    streams.copy(orders.name, sums.name, change=count, mode="complete")
    assert rows_in(sums) == [("a", 2), ("b", 2)]


def test_an_update_upserts_what_has_changed(streams: Streams, orders: Table, new_table: NewTable) -> None:
    sums = new_table("dt string, n bigint", primary_key=["dt"])
    sums.upsert(pa.table({"dt": ["other"], "n": [1]}))
    streams.copy(
        orders.name, sums.name, change=lambda frame: frame.groupBy("dt").agg(sf.count("*").alias("n")), mode="update"
    )
    assert rows_in(sums) == [("a", 2), ("b", 1), ("other", 1)]


def test_a_batch_that_its_gate_rejects_is_not_visible(
    streams: Streams, orders: Table, copy: Table, tmp_path: Path
) -> None:
    (tmp_path / "none.yaml").write_text(REFUSES_ALL)
    with pytest.raises(Exception, match=r"lakelib\.errors\.RejectedError"):
        streams.copy(orders.name, copy.name, gate=str(tmp_path / "none.yaml"))
    assert copy.head is None
    assert len(copy.commits("rejected")) == 1


def test_a_table_without_a_key_takes_no_deletes(streams: Streams, orders: Table, new_table: NewTable) -> None:
    log = new_table(SCHEMA)
    streams.copy(orders.name, log.name)
    assert rows_in(log) == rows_in(orders)
    orders.delete_keys(pa.table({"id": [1], "dt": ["a"]}))
    with pytest.raises(Exception, match=r"no_primary_key.*leave the deletes out"):
        streams.copy(orders.name, log.name)
    assert len(log.history()) == 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"gat": "x"}, "unknown_option"),
        ({"gate": "nowhere.yaml"}, "file_not_found"),
        ({"distribution": "some"}, "invalid_distribution"),
        ({"application": ""}, "invalid_idempotency_key"),
        ({"write.merge-schema": "maybe"}, "invalid_option"),
        ({"checkpointLocation": ""}, "missing_checkpoint"),
        ({"path": "shop.nothing"}, "table_not_found"),
    ],
)
def test_what_a_writer_cannot_be_told_is_said_at_once(
    streams: Streams, orders: Table, copy: Table, tmp_path: Path, options: dict[str, str], kind: str
) -> None:
    frame = streams.load(orders.name)
    given = {"checkpointLocation": str(tmp_path / "none"), "path": copy.name, **options}
    with pytest.raises(LakeError) as caught:
        frame.writeStream.format("lake").options(**given).start()
    assert caught.value.kind == kind
    assert not (tmp_path / "none").exists()


def test_rows_that_do_not_fit_are_told_at_once(
    streams: Streams, orders: Table, copy: Table, new_table: NewTable, tmp_path: Path
) -> None:
    frame = streams.load(orders.name)
    found = []
    for wrong, mode, target in (
        (frame.drop("_commit"), "append", copy.name),
        (frame.drop("_op"), "append", copy.name),
        (frame.drop("_op", "_commit", "dt"), "append", copy.name),
        (upserts(frame).withColumn("v", sf.lit(1)), "append", copy.name),
        (upserts(frame), "update", new_table(SCHEMA).name),
    ):
        writer = wrong.writeStream.outputMode(mode).option("checkpointLocation", str(tmp_path / "none"))
        with pytest.raises(LakeError) as caught:
            writer.toTable(target, format="lake")
        found.append(caught.value.kind)
    assert found == ["missing_column", "reserved_name", "missing_column", "wrong_type", "no_primary_key"]
    assert not (tmp_path / "none").exists()


def test_other_formats_are_left_alone(streams: Streams, orders: Table, spark: SparkSession) -> None:
    writer = upserts(streams.load(orders.name)).writeStream.format("memory").queryName("kept")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("kept").count() == 3


@pytest.fixture
def tables(new_table: NewTable) -> tuple[Table, Table]:
    return new_table(SCHEMA, primary_key=["id"]), new_table("dt string, n bigint")


def test_two_tables_take_a_batch_in_one_transaction(
    streams: Streams, lake: Lake, orders: Table, tables: tuple[Table, Table]
) -> None:
    """The recipe of docs/spark.md."""
    rows, counts = tables

    def save(frame: DataFrame, batch_id: int) -> None:
        key = lakelib.spark.batch_key(frame, str(streams.checkpoint), batch_id)
        with lake.transaction() as transaction:
            transaction.add(rows.stage_upsert(frame, idempotency_key=key))
            transaction.add(counts.stage_append(frame.groupBy("dt").agg(sf.count("*").alias("n")), idempotency_key=key))

    def run() -> None:
        writer = upserts(streams.load(orders.name)).writeStream.foreachBatch(save)
        writer = writer.option("checkpointLocation", str(streams.checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    run()
    streams.forget_last_commit()
    run()
    assert (rows_in(rows), rows_in(counts)) == (rows_in(orders), [("a", 2), ("b", 1)])


# Tables that merge versions


def test_a_batch_that_runs_again_is_not_added_again(streams: Streams, orders: Table, sums: Table) -> None:
    def ones(frame: DataFrame) -> DataFrame:
        return upserts(frame).selectExpr("dt", "bigint(1) AS n", "v AS last")

    streams.copy(orders.name, sums.name, change=ones)
    orders.upsert(batch((4, "a", "w")))
    streams.copy(orders.name, sums.name, change=ones)
    sums.compact(full=True)
    streams.forget_last_commit()
    streams.copy(orders.name, sums.name, change=ones)
    counted = [(row["dt"], row["n"]) for row in sums.scan().to_arrow().sort_by("dt").to_pylist()]
    assert counted == [("a", 3), ("b", 1)]


def test_a_stream_tells_sums_or_what_was_added_as_it_is_asked(
    streams: Streams, sums: Table, new_table: NewTable, tmp_path: Path
) -> None:
    """Rows as they are for a table that keeps them, what was added for one that adds as well."""
    copy = new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"])
    twin = new_table("dt STRING, n BIGINT, last STRING", primary_key=["dt"], merge=_SUMS)
    others = replace(streams, checkpoint=tmp_path / "twin")
    for round_ in range(2):
        for day in "aba":
            sums.upsert(pa.table({"dt": [day], "n": [1], "last": [f"{round_}"]}))
        if round_:
            sums.delete_keys(pa.table({"dt": ["b"]}))
            sums.compact(full=True)
        streams.copy(sums.name, copy.name, read={"startingAfter": 0, "view": "latest"})
        others.copy(sums.name, twin.name, read={"view": "all"})
        assert rows_in(copy) == rows_in(twin) == rows_in(sums)
    assert rows_in(sums) == [("a", 4, "1")]
    with pytest.raises(Exception, match="whether it tells what each commit gave"):
        streams.load(sums.name)


def test_deletes_of_a_stream_that_would_take_nothing_back_are_refused(
    streams: Streams, orders: Table, new_table: NewTable
) -> None:
    """Of a delete changes know the key alone."""
    merge = {"engine": "aggregate", "functions": {"n": "sum"}, "retract": True}
    target = new_table("id BIGINT, n BIGINT", primary_key=["id"], merge=merge)

    def numbers(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("id", "length(v) AS n", "_op", "_commit")

    orders.delete_keys(pa.table({"id": [1], "dt": ["a"]}))
    with pytest.raises(Exception, match="they would do nothing"):
        streams.copy(orders.name, target.name, change=numbers, read={"startingAfter": 0, "view": "all"})
    assert rows_in(target) == []
