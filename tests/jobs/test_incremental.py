"""A spec that follows changes: each run reads what has changed since the run before, and what it makes is what making
it from scratch would give."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from lakelib.model.status import Standing
from lakelib.ops.status import look_at_table
from lakelib.specs.table_spec import load_spec
from tests.jobs.conftest import NewTable, Ran, RunJob, rows_of
from tests.jobs.ingest_support import DAY

BEFORE = "2026-11-17"
ORDERS = "id BIGINT NOT NULL, dt DATE, amount BIGINT"
_COPY = "SELECT id, dt, amount FROM orders WHERE _op = 'upsert'"
_REVENUE = "SELECT dt, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY dt"


class Shop:
    """A table of orders, and one that follows it."""

    def __init__(self, lake: Lake, folder: Path, orders: Table, run: RunJob, engine: str) -> None:
        self.lake = lake
        self.orders = orders
        self.spec = folder / "made.yaml"
        self.table = f"{orders.name}_made"
        self._folder = folder
        self._run = run
        self._engine = engine
        self._runs = 0

    def follow(self, query: str = _COPY, view: str = "latest", **fields: str) -> None:
        """A table of the same rows, upserted, unless other fields are given."""
        given = {
            "table": self.table,
            "columns": "id BIGINT, dt DATE, amount BIGINT",
            "primary_key": "[id]",
            "partition_by": "[dt]",
            "transform": "made.sql",
            "reads": f"{{orders: {{table: {self.orders.name}, changes: {view}}}}}",
            "engine": self._engine,
            **fields,
        }
        (self._folder / "made.sql").write_text(query)
        self.spec.write_text("".join(f"{name}: {text}\n" for name, text in given.items() if text))

    def follow_days(self, query: str = _REVENUE, **fields: str) -> None:
        """A row a day."""
        self.follow(
            query,
            columns="dt DATE, orders BIGINT, revenue BIGINT",
            primary_key="",
            write="{mode: overwrite}",
            partition="{column: dt, every: day, from_changes: true}",
            **fields,
        )

    @property
    def made(self) -> Table:
        return self.lake.table(self.table)

    @property
    def position(self) -> int | None:
        found = [each.position for each in self.orders.consumers() if each.name == f"{self.table}/orders"]
        return found[0] if found else None

    def ingest(self, *arguments: object, key: str | None = None, partition: str = "all") -> Ran:
        self._runs += 1
        name = key or f"run{self._runs}:1"
        return self._run(
            "ingest", f"--spec={self.spec}", f"--partition={partition}", f"--idempotency-key={name}", *arguments
        )

    def publish(self, *commits: str, by: str | None = None) -> Ran:
        approval = [f"--by={by}", "--reason=seen"] if by else []
        return self._run("publish", *(f"--commit={each}" for each in commits), *approval)

    def go(self, *arguments: object, partition: str = "all") -> Ran:
        """An ingest, and its publish if there is something to publish."""
        ran = self.ingest(*arguments, partition=partition)
        assert ran.code == 0, ran.facts
        if ran.facts["commit"] is not None:
            published = self.publish(ran.facts["commit"])
            assert published.code == 0, published.facts
        return ran

    def upsert(self, *rows: tuple[int, str, int]) -> None:
        self.orders.upsert(orders(*rows))


def orders(*rows: tuple[int, str, int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "dt": pa.array([row[1] for row in rows], pa.string()).cast(pa.date32()),
            "amount": pa.array([row[2] for row in rows], pa.int64()),
        }
    )


def revenue(shop: Shop) -> dict[str, tuple[int, int]]:
    return {str(dt): (count, amount) for dt, count, amount in rows_of(shop.made)}


@pytest.fixture
def shop(lake: Lake, tmp_path: Path, new_table: NewTable, run_without_spark: RunJob) -> Shop:
    made = new_table(ORDERS, primary_key=["id"], partition_by=["dt"], buckets=2)
    return Shop(lake, tmp_path, made, run_without_spark, "local")


@pytest.fixture
def spark_shop(lake: Lake, tmp_path: Path, new_table: NewTable, run_job: RunJob) -> Shop:
    made = new_table(ORDERS, primary_key=["id"], partition_by=["dt"], buckets=2)
    return Shop(lake, tmp_path, made, run_job, "spark")


# Reading on


def _check_reads_on(shop: Shop) -> None:
    shop.upsert((1, DAY, 10), (2, DAY, 20))
    shop.follow(
        "SELECT count(*) AS id, max(dt) AS dt, sum(amount) AS amount FROM orders",
        primary_key="",
        buckets="",
        write="{mode: append}",
    )
    shop.go()
    assert (rows_of(shop.made, "id", "amount"), shop.position) == ([(2, 30)], 1)
    shop.upsert((2, DAY, 21), (3, DAY, 5))
    shop.upsert((3, DAY, 6))
    shop.go()
    assert (rows_of(shop.made, "id", "amount"), shop.position) == ([(2, 27), (2, 30)], 3)


def test_a_run_reads_what_has_changed_since_the_run_before(shop: Shop) -> None:
    _check_reads_on(shop)


def test_a_run_on_spark_reads_what_has_changed_since_the_run_before(spark_shop: Shop) -> None:
    _check_reads_on(spark_shop)


_TOLD = {
    "latest": [("upsert", 1), ("upsert", 2)],
    "all": [("upsert", 1), ("upsert", 2)],
    "net": [("insert", 1), ("insert", 2)],
}
_TOLD_NEXT = {
    "latest": [("delete", 1), ("upsert", 2)],
    "all": [("delete", 1), ("upsert", 2), ("upsert", 2)],
    "net": [("delete", 1), ("update_after", 2), ("update_before", 2)],
}


def _check_views(shop: Shop, view: str) -> None:
    told = "_change" if view == "net" else "_op"
    shop.upsert((1, DAY, 10), (2, DAY, 20))
    query = f"SELECT {told} AS what, id, _commit AS at FROM orders"
    shop.follow(
        query,
        view,
        columns="what STRING, id BIGINT, at BIGINT",
        primary_key="",
        partition_by="",
        write="{mode: append}",
    )
    shop.go()
    assert rows_of(shop.made, "what", "id") == _TOLD[view]
    assert {at for (at,) in rows_of(shop.made, "at")} == {1}
    shop.upsert((2, DAY, 21))
    shop.upsert((2, DAY, 22))
    shop.orders.delete("id = 1")
    first = shop.made.head
    assert first is not None
    shop.go()
    added = shop.made.changes(after=first.id).to_arrow()
    assert sorted(zip(added["what"].to_pylist(), added["id"].to_pylist(), strict=True)) == _TOLD_NEXT[view]


@pytest.mark.parametrize("view", _TOLD)
def test_each_view_is_seen_as_it_is_told(shop: Shop, view: str) -> None:
    _check_views(shop, view)


def test_each_view_is_seen_on_spark(spark_shop: Shop) -> None:
    _check_views(spark_shop, "net")


def test_a_net_view_compares_columns_that_the_query_does_not_look_at(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(
        "SELECT id, _change AS what FROM orders",
        "net",
        columns="id BIGINT, what STRING",
        primary_key="",
        partition_by="",
        write="{mode: append}",
    )
    shop.go()
    shop.upsert((1, DAY, 11))
    shop.go()
    assert rows_of(shop.made) == [(1, "insert"), (1, "update_after"), (1, "update_before")]


def test_a_run_that_reads_no_changes_publishes_nothing(shop: Shop) -> None:
    shop.follow()
    assert shop.go().facts["outcome"] == "empty"  # there are no orders yet
    shop.upsert((1, DAY, 10))
    shop.go()
    ran = shop.go()
    assert (ran.facts["outcome"], ran.facts["commit"]) == ("empty", None)
    assert "nothing has changed" in ran.out
    shop.orders.compact(full=True)
    assert shop.go().facts["outcome"] == "empty"
    assert len(shop.made.history()) == 1
    assert shop.orders.head is not None
    assert shop.position == shop.orders.head.id, "a compaction is passed over"


def test_what_is_passed_over_by_skip_is_not_read_again(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(f"{_COPY} AND amount > 15", write="{mode: upsert, when_empty: skip}")
    shop.go()
    shop.upsert((2, DAY, 20))
    shop.go()
    shop.upsert((3, DAY, 3))
    assert shop.go().facts["outcome"] == "empty"
    assert (rows_of(shop.made, "id"), shop.position) == ([(2,)], 3)


def test_all_views_of_a_table_show_it_at_the_same_snapshot(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(
        "SELECT o.id, o.dt, o.amount + 0 * w.amount AS amount FROM orders o JOIN whole w ON o.id = w.id",
        reads=f"{{orders: {{table: {shop.orders.name}, changes: latest}}, whole: {shop.orders.name}}}",
    )
    shop.go()
    shop.upsert((2, DAY, 20))
    shop.upsert((3, DAY, 30))
    shop.go("--at", f"{shop.orders.name}=2")
    assert rows_of(shop.made, "id") == [(1,), (2,)]
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,), (3,)]


# One transaction


def test_the_position_moves_with_the_publish_and_from_where_it_was_read(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    staged = shop.ingest().facts["commit"]
    assert shop.position == 0
    shop.upsert((2, DAY, 20))
    assert shop.publish(staged).code == 0
    assert (rows_of(shop.made, "id"), shop.position) == ([(1,)], 1)
    assert shop.publish(staged).code == 0, "it is safe to repeat"
    shop.go()
    assert (rows_of(shop.made, "id"), shop.position) == ([(1,), (2,)], 2)


def test_the_same_work_again_takes_up_what_was_read(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    staged = shop.ingest(key="work:1").facts["commit"]
    shop.upsert((2, DAY, 20))
    again = shop.ingest(key="work:1")
    assert (again.facts["commit"], again.facts["adopted"]) == (staged, True)
    assert shop.publish(staged).code == 0
    assert shop.ingest(key="work:1").facts["state"] == "published"
    assert shop.position == 1


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_of_two_runs_at_once_one_publishes_and_the_other_reads_what_is_left(shop: Shop, mode: str) -> None:
    shop.upsert((1, DAY, 10))
    key = "[id]" if mode == "upsert" else ""
    shop.follow(write=f"{{mode: {mode}}}", primary_key=key)
    one, other = (shop.ingest(key=f"{name}:1").facts["commit"] for name in ("one", "other"))
    assert shop.publish(one).code == 0
    lost = shop.publish(other)
    assert (lost.facts["error"]["family"], lost.facts["error"]["kind"]) == ("ConflictError", "consumer_moved")
    assert lost.facts["error"]["remedy"].startswith("Ingest again")
    again = shop.ingest(key="other:1")
    assert again.facts["outcome"] == "empty"
    assert shop.lake.staged(other).state == "expired"
    shop.upsert((2, DAY, 20))
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,)]


def test_the_same_changes_are_not_published_twice_in_one_transaction(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(write="{mode: append}", primary_key="")
    commits = [shop.ingest().facts["commit"] for _ in range(2)]
    assert shop.publish(*commits).facts["error"]["kind"] == "consumer_moved"
    assert (shop.made.head, shop.position) == (None, 0)


def test_a_discarded_run_moves_nothing(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    shop.lake.staged(shop.ingest().facts["commit"]).discard("ada", "not yet")
    assert shop.position == 0
    shop.upsert((2, DAY, 20))
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,)]


def test_what_a_gate_rejected_is_read_again_and_a_person_may_publish_it_instead(shop: Shop, tmp_path: Path) -> None:
    check = "{type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}}"
    (tmp_path / "gate.yaml").write_text(f"name: {shop.table}\nexpectations: [{check}]\n")
    shop.upsert((1, DAY, -10))
    shop.follow(gate="gate.yaml")
    rejected = shop.ingest().facts
    assert (rejected["state"], shop.position) == ("rejected", 0)
    shop.upsert((2, DAY, 20))
    both = shop.ingest().facts
    assert (both["state"], both["rows_in"]) == ("rejected", 2)
    assert shop.publish(rejected["commit"], by="ada").code == 0
    assert (rows_of(shop.made, "id"), shop.position) == ([(1,)], 1)
    assert shop.publish(both["commit"], by="ada").facts["error"]["kind"] == "consumer_moved"
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,)]


# From scratch


def test_full_makes_the_table_from_scratch_and_the_next_run_goes_on_from_there(shop: Shop) -> None:
    shop.upsert((1, DAY, 10), (2, DAY, 20))
    shop.follow()
    shop.go()
    shop.orders.delete("id = 1")
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,)], "an upsert cannot take rows away"
    shop.go("--full")
    assert (rows_of(shop.made, "id"), shop.position) == ([(2,)], 2)
    shop.upsert((3, DAY, 30))
    shop.go()
    assert (rows_of(shop.made, "id"), shop.position) == ([(2,), (3,)], 3)


def test_the_spec_says_how_long_history_is_kept(shop: Shop) -> None:
    def kept() -> list[timedelta]:
        return [each.keep_for for each in shop.orders.consumers()]

    shop.upsert((1, DAY, 1))
    found = []
    for said in ("", ", keep_for: 14d", "", ", keep_for: 1h"):
        shop.follow(reads=f"{{orders: {{table: {shop.orders.name}, changes: latest{said}}}}}")
        shop.go()
        found += kept()
    assert found == [timedelta(days=7), timedelta(days=14), timedelta(days=14), timedelta(hours=1)]
    assert shop.position == 1


def test_full_is_another_work_and_for_tables_that_follow_changes_only(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    shop.ingest(key="work:1")
    assert shop.ingest("--full", key="work:1").facts["error"]["kind"] == "key_reused"
    shop.follow("SELECT id, dt, amount FROM orders", reads=f"{{orders: {shop.orders.name}}}")
    assert shop.ingest("--full").facts["error"]["kind"] == "not_incremental"


def test_a_history_that_has_expired_takes_a_run_from_scratch(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(view="all")
    shop.go()
    shop.orders.consumer(f"{shop.table}/orders", keep_for=timedelta(microseconds=1))
    shop.upsert((2, DAY, 20))
    shop.orders.delete("id = 1")
    shop.orders.overwrite(orders((3, DAY, 30)), partitions="all")
    shop.orders.expire(keep_last=1)
    refused = shop.ingest().facts["error"]
    assert (refused["kind"], "--full" in refused["remedy"]) == ("changes_expired", True)
    shop.go("--full")
    assert rows_of(shop.made, "id") == [(3,)]


def _drop(shop: Shop) -> None:
    shop.lake.drop_table(shop.orders.name)
    shop.orders = shop.lake.create_table(shop.orders.name, ORDERS, primary_key=["id"], partition_by=["dt"])


def _remove(shop: Shop) -> None:
    shop.orders.consumer(f"{shop.table}/orders").remove()


def _set_back(shop: Shop) -> None:
    shop.orders.consumer(f"{shop.table}/orders").advance(0, backwards=True)


def _roll_back(shop: Shop) -> None:
    shop.upsert((4, DAY, 40))
    shop.go()
    shop.made.rollback(1)


@pytest.mark.parametrize("harm", [_drop, _remove, _set_back, _roll_back])
def test_a_position_that_is_not_that_of_the_rows_takes_a_run_from_scratch(
    shop: Shop, harm: Callable[[Shop], None]
) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(write="{mode: append}", primary_key="")
    shop.go()
    harm(shop)
    shop.upsert((2, DAY, 20))
    for _ in range(2):
        refused = shop.ingest().facts["error"]
        assert (refused["kind"], "--full" in refused["remedy"]) == ("position_lost", True)
    shop.go("--full")
    assert rows_of(shop.made, "id") == rows_of(shop.orders, "id")
    shop.upsert((3, DAY, 30))
    shop.go()
    assert rows_of(shop.made, "id") == rows_of(shop.orders, "id")


def test_a_commit_of_a_table_that_was_dropped_since_is_not_published(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    staged = shop.ingest(key="work:1").facts["commit"]
    _drop(shop)
    assert shop.publish(staged).facts["error"]["kind"] == "consumer_not_found"
    shop.upsert((2, DAY, 20))
    again = shop.ingest(key="work:1").facts
    assert shop.publish(again["commit"]).code == 0
    assert rows_of(shop.made, "id") == [(2,)]


def test_an_output_that_was_made_anew_is_filled_from_the_beginning(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow()
    shop.go()
    shop.lake.drop_table(shop.table)
    shop.upsert((2, DAY, 20))
    shop.go()
    assert rows_of(shop.made, "id") == [(1,), (2,)]


def test_an_append_table_that_has_rows_is_not_filled_once_more(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    plain = f"{{orders: {shop.orders.name}}}"
    shop.follow("SELECT id, dt, amount FROM orders", reads=plain, write="{mode: append}", primary_key="")
    shop.go()
    shop.follow(write="{mode: append}", primary_key="")
    assert shop.ingest().facts["error"]["kind"] == "position_lost"
    shop.go("--full")
    assert rows_of(shop.made, "id") == [(1,)]


# Partitions from changes


def test_a_correction_of_an_earlier_day_mends_that_day_alone(shop: Shop) -> None:
    shop.upsert((1, BEFORE, 10), (2, DAY, 20))
    shop.follow_days()
    shop.go(partition=DAY)
    assert revenue(shop) == {BEFORE: (1, 10), DAY: (1, 20)}
    shop.upsert((1, BEFORE, 11))
    shop.go(partition=DAY)
    assert revenue(shop) == {BEFORE: (1, 11), DAY: (1, 20)}
    touched = [each.values["dt"].isoformat() for each in shop.made.touched_partitions()]
    assert (touched, shop.position) == ([BEFORE], 2)


def test_a_day_that_has_no_rows_any_more_goes(shop: Shop) -> None:
    shop.upsert((1, BEFORE, 10), (2, DAY, 20))
    shop.follow_days()
    shop.go(partition=DAY)
    shop.orders.delete("id = 1")
    shop.go(partition=DAY)
    assert revenue(shop) == {DAY: (1, 20)}


def _check_days_not_cut(shop: Shop, kind: str, query: str) -> None:
    """Where what is read is not cut by the column its rows tell, as they were and as they are."""
    name = f"{shop.orders.name}_plain"
    shop.orders = shop.lake.create_table(name, f"id BIGINT, dt {kind}, amount BIGINT", primary_key=["id"])
    late, early = ("2026-11-17 23:30:00", "2026-11-18 00:30:00") if kind == "TIMESTAMP" else (BEFORE, DAY)

    def upsert(*rows: tuple[int, str | None, int]) -> None:
        moments = [None if row[1] is None else datetime.fromisoformat(row[1]).replace(tzinfo=UTC) for row in rows]
        days = [moment and moment.date() for moment in moments]
        dt = pa.array(moments, pa.timestamp("us", "UTC")) if kind == "TIMESTAMP" else pa.array(days, pa.date32())
        shop.orders.upsert(pa.table({"id": [row[0] for row in rows], "dt": dt, "amount": [row[2] for row in rows]}))

    shop.follow_days(query)
    upsert((1, late, 10), (2, early, 20), (3, None, 5))
    shop.go(partition=DAY)
    assert revenue(shop) == {BEFORE: (1, 10), DAY: (1, 20), "None": (1, 5)}
    upsert((1, early, 10), (3, None, 6))
    shop.go(partition=DAY)
    assert revenue(shop) == {DAY: (2, 30), "None": (1, 6)}


_BY_DAY = _REVENUE.replace("FROM orders", "FROM (SELECT to_date(dt) AS dt, amount FROM orders) days")


@pytest.mark.parametrize(("kind", "query"), [("TIMESTAMP", _BY_DAY), ("DATE", _REVENUE)])
def test_days_are_told_by_rows_too(shop: Shop, kind: str, query: str) -> None:
    _check_days_not_cut(shop, kind, query)


def test_days_are_told_by_rows_on_spark(spark_shop: Shop) -> None:
    _check_days_not_cut(spark_shop, "DATE", _REVENUE)


def test_rows_of_partitions_that_are_not_made_are_refused(shop: Shop) -> None:
    shop.upsert((1, BEFORE, 10))
    shop.follow_days("SELECT date_add(dt, 1) AS dt, 1 AS orders, amount AS revenue FROM orders")
    shop.go(partition=DAY)
    shop.upsert((2, BEFORE, 10))
    assert shop.ingest(partition=DAY).facts["error"]["kind"] == "row_outside_partition"


def test_what_is_read_has_to_tell_the_partition(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow_days("SELECT dt AS at, 1 AS n FROM orders")
    text = shop.spec.read_text()
    shop.spec.write_text(
        text.replace("[dt]", "[at]")
        .replace("column: dt", "column: at")
        .replace("dt DATE, orders BIGINT, revenue", "at DATE, n")
    )
    shop.go(partition=DAY)  # the first run reads everything
    shop.upsert((2, DAY, 10))
    assert shop.ingest(partition=DAY).facts["error"]["kind"] == "no_partition_column"


def _backfill(shop: Shop, *keys: str) -> Ran:
    made = [f"--make={shop.table}={key}" for key in keys]
    shop._runs += 1
    return shop._run("backfill", f"--spec={shop.spec}", *made, f"--idempotency-key=backfill{shop._runs}:1")


def test_a_backfill_of_a_partition_does_not_move_the_position(shop: Shop) -> None:
    shop.upsert((1, BEFORE, 10), (2, DAY, 20))
    shop.follow_days()
    shop.go(partition=DAY)
    shop.upsert((1, BEFORE, 11), (2, DAY, 21))
    made = _backfill(shop, BEFORE)
    assert shop.publish(made.facts["staged"][0]["commit"]).code == 0
    assert (revenue(shop), shop.position) == ({BEFORE: (1, 11), DAY: (1, 20)}, 1)
    shop.go(partition=DAY)
    assert (revenue(shop), shop.position) == ({BEFORE: (1, 11), DAY: (1, 21)}, 2)


def test_a_table_that_is_added_to_is_not_backfilled(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(write="{mode: append}", primary_key="")
    shop.go()
    assert _backfill(shop, "all").facts["error"]["kind"] == "appended_already"


def _stale(shop: Shop) -> list[str]:
    detail = look_at_table(shop.lake.runtime, shop.table, [load_spec(shop.spec)])
    return [each.partition for each in detail.partitions if each.standing is not Standing.PUBLISHED]


def test_what_a_run_about_another_partition_has_mended_is_not_stale(shop: Shop) -> None:
    shop.upsert((1, BEFORE, 10), (2, DAY, 20))
    shop.follow_days(schedule=f"{{after: [{shop.orders.name}]}}")
    shop.go(partition=DAY)
    assert _stale(shop) == []
    shop.upsert((1, BEFORE, 11))
    assert _stale(shop) == [BEFORE]
    shop.go(partition=DAY)
    assert _stale(shop) == []


def test_a_property_of_that_name_that_somebody_else_gave_says_nothing(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    for text in ("lots", "[1]", '[{"view": "orders"}]', "{}"):
        staged = shop.orders.stage_upsert(orders((2, DAY, 20)), properties={"changes": text})
        assert staged.publish().properties["changes"] == text


def test_a_table_that_is_made_from_scratch_meanwhile_is_not_filled_by_what_was_read_before(shop: Shop) -> None:
    shop.upsert((1, DAY, 10))
    shop.follow(write="{mode: append}", primary_key="")
    shop.go()
    shop.upsert((2, DAY, 20))
    staged = shop.ingest(key="work:1").facts["commit"]
    shop.go("--full")
    assert shop.publish(staged).facts["error"]["kind"] == "consumer_moved"
    assert shop.ingest(key="work:1").facts["outcome"] == "empty"
    assert rows_of(shop.made, "id") == [(1,), (2,)]
