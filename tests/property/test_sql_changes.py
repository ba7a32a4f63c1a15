"""UPDATE, DELETE and MERGE leave in tables of the lake what they leave in DuckDB's own: random rows, random statements.

LAKE_SQL_STATEMENTS says how many; a statement after which they differ is shown, and LAKE_SQL_SEED repeats a run.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake
from lakelib.ops import revise_plan
from tests.property.test_sql import SCHEMA, STATEMENTS, Writer, plainly, put, rows

KEYED = ("keyed", "split")
OTHERS = (*KEYED, "plain", "merged", "mixed")
OWN_TABLES = ("keyed", "split", "loose")
_WORTH_COUNTING = 40
"""Of fewer statements chance says how many change something."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, module_catalog_url: str) -> Iterator[Lake]:
    warehouse: Path = tmp_path_factory.mktemp("lake")
    with lakelib.connect(warehouse=str(warehouse), catalog=module_catalog_url) as lake:
        lake.create_namespace("x")
        options = {"min_bucket_file_bytes": 0, "row_group_rows": 16}
        lake.create_table("x.keyed", SCHEMA, primary_key=["id"], buckets=2, options=options)
        lake.create_table("x.split", SCHEMA, primary_key=["id"], partition_by=["part"], options=options)
        lake.create_table("x.loose", SCHEMA, partition_by=["day"], options=options)
        for name in ("plain", "merged", "mixed"):
            lake.create_table(f"x.{name}", SCHEMA, primary_key=["id"])
        yield lake


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        yield db


def fill(lake: Lake, plain: duckdb.DuckDBPyConnection, name: str, found: pa.Table) -> None:
    """The rows in the table of the lake, some of them written twice, and in DuckDB's."""
    table = lake.table(f"x.{name}")
    table.overwrite(found)
    if table.primary_key:
        table.upsert(found.slice(0, found.num_rows // 3))
    put(plain, name, found)


class Changer(Writer):
    def change(self) -> tuple[str, str]:
        """A statement, and the table that it changes."""
        kind = self.one("update", "update", "delete", "merge", "merge", "merge")
        name = self.one(*KEYED) if kind == "merge" or self._chance.random() < 0.8 else "loose"
        return {"update": self.update, "delete": self.delete, "merge": self.merge}[kind](name), name

    def update(self, name: str) -> str:
        condition = self.condition if name in KEYED else self.understood
        where = f" WHERE {condition('t')}" if self._chance.random() < 0.9 else ""
        return f"UPDATE {{x}}{name} AS t SET {self.set('t', is_loose=name == 'loose')}{where}"

    def delete(self, name: str) -> str:
        condition = self.condition("t") if name in KEYED else self.understood("t")
        return (
            f"DELETE FROM {{x}}{name} AS t WHERE {condition} AND t.id % 3 = {self.one(0, 1)}"
            if (name in KEYED)
            else f"DELETE FROM {{x}}{name} AS t WHERE {condition}"
        )

    def understood(self, alias: str) -> str:
        """What the predicate of a scan says."""
        return str(
            self.one(
                f"{alias}.small {self.one('=', '<', '>=')} {self.one(0, 1, 4)}", f"{alias}.name IS NULL",
                f"{alias}.score > {self.one(0, 1.5)}", f"{alias}.day = DATE '2026-11-03'", f"{alias}.flag",
                f"{alias}.amount BETWEEN -2 AND 3 OR {alias}.id IN (1, 2, 3)", f"NOT ({alias}.score <= 1.5)",
            )
        )  # fmt: skip

    def set(self, alias: str, other: str | None = None, *, is_loose: bool = False) -> str:
        names = [name for name in SCHEMA.names if name != "id" and (is_loose or name != "part")]
        chosen = self._chance.sample(names, self.one(1, 2, 3))
        may_ask = other is None
        sides = [self.one(alias, other or alias) for _ in chosen]
        return ", ".join(
            f"«{name}» = {self.stored(name, side, may_ask=may_ask)}" for name, side in zip(chosen, sides, strict=True)
        )

    def stored(self, name: str, alias: str, *, may_ask: bool = True) -> str:
        """What may be stored in the column. DuckDB takes no query there in a MERGE: it fails, or ends."""
        choices: dict[str, tuple[str, ...]] = {
            "id": (f"{alias}.id",),
            "part": (f"{alias}.part", "'p1'", "NULL"),
            "small": (f"{alias}.small + 1", f"{alias}.id - 3", "7", f"coalesce({alias}.small, 2)"),
            "amount": (f"{alias}.amount * 0.15", f"{alias}.small", "1.255", f"{alias}.amount - {alias}.small"),
            "wide": (f"{alias}.wide - {alias}.amount", f"{alias}.amount", "123456789012.34567"),
            "name": (f"upper({alias}.name)", f"{alias}.name || 'x'", "'it''s'", f"substring({alias}.name, 1, 3)"),
            "day": ("DATE '2024-02-29'", f"{alias}.at", f"{alias}.day"),
            "at": (f"{alias}.at + INTERVAL 1 HOUR", f"{alias}.day", "TIMESTAMP '1970-01-01 00:00:00.000001'"),
            "score": (f"{alias}.score * 2", f"{alias}.small", f"{alias}.amount"),
            "flag": (f"NOT {alias}.flag", f"{alias}.small > 2", f"{alias}.name IS NULL"),
            "nested": (f"{alias}.nested", "NULL"),
        }
        if name == "id":
            return choices[name][0]
        if name == "small" and may_ask and self._chance.random() < 0.2:
            return f"(SELECT max(m.small) FROM {{x}}plain m WHERE m.flag = {alias}.flag)"
        return str(self.one(*choices[name], "NULL", f"{alias}.{name}"))

    def merge(self, name: str) -> str:
        shift = self.one("i.id", "i.id + 7", "i.id * 2")
        rest = ", ".join(f"i.{each}" for each in SCHEMA.names[1:])
        source = f"(SELECT {shift} AS id, {rest} FROM {{x}}{self.one(*OTHERS)} i{self.where('i')})"
        clauses = self.matched() + self.missing() + self.lone()
        if not clauses:
            clauses = ["WHEN MATCHED THEN DELETE"]
        inserts = any("INSERT" in each for each in clauses)
        on = "t.id = s.id"
        if not inserts:
            on = self.one(on, on, f"t.id = s.id AND {self.bare('s')}", f"s.id = t.id AND {self.bare('t')}")
        return f"MERGE INTO {{x}}{name} AS t USING {source} AS s ON ({on}) {' '.join(clauses)}"

    def matched(self) -> list[str]:
        found = [
            f"WHEN MATCHED AND {self.bare(self.one('s', 't'))} THEN {self.one('DELETE', self.setting())}"
            for _ in range(self.one(0, 1, 2))
        ]
        return found + self.one([], [f"WHEN MATCHED THEN {self.setting()}"], ["WHEN MATCHED THEN DELETE"])

    def setting(self) -> str:
        return f"UPDATE SET {self.set('t', 's')}"

    def missing(self) -> list[str]:
        names = ["id", "part", *self._chance.sample(SCHEMA.names[2:], 3)]
        values = ", ".join(self.stored(name, "s", may_ask=False) for name in names)
        whole = ", ".join(f"«{name}»" for name in SCHEMA.names)
        insert = self.one(
            f"INSERT ({', '.join(f'«{name}»' for name in names)}) VALUES ({values})",
            f"INSERT ({whole}) VALUES ({', '.join(f's.{name}' for name in SCHEMA.names)})",
        )
        first = self.one([], [f"WHEN NOT MATCHED AND {self.bare('s')} THEN {insert}"])
        return first + self.one([], [f"WHEN NOT MATCHED THEN {insert}"])

    def lone(self) -> list[str]:
        then = self.one("DELETE", f"UPDATE SET {self.set('t')}")
        return self.one([], [], [f"WHEN NOT MATCHED BY SOURCE AND {self.bare('t')} THEN {then}"])


def of_lake(statement: str) -> str:
    return statement.replace("{x}", "x.").replace("«", "`").replace("»", "`")


def of_duckdb(statement: str) -> str:
    return statement.replace("{x}", "").replace("«", '"').replace("»", '"')


@pytest.mark.parametrize("many", [False, True], ids=["few keys", "many keys"])
def test_a_change_leaves_what_duckdb_leaves_in_its_own_tables(
    lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    if many:  # whatever is few
        monkeypatch.setattr(revise_plan, "_MOST_KEYS", 0)
        monkeypatch.setattr(revise_plan, "_MOST_HELD_SHARE", 1)
    compare(lake, plain, chance, max(20, STATEMENTS // 10))


def compare(lake: Lake, plain: duckdb.DuckDBPyConnection, chance: random.Random, count: int) -> None:
    """So many statements."""
    writer = Changer(chance)
    changed = refused = 0
    for number in range(count):
        if number % 25 == 0:
            for name in ("keyed", "split", "plain", "merged", "mixed", "loose"):
                fill(lake, plain, name, rows(chance, range(chance.randrange(30))))
        statement, name = writer.change()
        before = plainly(plain.execute(f"FROM {name}").to_arrow_table())
        try:
            plain.execute(of_duckdb(statement))
        except duckdb.Error as error:  # a value that has no room; a read of a table that is being changed
            print(statement, error)
            refused += 1
            with pytest.raises(lakelib.LakeError):
                lake.sql(of_lake(statement))
            assert plainly(lake.table(f"x.{name}").scan().to_arrow()) == before, statement
            continue
        told = lake.sql(of_lake(statement)).to_arrow().to_pylist()
        expected = plainly(plain.execute(f"FROM {name}").to_arrow_table())
        assert plainly(lake.table(f"x.{name}").scan().to_arrow()) == expected, (statement, told)
        changed += expected != before
    print(f"{changed} changed, {refused} refused, of {count}")
    if count >= _WORTH_COUNTING:
        assert changed > count / 4, "most statements have to change something"
        assert refused < count / 4
