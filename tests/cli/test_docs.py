"""docs/cli.md: its examples run, and the fields that it names are those that there are."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.main import get_command

from lakelib import Lake
from lakelib.cli.command import Start
from lakelib.cli.main import make_app
from lakelib.errors import EXIT_CODES, OTHER_EXIT_CODE, USAGE_EXIT_CODE
from tests.cli.conftest import SCHEMA, Run, order_rows, write_suite
from tests.conftest import drop_database

_TEXT = Path(__file__).parents[2].joinpath("docs", "cli.md").read_text()
_EXAMPLES = re.findall(r"^    (lake .*)$", _TEXT, re.MULTILINE)
_ROW = re.compile(r"^\| (`[^|]+`) \| (.+) \|$", re.MULTILINE)
_NAMED = re.compile(r"`([a-z_]+)`")
_ON_SPARK = ("append", "upsert", "overwrite", "sql")
"""A session is there for these: to start one takes long."""


def write_spec(folder: Path) -> Path:
    path = folder / "table.yaml"
    source = "{format: csv, path: /spare}"
    path.write_text(f"table: shop.spare\ncolumns: id BIGINT\nsource: {source}\nwrite: {{mode: append}}\n")
    return path


def write_fed(folder: Path) -> Path:
    """A table that is filled from files, in process; and a day for it."""
    day = folder / "fed" / "2026-11-18"
    day.mkdir(parents=True)
    write_orders(day)
    (day / "_READY").touch()
    path = folder / "fed.yaml"
    columns = "columns: order_id BIGINT, dt DATE, customer STRING, amount DOUBLE\nprimary_key: [order_id]\n"
    days = "partition_by: [dt]\npartition: {column: dt, every: day}\nengine: local\n"
    source = f"source: {{format: csv, path: '{folder}/fed/{{partition}}/*.csv', options: {{header: 'true'}}}}\n"
    path.write_text(f"table: shop.fed\n{columns}{days}{source}")
    return path


def write_orders(folder: Path) -> Path:
    path = folder / "orders.csv"
    path.write_text("order_id,dt,customer,amount\n1,2026-11-18,eve,9.50\n2,2026-11-18,bob,20.00\n")
    return path


def write_parquet(folder: Path) -> Path:
    (folder / "parquet").mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "parquet" / "rows.parquet")
    return folder / "parquet"


@pytest.fixture(scope="module", autouse=True)
def ann(module_catalog_url: str) -> Iterator[None]:
    """A user of the database's server."""
    with psycopg.connect(module_catalog_url, autocommit=True) as admin:
        admin.execute("create role ann login")
        yield
        admin.execute("drop owned by ann; drop role ann")


@pytest.fixture(scope="module")
def names(
    lake: Lake, tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str], metastore: str
) -> Iterator[Mapping[str, str]]:
    """What the examples call by a name: tables, commits, an empty database, and a Hive metastore."""
    lake.create_table("shop.clicks", "id bigint", options={"delta": "head"}).append([{"id": 1}])
    orders = lake.create_table("shop.orders", SCHEMA, primary_key=["order_id"], partition_by=["dt"])
    orders.upsert(order_rows(30))
    orders.tag("first")
    orders.upsert(order_rows(30, 2))
    staged = {name: orders.stage_upsert(order_rows(3, 3)) for name in ("STAGED", "REJECTED", "OTHER", "JUDGED")}
    staged["REJECTED"].reject("looks odd")
    staged["JUDGED"].judge(write_suite(tmp_path_factory.mktemp("gate")))
    empty = make_database()
    yield {name: str(commit.id) for name, commit in staged.items()} | {"EMPTY": empty, "METASTORE": metastore}
    drop_database(empty)


def test_the_examples_run(run: Run, names: Mapping[str, str], spark: SparkSession, tmp_path: Path) -> None:
    write_suite(tmp_path)
    write_spec(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "landing").mkdir()
    write_orders(tmp_path / "landing")
    write_fed(tmp_path)
    check = "{type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}}"
    (tmp_path / "amounts.yaml").write_text(f"name: amounts\nexpectations: [{check}]\n")
    assert len(_EXAMPLES) > 30
    for example in _EXAMPLES:
        words = shlex.split(example.replace(" /tmp/", f" {tmp_path}/"))[1:]
        start = Start(spark=spark) if words[0] in _ON_SPARK else None
        ran = run(*(re.sub(r"\$(\w+)", lambda found: names[found[1]], word) for word in words), start=start)
        assert ran.code == 0, f"{example}: {ran.err}"


def test_every_command_has_an_example(run: Run) -> None:
    for group in ([], ["tag"], ["gate"], ["consumer"]):
        told = run(*group, "--help").out
        for name in re.findall(r"^│ ([a-z][a-z-]+) ", told, re.MULTILINE):
            words = " ".join(["lake", *group, name])
            assert any(example.startswith(words) for example in _EXAMPLES), words


def test_the_fields_in_json_are_those_that_are_named(
    run: Run, names: Mapping[str, str], tmp_path: Path, catalog_url: str, spark: SparkSession
) -> None:
    orders = "shop.orders"
    columns = "order_id BIGINT, dt DATE, customer STRING, amount DOUBLE"
    rows = write_orders(tmp_path)
    on_spark = ["shop.fields", "--format", "csv", "--option", "header=true", "--path", str(rows)]
    fed = ["--spec", str(write_fed(tmp_path))]
    commands: dict[str, list[str]] = {
        "status": ["status"],
        "status TABLE": ["status", orders],
        "namespaces": ["namespaces"],
        "tables": ["tables"],
        "describe": ["describe", orders],
        "history": ["history", orders],
        "partitions": ["partitions", orders],
        "files": ["files", orders, "--limit", "1"],
        "scan --count": ["scan", orders, "--count"],
        "explain": ["explain", orders],
        "changes --count": ["changes", orders, "--count"],
        "changes --explain": ["changes", orders, "--explain"],
        "create": ["create", "shop.fields", "--columns", columns, "--primary-key", "order_id"],
        "options": ["options", orders],
        "load": ["load", "shop.fields", str(write_orders(tmp_path))],
        "import": ["import", "shop.imported_fields", str(write_parquet(tmp_path)), "--from", "parquet"],
        "watch": ["watch", "shop.fields", "--after", "0", "--for", "0"],
        "delete": ["delete", orders, "--where", "order_id = 999"],
        "rollback": ["rollback", "shop.fields", "--to", "1"],
        "append": ["append", *on_spark],
        "upsert": ["upsert", *on_spark],
        "overwrite": ["overwrite", *on_spark, "--yes"],
        "sql EXPLAIN": ["sql", "EXPLAIN SELECT 1"],
        "sql --into": ["sql", "--into", "shop.fields", "--sql", "SELECT 9 AS order_id", "--explicit-cast"],
        "ingest": ["ingest", *fed, "--partition", "2026-11-18", "--idempotency-key", "fields:1"],
        "backfill": ["backfill", *fed, "--make", "shop.fed=2026-11-18", "--idempotency-key", "fields anew:1"],
        "commits": ["commits", "--state", "staged", "--state", "rejected", "--state", "published"],
        "publish": ["publish", names["STAGED"]],
        "reject": ["reject", names["OTHER"], "--reason", "x"],
        "gate show": ["gate", "show", names["JUDGED"]],
        "gate judge": ["gate", "judge", names["JUDGED"], str(write_suite(tmp_path))],
        "gate report": ["gate", "report", names["JUDGED"], str(tmp_path / "report.html")],
        "gate register": ["gate", "register", str(write_suite(tmp_path))],
        "gate require": ["gate", "require", orders, "orders"],
        "gate show TABLE": ["gate", "show", orders],
        "gate list": ["gate", "list"],
        "gate release": ["gate", "release", orders, "--by", "ann", "--reason", "x"],
        "mark-done": ["mark-done", orders, "dt=2026-11-18"],
        "done": ["done", orders],
        "doctor": ["doctor"],
        "backup": ["backup", str(tmp_path / "backup"), "--with-files"],
        "restore": [
            "restore",
            str(tmp_path / "backup"),
            "--warehouse",
            str(tmp_path / "new"),
            "--catalog",
            catalog_url,
        ],
        "ducklake": ["ducklake"],
        "ducklake TABLE": ["ducklake", "shop.clicks"],
        "views": ["views", str(tmp_path / "lake.duckdb")],
        "rebucket": ["rebucket", orders, "dynamic"],
        "compact": ["compact", orders, "--full"],
        "compact --all": ["compact", "--all"],
        "compact --namespace": ["compact", "--namespace", "shop"],
        "delta": ["delta", orders],
        "maintain": ["maintain", orders, "--expire", "--vacuum"],
        "hive": ["hive", orders, "--metastore", names["METASTORE"]],
        "tag create": ["tag", "create", orders, "fields"],
        "tag list": ["tag", "list", orders],
        "tag delete": ["tag", "delete", orders, "fields"],
        "consumer create": ["consumer", "create", orders, "fields"],
        "consumer advance": ["consumer", "advance", orders, "fields"],
        "consumers": ["consumers"],
        "consumer remove": ["consumer", "remove", orders, "fields"],
        "expire": ["expire", orders],
        "vacuum": ["vacuum"],
        "adopt": ["adopt", "--by", "ann", "--reason", "x"],
        "migrate": ["migrate", "--dry-run"],
        "grant --print-sql": ["grant", "reader", "ann", "--print-sql"],
        "grant": ["grant", "reader", "ann"],
        "roles": ["roles"],
        "revoke": ["revoke", "reader", "ann"],
        "provide": ["provide", str(write_spec(tmp_path))],
        "init": ["init", str(tmp_path / "own")],
        "check": ["check", str(write_spec(tmp_path))],
    }
    documented = _documented()
    assert documented.keys() == commands.keys()
    for command, words in commands.items():
        told = run(*words, "--json", start=Start(spark=spark) if words[0] in _ON_SPARK else None)
        assert told.code == 0, f"{command}: {told.err}"
        assert list(_first(told.document)) == documented[command], command


def test_the_fields_of_every_command_are_named() -> None:
    """Of `scan` they are those of the table; the other commands that are walked here are groups."""
    commands = _commands(get_command(make_app()))
    without = {name for name in commands if not any(_begins(each, name) for each in _documented())}
    assert without == set()


def _commands(command: Any, name: str = "") -> Iterator[str]:
    for own, each in getattr(command, "commands", {}).items():
        yield from _commands(each, f"{name} {own}".strip()) if hasattr(each, "commands") else [f"{name} {own}".strip()]


def _begins(documented: str, name: str) -> bool:
    return f"{documented} ".startswith(f"{name} ")


def test_exit_codes_are_those_of_the_errors() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d) \|", _TEXT, re.MULTILINE)}
    assert told == {0, OTHER_EXIT_CODE, USAGE_EXIT_CODE, *EXIT_CODES.values()}


def _documented() -> dict[str, list[str]]:
    """The names of each command's fields, in their order."""
    found: dict[str, list[str]] = {}
    for commands, told in _ROW.findall(_TEXT):
        if commands.strip("`").isdecimal():
            continue
        fields = _NAMED.findall(re.sub(r"\([^)]*\)", "", told))
        if told.startswith("those of `tables`, and "):
            fields = found["tables"] + fields[1:]
        if told.startswith("those of `mark-done` without"):
            fields = found["mark-done"][1:]
        for command in re.findall(r"`([^`]+)`", commands):
            found[command] = fields
    return found


def _first(document: Any) -> Mapping[str, Any]:
    first: Mapping[str, Any] = document[0] if isinstance(document, list) else document
    return first
