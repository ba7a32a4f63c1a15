"""A process in a time zone of its own that has Spark write constants, run by test_constants.

`python -m tests.spark.constant_writer CATALOG WAREHOUSE` prints JSON: by time zone of the session the raw values of the
constants that a frame was given, and those that overwrites of single partitions have stored.
"""

import json
import sys
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import lakelib
from lakelib import Lake
from lakelib.rows.raw_arrays import arrow_values
from lakelib.rows.values import python_value, raw_value, raw_values
from lakelib.work.spark.frames import open_frame

SESSION_ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe")

_MOMENTS = (
    "2026-11-18T05:00:00",
    "2026-03-08T02:00:00",  # New York has no such hour
    "2026-11-01T01:30:00.000001",  # and this one twice
    "2026-10-04T02:15:00",  # Lord Howe has no such half hour
    "1969-12-31T23:59:59.999999",
    "1883-11-18T12:03:58",  # local mean times end
    "1582-10-10T00:00:00",
    "1500-02-28T12:00:00",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
)
_RAW_MOMENTS = [raw_value("timestamp_ntz", text) for text in _MOMENTS]

VALUES: dict[str, list[Any]] = {
    "timestamp": _RAW_MOMENTS,
    "timestamp_ntz": _RAW_MOMENTS,
    "date": [
        *((datetime.fromisoformat(text).date() - date(1970, 1, 1)).days for text in _MOMENTS),
        *(date(1582, 10, day).toordinal() - date(1970, 1, 1).toordinal() for day in (4, 5, 14, 15)),
    ],
    "decimal(38,10)": [0, 1, -(10**38) + 1, 10**38 - 1, 12_345],
    "decimal(5,0)": [7, -99_999],
    "string": ["", "it's", '"quoted"', "back\\slash", "`tick`", "a\nb", "日本 😀", "NULL", "${x}", "%s"],
    "binary": [b"", b"\x00\xff", b"it's", "ü".encode()],
    "boolean": [True, False],
    "tinyint": [-128, 127],
    "smallint": [-(2**15)],
    "int": [2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
}
"""Raw values by type; NULL is one more."""

FAR: dict[str, list[int]] = {
    "timestamp": [-62_135_596_800_000_001, 253_402_300_800_000_000, 2**62],
    "timestamp_ntz": [-62_135_596_800_000_001, 253_402_300_800_000_000, 2**62],
    "date": [-719_163, 2_932_897, 10_000_000],
}
"""Beyond what Python's own classes hold."""

STORED = tuple(VALUES)
ROUNDS = 4


def stored_values(round_number: int) -> dict[str, Any]:
    """One value a type: what an overwrite is told to replace."""
    return {kind: ([*values, None])[round_number % (len(values) + 1)] for kind, values in VALUES.items()}


def main(catalog: str, warehouse: str) -> None:
    session = SparkSession.builder.master("local[1]")
    for name, value in {"driver.host": "127.0.0.1", "driver.memory": "1g", "ui.enabled": "false"}.items():
        session = session.config(f"spark.{name}", value)
    spark = session.config("spark.log.level", "ERROR").getOrCreate()
    found: dict[str, Any] = {}
    with lakelib.connect(warehouse=warehouse, catalog=catalog) as lake:
        lake.create_namespace("shop")
        for number, zone in enumerate(SESSION_ZONES):
            spark.conf.set("spark.sql.session.timeZone", zone)
            found[zone] = {"framed": _framed(spark), "stored": _stored(spark, lake, number)}
    spark.stop()
    print(json.dumps(found, default=bytes.hex))


def _framed(spark: SparkSession) -> dict[str, list[Any]]:
    """The constants as Spark's tasks are given them."""
    return raws_by_type(frame_of_constants(spark).toArrow())


def frame_of_constants(spark: Any) -> Any:
    """A row of all values, a column each."""
    constants = {
        f"{kind} {number}": arrow_values(kind, [raw])[0]
        for kind, raws in all_values().items()
        for number, raw in enumerate(raws)
    }
    return open_frame(spark.range(1).toDF("id")).with_constants(constants).frame


def all_values() -> dict[str, list[Any]]:
    """Raw values by type, NULL among them."""
    return {kind: [*values, *FAR.get(kind, []), None] for kind, values in VALUES.items()}


def raws_by_type(rows: pa.Table) -> dict[str, list[Any]]:
    """What there is in the row of constants."""
    given = {name: raw_values(rows.column(name).combine_chunks())[0] for name in rows.column_names}
    return {kind: [raw for name, raw in given.items() if name.rpartition(" ")[0] == kind] for kind in VALUES}


def _stored(spark: SparkSession, lake: Lake, number: int) -> list[dict[str, Any]]:
    """What overwrites of one partition each have stored, round by round."""
    names = {kind: f"p{place}" for place, kind in enumerate(STORED)}
    ddl = ", ".join(["id bigint", *(f"{name} {kind}" for kind, name in names.items())])
    table = lake.create_table(f"shop.t{number}", ddl, partition_by=list(names.values()))
    for round_number in range(ROUNDS):
        values = stored_values(round_number)
        partition = {names[kind]: None if raw is None else python_value(kind, raw) for kind, raw in values.items()}
        table.overwrite(spark.range(round_number, round_number + 1).toDF("id"), partition)
    rows = table.scan().to_arrow().sort_by("id")
    columns = {kind: raw_values(rows.column(name).combine_chunks()) for kind, name in names.items()}
    return [{kind: column[round_number] for kind, column in columns.items()} for round_number in range(ROUNDS)]


if __name__ == "__main__":
    main(*sys.argv[1:])
