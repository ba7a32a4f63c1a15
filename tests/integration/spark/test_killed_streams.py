"""A streaming query is killed between the table's commit and Spark's note of it, time and again: nothing comes twice,
and nothing is lost, while others write, and both tables are compacted. `make soak` has more rounds."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from infra.spark.standalone import spark_environment
from lakelib import Lake, Table
from tests.spark.streams import LATE_WORKER, MOST_STARTS

SCRIPT = Path(__file__).with_name("stream_job.py")
ROUNDS = int(os.environ.get("LAKE_STREAM_ROUNDS", "1"))
SCHEMA = "id BIGINT, day INT, version INT"
_SECONDS = 240
_FOREIGN = 1_000_000
"""Keys from here on are another writer's."""


@pytest.mark.timeout(300 + 240 * ROUNDS)
@pytest.mark.parametrize("key", [("id",), ()])
def test_a_killed_query_goes_on_where_it_was(
    lake: Lake, module_catalog_url: str, tmp_path: Path, key: tuple[str, ...]
) -> None:
    kind = "keyed" if key else "log"
    source = lake.create_table(f"shop.{kind}_source", SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)
    target = lake.create_table(f"shop.{kind}_target", SCHEMA, primary_key=key, partition_by=["day"])
    told = {
        "warehouse": lake.warehouse,
        "catalog": module_catalog_url,
        "source": source.name,
        "target": target.name,
        "checkpoint": str(tmp_path / "checkpoint"),
        "snapshots": 2,
        "rows_only": not key,
    }
    chance = random.Random(13)
    written: list[tuple[Any, ...]] = []
    for round_ in range(ROUNDS):
        written += _write(source, chance, deletes=bool(key))
        _run(told, dies=True)
        _disturb(source, target, round_)
    written += _write(source, chance, deletes=bool(key))
    _run(told, dies=False)

    own = [row for row in _rows(target) if row[0] < _FOREIGN]
    assert own == (_rows(source) if key else sorted(written))
    assert len(_rows(target)) - len(own) == ROUNDS
    batches = [int(each.properties["stream.batch"]) for each in target.history() if "stream.batch" in each.properties]
    assert batches == sorted(set(batches), reverse=True)


def _write(table: Table, chance: random.Random, *, deletes: bool) -> list[tuple[int, int, int]]:
    """Three commits; what they have upserted."""
    written = []
    for _ in range(3):
        keys = chance.sample(range(200), 20)
        rows = [(key, key % 3, chance.randrange(1_000_000)) for key in keys]
        table.upsert(_table(rows))
        written += rows
    if deletes:
        table.delete_keys(_table(rows[:5]).select(["id", "day"]))
    return written


def _disturb(source: Table, target: Table, round_: int) -> None:
    target.append(_table([(_FOREIGN + round_, 0, round_)]), idempotency_key=("other", round_))
    for table in (source, target):
        table.compact(full=True)


def _run(told: dict[str, Any], *, dies: bool) -> None:
    """A query that ends before it has begun is started again, as whoever runs it would do."""
    for _ in range(MOST_STARTS):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), json.dumps({**told, "dies": dies})],
            env=spark_environment(),
            timeout=_SECONDS,
            capture_output=True,
            check=False,
        )
        said = done.stderr.decode(errors="replace")
        if done.returncode != 1 or LATE_WORKER not in said:
            break
    assert done.returncode == (-signal.SIGKILL if dies else 0), said[-4000:]


def _table(rows: list[tuple[int, int, int]]) -> pa.Table:
    columns = zip(("id", "day", "version"), zip(*rows, strict=True), (pa.int64(), pa.int32(), pa.int32()), strict=True)
    return pa.table({name: pa.array(values, kind) for name, values, kind in columns})


def _rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
