"""Changing rows: UPDATE of one in a hundred, MERGE of five in a hundred, beside delta-rs and DuckLake.

The rows that an update is of are told by a column that is no key, and lie in all files. A merge updates half its rows
and inserts the others: as whole rows, and with a value that is computed from what was there. DuckLake's catalog is a
file of DuckDB's, and it has its own threads, as delta-rs has.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelib import Table
from tests.bench.data import BUCKETS, make_table, make_upsert, orders_schema
from tests.bench.ducklake import connect
from tests.bench.lab import Lab, seconds_of
from tests.bench.report import Line, at_most_times

_ROWS, _MERGED_ROWS = 10_000_000, 500_000
_ROUNDS = 2
_UPDATE_BAR, _DELTA_BAR, _DUCKLAKE_BAR = 1.0, 0.3, 0.5
_SET = {"amount": "amount * 1.1", "status": "'LATE'"}
_WHERE = ("customer < 2000", "customer >= 198000")
_ON = "target.order_id = source.order_id and target.dt = source.dt"
_ADDED = {"amount": "target.amount + source.amount", "status": "source.status"}


def measure_changing(lab: Lab) -> Iterator[Line]:
    """In turns, each system on a table of its own; the best of each."""
    divisor = 10 if lab.quick else 1
    rows, merged = make_table(_ROWS // divisor, "int64"), _MERGED_ROWS // divisor
    table = lab.lake.create_table(
        "bench.changing", orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    table.upsert(rows)
    folder = lab.folder / "delta-changing"
    _write_delta(folder, rows)
    with _ducklake(lab.folder / "ducklake-changing", rows) as lake:
        del rows
        sources = [make_upsert(merged, _ROWS // divisor, "int64", number) for number in range(2 * _ROUNDS)]
        updates = [
            _seconds(lambda place=place: table.update(_SET, _WHERE[place]) for place in range(_ROUNDS)),
            _seconds(lambda place=place: _update_delta(folder, _WHERE[place]) for place in range(_ROUNDS)),
            _seconds(lambda place=place: _update_ducklake(lake, _WHERE[place]) for place in range(_ROUNDS)),
        ]
        yield from _lines("UPDATE of 1 %", updates, _UPDATE_BAR, _UPDATE_BAR)
        for title, values, own in (
            ("of whole rows", None, sources[:_ROUNDS]),
            ("of computed rows", _ADDED, sources[_ROUNDS:]),
        ):
            merges = [
                _seconds(lambda rows=rows, values=values: _merge(table, rows, values) for rows in own),
                _seconds(lambda rows=rows, values=values: _merge_delta(folder, rows, values) for rows in own),
                _seconds(lambda rows=rows, values=values: _merge_ducklake(lake, rows, values) for rows in own),
            ]
            yield from _lines(f"MERGE {title}, {merged:,}", merges, _DELTA_BAR, _DUCKLAKE_BAR)
    shutil.rmtree(folder)


def _lines(title: str, seconds: list[float], delta_bar: float, ducklake_bar: float) -> Iterator[Line]:
    ours, delta, ducklake = seconds
    yield at_most_times(title, ours, delta, delta_bar, f"best of {_ROUNDS}; peer: delta-rs")
    yield at_most_times(f"{title}, DuckLake", ours, ducklake, ducklake_bar, f"best of {_ROUNDS}; peer: DuckLake")


def _seconds(works: Iterator[Callable[[], object]]) -> float:
    return min(seconds_of(work, settle_disk=True) for work in works)


def _merge(table: Table, rows: pa.Table, values: dict[str, str] | None) -> None:
    table.merge(rows).when_matched_update(values).when_not_matched_insert().execute()


# The peers


def _write_delta(folder: Path, rows: pa.Table) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(folder), rows, partition_by=["dt"])


def _update_delta(folder: Path, where: str) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(folder)).update(predicate=where, updates=_SET)


def _merge_delta(folder: Path, rows: pa.Table, values: dict[str, str] | None) -> None:
    from deltalake import DeltaTable

    merge = DeltaTable(str(folder)).merge(rows, _ON, source_alias="source", target_alias="target")
    matched = merge.when_matched_update_all() if values is None else merge.when_matched_update(values)
    matched.when_not_matched_insert_all().execute()


@contextmanager
def _ducklake(folder: Path, rows: pa.Table) -> Iterator[Any]:
    folder.mkdir()
    with connect(folder) as db:
        db.execute(f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS peer (DATA_PATH '{folder}/data')")
        db.register("given", rows)
        db.execute("CREATE TABLE peer.orders AS FROM given LIMIT 0")
        db.execute("ALTER TABLE peer.orders SET PARTITIONED BY (dt)")
        db.execute("INSERT INTO peer.orders FROM given")
        db.unregister("given")
        yield db


def _update_ducklake(db: Any, where: str) -> None:
    listed = ", ".join(f"{name} = {value}" for name, value in _SET.items())
    db.execute(f"UPDATE peer.orders SET {listed} WHERE {where}")


def _merge_ducklake(db: Any, rows: pa.Table, values: dict[str, str] | None) -> None:
    db.register("given", rows)
    names = rows.schema.names
    chosen = values or {name: f"source.{name}" for name in names}
    listed = ", ".join(f"{name} = {value}" for name, value in chosen.items())
    db.execute(
        f"MERGE INTO peer.orders AS target USING given AS source ON ({_ON}) WHEN MATCHED THEN UPDATE SET {listed}"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f'source.{name}' for name in names)})"
    )
