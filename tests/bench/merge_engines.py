"""The measurements of merge engines: a read and a compaction of the same orders and upserts, beside a table that
deduplicates."""

from collections.abc import Iterator, Mapping
from typing import Any

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_table, make_upsert, orders_schema
from tests.bench.lab import Lab, interleave, seconds_of
from tests.bench.report import Line, at_most_times

_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_UPSERTS = 4
_QUICK_DIVISOR = 10
_ROUNDS = 5
_COMPACTIONS = 3

_USUAL = "deduplicate"
_MERGES: Mapping[str, tuple[Any, float]] = {
    "first_row": ("first_row", 1.2),
    "partial_update": (
        {
            "engine": "partial_update",
            "groups": [{"sequence": ["updated_at"], "columns": ["status", "quantity"]}],
        },
        2,
    ),
    "aggregate": (
        {
            "engine": "aggregate",
            "functions": {"amount": "sum", "customer": "max", "quantity": "last", "updated_at": "max"},
        },
        2,
    ),
}
"""And how many times as long as the usual one a read may take."""

_MOST_OF_COMPACTION = 1.5


def measure_merge_engines(lab: Lab) -> Iterator[Line]:
    """All columns of all rows are read."""
    rows = _ROWS // (_QUICK_DIVISOR if lab.quick else 1)
    tables = {name: _make(lab, name, merge, rows) for name, merge in _with_usual().items()}
    times = interleave(_ROUNDS, [_read(table) for table in tables.values()])
    reads = {name: min(seconds) for name, seconds in zip(tables, times, strict=True)}
    for name, (_, bar) in _MERGES.items():
        title = f"{name}: read {rows:,} rows and {_UPSERTS} upserts"
        yield at_most_times(title, reads[name], reads[_USUAL], bar, f"peer: {_USUAL}; all columns")
    compactions = {name: [seconds_of(lambda table=table: table.compact(full=True))] for name, table in tables.items()}
    for round_ in range(1, _COMPACTIONS):
        for name, merge in _with_usual().items():
            table = _make(lab, f"{name}_{round_}", merge, rows)
            compactions[name].append(seconds_of(lambda table=table: table.compact(full=True)))
    for name in _MERGES:
        yield at_most_times(
            f"{name}: compaction of {rows:,} rows after {_UPSERTS} upserts",
            min(compactions[name]),
            min(compactions[_USUAL]),
            _MOST_OF_COMPACTION,
            f"peer: {_USUAL}",
        )


def _with_usual() -> dict[str, Any]:
    return {_USUAL: _USUAL, **{name: merge for name, (merge, _) in _MERGES.items()}}


def _make(lab: Lab, name: str, merge: Any, rows: int) -> Table:
    table = lab.lake.create_table(
        f"bench.merge_{name}",
        orders_schema("int64"),
        primary_key=["order_id"],
        partition_by=["dt"],
        buckets=BUCKETS,
        merge=merge,
    )
    table.upsert(make_table(rows, "int64"))
    for number in range(_UPSERTS):
        table.upsert(make_upsert(rows * _UPSERT_ROWS // _ROWS, rows, "int64", number))
    return table


def _read(table: Table) -> Any:
    return lambda: table.scan().to_arrow()
