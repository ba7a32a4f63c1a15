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
