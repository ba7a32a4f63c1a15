"""Random histories of a table: rows of every type, partitions of odd values, changes of every kind. What other engines
read of them is compared with a scan."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelib import InvalidInputError, Table

SCHEMA = (
    "id bigint NOT NULL, part string, flag boolean, tiny tinyint, small smallint, number int, ratio float,"
    " amount double, price decimal(12,3), name string, raw binary, day date, moment timestamp, wall timestamp_ntz,"
    " tags array<string>, more map<string,int>, deep struct<a:int,b:struct<c:string>>"
)
PARTS = (None, "a", "b/c", "%41", "a=b", "ü ", "a,b", "007")

TABLES: dict[str, dict[str, Any]] = {
    "without a key": {},
    "with a key": {"primary_key": ["id"], "buckets": 2},
    "with a sequence": {"primary_key": ["id"], "sequence_by": ["moment"]},
}


def change_once(table: Table, chance: random.Random, *, renames_partition: bool = False) -> None:
    """One operation of those that a table's history may have."""
    data = _some_rows(chance, table.schema)
    head = table.head.id if table.head else 0
    name = next(each for each in table.schema.names if each in ("name", "title"))
    part = table.partition_by[0]
    works: dict[str, Callable[[], object]] = {
        "append": lambda: table.append(data),
        "upsert": lambda: table.upsert(data),
        "again": lambda: table.append(data, idempotency_key=("loader", head)),
        "dynamic": lambda: table.overwrite(data, partitions="dynamic"),
        "all": lambda: table.overwrite(data),
        "delete": lambda: table.delete(f"id < {chance.randrange(10)}"),
        "part": lambda: table.delete(f"{part} = 'b/c'"),
        "compact": lambda: table.compact(full=True),
        "rollback": lambda: table.rollback(chance.randrange(1, head + 1)) if head else None,
        "rename": lambda: table.evolve(rename={name: "title" if name == "name" else "name"}),
        "rename part": lambda: table.evolve(rename={part: "piece" if part == "part" else "part"}),
        "widen": lambda: table.evolve(widen={"tiny": "smallint", "number": "bigint", "ratio": "double"}),
        "add": lambda: table.evolve(add=[(f"c{head}", "string")]),
        "drop": lambda: table.evolve(drop=["raw"]) if "raw" in table.schema.names else None,
    }
    weights = {"append": 6, "upsert": 6, "compact": 3}
    kinds = [kind for kind in works if kind not in ("rename", "widen") or chance.random() < 0.3]
    if not renames_partition:
        kinds.remove("rename part")
    if not table.primary_key:
        kinds.remove("upsert")
    kind = chance.choices(kinds, [weights.get(each, 1) for each in kinds])[0]
    try:
        works[kind]()
    except InvalidInputError:
        assert kind == "widen"


def _some_rows(chance: random.Random, schema: pa.Schema) -> pa.Table:
    def row() -> dict[str, Any]:
        number = chance.randrange(40)
        full = {
            "id": number,
            **dict.fromkeys(("part", "piece"), chance.choice(PARTS)),
            "flag": chance.choice((True, False, None)),
            "tiny": chance.randrange(-128, 128),
            "small": chance.randrange(-(2**15), 2**15),
            "number": chance.randrange(-(2**31), 2**31),
            "ratio": chance.choice((0.5, -0.0, float("inf"), None)),
            "amount": chance.choice((1e300, -1.25, 0.1, None)),
            "price": Decimal(chance.randrange(-(10**11), 10**11)).scaleb(-3),
            "name": chance.choice(("", "é", "x" * 70, '"quoted"\\\n', "\u2028", None)),
            "raw": chance.choice((b"\x00\xff", b"", None)),
            "day": date(chance.randrange(1, 9999), 1, 31),
            "moment": datetime(chance.randrange(1700, 2200), 1, 1, 1, 2, 3, chance.randrange(10**6), tzinfo=UTC),
            "wall": datetime(chance.randrange(1700, 2200), 6, 1, 1, 2, 3, chance.randrange(10**6)),
            "tags": chance.choice((["a", None], [], None)),
            "more": chance.choice(([("k", number)], None)),
            "deep": chance.choice(({"a": number, "b": {"c": "x"}}, None)),
        }
        return {name: full.get(name) for name in schema.names}

    found = [row() for _ in range(chance.randrange(1, 6))]
    return pa.Table.from_pylist(found, schema=schema)
