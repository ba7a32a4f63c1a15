"""An export to a Delta log is killed at every step. What it leaves is right as far as it goes, and the next goes on."""

import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import lakelib
from lakelib.storage import filesystem
from tests.delta_readers import folder_of, read_delta_rs, rows_of
from tests.integration.faults import crash
from tests.integration.faults.jobs import Say
from tests.integration.faults.processes import run_process

_MOST_STEPS = 200
_LEAST_STEPS = 20
_STRIDE = int(os.environ.get("LAKE_EXPORT_STRIDE", "6"))
"""A soak dies at each step."""


def export_and_die(say: Say, warehouse: str, url: str, kill_at: int) -> int:
    """Survives, and tells the number of steps, if there are fewer."""
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        table = lake.table("shop.told")
        steps = crash.arm(kill_at, say)
        name = filesystem._link_new

        def link(draft: str, path: str) -> Any:
            steps.pass_one("before: name a version")
            made = name(draft, path)
            steps.pass_one("after: name a version")
            return made

        filesystem._link_new = link
        for method in ("replace_bytes", "create_in_order"):
            crash._surround(filesystem.Storage, method, method, steps)
        table.export_delta()
        return steps.count


def test_an_export_that_was_killed_at_any_step_is_finished_by_the_next(
    lake: lakelib.Lake, module_catalog_url: str
) -> None:
    """The log begins behind snapshots that have expired, and gets a checkpoint on the way."""
    options = {"delta_checkpoint_versions": 3}
    table = lake.create_table("shop.told", "id bigint, part string", partition_by=["part"], options=options)
    for number in range(6):
        table.append([{"id": number, "part": "ab"[number % 2]}])
    table.overwrite([{"id": 9, "part": "a"}], partitions="dynamic")
    table.expire(keep_last=5, older_than=timedelta(0))
    log = Path(folder_of(table)) / "_delta_log"
    expected = {at - 1: rows_of(table.scan(at=at).to_arrow()) for at in range(3, 8)}
    warehouse, count = folder_of(table).partition("/shop/")[0], 0

    for kill_at in range(1, _MOST_STEPS, _STRIDE):
        ended = run_process(export_and_die, warehouse, module_catalog_url, kill_at)
        versions = sorted(int(path.stem) for path in log.glob("*.json"))

        assert ended.error == ""
        assert versions == list(range(2, 2 + len(versions)))
        if versions:
            assert rows_of(read_delta_rs(folder_of(table))) == expected[versions[-1]]
        assert table.export_delta().is_complete
        assert {version: rows_of(read_delta_rs(folder_of(table), version)) for version in expected} == expected
        if ended.exit_code != -signal.SIGKILL:
            count = ended.result
            break
        for path in log.iterdir():
            path.unlink()

    assert count >= _LEAST_STEPS
