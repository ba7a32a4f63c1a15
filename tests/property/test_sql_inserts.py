"""INSERT and CREATE TABLE … AS SELECT leave in the lake's tables what DuckDB's own hold after the same: random rows,
random statements. In a transaction statements do what they do one after the other, or are refused.

LAKE_SQL_WRITES says how many; a statement after which tables differ is shown, and LAKE_SQL_SEED repeats a run.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import lakelib
from lakelib import ConflictError, Lake
from tests.property.test_sql import plainly, put, rows

STATEMENTS = int(os.environ.get("LAKE_SQL_WRITES", "60"))
TRANSACTIONS = max(12, STATEMENTS // 5)
COLUMNS = {
    "id": "bigint",
    "part": "string",
    "small": "int",
    "amount": "decimal(10,2)",
    "name": "string",
    "day": "date",
    "at": "timestamp",
    "score": "double",
    "flag": "boolean",
}
DUCK = {"string": "varchar", "bigint": "bigint", "int": "integer", "timestamp": "timestamp"}
SOURCES: dict[str, Sequence[tuple[str, str]]] = {
    "small": [
        ("t.small", "t.small"),
        ("t.id % 7", "t.id % 7"),
        ("t.amount", "trunc(t.amount)"),
        ("2.7", "2"),
        ("NULL", "NULL"),
        ("CASE WHEN t.flag THEN -1.9 ELSE 300000 END", "CASE WHEN t.flag THEN -1 ELSE 300000 END"),
    ],
    "amount": [
        ("t.amount", "t.amount"),
        ("t.small", "t.small"),
        ("t.amount * 1.125", "t.amount * 1.125"),
        ("0.005", "0.005"),
        ("1.005e0", "1.005"),
        ("NULL", "NULL"),
    ],
    "name": [
        ("t.name", "t.name"),
        ("t.small", "t.small"),
        ("t.amount", "t.amount"),
        ("t.day", "t.day"),
        ("t.at", "t.at"),
        ("t.flag", "t.flag"),
        ("'it''s'", "'it''s'"),
        ("NULL", "NULL"),
    ],
    "day": [("t.day", "t.day"), ("t.at", "t.at"), ("DATE '2026-11-03'", "DATE '2026-11-03'"), ("NULL", "NULL")],
    "at": [("t.at", "t.at"), ("t.day", "t.day"), ("NULL", "NULL")],
    "score": [("t.score", "t.score"), ("t.small", "t.small"), ("t.amount", "t.amount"), ("NULL", "NULL")],
    "flag": [("t.flag", "t.flag"), ("t.small > 2", "t.small > 2"), ("NULL", "NULL")],
    "part": [
        ("t.part", "t.part"),
        ("'p1'", "'p1'"),
        ("coalesce(t.name, 'n')", "coalesce(t.name, 'n')"),
        ("NULL", "NULL"),
    ],
}
CONDITIONS = (
    "t.small > 2",
    "t.part = 'p1'",
    "t.flag",
    "t.day IS NULL",
    "t.amount < 1",
    "t.id % 3 = 0",
    "1 = 1",
    "1 = 0",
)


@dataclass(frozen=True)
class Target:
    name: str
    key: tuple[str, ...] = ()
    is_partitioned: bool = False


TARGETS = (Target("k", key=("id",)), Target("kp", key=("id", "part"), is_partitioned=True),
           Target("p", is_partitioned=True), Target("q"))  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, module_catalog_url: str) -> Iterator[Lake]:
    warehouse: Path = tmp_path_factory.mktemp("lake")
    with lakelib.connect(warehouse=str(warehouse), catalog=module_catalog_url) as lake:
        lake.sql("CREATE NAMESPACE x")
        yield lake


@pytest.fixture(scope="module")
def plain(lake: Lake, chance: random.Random) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's tables, and DuckDB's with the same rows."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for target in TARGETS:
            key = ", PRIMARY KEY (id)" if target.key else ""
            partitions = "PARTITIONED BY (part)" if target.is_partitioned else ""
            lake.sql(f"CREATE TABLE x.{target.name} ({columns}{key}) {partitions} OPTIONS (min_bucket_file_bytes = 0)")
            given = rows(chance, range(25)).select(list(COLUMNS))
            lake.table(f"x.{target.name}").append(given)
            put(db, target.name, given)
        yield db


class Writer:
    """Writes a statement, and does the same to DuckDB's tables."""

    def __init__(self, chance: random.Random, db: duckdb.DuckDBPyConnection) -> None:
        self._chance = chance
        self._db = db

    def one(self, *choices: object) -> object:
        return self._chance.choice(choices)

    def columns(self, target: Target, *, without_part: bool) -> list[str]:
        chosen = [name for name in COLUMNS if name in ("id", "part") or self._chance.random() < 0.6]
        self._chance.shuffle(chosen)
        return [name for name in chosen if not (without_part and name == "part")]

    def select(self, target: Target, columns: Sequence[str]) -> tuple[str, str]:
        """The query, ours and DuckDB's. In that of a table with a key each is once."""
        source = "k" if target.key else self._chance.choice(TARGETS).name
        pairs = {name: self._chance.choice(SOURCES[name]) for name in columns if name != "id"}
        shift = self._chance.choice((0, 0, 10, 60))
        pairs["id"] = (f"t.id + {shift}", f"t.id + {shift}")
        where = f"FROM {{x}}{source} t WHERE {self._chance.choice(CONDITIONS)}"
        ours = ", ".join(f"{pairs[name][0]} AS {name}" for name in columns)
        theirs = ", ".join(
            f'CAST({pairs[name][1]} AS {DUCK.get(COLUMNS[name], COLUMNS[name])}) AS "{name}"' for name in columns
        )
        return f"SELECT {ours} {where.format(x='x.')}", f"SELECT {theirs} {where.format(x='')}"

    def statement(self, target: Target) -> str:
        makes = [self.insert, self.insert, self.overwrite]
        if target.is_partitioned:
            makes += [self.static, self.dynamic]
        return self._chance.choice(makes)(target)

    def insert(self, target: Target) -> str:
        columns = self.columns(target, without_part=False)
        if self._chance.random() < 0.3:
            columns = list(COLUMNS)
        ours, theirs = self.select(target, columns)
        self._put(target, columns, theirs)
        if columns == list(COLUMNS):
            return f"INSERT INTO x.{target.name} {ours}"
        if self._chance.random() < 0.4:
            return f"INSERT INTO x.{target.name} BY NAME {ours}"
        return f"INSERT INTO x.{target.name} ({', '.join(columns)}) {ours}"

    def overwrite(self, target: Target) -> str:
        columns = self.columns(target, without_part=False)
        ours, theirs = self.select(target, columns)
        self._put(target, columns, theirs, gone="true")
        return f"INSERT OVERWRITE x.{target.name} ({', '.join(columns)}) {ours}"

    def static(self, target: Target) -> str:
        columns = self.columns(target, without_part=True)
        ours, theirs = self.select(target, columns)
        value = self._chance.choice(("'p1'", "''", "NULL", "'new'"))
        self._put(
            target,
            [*columns, "part"],
            f"SELECT *, CAST({value} AS VARCHAR) FROM ({theirs})",
            gone=f"part IS NOT DISTINCT FROM {value}",
        )
        return f"INSERT OVERWRITE x.{target.name} PARTITION (part = {value}) ({', '.join(columns)}) {ours}"

    def dynamic(self, target: Target) -> str:
        columns = self.columns(target, without_part=False)
        ours, theirs = self.select(target, columns)
        gone = f"EXISTS (SELECT 1 FROM came c WHERE c.part IS NOT DISTINCT FROM {target.name}.part)"
        self._put(target, columns, theirs, gone=gone)
        return f"INSERT OVERWRITE x.{target.name} PARTITION (part) ({', '.join(columns)}) {ours}"

    def _put(self, target: Target, columns: Sequence[str], query: str, gone: str = "false") -> None:
        named = ", ".join(f'"{name}"' for name in columns)
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE came AS SELECT * FROM ({query}) AS q({named})")
        self._db.execute(f"DELETE FROM {target.name} WHERE {gone}")
        if target.key:
            same = " AND ".join(f"c.{name} IS NOT DISTINCT FROM {target.name}.{name}" for name in target.key)
            self._db.execute(f"DELETE FROM {target.name} WHERE EXISTS (SELECT 1 FROM came c WHERE {same})")
        self._db.execute(f"INSERT INTO {target.name} ({named}) SELECT {named} FROM came")


def held(lake: Lake, name: str) -> list[str]:
    return plainly(lake.table(f"x.{name}").scan().to_arrow())


def expected(db: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    return plainly(db.execute(f"FROM {name}").to_arrow_table())


def test_tables_hold_what_duckdbs_own_hold(lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random) -> None:
    writer = Writer(chance, plain)
    for _ in range(STATEMENTS):
        target = chance.choice(TARGETS)
        if len(expected(plain, target.name)) > 300:
            lake.sql(f"TRUNCATE TABLE x.{target.name}")
            plain.execute(f"TRUNCATE {target.name}")
        statement = writer.statement(target)
        lake.sql(statement)
        assert held(lake, target.name) == expected(plain, target.name), statement


def test_tables_made_of_queries_hold_their_rows(
    lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random
) -> None:
    writer = Writer(chance, plain)
    for number in range(STATEMENTS // 5):
        target = Target("made", key=("id",) if chance.random() < 0.5 else ())
        columns = writer.columns(target, without_part=False)
        ours, _ = writer.select(target, columns)
        ours = ours.replace(" NULL AS", " CAST(NULL AS DATE) AS")
        options = "OPTIONS (primary_key = id)" if target.key else "PARTITIONED BY (part)"
        lake.sql(f"CREATE TABLE x.made{number} {options} AS {ours}")
        assert held(lake, f"made{number}") == plainly(lake.sql(ours).to_arrow()), ours


def test_statements_of_a_transaction_do_what_they_do_one_after_the_other(
    lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random
) -> None:
    """Or are refused, and nothing has changed."""
    done = 0
    for _ in range(TRANSACTIONS):
        before = {target.name: held(lake, target.name) for target in TARGETS}
        plain.execute("BEGIN")
        writer = Writer(chance, plain)
        some = chance.sample(TARGETS, 2)
        statements = [writer.statement(chance.choice(some)) for _ in range(chance.choice((2, 3)))]
        try:
            with lake.transaction() as tx:
                for each in statements:
                    tx.sql(each)
            plain.execute("COMMIT")
            done += 1
        except ConflictError:
            plain.execute("ROLLBACK")
            assert {target.name: held(lake, target.name) for target in TARGETS} == before, statements
        for target in TARGETS:
            assert held(lake, target.name) == expected(plain, target.name), statements
    assert done > TRANSACTIONS / 5, "some have to be possible"
