"""Many writers move the same keys from partition to partition, some of them killed: each key is in one partition."""

import json
import os
import random
import time

import pytest

from tests.integration.faults.jobs import SCHEMA, Rows, move_keys, read
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.processes import Worker

_WRITERS = 8
_ROUNDS = int(os.environ.get("LAKE_MOVING_ROUNDS", "2"))
_COMMITS = int(os.environ.get("LAKE_MOVING_COMMITS", "5"))


@pytest.mark.parametrize("sequence_by", [[], ["value"]])
def test_each_key_is_in_one_partition_whoever_moves_it_and_whoever_is_killed(
    ledger: Ledger, sequence_by: list[str]
) -> None:
    table = ledger.lake.create_table(
        "shop.moving",
        SCHEMA,
        primary_key=["id"],
        partition_by=["day"],
        sequence_by=sequence_by,
        buckets=2,
        cross_partition=True,
        options={"min_bucket_file_bytes": 0},
    )
    chance = random.Random(1)
    for number in range(_ROUNDS):
        workers = [
            Worker(move_keys, (*ledger.place, number * _WRITERS + writer, _COMMITS))
            for writer in range(1, _WRITERS + 1)
        ]
        killed, left = workers[: _WRITERS // 2], workers[_WRITERS // 2 :]
        for worker in killed:
            time.sleep(chance.random())
            worker.kill()
        if number % 2:
            table.compact(full=True)
        outcomes = [worker.outcome(300) for worker in left]
        assert not [each for each in outcomes if each.error or each.exit_code]
        assert [len(each.messages) for each in outcomes] == [_COMMITS] * len(left)
    ledger.check_table("shop.moving")
    assert read(table).keys() <= set(range(40))  # reads no key twice
    if not sequence_by:
        assert read(table) == _as_told(ledger)
    assert ledger.lake.doctor("shop.moving", deep=True).counts.get("key_in_several_partitions") is None


def _as_told(ledger: Ledger) -> Rows:
    """What the commits have done, one after the other."""
    content: Rows = {}
    for snapshot in reversed(ledger.lake.table("shop.moving").history()):
        for key in json.loads(snapshot.properties.get("gone", "[]")):
            content.pop(key, None)
        came = json.loads(snapshot.properties.get("came", "{}"))
        content |= {int(key): (day, value) for key, (day, value) in came.items()}
    return content
