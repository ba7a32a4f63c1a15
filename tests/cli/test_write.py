"""Writing with the command: tables that are made, files that are loaded, rows that are deleted when it is meant."""

import gzip
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from lakelib import Lake, Table
from tests.cli.conftest import Run, write_suite

ROWS = "order_id,dt,customer,amount,at\n900,2026-11-18,eve,9.50,2026-11-18T12:00\n901,2026-11-19,bob,20.00,\n"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "orders.csv").write_text(ROWS)
    return folder


def test_a_table_is_made_with_its_namespace(run: Run, lake: Lake) -> None:
    columns = ("--columns", "id BIGINT, dt DATE, v DOUBLE")
    options = ("--primary-key", "id, dt", "--partition-by", "dt", "--sequence-by", "v", "--buckets", "8")
    made = run("create", "new.table", *columns, *options, "--json").document
    table = lake.table("new.table")
    assert made == {"table": "new.table", "location": table.location}
    assert (table.primary_key, table.partition_by) == (["id", "dt"], ["dt"])
    described = run("describe", "new.table", "--json").document
    assert (described["buckets"], described["sequence_by"]) == (8, ["v"])
    assert run("create", "new.table", *columns).code == 3
    assert run("create", "new.table", *columns, *options, "--if-not-exists").code == 0
    assert run("create", "wrong.other", "--columns", "id NOTHING").code == 3
    assert run("create", "wrong", *columns).code == 3
    assert "wrong" not in lake.namespaces()
    assert run("create", "new.other", *columns, "--buckets", "some").code == 3


def test_options_are_given_to_a_new_table_and_changed_later(run: Run, lake: Lake) -> None:
    words = ("new.told", "--columns", "id BIGINT", "--option", "delta=head", "--option", "compact_runs=9")
    assert run("create", *words).code == 0
    changed = run("options", "new.told", "compact_runs=7", "compression=snappy", "--json").document
    assert changed["options"] | {"delta": "head", "compact_runs": 7, "compression": "snappy"} == changed["options"]
    assert lake.table("new.told").options["compact_runs"] == 7
    shown = run("options", "new.told").out
    assert "compact_runs" in shown
    wrong = run("options", "new.told", "compact_rums=7")
    assert (wrong.code, "Known options" in wrong.err) == (3, True)
    assert run("options", "new.told", "compact_runs").code == 2
    assert lake.table("new.told").options["compact_runs"] == 7


def test_a_lake_is_made_where_that_is_wanted(run_process: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    nameless = {"LAKE_WAREHOUSE": "", "LAKE_CATALOG": ""}
    words = ("create", "shop.log", "--columns", "n BIGINT")
    none = run_process(*words, cwd=tmp_path, **nameless)
    assert none.returncode == 4
    assert "--new-lake" in none.stderr
    assert list(tmp_path.iterdir()) == []
    assert run_process("create", "log", *words[2:], "--new-lake", cwd=tmp_path, **nameless).returncode == 3
    assert list(tmp_path.iterdir()) == []
    made = run_process(*words, "--new-lake", cwd=tmp_path, **nameless)
    assert made.returncode == 0, made.stderr
    assert run_process("tables", cwd=tmp_path, **nameless).stdout.splitlines()[1].startswith("shop.log")


def test_sql_makes_a_lake_where_that_is_wanted(
    run_process: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    nameless = {"LAKE_WAREHOUSE": "", "LAKE_CATALOG": ""}
    words = ("sql", "CREATE NAMESPACE shop")
    assert run_process(*words, cwd=tmp_path, **nameless).returncode == 4
    assert list(tmp_path.iterdir()) == []
    made = run_process(*words, "--new-lake", cwd=tmp_path, **nameless)
    assert made.returncode == 0, made.stderr
    assert "shop" in run_process("namespaces", cwd=tmp_path, **nameless).stdout


def test_an_ingest_makes_no_lake_in_a_folder_that_nobody_named(
    run_process: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    spec = tmp_path / "fed.yaml"
    source = "source: {format: csv, path: /nowhere}"
    spec.write_text(f"table: shop.fed\ncolumns: n BIGINT\n{source}\nwrite: {{mode: append}}\nengine: local\n")
    (tmp_path / "wrong").mkdir()
    unnamed = {"cwd": tmp_path / "wrong", "LAKE_WAREHOUSE": "", "LAKE_CATALOG": ""}
    work = ("ingest", "--spec", str(spec), "--partition", "all", "--idempotency-key", "first:1")
    refused = run_process(*work, **unnamed)
    assert (refused.returncode, "--new-lake" in refused.stderr) == (4, True)
    assert list((tmp_path / "wrong").iterdir()) == []
    named = unnamed | {"LAKE_WAREHOUSE": str(tmp_path / "lake")}
    made = run_process(*work, **named)
    assert f"There is no lake in {tmp_path / 'lake'} yet: a new one is made." in made.stderr
    assert "There is no lake" not in run_process(*work, **named).stderr
    assert run_process("tables", **named).stdout.splitlines()[1].startswith("shop.fed")


_HEAD = "order_id,dt,customer,amount,at\n"


def _refused(run: Run, orders: Table, file: Path, content: str) -> str:
    file.write_text(content)
    told = run("load", orders.name, file)
    assert told.code == 3
    assert orders.head is not None
    assert orders.head.id == 2
    return told.err


def test_wrong_values_of_a_file_are_told_together_by_the_lines_that_an_editor_shows(
    run: Run, orders: Table, tmp_path: Path
) -> None:
    good = '1,2026-11-18,"eve,\nand adam",9.50,\n\n'
    told = _refused(
        run, orders, tmp_path / "x.csv", f"{_HEAD}{good}2,someday,bob,9.505,\n{good}3,2026-11-19,bob,much,\n"
    )
    assert f"In the file file://{tmp_path / 'x.csv'}: Column 'dt', line 5: 'someday' does not convert" in told
    assert "The row: order_id = '2', dt = 'someday'" in told
    assert "Wrong, too: Column 'amount', line 5: '9.505' does not convert" in told
    assert "Column 'amount', line 9: 'much' does not convert" in told
    missing = _refused(run, orders, tmp_path / "x.csv", f"{_HEAD}{good},2026-11-19,bob,1.00,\n")
    assert "Column 'order_id' is NULL in line 5, and may not be NULL" in missing


def test_of_many_wrong_values_the_first_ten_are_told_and_how_many_more(run: Run, orders: Table, tmp_path: Path) -> None:
    rows = "".join(f"{number},2026-11-18,eve,price {number},\n" for number in range(25))
    told = _refused(run, orders, tmp_path / "x.csv", _HEAD + rows)
    assert [f"line {number}:" in told for number in range(1, 13)] == [False] + [True] * 10 + [False]
    assert "; and 15 more." in told


def test_lines_of_csv_with_too_few_or_too_many_values_are_told_together(
    run: Run, orders: Table, tmp_path: Path
) -> None:
    good = '1,2026-11-18,"eve,\nand adam",9.50,\n\n'
    told = _refused(run, orders, tmp_path / "x.csv", f"{_HEAD}{good}2,2026-11-18\n{good}3,2026-11-18,eve,1,,,\n")
    assert "cannot be read as CSV: line 5: Expected 5 columns, got 2. The line: 2,2026-11-18" in told
    assert "Wrong, too: line 9: Expected 5 columns, got 7." in told


def test_wrong_lines_of_json_are_told_together(run: Run, orders: Table, tmp_path: Path) -> None:
    good = '{"order_id": 1, "dt": "2026-11-18", "amount": 1.5}\n\n'
    wrong = '{"order_id": 2, "dt": "someday", "amount": 1.5}\n'
    broken = '{"order_id": 2,\n'
    told = _refused(run, orders, tmp_path / "x.json", f"{good}{wrong}{good}{wrong}")
    assert "Column 'dt', line 3: 'someday'" in told
    assert "Wrong, too: Column 'dt', line 6: 'someday'" in told
    told = _refused(run, orders, tmp_path / "x.json", f"{good}{broken}{good}{broken}")
    assert "cannot be read as JSON lines: line 3: " in told
    assert "Wrong, too: line 6: " in told


def test_files_are_upserted_where_there_is_a_key(run: Run, orders: Table, landing: Path) -> None:
    told = run("load", orders.name, landing, "--idempotency-key", "hand:1", "--json").document
    assert (told["mode"], told["format"], told["files"], told["size_bytes"]) == ("upsert", "csv", 1, len(ROWS))
    assert (told["dry_run"], told["snapshot"], told["replayed"], told["rows_written"]) == (False, 3, False, 2)
    again = run("load", orders.name, landing, "--idempotency-key", "hand:1")
    assert again.out == f"{orders.name}: 1 file of csv, {len(ROWS)} bytes, was done before: snapshot 3\n"
    assert orders.scan(where="order_id >= 900").count() == 2


def test_files_are_appended_where_there_is_none(run: Run, lake: Lake, tmp_path: Path) -> None:
    log = lake.create_table("shop.lines", "n BIGINT, text STRING")
    (tmp_path / "a.json").write_text('{"n": 1, "text": "x"}\n')
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write('{"n": 2}\n{"n": 3}\n')
    told = run("load", log.name, tmp_path / "*", "--json").document
    assert (told["mode"], told["format"], told["files"], told["rows_written"]) == ("append", "json", 2, 3)


def test_an_overwrite_is_a_dry_run_until_it_is_meant(run: Run, orders: Table, landing: Path) -> None:
    words = ("load", orders.name, landing, "--mode", "overwrite", "--partition", "dynamic")
    dry = run(*words, "--json").document
    assert (dry["dry_run"], dry["snapshot"], dry["rows_written"]) == (True, None, None)
    told = run(*words)
    assert "would take the place of the partitions that their rows are in" in told.out
    assert "Nothing was changed" in told.err
    assert len(orders.history()) == 2
    assert run(*words, "--yes", "--json").document["snapshot"] == 3
    assert orders.scan(where="dt = '2026-11-18'").count() == 1
    assert orders.scan(where="dt = '2026-11-17'").count() == 10
    one = run("load", orders.name, landing, "--mode", "overwrite", "--partition", "dt=2026-11-18", "--yes")
    assert (one.code, len(orders.history())) == (3, 3)  # a row lies outside
    assert run("load", orders.name, landing, "--mode", "overwrite", "--yes").code == 0
    assert orders.scan().count() == 2


def test_a_table_is_replaced_when_it_is_meant(run: Run, lake: Lake) -> None:
    words = ("create", "shop.anew", "--or-replace", "--columns")
    assert run(*words, "a BIGINT").code == 0
    lake.table("shop.anew").append([{"a": 1}])
    told = run(*words, "b STRING")
    assert "its 1 row would go" in told.out
    assert lake.table("shop.anew").schema.names == ["a"]
    assert run(*words, "b STRING", "--yes").code == 0
    assert (lake.table("shop.anew").schema.names, len(lake.table("shop.anew").history())) == (["b"], 2)
    assert run(*words, "b STRING", "--if-not-exists").code == 2
    assert run(*words, "b STRING", "--primary-key", "b", "--yes").code == 3


def test_rows_take_the_place_of_those_that_match(run: Run, lake: Lake, landing: Path) -> None:
    run("create", "shop.few", "--columns", "order_id BIGINT, dt DATE, customer STRING, amount DOUBLE, at TIMESTAMP")
    assert run("load", "shop.few", landing).code == 0
    before = lake.table("shop.few").scan().count()
    words = ("load", "shop.few", landing, "--mode", "overwrite", "--replace-where", "order_id is not null")
    assert "would take the place of the rows where order_id is not null" in run(*words).out
    assert run(*words, "--yes").code == 0
    assert (lake.table("shop.few").history()[0].kind, lake.table("shop.few").scan().count()) == ("replace", before)
    assert run(*words[:-1], "order_id < 0", "--yes").code == 3
    assert run(*words, "--partition", "dynamic").code == 2
    assert run("load", "shop.few", landing, "--replace-where", "true").code == 2


@pytest.mark.parametrize("words", [(), ("--mode", "append"), ("--mode", "upsert")])
def test_a_dry_run_that_was_asked_for_writes_nothing_in_any_mode(
    run: Run, orders: Table, landing: Path, words: tuple[str, ...]
) -> None:
    told = run("load", orders.name, landing, *words, "--dry-run")
    assert f"would be {'added' if 'append' in words else 'upserted'}" in told.out
    assert "Nothing was changed" in told.err
    assert run("load", orders.name, landing, *words, "--dry-run", "--json").document["dry_run"] is True
    assert len(orders.history()) == 2
    assert run("load", orders.name, landing, *words, "--yes", "--json").document["snapshot"] == 3


@pytest.mark.parametrize("text", ["", "order_id,dt,amount\n"])
def test_files_without_a_row_are_an_error(run: Run, orders: Table, tmp_path: Path, text: str) -> None:
    (tmp_path / "cut.csv").write_text(text)
    for mode in ("upsert", "overwrite"):
        ran = run("load", orders.name, tmp_path / "cut.csv", "--mode", mode, "--yes")
        assert (ran.code, len(orders.history())) == (3, 2)
        assert "no rows for shop.orders" in ran.err


def test_a_gate_has_to_pass(run: Run, orders: Table, landing: Path, tmp_path: Path) -> None:
    strict = run("load", orders.name, landing, "--gate", write_suite(tmp_path, most=10))
    assert strict.code == 6
    assert "Look at it with `lake gate show COMMIT`" in strict.err
    assert len(orders.history()) == 2
    assert run("load", orders.name, landing, "--gate", write_suite(tmp_path)).code == 0


@pytest.mark.parametrize(
    ("files", "words", "code", "told"),
    [
        ({"a.txt": "x"}, [], 3, "No format is said by the name of"),
        ({"a.csv": ROWS, "a.json": "{}"}, [], 3, "The files are of several formats: csv, json."),
        ({"a.xml": "x"}, ["--format", "xml"], 3, "xml"),
        ({"a.csv": ROWS.replace("amount", "amuont")}, [], 3, "Do you mean amount?"),
        ({"a.csv": ROWS.replace("9.50", "much")}, [], 3, "much"),
        ({"a.csv": ROWS}, ["--no-header"], 3, "lacks the partition column 'dt'"),
        ({"a.csv": ROWS}, ["--mode", "merge"], 2, "--mode 'merge' is none of"),
        ({"a.csv": ROWS}, ["--partition", "dynamic"], 2, "--mode overwrite"),
        ({"a.csv": ROWS}, ["--idempotency-key", "x"], 2, "is not APP:VERSION"),
        ({}, [], 4, "There is no file at"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    run: Run, orders: Table, tmp_path: Path, files: dict[str, str], words: list[str], code: int, told: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    ran = run("load", orders.name, folder, *words)
    assert (ran.code, ran.out) == (code, "")
    assert told in " ".join(ran.err.replace("│", " ").split())
    assert len(orders.history()) == 2


def test_csv_is_read_as_it_was_written(run: Run, orders: Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("order_id;dt;customer;at\n900;2026-11-18;-;-\n")
    assert run("load", orders.name, tmp_path / "a.csv", "--option", "sep=;", "--option", "nullValue=-").code == 0
    assert orders.scan(["customer"], where="order_id = 900").to_arrow().to_pylist() == [{"customer": None}]


def test_rows_are_deleted_when_it_is_meant(run: Run, orders: Table) -> None:
    words = ("delete", orders.name, "--where", "amount < 0.05")
    dry = run(*words, "--json").document
    assert (dry["dry_run"], dry["rows"], dry["snapshot"]) == (True, 5, None)
    assert run(*words).out == f"{orders.name}: 5 rows would be deleted\n"
    done = run(*words, "--yes", "--json").document
    assert (done["dry_run"], done["rows"], done["snapshot"], done["deletes_written"]) == (False, None, 3, 5)
    assert orders.scan().count() == 25
    assert run("delete", orders.name).code == 2


def test_a_table_that_is_not_there_may_be_another(run: Run, orders: Table) -> None:
    assert f"Do you mean {orders.name}" in run("scan", f"{orders.name}x").err
    assert "Do you mean shop.orders" in run("scan", "shoop." + orders.name.removeprefix("shop.")).err
    assert "Do you mean amount?" in run("scan", orders.name, "--columns", "amuont").err
    assert "Do you mean amount?" in run("scan", orders.name, "--where", "Amuont > 3").err
