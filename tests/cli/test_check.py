"""`lake check`: all that is wrong with specs and suites, in one go, before anything runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelib.cli import check
from tests.cli.conftest import Ran, Run

SPEC = """\
table: shop.orders
columns: order_id BIGINT, dt DATE, amount DECIMAL(10, 2)
primary_key: [order_id]
partition_by: [dt]
source: {{format: json, path: "{folder}/in/{{partition}}/*.json"}}
partition: {{column: dt, every: day}}
gate: gates/orders.yaml
publish: {{tag: {{name: "dt-{{partition}}-{{snapshot}}", keep: 90d}}}}
"""
SUITE = """\
name: orders
expectations:
- type: expect_column_values_to_not_be_null
  kwargs: {column: amount}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec that is right, its suite, and a day of its source."""
    (tmp_path / "gates").mkdir()
    (tmp_path / "gates" / "orders.yaml").write_text(SUITE)
    (tmp_path / "orders.yaml").write_text(SPEC.format(folder=tmp_path))
    put_day(tmp_path, {"order_id": 1, "amount": "2.50"})
    return tmp_path


def put_day(folder: Path, *rows: dict[str, object]) -> None:
    day = folder / "in" / "2026-11-18"
    day.mkdir(parents=True, exist_ok=True)
    (day / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (day / "_READY").touch()


def change(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


_SUM = "{engine: aggregate, functions: {amount: sum}, retract: true}"
_WRONG_MERGES = {
    "first_rows": ("merge.engine", "perhaps first_row"),
    "3": ("merge", "the name of a merge engine"),
    "{engine: aggregat}": ("merge.engine", "perhaps aggregate"),
    "{engine: aggregate, function: {amount: sum}}": ("merge.function", "expected functions"),
    "{engine: aggregate, functions: {amount: summ}}": ("merge.functions.amount", "Do you mean sum?"),
    "{engine: aggregate, functions: {amonut: sum}}": ("merge.functions.amonut", "Do you mean amount?"),
    "{engine: aggregate, functions: {dt: max}}": ("merge.functions.dt", "belongs to the partition"),
    "{engine: aggregate, functions: {amount: bool_or}}": ("merge.functions.amount", "does not fit"),
    "{engine: first_row, groups: []}": ("merge.groups", "of first_row"),
    "{engine: first_row, functions: {amount: sum}}": ("merge.functions", "of first_row"),
    "{engine: partial_update, on_delete: groups}": ("merge.on_delete", "there is no group"),
    "{engine: partial_update, groups: [{sequence: [order_id], columns: [amount]}]}": (
        "merge.groups.0",
        "belongs to the primary key",
    ),
}


@pytest.mark.parametrize("merge", _WRONG_MERGES)
def test_a_merge_engine_that_does_not_fit_is_told_with_its_line(run: Run, folder: Path, merge: str) -> None:
    field, words = _WRONG_MERGES[merge]
    spec = folder / "orders.yaml"
    spec.write_text(f"{spec.read_text()}merge: {merge}\n")
    told = run("check", spec, "--json")
    (error,) = told.document[0]["errors"]
    assert told.code == 3
    assert f"line 9, field {field}: " in error
    assert words in error


def test_a_merge_engine_that_fits_is_right(run: Run, folder: Path) -> None:
    spec = folder / "orders.yaml"
    spec.write_text(f"{spec.read_text()}merge: {_SUM}\n")
    assert run("check", spec).code == 0
    spec.write_text(f"{spec.read_text()}options: {{delta: head}}\n")
    told = run("check", spec, "--json")
    assert "line 10, field options: The option delta is head" in told.document[0]["errors"][0]


def test_a_key_across_partitions_that_cannot_be_is_told_with_its_line(run: Run, folder: Path) -> None:
    spec = folder / "orders.yaml"
    spec.write_text(f"{spec.read_text()}options: {{cross_partition: true}}\n")
    assert run("check", spec).code == 0
    spec.write_text(f"{spec.read_text()}merge: {_SUM}\n")
    told = run("check", spec, "--json")
    assert "line 9, field options: cross_partition is true, and the merge engine" in told.document[0]["errors"][0]


def test_what_is_right_is_said_without_a_lake(run: Run, folder: Path) -> None:
    told = run("check", folder / "orders.yaml", "--json")
    spec, suite = told.document
    assert (told.code, spec["table"], spec["errors"], spec["warnings"]) == (0, "shop.orders", [], [])
    assert (suite["file"], suite["errors"]) == (str(folder / "gates" / "orders.yaml"), [])


def test_of_a_folder_all_that_is_below_is_checked(run: Run, folder: Path) -> None:
    tables = folder / "mine" / "tables"
    tables.mkdir(parents=True)
    (folder / "orders.yaml").rename(tables / "orders.yaml")
    (folder / "gates").rename(tables / "gates")
    hidden = folder / "mine" / ".venv" / "lib"
    hidden.mkdir(parents=True)
    (hidden / "other.yaml").write_text("no: spec")
    told = run("check", folder / "mine", "--json").document
    assert sorted(each["file"] for each in told) == [f"{tables}/gates/orders.yaml", f"{tables}/orders.yaml"]
    assert [each["errors"] for each in told] == [[], []]


def test_a_folder_without_specs_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty" / "below").mkdir(parents=True)
    ran = run("check", tmp_path / "empty")
    assert ran.code == 4
    assert "no spec and no suite" in ran.err


def test_without_a_name_the_folder_of_ones_own_tables_is_checked(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKE_TABLES", raising=False)
    assert run("check").code == 2
    monkeypatch.setenv("LAKE_TABLES", str(folder))
    assert str(folder / "orders.yaml") in run("check").out


def test_all_that_is_wrong_is_said_in_one_go(run: Run, folder: Path) -> None:
    """Of the spec, of its columns' types, and of the suite that it names."""
    spec, suite = folder / "orders.yaml", folder / "gates" / "orders.yaml"
    change(spec, "primary_key: [order_id]", "primary_key: [id]")
    change(spec, "order_id BIGINT", "order_id BIGNT")
    change(spec, "{partition}/*.json", "{day}/*.json")
    change(suite, "to_not_be_null", "to_not_be_nul")
    told = run("check", spec)
    assert told.code == 3
    for expected in (
        f"{spec}, line 3, field primary_key.0: found 'id'",
        f"{spec}, line 2, field columns: ",
        f"{spec}, line 5, field source.path: found ",
        "not {day}",
        f"{suite}, line 3: there is no expectation",
    ):
        assert expected in told.out


def test_a_suite_that_does_not_fit_the_columns_of_a_spec_is_wrong(run: Run, folder: Path) -> None:
    change(folder / "gates" / "orders.yaml", "column: amount", "column: price")
    assert run("check", folder / "gates" / "orders.yaml").code == 0
    told = run("check", folder, "--json")
    errors = {Path(each["file"]).parent.name: each["errors"] for each in told.document}
    assert (told.code, errors[folder.name]) == (3, [])
    assert "'price'" in errors["gates"][0]


def test_what_no_run_could_use_is_wrong(run: Run, folder: Path) -> None:
    """A gate that lets everything pass cannot be required, and an empty file is no query."""
    change(folder / "gates" / "orders.yaml", "  kwargs", "  severity: warning\n  kwargs")
    with (folder / "orders.yaml").open("a") as file:
        file.write("transform: orders.sql\n")
    (folder / "orders.sql").write_text("\n")
    told = run("check", folder / "orders.yaml")
    assert told.code == 3
    assert "line 9, field transform: found an empty file; expected a query." in told.out
    assert "has no critical check" in told.out


def test_specs_of_a_folder_are_checked_beside_each_other(run: Run, folder: Path) -> None:
    (folder / "again.yaml").write_text((folder / "orders.yaml").read_text())
    told = run("check", folder / "orders.yaml", folder / "nothing.yaml")
    assert told.code == 3
    assert "a table of its own; again.yaml has it" in told.out
    assert "There is no file" in told.out


def test_tags_without_an_end_are_warned_about(run: Run, folder: Path) -> None:
    change(folder / "orders.yaml", ", keep: 90d", "")
    told = run("check", folder / "orders.yaml")
    assert (told.code, "warning: " in told.out, "without an end" in told.out) == (0, True, True)


def test_a_dry_run_looks_at_the_files_of_the_source(run: Run, folder: Path) -> None:
    spec = folder / "orders.yaml"
    assert run("check", spec, "--dry-run").code == 2
    seen = run("check", spec, "--dry-run", "--partition", "2026-11-18", "--json").document[0]["dry_run"]
    assert (seen["files"], sorted(seen["source_columns"])) == (1, ["amount", "order_id"])
    late = run("check", spec, "--dry-run", "--partition", "2026-11-19")
    assert (late.code, "has not arrived" in late.out) == (3, True)
    put_day(folder, {"order_id": 1, "price": "2.50"})
    wrong = run("check", spec, "--dry-run", "--partition", "2026-11-18")
    assert (wrong.code, "'price'" in wrong.out) == (3, True)


def test_a_dry_run_says_what_it_cannot_look_at(run: Run, folder: Path) -> None:
    change(folder / "orders.yaml", "format: json", "format: orc")
    change(folder / "orders.yaml", "*.json", "*")
    told = run("check", folder / "orders.yaml", "--dry-run", "--partition", "2026-11-18")
    assert (told.code, "rows not looked at: only Spark's own reader knows" in told.out) == (0, True)


def test_a_dry_run_has_spark_compile_the_transform(run: Run, folder: Path, spark: SparkSession) -> None:
    spec, query = folder / "orders.yaml", folder / "orders.sql"
    with spec.open("a") as file:
        file.write("transform: orders.sql\nreads: {customers: shop.customers}\n")
    (folder / "customers.yaml").write_text(
        "table: shop.customers\ncolumns: order_id BIGINT, name STRING\nprimary_key: [order_id]\n"
        "source: {path: /in/customers/}\n"
    )
    given = ["check", spec, folder / "customers.yaml", "--dry-run", "--partition", "2026-11-18"]

    def tried(text: str) -> str:
        query.write_text(text)
        return next(line for line in run(*given).lines if str(spec) in line)

    joined = "SELECT s.order_id, s.amount{} FROM source s JOIN customers c USING (order_id) WHERE :partition > ''"
    assert "rows of order_id int64, amount decimal128(10, 2)" in tried(joined.format(""))
    assert "Spark does not take the query: " in tried(joined.format(", c.nam"))
    assert "'name'" in tried(joined.format(", c.name"))
    assert "Spark does not take the query: " in tried("SELEC 1")


def test_what_is_to_do_without_spark_and_takes_it_is_wrong(run: Run, folder: Path) -> None:
    """The run would say so, the files might be there by then."""
    spec = folder / "orders.yaml"
    with spec.open("a") as file:
        file.write("transform: orders.sql\nengine: local\n")
    (folder / "orders.sql").write_text("SELECT order_id, rlike(dt, '2026.*') AS dt, amount FROM source")
    told = run("check", spec)
    assert (told.code, "line 10, field engine: found local, and it takes Spark for " in told.out) == (3, True)
    change(spec, "engine: local", "engine: auto")
    assert run("check", spec).code == 0


@pytest.mark.parametrize("engine", ["local", "auto"])
def test_a_dry_run_of_what_does_without_spark_starts_none(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    spec = folder / "orders.yaml"
    with spec.open("a") as file:
        file.write(f"transform: orders.sql\nengine: {engine}\n")

    def tried(text: str) -> Ran:
        (folder / "orders.sql").write_text(text)
        return run("check", spec, "--dry-run", "--partition", "2026-11-18")

    monkeypatch.setattr(check, "_compiler", lambda stack: pytest.fail("Spark was asked for"))
    told = tried("SELECT order_id, amount + 1 AS amount FROM source")
    assert (told.code, "rows of order_id int64, amount decimal128(" in told.out) == (0, True)
    if engine == "local":
        wrong = tried("SELECT order_id, amonut AS amount FROM source")
        assert (wrong.code, "it takes Spark for" in wrong.out, "amonut" in wrong.out) == (3, True, True)


# A folder for one's own tables


def test_a_new_folder_is_right_and_its_tests_pass(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    told = run("init", folder)
    assert (told.code, f"LAKE_TABLES={folder}/tables make up" in told.out) == (0, True)
    checked = run("check", folder / "tables", folder / "gates", "--json").document
    assert [(each["errors"], each["warnings"]) for each in checked] == [([], [])] * 2
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LAKE_", "PYTEST_"))}
    # Without a folder of its own it would shut the one that this pytest and all servers below it have.
    own = f"--basetemp={tmp_path / 'of-tests'}"
    command = [sys.executable, "-m", "pytest", "-q", own, "-p", "no:cacheprovider", folder / "tests"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr


def test_a_folder_that_has_something_in_it_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    told = run("init", tmp_path / "mine", "--json")
    assert (told.code, json.loads(told.err)["error"]["kind"]) == (3, "folder_not_empty")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]
