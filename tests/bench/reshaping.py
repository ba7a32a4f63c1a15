"""The measurements of what reshapes a table that is there: other buckets, and other columns in place of all rows."""

from collections.abc import Iterator

from lakelib.table import Table
from tests.bench.data import BUCKETS, make_table, make_upsert, orders_schema
from tests.bench.lab import Lab, seconds_of
from tests.bench.report import Line, at_most, at_most_times, show_seconds

_ROWS = 10_000_000
_UPSERT_ROWS = 500_000
_QUICK_DIVISOR = 10
_ROUNDS = 2
_MOST_OF_COMPACTION = 1.5
_MOST_OF_REPLACING = 0.5


def measure_reshaping(lab: Lab) -> Iterator[Line]:
    """Each table made anew: once it has its buckets, there is nothing to do."""
    rows = _ROWS // (_QUICK_DIVISOR if lab.quick else 1)
    compactions, rebuckets, replacements = [], [], []
    for round_ in range(_ROUNDS):
        compacted = _make(lab, f"bench.compacted_{round_}", rows)
        compactions.append(seconds_of(lambda table=compacted: table.compact(full=True)))
        table = _make(lab, f"bench.reshaped_{round_}", rows)
        rebuckets.append(seconds_of(lambda table=table: table.rebucket(2 * BUCKETS)))
        replacements.append(seconds_of(lambda table=table: _replace(lab, table)))
    yield at_most_times(
        f"rebucket of {rows:,} rows after an upsert, {BUCKETS} buckets to {2 * BUCKETS}",
        min(rebuckets),
        min(compactions),
        _MOST_OF_COMPACTION,
        "peer: a full compaction of the same table",
    )
    seconds = min(replacements)
    title = f"create_or_replace_table in place of {rows:,} rows"
    yield at_most(title, show_seconds(seconds), seconds, _MOST_OF_REPLACING, "s", "no file is opened")


def _make(lab: Lab, name: str, rows: int) -> Table:
    table = lab.lake.create_table(
        name, orders_schema("int64"), primary_key=["order_id"], partition_by=["dt"], buckets=BUCKETS
    )
    table.upsert(make_table(rows, "int64"))
    table.upsert(make_upsert(rows * _UPSERT_ROWS // _ROWS, rows, "int64", 0))
    return table


def _replace(lab: Lab, table: Table) -> None:
    columns = "order_id BIGINT, dt DATE, note STRING"
    lab.lake.create_or_replace_table(table.name, columns, primary_key=["order_id"], partition_by=["dt"])
    assert table.scan().count() == 0
