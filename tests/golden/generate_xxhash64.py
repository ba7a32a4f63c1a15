"""Writes xxhash64.json: what real Spark answers for xxhash64(columns). Run by hand, with pyspark and Java at hand:

    python tests/golden/generate_xxhash64.py

A case holds the columns' types, rows of raw values, and a signed hash a row. Raw values are integers for integers,
dates (days), timestamps (microseconds) and decimals (unscaled); hexadecimal text for binaries; null for NULL.
"""

import json
import random
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

TARGET = Path(__file__).with_name("xxhash64.json")
SEED = 7
EXACT = Context(prec=60)

INT_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
ALPHABET = "abcXYZ019 -_/é€ß漢字😀\x00\x7f"
CHAINS = (
    ("int", "bigint"),
    ("bigint", "int"),
    ("string", "bigint"),
    ("bigint", "string"),
    ("date", "string", "decimal(38,10)"),
    ("decimal(38,10)", "date", "string"),
    ("boolean", "tinyint", "smallint", "binary"),
    ("timestamp", "string", "string"),
    ("binary", "timestamp_ntz", "decimal(18,4)", "boolean"),
)


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    cases = [hash_with_spark(spark, types, rows) for types, rows in all_cases(random.Random(SEED))]
    lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
    TARGET.write_text(f"[\n{lines}\n]\n")
    spark.stop()


def all_cases(rng: random.Random) -> Iterator[tuple[tuple[str, ...], list[list[Any]]]]:
    single = (*INT_BITS, "boolean", "date", "timestamp", "timestamp_ntz", "string", "binary")
    decimals = (
        "decimal(1,0)",
        "decimal(9,2)",
        "decimal(18,0)",
        "decimal(18,4)",
        "decimal(19,0)",
        "decimal(38,10)",
        "decimal(38,0)",
    )
    for type_text in (*single, *decimals):
        yield (type_text,), [[value] for value in (*values_of(type_text, rng), None)]
    for types in CHAINS:
        pools = [values_of(type_text, rng) for type_text in types]
        yield types, [[None if rng.random() < 0.15 else rng.choice(pool) for pool in pools] for _ in range(40)]


def values_of(type_text: str, rng: random.Random) -> list[Any]:
    if type_text in INT_BITS:
        return integers(INT_BITS[type_text], rng)
    if type_text.startswith("decimal"):
        return unscaled(int(type_text[8:].split(",")[0]), rng)
    match type_text:
        case "boolean":
            return [True, False]
        case "date":
            return [
                0,
                1,
                -1,
                19_000,
                -19_000,
                -719_162,
                2_932_896,
                *(rng.randrange(-719_162, 2_932_896) for _ in range(10)),
            ]
        case "timestamp" | "timestamp_ntz":
            first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
            return [
                0,
                1,
                -1,
                -1_000_001,
                first,
                last,
                9_300_000_000_000_000,
                *(rng.randrange(first, last) for _ in range(10)),
            ]
        case "string":
            return [*texts(rng), "", "a", "a\x00", "Ünïcödé", "日本語のキー", "😀" * 9]
        case _:
            return [rng.randbytes(length).hex() for length in range(71)]


def integers(bits: int, rng: random.Random) -> list[int]:
    top = 1 << (bits - 1)
    return [0, 1, -1, 42, top - 1, -top, *(rng.randrange(-top, top) for _ in range(10))]


def unscaled(precision: int, rng: random.Random) -> list[int]:
    """Powers of two and their neighbours change the number of bytes of a BigInteger."""
    limit = 10**precision
    edges = [(1 << bits) + step for bits in range(7, 127, 8) for step in (-1, 0, 1)]
    small = [0, 1, -1, limit - 1, 1 - limit]
    return (
        small
        + [sign * edge for edge in edges for sign in (1, -1) if edge < limit]
        + [rng.randrange(-limit + 1, limit) for _ in range(10)]
    )


def texts(rng: random.Random) -> list[str]:
    """One ASCII text of every length up to 70, and mixed ones."""
    plain = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(length)) for length in range(71)]
    return plain + ["".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 40))) for _ in range(30)]


def hash_with_spark(spark: SparkSession, types: tuple[str, ...], rows: list[list[Any]]) -> dict[str, Any]:
    fields = ", ".join(f"c{at} {raw_type(type_text)}" for at, type_text in enumerate(types))
    given = [
        (at, *(raw_value(type_text, value) for type_text, value in zip(types, row, strict=True)))
        for at, row in enumerate(rows)
    ]
    frame = spark.createDataFrame(given, f"row int, {fields}").coalesce(1)
    arguments = ", ".join(column_of(type_text, f"c{at}") for at, type_text in enumerate(types))
    hashed = frame.selectExpr("row", f"xxhash64({arguments}) as hash").orderBy("row").collect()
    return {"types": list(types), "rows": rows, "hashes": [row["hash"] for row in hashed]}


def raw_type(type_text: str) -> str:
    return {"date": "int", "timestamp": "bigint", "timestamp_ntz": "bigint"}.get(type_text, type_text)


def raw_value(type_text: str, value: Any) -> Any:
    if value is None:
        return None
    if type_text.startswith("decimal"):
        return Decimal(value).scaleb(-int(type_text[8:-1].split(",")[1]), EXACT)
    return bytes.fromhex(value) if type_text == "binary" else value


def column_of(type_text: str, name: str) -> str:
    match type_text:
        case "date":
            return f"date_from_unix_date({name})"
        case "timestamp":
            return f"timestamp_micros({name})"
        case "timestamp_ntz":
            return f"cast(timestamp_micros({name}) as timestamp_ntz)"
        case _:
            return name


if __name__ == "__main__":
    main()
