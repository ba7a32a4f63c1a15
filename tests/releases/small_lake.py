"""A small lake with something of all that a catalog keeps, and what a version of lakelib reads in it.

Runs under any version: it uses what all of them have, and tells only what none may change.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelib import Lake, Table

_ORDERS = "id BIGINT, day STRING, amount DECIMAL(10, 2), version INT, note STRING"
_SUITE = """
name: few
expectations:
  - type: expect_table_row_count_to_be_between
    kwargs: {max_value: 100}
"""


def make(lake: Lake, folder: Path) -> dict[str, Any]:
    """The commits to look at again, by what they are. `folder` takes a file."""
    suite = folder / "few.yaml"
    suite.write_text(_SUITE)
    lake.create_namespace("shop")
    lake.create_namespace("empty")
    return {**_make_orders(lake), **_make_events(lake), **_make_gated(lake, suite)}


def _make_orders(lake: Lake) -> dict[str, str]:
    """With a key and an order of its own: upserts, deletes, a compaction, other columns, marks, tags, expiry."""
    orders = lake.create_table(
        "shop.orders", _ORDERS, primary_key=["id"], partition_by=["day"], sequence_by=["version"], buckets=2
    )
    for version in range(1, 5):
        orders.upsert(_orders(range(version, 20, version), version), idempotency_key=("loader", version))
    orders.tag("first", at=2)
    orders.delete("id = 6 or amount > 1700")
    orders.mark_done({"day": "mon"})
    orders.mark_done({"day": "tue"})
    orders.compact(full=True)
    orders.expire(keep_last=3, older_than=timedelta(0))
    orders.evolve(add=[("größe", "STRING")], rename={"note": "remark"})
    orders.upsert(_orders([2, 40], 9).rename_columns(["id", "day", "amount", "version", "remark"]))
    orders.tag("größe 2")
    commits = {
        "staged upsert": orders.stage_upsert(_new_orders([3, 50], 10), idempotency_key=("loader", 9)),
        "staged delete": orders.stage_delete("amount < 800"),
        "rejected": orders.stage_upsert(_new_orders([60], 1), idempotency_key=("loader", 10)),
        "taken over": orders.stage_upsert(_new_orders([70], 1), idempotency_key=("loader", 11)),
        "next attempt": orders.stage_upsert(_new_orders([71], 1), idempotency_key=("loader", 11)),
    }
    commits["rejected"].reject("looks odd")
    return {name: str(commit.id) for name, commit in commits.items()}


def _make_events(lake: Lake) -> dict[str, str]:
    """Without a key: appends, an overwrite; and a table that was dropped."""
    events = lake.create_table("shop.events", "kind STRING, count INT", partition_by=["kind"])
    events.append(pa.table({"kind": ["a", None, "", "a/b"], "count": pa.array([1, 2, 3, 4], pa.int32())}))
    events.overwrite(pa.table({"kind": ["a"], "count": pa.array([7], pa.int32())}), partitions="dynamic")
    dropped = lake.create_table("shop.dropped", "n INT")
    dropped.append(pa.table({"n": pa.array([1], pa.int32())}))
    lake.drop_table("shop.dropped")
    staged = events.stage_overwrite(pa.table({"kind": [""], "count": pa.array([8], pa.int32())}), partitions="dynamic")
    return {"staged overwrite": str(staged.id)}


def _make_gated(lake: Lake, suite: Path) -> dict[str, str]:
    """A table that requires a gate; by its name, where nothing else is known."""
    gated = lake.create_table("shop.gated", "id INT", primary_key=["id"], buckets="postpone")
    if hasattr(gated, "require_gate"):
        gated.require_gate(suite)
    else:
        gated.set_options({"required_gate": "few"})
    judged, bare = (gated.stage_upsert(pa.table({"id": pa.array([n], pa.int32())})) for n in (1, 2))
    judged.judge(suite)
    return {"judged": str(judged.id), "not judged": str(bare.id)}


def _orders(ids: Any, version: int) -> pa.Table:
    ids = list(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": [("mon", "tue", "wed")[each % 3] for each in ids],
            "amount": pa.array([f"{each * 100}.{version:02}" for each in ids]).cast(pa.decimal128(10, 2)),
            "version": pa.array([version] * len(ids), pa.int32()),
            "note": [None if each % 5 else "" for each in ids],
        }
    )


def _new_orders(ids: Any, version: int) -> pa.Table:
    return _orders(ids, version).rename_columns(["id", "day", "amount", "version", "remark"])


def told(lake: Lake, commits: dict[str, str]) -> dict[str, Any]:
    """All that can be read, as JSON has it."""
    names = {name: lake.tables(name) for name in lake.namespaces()}
    tables = [lake.table(f"{space}.{name}") for space in names for name in names[space]]
    read = {
        "tables": names,
        "content": {table.name: _told_table(table) for table in tables},
        "commits": {what: _told_commit(lake, commit_id) for what, commit_id in commits.items()},
    }
    return json.loads(json.dumps(read, default=str, sort_keys=True))  # type: ignore[no-any-return]


def _told_table(table: Table) -> dict[str, Any]:
    kept = table.history()
    return {
        "columns": [f"{field.name} {field.type}" for field in table.schema],
        "primary_key": table.primary_key,
        "partition_by": table.partition_by,
        "history": [[each.id, each.kind, each.committed_at.isoformat(), each.summary] for each in kept],
        "rows": {str(each.id): _rows(table.scan(at=each.id)) for each in kept},
        "at": [table.scan(at=each.committed_at).snapshot_id for each in kept],
        "tags": {each.name: each.snapshot_id for each in table.tags()},
        "done": [[each.values, each.snapshot_id, each.reset_at] for each in table.done_partitions(with_reset=True)],
    }


def _told_commit(lake: Lake, commit_id: str) -> dict[str, Any]:
    commit = lake.staged(commit_id)
    verdict = commit.verdict
    return {
        "state": commit.state,
        "rows": _rows(commit.scan(scope="staged")) if commit.state in ("staged", "rejected") else None,
        "verdict": verdict and [verdict.gate, verdict.outcome.value],
    }


def _rows(scan: Any) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in scan.to_arrow().to_pylist())
