"""A log of many versions, most of which are caught up at once: checkpoints are where they are due, and engines read its
head, its past, and what comes after."""

import os
import random
from itertools import pairwise
from pathlib import Path

from lakelib import Lake
from tests.delta_readers import READERS, folder_of, rows_in

_VERSIONS = int(os.environ.get("LAKE_DELTA_VERSIONS", "260"))
"""A soak has 10,000."""
_KEYS = 50
_EVERY = 20
_COMPACTED_EVERY = 40
"""Small commits pile up in files; a table that lives is compacted."""
_LOOKED_AT = 3


def test_a_long_log_is_whole(lake: Lake) -> None:
    options = {"delta_checkpoint_versions": _EVERY}
    table = lake.create_table(
        "shop.long", "id bigint, part string, n bigint", primary_key=["id"], partition_by=["part"], options=options
    )
    chance = random.Random(_VERSIONS)
    while (table.head.id if table.head else 0) < _VERSIONS:
        number = table.head.id if table.head else 0
        if number % _COMPACTED_EVERY == _COMPACTED_EVERY - 1:
            table.compact(full=True)
        table.append([{"id": chance.randrange(_KEYS), "part": chance.choice("abc"), "n": number}])

    told = table.export_delta()
    table.set_options({"delta": "head"})
    table.append([{"id": 1, "part": "a", "n": -1}])

    head = table.head
    assert head is not None
    assert told.is_complete
    log = Path(folder_of(table)) / "_delta_log"
    assert [int(path.stem) for path in sorted(log.glob("*.json"))] == list(range(head.id))
    checkpoints = [int(path.name.partition(".")[0]) for path in sorted(log.glob("*.checkpoint*.parquet"))]
    steps = {later - earlier for earlier, later in pairwise(checkpoints)}
    assert checkpoints
    assert max(steps) <= 10 * _EVERY
    for version in [head.id - 1, *chance.sample(range(head.id - 1), _LOOKED_AT)]:
        expected = table.scan(at=version + 1).to_arrow()
        for name, read in READERS.items():
            if name != "polars":  # refuses the mapping of columns
                assert rows_in(name, read(folder_of(table), version)) == rows_in(name, expected), (name, version)
