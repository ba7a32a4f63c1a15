"""What jobs read: files of each format, as they are or filtered, and queries."""

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Table
from lakelib.work.spark.write import write_frame
from tests.jobs.conftest import NewTable, RunJob, rows_of

DAY, NEXT = date(2026, 11, 18), date(2026, 11, 19)
MOMENT = datetime(2026, 11, 18, 10, tzinfo=UTC)
ORDERS = [(1, DAY, Decimal("19.90"), "Ann", MOMENT), (2, NEXT, Decimal("5.00"), None, None)]

CSV = "id,dt,amount,name,at\n1,2026-11-18,19.90,Ann,2026-11-18 10:00:00\n2,2026-11-19,5.00,,\n"
JSON = (
    '{"id": 1, "dt": "2026-11-18", "amount": 19.90, "name": "Ann", "at": "2026-11-18T10:00:00Z"}\n'
    '{"id": 2, "dt": "2026-11-19", "amount": 5}\n'
)


def orders() -> pa.Table:
    columns = list(zip(*ORDERS, strict=True))
    kinds = {
        "id": pa.int64(),
        "dt": pa.date32(),
        "amount": pa.decimal128(10, 2),
        "name": pa.string(),
        "at": pa.timestamp("us", "UTC"),
    }
    return pa.table({name: pa.array(values, kind) for (name, kind), values in zip(kinds.items(), columns, strict=True)})


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """The same two orders in each format."""
    pq.write_table(orders(), tmp_path / "orders.parquet")
    (tmp_path / "orders.csv").write_text(CSV)
    (tmp_path / "orders.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "orders.json").write_text(JSON)
    return tmp_path


_FORMATS = [
    ("parquet", "orders.parquet", ()),
    ("csv", "orders.csv", ("--option", "header=true")),
    ("csv", "orders.csv.gz", ("--option", "header=true")),
    ("json", "orders.json", ()),
]


@pytest.mark.parametrize(("format", "name", "options"), _FORMATS)
def test_files_of_each_format_give_the_same_rows(
    format: str, name: str, options: tuple[str, ...], landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    table = new_table()
    ran = run_job("upsert", table.name, "--format", format, "--path", landing / name, *options)
    assert (ran.code, ran.facts["rows_in"], ran.facts["partitions"]) == (0, 2, 2)
    assert rows_of(table) == ORDERS


@pytest.mark.parametrize(("format", "name", "options"), _FORMATS)
def test_a_condition_keeps_the_rows_for_which_it_is_true(
    format: str, name: str, options: tuple[str, ...], landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    table = new_table()
    ran = run_job("append", table.name, "--format", format, "--path", landing / name, "--where", "amount > 6", *options)
    assert ran.code == 0
    assert rows_of(table) == ORDERS[:1]


@pytest.mark.parametrize(("format", "name", "options"), [_FORMATS[1], _FORMATS[3]])
def test_what_only_sparks_reader_can_do_gives_the_same_rows(
    format: str, name: str, options: tuple[str, ...], landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    table = new_table()
    ddl = "id BIGINT, dt DATE, amount DECIMAL(10,2), name STRING, at TIMESTAMP"
    path = ("--format", format, "--path", landing / name, "--schema", ddl, *options)
    ran = run_job("append", table.name, *path, "--option", "ignoreLeadingWhiteSpace=true")
    assert ran.code == 0
    assert rows_of(table) == ORDERS


def test_named_columns_are_all_that_is_taken(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    assert run_job("upsert", table.name, "--path", landing / "orders.parquet", "--columns", "ID, dt").code == 0
    assert rows_of(table, "id", "amount") == [(1, None), (2, None)]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_what_other_columns_hold_does_not_matter(
    format: str, landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    (landing / "x.csv").write_text("id,dt,amount,more\n1,2026-11-18,much,1\n")
    (landing / "x.json").write_text('{"id": 1, "dt": "2026-11-18", "amount": "much", "more": 1}\n')
    table = new_table()
    path = ("--format", format, "--path", landing / f"x.{format}", "--option", "header=true")
    assert run_job("append", table.name, *path, "--columns", "dt,id").code == 0
    assert rows_of(table, "id", "dt", "amount") == [(1, DAY, None)]


def test_a_schema_in_ddl_says_names_and_types(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table("c0 INT, c1 DATE, c2 DOUBLE", buckets=None)
    (landing / "plain.csv").write_text("c0;c2\n7;1.5\n")
    options = ("--option", "header=true", "--option", "sep=;")
    arguments = ("--format", "csv", "--path", landing / "plain.csv", "--schema", "c0 INT, c1 DATE, c2 FLOAT")
    assert run_job("append", table.name, *arguments, *options).code == 0
    assert rows_of(table) == [(7, None, 1.5)]


def test_folders_and_patterns_mean_the_files_in_them(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    for place, number in (
        ("a/1.parquet", 1),
        ("a/2.parquet", 2),
        ("b/3.parquet", 3),
        ("a/_SUCCESS", 4),
        ("c/5.txt", 5),
    ):
        (landing / place).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [number], "dt": [DAY]}), landing / place)
    table = new_table()
    assert run_job("append", table.name, "--path", landing / "a", landing / "{b,c}" / "*.parquet").code == 0
    assert rows_of(table, "id") == [(1,), (2,), (3,)]


def test_folders_that_say_values_give_columns(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    for day, number in (("2026-11-18", 1), ("2026-11-19", 2), ("__HIVE_DEFAULT_PARTITION__", 3)):
        (landing / "in" / f"dt={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), landing / "in" / f"dt={day}" / "0.parquet")
    table = new_table()
    assert run_job("append", table.name, "--path", landing / "in").code == 0
    assert rows_of(table, "id", "dt") == [(1, DAY), (2, NEXT), (3, None)]


def test_later_files_may_have_other_columns_and_orders(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    pq.write_table(pa.table({"id": [1], "dt": [DAY], "name": ["Ann"]}), landing / "x1.parquet")
    pq.write_table(pa.table({"DT": [DAY], "id": pa.array([2], pa.int32())}), landing / "x2.parquet")
    table = new_table()
    assert run_job("append", table.name, "--path", landing / "x*.parquet").code == 0
    assert rows_of(table, "id", "name") == [(1, "Ann"), (2, None)]


def test_of_two_rows_of_a_key_the_later_files_is_kept(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    for number in range(6):
        pq.write_table(pa.table({"id": [1], "dt": [DAY], "name": [f"v{number}"]}), landing / f"x{number}.parquet")
    table = new_table()
    assert run_job("upsert", table.name, "--path", landing / "x*.parquet").code == 0
    assert rows_of(table, "name") == [("v5",)]


def test_a_large_file_is_cut_at_row_groups_and_every_row_arrives_once(
    landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    count = 20_000
    _write_many(landing / "large.parquet", count)
    table = new_table()
    ran = run_job("upsert", table.name, "--path", landing / "large.parquet")
    assert (ran.code, ran.facts["rows_in"], ran.facts["files_added"]) == (0, count, 2)  # of two tasks
    assert rows_of(table, "id", "name") == sorted(((n, f"n{n}") for n in range(count)), key=repr)


def test_shuffled_rows_of_files_arrive_once_too(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    count = 20_000
    _write_many(landing / "large.parquet", count)
    table = new_table()
    ran = run_job("upsert", table.name, "--path", landing / "large.parquet", "--distribution", "hash")
    assert (ran.code, ran.facts["rows_in"]) == (0, count)
    assert rows_of(table, "id", "name") == sorted(((n, f"n{n}") for n in range(count)), key=repr)


def _write_many(path: Path, count: int) -> None:
    rows = pa.table({"id": range(count), "dt": [DAY] * count, "name": [f"n{number}" for number in range(count)]})
    pq.write_table(rows, path, row_group_size=1000)


def test_columns_that_order_duplicates_are_not_stored(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    for number, version in enumerate((5, 9, 7)):
        rows = pa.table({"id": [1], "dt": [DAY], "name": [f"v{version}"], "version": [version]})
        pq.write_table(rows, landing / f"x{number}.parquet")
    table = new_table()
    assert run_job("upsert", table.name, "--path", landing / "x*.parquet", "--aux-order", "version").code == 0
    assert rows_of(table, "name") == [("v9",)]
    assert "version" not in table.schema.names


def test_overwrite_replaces_just_the_partition_named(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    table.append(orders())
    pq.write_table(pa.table({"id": [9]}), landing / "x.parquet")
    ran = run_job("overwrite", table.name, "--path", landing / "x.parquet", "--partitions", "dt=2026-11-18")
    assert (ran.code, ran.facts["files_removed"]) == (0, 1)
    assert rows_of(table, "id", "dt") == [(2, NEXT), (9, DAY)]


def test_a_query_over_a_table_of_the_lake_is_written_to_another(
    landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    source = new_table()
    first = source.append(orders())
    source.upsert(pa.table({"id": [3], "dt": [NEXT], "amount": [Decimal("7.00")]}))
    daily = new_table("dt DATE, count BIGINT, total DECIMAL(20,2)", primary_key=["dt"])
    query = landing / "daily.sql"
    query.write_text("SELECT dt, count(*) AS count, sum(amount) AS total FROM orders GROUP BY dt")
    view = ("--lake-view", f"orders={source.name}", "--sql-file", query)
    assert run_job("sql", "--into", daily.name, "--mode", "overwrite", *view).code == 0
    assert rows_of(daily) == [(DAY, 1, Decimal("19.90")), (NEXT, 2, Decimal("12.00"))]
    earlier = ("--lake-view", f"orders={source.name}@{first.id}", "--sql-file", query)
    assert run_job("upsert", daily.name, *earlier).code == 0
    assert rows_of(daily) == [(DAY, 1, Decimal("19.90")), (NEXT, 1, Decimal("5.00"))]


def test_a_query_joins_files_and_tables_and_leaves_no_view(
    landing: Path, new_table: NewTable, run_job: RunJob, spark: Any
) -> None:
    table = new_table()
    table.append(orders())
    (landing / "names.csv").write_text("id,alias\n1,Nan\n")
    ran = run_job(
        "sql", "--into", table.name, "--mode", "upsert", "--option", "header=true",
        "--view", f"names=csv:{landing / 'names.csv'}", "--lake-view", f"t={table.name}",
        "--sql", "SELECT t.id, t.dt, names.alias AS name FROM t JOIN names ON t.id = names.id",
    )  # fmt: skip
    assert ran.code == 0
    assert rows_of(table, "id", "name") == [(1, "Nan"), (2, None)]
    assert not spark.catalog.tableExists("names")
    assert not spark.catalog.tableExists("t")


def test_json_may_have_a_column_later_than_in_its_first_lines(
    landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    (landing / "1.json").write_text('{"id": 1, "dt": "2026-11-18"}\n')
    (landing / "2.json").write_text('{"id": 2, "dt": null, "name": "Ben"}\n')
    table = new_table()
    assert run_job("append", table.name, "--format", "json", "--path", landing / "[12].json").code == 0
    assert rows_of(table, "id", "name") == [(1, None), (2, "Ben")]


def _wrong(landing: Path, name: str) -> tuple[str, ...]:
    """One wrong file after a good one, and how to read them."""
    if name.endswith(".parquet"):
        pq.write_table(orders(), landing / "a-good.parquet")
        return ("--path", str(landing / "a-good.parquet"), str(landing / name))
    if name.endswith(".csv"):
        return (
            "--format",
            "csv",
            "--option",
            "header=true",
            "--path",
            str(landing / "orders.csv"),
            str(landing / name),
        )
    return ("--format", "json", "--path", str(landing / "orders.json"), str(landing / name))


def _lacking(table: pa.Table, path: Path) -> None:
    pq.write_table(table.drop_columns(["id"]), path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.parquet", b"PAR1 is no Parquet PAR1", ["cannot be read as Parquet"]),
        ("x.parquet", lambda path: _lacking(orders(), path), ["'id' is missing"]),
        (
            "x.parquet",
            lambda path: pq.write_table(orders().drop_columns(["dt"]), path),
            ["column 'dt' is missing"],
        ),
        (
            "x.parquet",
            lambda path: pq.write_table(orders().set_column(0, "id", pa.array([5, None])), path),
            ["'id' is NULL in row 1", "dt = datetime.date(2026, 11, 19)"],
        ),
        ("x.csv", CSV.replace("5.00", "5.005").encode(), ["'amount', line 3", "'5.005'", "id = '2'"]),
        ("x.csv", CSV.replace("5.00,", "").encode(), ["cannot be read as CSV: line 3", "Expected 5 columns, got 4"]),
        ("x.json", JSON.replace("2026-11-19", "tomorrow").encode(), ["'dt', line 2", "'tomorrow'", "id = 2"]),
        ("x.json", JSON.replace("5}", '"five"}').encode(), ["line 2", '"amount": "five"']),
        ("x.json", JSON.replace('"amount": 5', '"price": 5').encode(), ["no column 'price'"]),
        ("x.json", JSON.replace("5}", "5").encode(), ["line 2", '"amount": 5']),
    ],
)
def test_a_wrong_file_is_named_with_column_and_row_and_nothing_is_written(
    name: str, content: Any, said: list[str], landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    table = new_table()
    if callable(content):
        content(landing / name)
    else:
        (landing / name).write_bytes(content)
    ran = run_job("append", table.name, *_wrong(landing, name))
    assert (ran.code, ran.facts["error"]["family"]) == (3, "InvalidInputError")
    for words in [f"file://{landing / name}", *said]:
        assert words in ran.facts["error"]["message"]
    assert ran.facts["error"]["remedy"]
    assert table.head is None
    assert _stored(table) == []


def test_a_wrong_file_is_named_where_rows_are_shuffled_too(landing: Path, new_table: NewTable, run_job: RunJob) -> None:
    table = new_table()
    (landing / "x.csv").write_text(CSV.replace("5.00", "5.005"))
    ran = run_job("append", table.name, *_wrong(landing, "x.csv"), "--distribution", "hash")
    assert (ran.code, ran.facts["error"]["family"]) == (3, "InvalidInputError")
    assert f"file://{landing / 'x.csv'}: Column 'amount', line 3" in ran.facts["error"]["message"]
    assert table.head is None


def _stored(table: Table) -> list[Path]:
    return [path for path in Path(table.location.removeprefix("file://")).rglob("*") if path.is_file()]


def test_files_of_sparks_own_reader_that_change_meanwhile_are_for_another_try(
    landing: Path, new_table: NewTable, run_job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table()
    (landing / "in").mkdir()
    (landing / "in" / "1.csv").write_text(CSV)

    def late(*arguments: Any) -> Any:
        written = write_frame(*arguments)
        (landing / "in" / "2.csv").write_text(CSV)
        return written

    monkeypatch.setattr("lakelib.work.spark.frames.write_frame", late)
    options = ("--option", "header=true", "--option", "ignoreLeadingWhiteSpace=true", "--schema")
    columns = "id BIGINT, dt DATE, amount DECIMAL(10,2), name STRING, at TIMESTAMP"
    ran = run_job("append", table.name, "--format", "csv", "--path", landing / "in", *options, columns)
    assert (ran.code, ran.facts["error"]["kind"]) == (7, "source_changed")
    assert "2.csv has come" in ran.facts["error"]["message"]
    assert (table.head, _stored(table)) == (None, [])


def test_a_condition_is_about_the_rows_that_would_be_taken_without_it(
    landing: Path, new_table: NewTable, run_job: RunJob
) -> None:
    """Of files with other columns and types, too: a condition changes nothing but which rows are taken."""
    pq.write_table(pa.table({"id": [1, 2], "dt": [DAY, DAY]}), landing / "x1.parquet")
    pq.write_table(pa.table({"ID": pa.array([3, 4], pa.int32()), "name": ["c", "d"]}), landing / "x2.parquet")
    path = ("--path", landing / "x*.parquet", "--where", "id <> 4", "--partitions")
    table = new_table()
    assert run_job("overwrite", table.name, *path, "dt=2026-11-18").code == 0
    assert rows_of(table, "id", "dt", "name") == [(1, DAY, None), (2, DAY, None), (3, DAY, "c")]
    refused = run_job("overwrite", table.name, *path, "dynamic")
    assert (refused.code, refused.facts["error"]["kind"]) == (3, "missing_column")
