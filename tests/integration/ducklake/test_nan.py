"""No reader that goes by a file's statistics loses the rows with NaN: they leave it out, so that there are none."""

import math
import random
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from lakelib import Lake, Table
from lakelib.storage.parquet_writer import FileWriter
from tests.delta_readers import duckdb_with_delta, folder_of
from tests.ducklake_readers import attached

_NUMBERS = count()
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("plain", pa.float64()),
        ("s", pa.struct([("y", pa.float64()), ("k", pa.int64())])),
    ]
)
NAN = math.nan
WHERES = ["x > 5", "x <> 0", "x >= 1", "NOT (x <= 5)", "f > 5", "f <> 0", "plain > 5", "s.y > 5", "s.y <> 0", "s.k > 5"]


def rows(numbers: range, chance: random.Random, values: list[float | None]) -> pa.Table:
    def one(number: int) -> dict[str, Any]:
        x, f, y = (chance.choice(values) for _ in range(3))
        return {"id": number, "x": x, "f": f, "plain": float(number % 3), "s": {"y": y, "k": number % 3}}

    return pa.Table.from_pylist([one(number) for number in numbers], SCHEMA)


def holds(row: dict[str, Any], where: str) -> bool:
    """NaN is above all numbers."""
    name, op, number = where.removeprefix("NOT (").removesuffix(")").split()
    inside, negated = (row["s"] or {}, where.startswith("NOT")) if "." in name else (row, where.startswith("NOT"))
    value = inside.get(name.split(".")[-1])
    if value is None:
        return False
    value = math.inf if math.isnan(value) else value
    found = {
        ">": value > float(number),
        "<>": value != float(number),
        ">=": value >= float(number),
        "<=": value <= float(number),
    }
    return found[op] != negated


@pytest.fixture(params=["appended", "compacted"])
def table(request: pytest.FixtureRequest, lake: Lake) -> Table:
    """Some files without NaN, some of nothing else, and some where it comes in a later row group."""
    options = {"delta": "head", "ducklake": "head", "row_group_rows": 4, "compression": "none"}
    key = ["id"] if request.param == "compacted" else []
    made = lake.create_table(f"shop.nan{next(_NUMBERS)}", SCHEMA, primary_key=key, options=options)
    chance = random.Random(request.param)
    made.append(rows(range(12), chance, [0.0]))
    made.append(rows(range(12, 24), chance, [0.0, NAN]))
    made.append(rows(range(24, 30), chance, [NAN]))
    made.append(rows(range(30, 42), chance, [0.0, -0.0, 3.5, None, math.inf]))
    if request.param == "compacted":
        made.compact(full=True)
        assert [file.row_count for file in made.files()] == [12, 30]  # what has NaN begins a file of its own
    return made


def test_nobody_loses_a_row(lake: Lake, table: Table) -> None:
    every = table.scan().to_arrow().to_pylist()
    paths = [str(path) for path in sorted(Path(folder_of(table)).rglob("*.parquet"))]
    live = [path for path in paths if path.endswith(tuple(file.path for file in table.files()))]
    namespace, name = table.name.split(".")
    folder = folder_of(table)
    with attached(lake) as ducklake, duckdb.connect() as plain:
        for where in WHERES:
            expected = sorted(row["id"] for row in every if holds(row, where))
            found = {
                "files": plain.execute(f"SELECT id FROM read_parquet({live}) WHERE {where}").fetchall(),
                "delta": duckdb_with_delta()
                .cursor()
                .execute(f"SELECT id FROM delta_scan('{folder}') WHERE {where}")
                .fetchall(),
                "ducklake": ducklake.execute(f'SELECT id FROM lake."{namespace}"."{name}" WHERE {where}').fetchall(),
                "lake": [(id_,) for id_ in table.scan(columns=["id"], where=where).to_arrow()["id"].to_pylist()],
                "sql": [
                    (id_,)
                    for id_ in lake.sql(f"SELECT id FROM {table.name} WHERE {where}").to_arrow()["id"].to_pylist()
                ],
            }
            assert {who: sorted(id_ for (id_,) in ids) for who, ids in found.items()} == dict.fromkeys(
                found, expected
            ), where
        for column in ("x", "f"):
            expected = sorted(row["id"] for row in every if holds(row, f"{column} > 5"))
            lazy = polars.scan_delta(folder).filter(polars.col(column) > 5).select("id").collect()
            assert sorted(lazy["id"].to_list()) == expected
            told = QueryBuilder().register("told", DeltaTable(folder))
            ids = pa.table(told.execute(f"SELECT id FROM told WHERE {column} > 5").read_all())["id"].to_pylist()
            assert sorted(ids) == expected


def test_only_what_may_hold_nan_has_no_statistics(table: Table) -> None:
    without: set[str] = set()
    for file in table.files():
        metadata = pq.read_metadata(Path(folder_of(table)) / file.path)
        values = pq.read_table(Path(folder_of(table)) / file.path, partitioning=None)
        for group in range(metadata.num_row_groups):
            chunks = [metadata.row_group(group).column(place) for place in range(metadata.num_columns)]
            without |= {chunk.path_in_schema for chunk in chunks if not chunk.is_stats_set}
            for chunk in chunks:
                if chunk.is_stats_set and chunk.path_in_schema in ("x", "f"):
                    assert not pc.any(pc.is_nan(values[chunk.path_in_schema])).as_py()
    assert without <= {"x", "f", "s.y"}
    assert "s.y" in without


@pytest.mark.parametrize("key", [["id"], []])
def test_files_of_earlier_states_are_named_and_a_full_compaction_writes_them_anew(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, key: list[str]
) -> None:
    made = lake.create_table(f"shop.nan{next(_NUMBERS)}", SCHEMA, primary_key=key)
    with monkeypatch.context() as patched:
        patched.setattr(FileWriter, "_choose_statistics", lambda _: True)
        made.append(rows(range(12), random.Random(1), [0.0, NAN]))

    def named() -> list[tuple[str, str]]:
        return [
            (each.place.rpartition("/")[2], each.severity.value)
            for each in lake.doctor(deep=True).findings
            if each.table == made.name and each.kind == "hidden_nan"
        ]

    assert named() == [(next(iter(made.files())).path, "notable")]
    made.compact()
    assert len(named()) == 1
    made.compact(full=True)
    assert named() == []
    path = Path(folder_of(made)) / next(iter(made.files())).path
    found = duckdb.execute(f"SELECT count(*) FROM read_parquet('{path}') WHERE x > 5").fetchall()
    assert found == [(made.scan(where="x > 5").count(),)]
    assert found != [(0,)]
    assert "nothing to compact" in repr(made.compact(full=True))
