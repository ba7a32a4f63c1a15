"""A constant that Spark's tasks write is the value itself, whatever zones the process and the session are in."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.constant_writer import ROUNDS, SESSION_ZONES, all_values, stored_values

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Kolkata"])
def test_constants_are_stored_as_they_are(zone: str, catalog_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.constant_writer", catalog_url, str(tmp_path / "lake")]
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | {"TZ": zone}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert list(found) == list(SESSION_ZONES)
    stored = [stored_values(round_number) for round_number in range(ROUNDS)]
    for session_zone, values in found.items():
        assert values["framed"] == _shown(all_values()), session_zone
        assert values["stored"] == _shown(stored), session_zone


def _shown(values: Any) -> Any:
    return json.loads(json.dumps(values, default=bytes.hex))
