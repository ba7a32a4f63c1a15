"""How tables are doing: as it was told by what runs have left in a real catalog, and by the specs."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, NotFoundError, Snapshot, StagedCommit, Table
from lakelib.model.status import PartitionStatus, TableStatus
from lakelib.ops.status import list_commits_about, list_judged, list_quarantine, look, look_at_table
from lakelib.ops.status_look import Memory
from lakelib.specs.table_spec import TableSpec, load_spec

D1, D2, D3 = (date(2026, 11, day) for day in (12, 13, 14))
_GATE = (
    "name: positive\nexpectations:\n- {type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}"
)


@pytest.fixture
def orders(lake: Lake) -> Table:
    return lake.create_table(
        "shop.orders", "id BIGINT, dt DATE, amount BIGINT", primary_key=["id"], partition_by=["dt"]
    )


@pytest.fixture
def revenue(lake: Lake) -> Table:
    return lake.create_table("shop.revenue", "dt DATE, amount BIGINT", partition_by=["dt"])


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], Path]:
    """A suite of one check, that no amount is below zero."""

    def write(severity: str) -> Path:
        path = tmp_path / "positive.yaml"
        path.write_text(f"{_GATE}, severity: {severity}}}\n")
        return path

    return write


def rows(*days: date, amount: int = 5, first: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([first + 100 * day.day for day in days], pa.int64()),
            "dt": pa.array(days, pa.date32()),
            "amount": pa.array([amount] * len(days), pa.int64()),
        }
    )


def about(day: date | str, every: str = "day dt", **reads: int) -> dict[str, str]:
    """What an ingest run says of its commit."""
    read = {f"reads.shop.{table}": str(snapshot) for table, snapshot in reads.items()}
    return {"partition": str(day), "partition_by": every, **read}


def ran(orders: Table, day: date, *others: date, amount: int = 5) -> Snapshot:
    """A run about a day that brings rows of it, and corrections of others."""
    return orders.upsert(rows(day, *others, amount=amount), properties=about(day))


def followed(made: Table, day: date, **reads: int) -> Snapshot:
    """A run about a day of a table that is made from others."""
    data = rows(day).select(["dt", "amount"])
    return made.overwrite(data, partitions={"dt": day.isoformat()}, properties=about(day, **reads))


def staged(orders: Table, day: date, amount: int = 5) -> StagedCommit:
    return orders.stage_upsert(rows(day, amount=amount), properties=about(day))


def status_of(lake: Lake, table: Table | str, specs: Iterable[TableSpec] = ()) -> TableStatus:
    name = table if isinstance(table, str) else table.name
    return {each.table: each for each in look(lake.runtime, specs).tables}[name]


def days_of(lake: Lake, table: Table | str, specs: Iterable[TableSpec] = ()) -> dict[str, str]:
    """The standing of each partition."""
    return {key: each.standing.value for key, each in detailed(lake, table, specs).items()}


def detailed(lake: Lake, table: Table | str, specs: Iterable[TableSpec] = ()) -> dict[str, PartitionStatus]:
    name = table if isinstance(table, str) else table.name
    return {each.partition: each for each in look_at_table(lake.runtime, name, specs).partitions}


def spec_of(folder: Path, table: str, **fields: str) -> TableSpec:
    """A spec of a table of days, with other fields as YAML."""
    said = {
        "columns": "id BIGINT, dt DATE, amount BIGINT",
        "primary_key": "[id]",
        "partition_by": "[dt]",
        "partition": "{column: dt, every: day}",
        "source": "{format: json, path: '/in/{partition}/*.json', arrival: {timeout: 1s}}",
        "spark": "{timeout: 1s}",
        **fields,
    }
    path = folder / f"{table}.yaml"
    path.write_text("\n".join([f"table: {table}", *(f"{name}: {text}" for name, text in said.items() if text)]))
    return load_spec(path)


# What a table holds


def test_a_lake_without_tables_has_no_status(lake: Lake) -> None:
    assert look(lake.runtime).tables == ()


def test_a_table_tells_its_head_its_age_and_what_it_holds(lake: Lake, orders: Table) -> None:
    before = status_of(lake, orders)
    assert (before.snapshot, before.committed_at, before.files, before.stored_rows) == (None, None, 0, 0)
    ran(orders, D1)
    head = ran(orders, D2, D1)
    found = status_of(lake, orders)
    assert (found.snapshot, found.committed_at) == (2, head.committed_at)
    assert (found.partitions, found.stored_rows, found.troubles, found.waiting) == (2, 3, {}, ())


def test_compaction_debt_is_what_a_compaction_works_on(lake: Lake, orders: Table) -> None:
    for _ in range(5):
        ran(orders, D1)
    ran(orders, D2)
    found = status_of(lake, orders)
    assert (found.partitions_due, found.most_runs) == (1, 5)
    assert orders.compact().partitions == found.partitions_due
    after = status_of(lake, orders)
    assert (after.partitions_due, after.most_runs) == (0, 1)


def test_a_lake_of_many_tables_takes_no_more_statements_than_one_of_few(lake: Lake) -> None:
    def statements() -> int:
        asked = []
        catalog = lake.runtime.catalog
        whole = catalog._run
        catalog._run = lambda work, **how: (asked.append(work), whole(work, **how))[1]  # type: ignore[method-assign]
        try:
            look(lake.runtime)
        finally:
            catalog._run = whole  # type: ignore[method-assign]
        return len(asked)

    def make(number: int) -> None:
        table = lake.create_table(f"shop.t{number}", "id BIGINT, dt DATE, amount BIGINT", primary_key=["id"])
        table.upsert(rows(D1), properties=about("all", "none"))

    make(0)
    few = statements()
    for number in range(1, 8):
        make(number)
    assert statements() == few < 10


def test_who_looks_again_sees_what_has_changed_since(lake: Lake, orders: Table, revenue: Table) -> None:
    memory = Memory()
    followed(revenue, D1, orders=ran(orders, D1).id)
    assert [each.troubles for each in look(lake.runtime, (), memory).tables] == [{}, {}]
    known = dict(memory.holdings)
    ran(orders, D2, D1)
    assert [each.troubles for each in look(lake.runtime, (), memory).tables] == [{}, {"stale": 1}]
    assert [memory.holdings[each] is known[each] for each in known] == [False, True]
    lake.drop_table("shop.orders")
    assert len(look(lake.runtime, (), memory).tables) == len(memory.holdings) == 1


# Stale


def test_a_late_correction_makes_what_was_made_of_that_day_stale(lake: Lake, orders: Table, revenue: Table) -> None:
    for day in (D1, D2):
        followed(revenue, day, orders=ran(orders, day).id)
    assert days_of(lake, revenue) == {str(D1): "published", str(D2): "published"}
    correction = ran(orders, D3, D2)
    assert days_of(lake, revenue) == {str(D1): "published", str(D2): "stale"}
    found = detailed(lake, revenue)[str(D2)]
    assert found.why == "made from shop.orders at snapshot 2, which snapshot 3 has changed since"
    assert [status_of(lake, table).is_stale for table in (revenue, orders)] == [True, False]
    followed(revenue, D2, orders=correction.id)
    assert days_of(lake, revenue) == {str(D1): "published", str(D2): "published"}


def test_a_run_that_reads_an_older_snapshot_leaves_the_day_stale(lake: Lake, orders: Table, revenue: Table) -> None:
    first = ran(orders, D1)
    ran(orders, D2, D1)
    followed(revenue, D1, orders=first.id)
    assert days_of(lake, revenue) == {str(D1): "stale"}


def test_a_compaction_changes_nothing(lake: Lake, orders: Table, revenue: Table) -> None:
    for _ in range(5):
        head = ran(orders, D1)
    followed(revenue, D1, orders=head.id)
    assert orders.compact().snapshot is not None
    assert days_of(lake, revenue) == {str(D1): "published"}


def test_rows_that_were_deleted_since_make_a_day_stale(lake: Lake, orders: Table, revenue: Table) -> None:
    for day in (D1, D2):
        followed(revenue, day, orders=ran(orders, day).id)
    orders.delete(f"dt = '{D1}'")
    assert days_of(lake, revenue) == {str(D1): "stale", str(D2): "published"}


def test_days_belong_to_their_month(lake: Lake, orders: Table) -> None:
    monthly = lake.create_table("shop.monthly", "month DATE, amount BIGINT", partition_by=["month"])
    seen = ran(orders, D1).id
    data = pa.table({"month": pa.array([date(2026, 11, 1)], pa.date32()), "amount": pa.array([1], pa.int64())})
    monthly.append(data, properties=about("2026-11", "month month", orders=seen))
    ran(orders, date(2026, 12, 1))
    assert days_of(lake, monthly) == {"2026-11": "published"}
    ran(orders, D2)
    assert days_of(lake, monthly) == {"2026-11": "stale"}


def test_a_table_that_is_not_cut_by_time_is_behind_any_change(lake: Lake, orders: Table) -> None:
    total = lake.create_table("shop.total", "amount BIGINT")
    total.append(rows(D1).select(["amount"]), properties=about("all", "none", orders=ran(orders, D1).id))
    assert days_of(lake, total) == {"all": "published"}
    ran(orders, D2)
    assert days_of(lake, total) == {"all": "stale"}


def test_what_a_day_was_looked_up_in_makes_it_not_stale(lake: Lake, revenue: Table) -> None:
    customers = lake.create_table("shop.customers", "id BIGINT, amount BIGINT", primary_key=["id"])
    copy = rows(D1).select(["id", "amount"])
    seen = customers.upsert(copy, properties=about("all", "none")).id
    followed(revenue, D1, customers=seen)
    customers.overwrite(copy, properties=about("all", "none"))
    assert days_of(lake, revenue) == {str(D1): "published"}


def test_a_table_that_no_runs_fill_goes_by_its_column_of_the_same_name(
    lake: Lake, orders: Table, revenue: Table
) -> None:
    followed(revenue, D1, orders=orders.upsert(rows(D1)).id)
    orders.upsert(rows(D2))
    assert days_of(lake, revenue) == {str(D1): "published"}
    orders.upsert(rows(D1, amount=6))
    assert days_of(lake, revenue) == {str(D1): "stale"}


def test_a_table_that_reads_itself_is_not_behind_itself(lake: Lake, revenue: Table) -> None:
    followed(revenue, D1, revenue=0)
    followed(revenue, D1, revenue=1)
    assert days_of(lake, revenue) == {str(D1): "published"}


def test_the_time_may_stand_at_any_place_of_the_partitions_keys(lake: Lake, revenue: Table) -> None:
    regional = lake.create_table(
        "shop.regional", "region STRING, dt DATE, amount BIGINT", partition_by=["region", "dt"]
    )

    def write(day: date) -> int:
        data = rows(day).select(["dt", "amount"]).append_column("region", pa.array(["north"]))
        return regional.append(data, properties=about(day)).id

    followed(revenue, D1, regional=write(D1))
    write(D2)
    assert days_of(lake, revenue) == {str(D1): "published"}
    write(D1)
    assert days_of(lake, revenue) == {str(D1): "stale"}


def test_what_a_commit_calls_its_partition_may_be_no_key(lake: Lake, orders: Table, revenue: Table) -> None:
    """Anybody may give a commit such a property."""
    followed(revenue, D1, orders=ran(orders, D1).id)
    orders.upsert(rows(D2), properties=about("the second week"))
    orders.stage_upsert(rows(D2), properties=about("soon"))
    found = days_of(lake, orders)
    assert found == {str(D1): "published", str(D2): "published", "soon": "waiting", "the second week": "published"}
    assert days_of(lake, revenue) == {str(D1): "published"}
    total = lake.create_table("shop.total", "amount BIGINT")
    total.append(rows(D1).select(["amount"]), properties=about("all", "none", orders=3))
    assert days_of(lake, total) == {"all": "published"}


# Waiting


def test_a_commit_that_nobody_has_decided_on_waits(lake: Lake, orders: Table, gate: Callable[[str], Path]) -> None:
    ran(orders, D1)
    commit = staged(orders, D2, amount=-1)
    assert detailed(lake, orders)[str(D2)].why == "a commit is staged: no gate has judged it yet"
    commit.judge(gate("critical"))
    found = detailed(lake, orders)[str(D2)]
    assert (found.standing.value, found.commit, found.outcome, found.snapshot) == ("waiting", commit.id, "reject", None)
    told = status_of(lake, orders)
    assert (told.troubles, [each.id for each in told.waiting]) == ({"waiting": 1}, [commit.id])
    commit.publish(by="ann", reason="refunds")
    after = detailed(lake, orders)[str(D2)]
    assert (after.standing.value, after.snapshot) == ("warned", 2)
    assert after.why == "its gate said reject; ann published it: refunds"
    assert status_of(lake, orders).troubles == {}


def test_a_correction_that_waits_makes_a_published_day_wait(lake: Lake, orders: Table) -> None:
    ran(orders, D1)
    staged(orders, D1).reject("a delivery of the wrong day")
    found = detailed(lake, orders)[str(D1)]
    assert (found.standing.value, found.snapshot) == ("waiting", 1)
    assert found.why == "a commit is rejected: a delivery of the wrong day"


def test_what_was_done_anew_and_published_waits_no_more(lake: Lake, orders: Table) -> None:
    commit = staged(orders, D1)
    commit.reject("wrong")
    ran(orders, D1)
    assert days_of(lake, orders) == {str(D1): "published"}
    assert status_of(lake, orders).waiting == ()
    assert [each.id for each in list_quarantine(lake.runtime)] == [commit.id]


def test_a_commit_that_is_about_no_partition_waits_too(lake: Lake, orders: Table) -> None:
    commit = orders.stage_upsert(rows(D1))
    found = status_of(lake, orders)
    assert (found.troubles, [each.id for each in found.waiting]) == ({"waiting": 1}, [commit.id])


def test_a_warning_shows(lake: Lake, orders: Table, gate: Callable[[str], Path]) -> None:
    commit = staged(orders, D1, amount=-1)
    commit.judge(gate("warning"))
    commit.publish()
    found = detailed(lake, orders)[str(D1)]
    assert (found.standing.value, found.outcome, found.why) == ("warned", "warn", "its gate says warn")
    assert status_of(lake, orders).outcome == "warn"


# Decided against


def test_what_a_person_has_decided_against_waits_no_more_and_says_who_and_why(lake: Lake, orders: Table) -> None:
    commit = staged(orders, D1)
    commit.discard("ann", "half of it is missing")
    assert commit.state == "rejected"
    found = detailed(lake, orders)[str(D1)]
    assert (found.standing.value, found.why) == ("rejected", "ann decided against it: half of it is missing")
    told = status_of(lake, orders)
    assert (told.troubles, told.waiting) == ({"rejected": 1}, ())
    (listed,) = list_commits_about(lake.runtime, _info(lake, orders), str(D1))
    assert (listed.discarded_by, listed.discard_reason, listed.is_waiting) == ("ann", "half of it is missing", False)


def test_the_first_who_decides_against_a_commit_counts(lake: Lake, orders: Table) -> None:
    commit = staged(orders, D1)
    commit.reject("by its gate")
    commit.discard("ann", "yes")
    commit.discard("bob", "me too")
    (listed,) = list_quarantine(lake.runtime)
    assert (listed.discarded_by, listed.reason) == ("ann", "by its gate")
    commit.publish(by="ann", reason="it was right after all")
    assert days_of(lake, orders) == {str(D1): "warned"}


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("ann", " "), ("ann", "a\0b")])
def test_who_decides_against_a_commit_says_who_and_why(lake: Lake, orders: Table, by: str, reason: str) -> None:
    commit = staged(orders, D1)
    with pytest.raises(InvalidInputError):
        commit.discard(by, reason)
    assert commit.state == "staged"


def test_a_published_commit_cannot_be_decided_against(lake: Lake, orders: Table) -> None:
    commit = staged(orders, D1)
    commit.publish()
    with pytest.raises(ConflictError):
        commit.discard("ann", "too late")


def test_a_dropped_table_takes_what_was_decided_along(
    lake: Lake, orders: Table, connection: psycopg.Connection[Any]
) -> None:
    staged(orders, D1).discard("ann", "no")
    lake.drop_table("shop.orders")
    connection.execute("""update lake."table" set dropped_at = dropped_at - interval '2 days'""")
    for _ in range(2):
        lake.vacuum(grace=timedelta(0))
    assert connection.execute("""select count(*) from lake."table" """).fetchone() == (0,)


# Due


def test_a_day_that_is_due_is_late_as_long_as_a_run_may_wait_for_it(lake: Lake, orders: Table, tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    yesterday = today - timedelta(days=1)
    schedule = f"{{cron: '0 0 * * *', start: {today - timedelta(days=3)}, catchup: true}}"
    hasty = spec_of(tmp_path, "shop.orders", schedule=schedule)
    ran(orders, today - timedelta(days=2))
    expected = {
        str(today - timedelta(days=days)): word for days, word in ((3, "missing"), (2, "published"), (1, "missing"))
    }
    assert days_of(lake, orders, [hasty]) == expected
    source = "{format: json, path: '/in/{partition}/*.json', arrival: {timeout: 1d}}"
    patient = spec_of(tmp_path, "shop.orders", schedule=schedule, source=source)
    assert days_of(lake, orders, [patient]) == expected | {str(yesterday): "late"}
    assert status_of(lake, orders, [patient]).troubles == {"missing": 1, "late": 1}


def test_without_catchup_only_what_comes_after_the_first_run_is_due(lake: Lake, orders: Table, tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    spec = spec_of(tmp_path, "shop.orders", schedule="{cron: '0 0 * * *', start: 2020-01-01}")
    assert days_of(lake, orders, [spec]) == {str(today - timedelta(days=1)): "missing"}
    ran(orders, today - timedelta(days=3))
    assert list(days_of(lake, orders, [spec]).values()) == ["published", "missing", "missing"]


def test_rows_that_others_have_brought_do_not_make_a_day_that_never_ran(
    lake: Lake, orders: Table, tmp_path: Path
) -> None:
    today = datetime.now(UTC).date()
    yesterday, before = today - timedelta(days=1), today - timedelta(days=2)
    spec = spec_of(tmp_path, "shop.orders", schedule="{cron: '0 0 * * *'}")
    ran(orders, before, yesterday)
    found = detailed(lake, orders, [spec])
    assert [each.standing.value for each in found.values()] == ["published", "missing"]
    assert found[str(yesterday)].changed_by == 1


def test_a_table_that_comes_after_another_misses_what_that_has(
    lake: Lake, orders: Table, revenue: Table, tmp_path: Path
) -> None:
    (tmp_path / "revenue.sql").write_text("SELECT dt, sum(amount) AS amount FROM orders GROUP BY dt")
    made = {"transform": "revenue.sql", "reads": "{orders: shop.orders}", "write": "{mode: overwrite}"}
    fields = {"columns": "dt DATE, amount BIGINT", "primary_key": "", "source": "", "spark": ""}
    spec = spec_of(tmp_path, "shop.revenue", schedule="{after: [shop.orders]}", **made, **fields)
    followed(revenue, D1, orders=ran(orders, D1).id)
    ran(orders, D2)
    assert days_of(lake, revenue, [spec]) == {str(D1): "published", str(D2): "late"}


def test_a_full_copy_is_late_once_its_tick_has_passed(lake: Lake, tmp_path: Path, connection: Any) -> None:
    fields = {
        "columns": "id BIGINT",
        "partition_by": "",
        "partition": "",
        "source": "{path: /in/*.parquet, arrival: {timeout: 1s}}",
    }
    spec = spec_of(tmp_path, "shop.copies", schedule="{cron: '0 0 * * *'}", **fields)
    assert status_of(lake, "shop.copies", [spec]).snapshot is None
    assert days_of(lake, "shop.copies", [spec]) == {"all": "missing"}
    copies = lake.create_table("shop.copies", "id BIGINT", primary_key=["id"])
    copies.upsert(rows(D1).select(["id"]), properties=about("all", "none"))
    assert days_of(lake, copies, [spec]) == {"all": "published"}
    connection.execute("update lake.snapshot set committed_at = committed_at - interval '1 day'")
    assert days_of(lake, copies, [spec]) == {"all": "late"}


def test_a_table_that_neither_the_lake_nor_a_spec_has_is_not_there(lake: Lake) -> None:
    with pytest.raises(NotFoundError):
        look_at_table(lake.runtime, "shop.orders")


# What keeps snapshots from expiring


def test_what_holds_snapshots_back_is_what_an_expiry_says(lake: Lake, orders: Table, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "shop.orders", maintenance="{expire: {keep_last: 1, older_than: 0s}}")
    for day in (D1, D2, D3):
        ran(orders, day)
    assert status_of(lake, orders, [spec]).held_back == ()
    orders.tag("first", at=1)
    orders.tag("again", at=1)
    orders.tag("head")
    (held,) = status_of(lake, orders, [spec]).held_back
    assert (held.kind, held.holds, held.example, held.snapshots, held.first_id) == ("tag", 2, "again", 1, 1)
    kept_back = orders.expire(keep_last=1, older_than=timedelta(0), dry_run=True).kept_back
    assert [each.id for each in kept_back] == [1]
    never = spec_of(tmp_path, "shop.orders", maintenance="{expire: null}")
    assert status_of(lake, orders, [never]).held_back == ()


# Verdicts


def test_the_verdicts_tell_what_each_check_found(lake: Lake, orders: Table, gate: Callable[[str], Path]) -> None:
    first, second = staged(orders, D1, amount=-1), staged(orders, D2)
    for commit in (first, second):
        commit.judge(gate("critical"))
    second.publish()
    newest, oldest = list_judged(lake.runtime, _info(lake, orders))
    assert (newest.partition, newest.outcome, newest.snapshot) == (str(D2), "accept", 1)
    assert (oldest.partition, oldest.outcome, oldest.state) == (str(D1), "reject", "rejected")
    assert [(each.status, each.row_count, each.unexpected_count) for each in oldest.checks] == [("failed", 1, 1)]


def _info(lake: Lake, table: Table) -> Any:
    from lakelib.ops.create import find_table

    return find_table(lake.runtime, table.name)
