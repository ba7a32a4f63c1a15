"""The command `lake provide`."""

import json
from pathlib import Path

from lakelib import Lake
from tests.cli.conftest import Run


def write_spec(folder: Path, table: str, columns: str = "id BIGINT") -> Path:
    path = folder / f"{table.partition('.')[2]}.yaml"
    source = "{format: csv, path: /nowhere}"
    path.write_text(f"table: {table}\ncolumns: {columns}\nsource: {source}\nwrite: {{mode: append}}\n")
    return path


def test_a_folder_stands_for_its_specs(run: Run, lake: Lake, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_spec(tmp_path, f"provided.{name}")

    ran = run("provide", str(tmp_path), "--json")

    assert (ran.code, [each["table"] for each in ran.document]) == (0, ["provided.one", "provided.two"])
    assert lake.tables("provided") == ["one", "two"]


def test_what_is_wrong_costs_its_own_table_only(run: Run, lake: Lake, tmp_path: Path) -> None:
    write_spec(tmp_path, "provided.a")
    unreadable = write_spec(tmp_path, "provided.b", "id NUMBERS")
    differs = write_spec(tmp_path, "provided.c")
    write_spec(tmp_path, "provided.d")
    lake.create_namespace("provided")
    lake.create_table("provided.c", "id STRING")

    for named in ([tmp_path], sorted(tmp_path.glob("*.yaml"))):
        ran = run("provide", *map(str, named), "--json")

        told = json.loads(ran.err)
        assert (ran.code, told["error"]["kind"]) == (3, "tables_not_provided")
        assert [str(each) in told["error"]["message"] for each in (unreadable, differs)] == [True, True]
        assert [each["table"] for each in ran.document] == ["provided.a", "provided.d"]
    one = run("provide", str(differs), "--json")
    assert (one.code, json.loads(one.err)["error"]["kind"]) == (3, "table_differs")


def test_a_spec_says_how_versions_become_one_row(run: Run, lake: Lake, tmp_path: Path) -> None:
    path = write_spec(tmp_path, "provided.sums", "id BIGINT, amount BIGINT, note STRING")
    merge = "merge: {engine: aggregate, functions: {amount: sum}}\nprimary_key: [id]\n"
    path.write_text(path.read_text() + merge)
    for _ in range(2):  # the second time it is as the spec says
        assert run("provide", str(path)).code == 0
    told = run("describe", "provided.sums", "--json").document
    assert told["merge"] == {"engine": "aggregate", "functions": {"amount": "sum"}}
    path.write_text(path.read_text().replace("amount: sum", "amount: max"))
    ran = run("provide", str(path), "--json")
    assert (ran.code, json.loads(ran.err)["error"]["kind"]) == (3, "table_differs")


def test_a_table_is_made_with_a_merge_engine(run: Run, lake: Lake) -> None:
    groups = '{"engine": "partial_update", "groups": [{"sequence": ["at"], "columns": ["x"]}]}'
    for name, merge in (("first", "first_row"), ("partly", groups)):
        columns = ("--columns", "id BIGINT, at BIGINT, x STRING", "--primary-key", "id")
        assert run("create", f"merging.{name}", *columns, "--merge", merge).code == 0
    assert lake.table("merging.first").scan().count() == 0
    assert "x by at" in run("describe", "merging.partly").out
    wrong = run("create", "merging.none", "--columns", "id BIGINT", "--primary-key", "id", "--merge", "{")
    assert wrong.code == 2
    assert "--merge is no JSON" in wrong.err
