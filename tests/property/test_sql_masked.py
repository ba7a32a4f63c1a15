"""Files that DuckDB reads by itself, masks leaving out what readers do not see, give what a scan gives: random tables,
written, deleted from, compacted, rolled back and changed in their schema at random.

LAKE_SQL_MASKED_SEED repeats a run.
"""

import math
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.ops import sql_files
from lakelib.ops.sql_plan import QueryPlan
from lakelib.ops.sql_statements import prepare

SEED = int(os.environ.get("LAKE_SQL_MASKED_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
TABLES = 8
STEPS = 9
KEYS = (["id"], ["word"], ["word", "id"], ["part", "id"])
OPTIONS = {"min_bucket_file_bytes": 0, "row_group_rows": 16}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("word", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        ("late", pa.int32()),
        ("place", pa.int32()),
        ("score", pa.float64()),
        ("text", pa.string()),
        ("nested", pa.struct([("place", pa.int32())])),
    ]
)
CONDITIONS = (
    "id < 20",
    "word >= 'w1'",
    "word = 'w7'",
    "part = 'p1'",
    "late IS NULL",
    "place > 3",
    "score = score",
    "score > 1",
    "text LIKE 'b%'",
    "id BETWEEN 5 AND 9 AND place < 4",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, module_catalog_url: str) -> Iterator[Lake]:
    warehouse: Path = tmp_path_factory.mktemp("lake")
    with lakelib.connect(warehouse=str(warehouse), catalog=module_catalog_url) as lake:
        lake.create_namespace("m")
        yield lake


class Writer:
    def __init__(self, chance: random.Random, table: Table) -> None:
        self._chance = chance
        self._has_nan = chance.random() < 0.3
        self.table = table

    def step(self) -> None:
        others = (self.delete, self.compact, self.back, self.evolve)
        (self.upsert if self._chance.random() < 0.6 else self._chance.choice(others))()

    def upsert(self) -> None:
        start = self._chance.randrange(60)
        count = self._chance.choice((1, 3, 40))
        found = [self._row(number) for number in self._chance.sample(range(start, start + 80), count)]
        by_key = {tuple(row[name] for name in self.table.primary_key): row for row in found}
        self.table.upsert(pa.Table.from_pylist(list(by_key.values()), schema=self.table.schema))

    def delete(self) -> None:
        self.table.delete(
            self._chance.choice((f"id = {self._chance.randrange(60)}", "id IN (3, 10, 17, 24)", "word = 'w7'"))
        )

    def compact(self) -> None:
        self.table.compact(full=self._chance.random() < 0.3)

    def back(self) -> None:
        snapshots = [each.id for each in self.table.history()]
        if len(snapshots) > 2:
            self.table.rollback(self._chance.choice(snapshots[:3]))

    def evolve(self) -> None:
        names = self.table.schema.names
        change = self._chance.choice(("rename", "swap", "add"))
        if change == "add":
            self.table.evolve(add=[(f"added{len(names)}", "double")])
        elif change == "swap" and {"late", "place"} <= {*names}:
            self.table.evolve(rename={"late": "place", "place": "late"})
        elif "text" in names:
            self.table.evolve(rename={"text": "words"})

    def _row(self, number: int) -> dict[str, Any]:
        known = {
            "id": number,
            "word": f"w{number % 11}",
            "part": f"p{number % 2}",
            "score": self._chance.choice((None, 0.0, 2.5, 1.5, math.nan if self._has_nan else 7.25)),
            "nested": {"place": number},
        }
        other = {"late": [None, 1, 2, 3], "place": [None, *range(6)], "text": [None, "", "a", "bc"]}
        return {
            name: known[name] if name in known else self._chance.choice(other.get(name, [None]))
            for name in self.table.schema.names
        }


def test_masked_files_give_what_a_scan_gives(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(SEED)
    print(f"LAKE_SQL_MASKED_SEED={SEED}")
    monkeypatch.setattr(sql_files, "FEW_ROWS", 0)
    seen: Counter[str] = Counter()
    for number in range(TABLES):
        writer = Writer(chance, new_table(lake, chance, f"m.t{number}"))
        for _ in range(STEPS):
            writer.step()
            for _ in range(3):
                check(lake, writer.table, chance, seen)
    assert min(seen["masked"], seen["streamed"]) > 10, seen


def new_table(lake: Lake, chance: random.Random, name: str) -> Table:
    key = chance.choice(KEYS)
    return lake.create_table(
        name,
        SCHEMA,
        primary_key=key,
        partition_by=["part"] if "part" in key or chance.random() < 0.3 else [],
        sequence_by=["late"] if chance.random() < 0.3 else [],
        buckets=chance.choice((1, 2, 4, "dynamic")),
        options=OPTIONS,
    )


def check(lake: Lake, table: Table, chance: random.Random, seen: Counter[str]) -> None:
    """The head or an older snapshot, in some columns and under a condition, is what a scan says."""
    history = [each.id for each in table.history()]
    at = chance.choice(history) if history and chance.random() < 0.4 else None
    names = table.scan(at=at).schema.names
    columns = chance.sample(names, chance.randrange(1, len(names) + 1))
    where = chance.choice((None, *CONDITIONS))
    if where is not None and not {*names} >= {word for word in ("late", "place", "text") if word in where}:
        where = None
    version = "" if at is None else f" FOR VERSION AS OF {at}"
    listed = ", ".join(f"`{name}`" for name in columns)
    query = f"SELECT {listed} FROM {table.name}{version}{f' WHERE {where}' if where else ''}"
    count_ways(lake, query, seen)

    found = lake.sql(query).to_arrow()

    spark_where = where.replace("score = score", "score IS NOT NULL") if where else None
    expected = table.scan(columns=columns, where=spark_where, at=at).to_arrow()
    assert plainly(found) == plainly(expected), query


def count_ways(lake: Lake, query: str, seen: Counter[str]) -> None:
    prepared = prepare(lake.runtime, query, {})
    assert isinstance(prepared, QueryPlan)
    (plan,) = prepared.plans.values()
    own = sql_files.choose_files(lake.runtime, plan, may_find=True)  # type: ignore[arg-type]
    seen["masked"] += bool(own.masked)
    seen["streamed"] += bool(own.rest)
    seen["plain"] += bool(own.paths)


def plainly(rows: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in rows.to_pylist())
