"""A DuckDB file with views, as a program that knows nothing of lakelib opens it, in a process of its own."""

import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import duckdb_extension_delta
import pyarrow as pa
import pytest

import lakelib
from lakelib import InvalidInputError, Lake, Table
from tests.random_history import SCHEMA

_NUMBERS = count()
_READ = """
import json, sys
import duckdb
path, extension, question = sys.argv[1:]
db = duckdb.connect(path, read_only=True, config={"allow_unsigned_extensions": True})
db.execute(f"LOAD '{extension}'")
print(json.dumps(db.execute(question).fetchall(), default=str))
"""


def asked(path: Path, question: str) -> list[list[Any]]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
    ran = subprocess.run(
        [sys.executable, "-c", _READ, str(path), str(extension), question],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin"},
    )
    assert ran.returncode == 0, ran.stderr
    found: list[list[Any]] = json.loads(ran.stdout)
    return found


def new_table(lake: Lake, schema: str = "id bigint NOT NULL, part string", **definition: Any) -> Table:
    return lake.create_table(f"shop.t{next(_NUMBERS)}", schema, **definition)


def rows(numbers: list[int], part: str | None = "a") -> pa.Table:
    return pa.table({"id": numbers, "part": pa.array([part] * len(numbers), pa.string())})


def test_a_view_shows_the_head_as_it_is_when_it_is_read(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    table = new_table(lake, primary_key=["id"], options={"delta": "head"})
    table.upsert(rows([1, 2]))
    without_log = new_table(lake)
    without_log.append(rows([1]))

    written = lake.write_views(path)

    assert table.name in written.views
    assert without_log.name in written.left_out
    question = f"SELECT * FROM {table.name} ORDER BY id"
    assert asked(path, question) == [[1, "a"], [2, "a"]]
    table.upsert(rows([2, 3], "b"))
    assert asked(path, question) == [[1, "a"], [2, "b"], [3, "b"]]
    table.evolve(add=[("more", "int")])
    table.evolve(drop=["part"])
    assert asked(path, question) == [[1, None], [2, None], [3, None]]


def test_a_view_has_the_types_of_the_table(lake: Lake, tmp_path: Path) -> None:
    table = new_table(lake, SCHEMA, options={"delta": "head"})
    table.append(pa.Table.from_pylist([{"id": 1}], schema=table.schema))
    lake.write_views(tmp_path / "lake.duckdb")

    name = table.name.split(".")[1]
    told = asked(
        tmp_path / "lake.duckdb",
        f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{name}'",
    )
    read = asked(tmp_path / "lake.duckdb", f"SELECT column_name, column_type FROM (DESCRIBE FROM {table.name})")
    assert sorted(told) == sorted(read)
    assert len(asked(tmp_path / "lake.duckdb", f"FROM {table.name}")) == table.scan().to_arrow().num_rows == 1


def test_the_file_has_no_credentials(lake: Lake, tmp_path: Path) -> None:
    new_table(lake, options={"delta": "head"}).append(rows([1]))
    lake.write_views(tmp_path / "lake.duckdb")

    content = (tmp_path / "lake.duckdb").read_bytes()

    assert lake.runtime.catalog.url.encode() not in content
    assert b"postgres" not in content


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(lake: Lake, tmp_path: Path) -> None:
    new_table(lake, options={"delta": "head"}).append(rows([1]))
    path = tmp_path / "lake.duckdb"
    path.write_text("somebody's")

    with pytest.raises(InvalidInputError) as caught:
        lake.write_views(path)
    assert (caught.value.kind, path.read_text()) == ("path_taken", "somebody's")
    with pytest.raises(InvalidInputError) as nowhere:
        lake.write_views(tmp_path / "no" / "lake.duckdb")
    assert nowhere.value.kind == "invalid_path"

    lake.write_views(path, replace=True)

    assert asked(path, "SELECT count(*) > 0 FROM duckdb_views() WHERE NOT internal") == [[True]]
    assert [each.name for each in tmp_path.iterdir()] == ["lake.duckdb"]


def test_a_lake_without_a_log_has_no_views(tmp_path: Path) -> None:
    with lakelib.connect(tmp_path / "lake") as bare:
        bare.create_namespace("shop")
        new_table(bare).append(rows([1]))
        with pytest.raises(InvalidInputError) as caught:
            bare.write_views(tmp_path / "lake.duckdb")

    assert caught.value.kind == "no_views"
    assert "delta=head" in str(caught.value.remedy)
    assert not (tmp_path / "lake.duckdb").exists()
