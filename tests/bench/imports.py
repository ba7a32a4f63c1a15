"""The measurements of imports: a Delta table becomes a lake table, beside our own load of the same rows."""

import shutil
from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from deltalake import write_deltalake

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_table, orders_schema
from tests.bench.lab import Lab, seconds_of
from tests.bench.report import Line, at_most_times

_ROWS = 10_000_000
_ROUNDS = 3
_TIMES = 1.5


def measure_imports(lab: Lab) -> Iterator[Line]:
    rows = _ROWS // (10 if lab.quick else 1)
    data, source = make_table(rows, "int64"), lab.folder / "delta"
    write_deltalake(source, data, partition_by=["dt"])
    for title, key in (("keys checked", ["order_id"]), ("without a key", [])):
        imported, loaded = [], []
        for _ in range(_ROUNDS):
            imported.append(_import_seconds(lab, str(source), key))
            loaded.append(_load_seconds(lab, data, key))
        yield at_most_times(
            f"import {rows:,} rows of Delta, {title}",
            min(imported),
            min(loaded),
            _TIMES,
            f"best of {_ROUNDS}; peer: our load of the same rows from memory",
        )
    shutil.rmtree(source)


def _import_seconds(lab: Lab, source: str, key: list[str]) -> float:
    name = f"bench.imported_{uuid4().hex}"
    buckets = BUCKETS if key else None
    seconds = seconds_of(
        lambda: lab.lake.import_delta(source, name, primary_key=key, buckets=buckets), settle_disk=True
    )
    _drop(lab, lab.lake.table(name))
    return seconds


def _load_seconds(lab: Lab, data: pa.Table, key: list[str]) -> float:
    name = f"bench.loaded_{uuid4().hex}"
    table = lab.lake.create_table(
        name, orders_schema("int64"), primary_key=key, partition_by=["dt"], buckets=BUCKETS if key else None
    )
    seconds = seconds_of(lambda: table.append(data), settle_disk=True)
    _drop(lab, table)
    return seconds


def _drop(lab: Lab, table: Table) -> None:
    lab.lake.drop_table(table.name)
    shutil.rmtree(table.location.removeprefix("file://"))
