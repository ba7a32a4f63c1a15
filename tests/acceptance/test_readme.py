"""What the README shows first does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

_README = Path(__file__).parents[2] / "README.md"


def test_the_first_lines_run_in_an_empty_folder(tmp_path: Path) -> None:
    first = re.findall(r"^```python\n(.*?)^```", _README.read_text(), re.MULTILINE | re.DOTALL)[0]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    told = subprocess.run(
        [sys.executable, "-c", first], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("order_id: [[2]]") == 1
    assert "Snapshot 1: upsert of 2 rows" in told.stdout
    assert "Snapshot 3: delete of 0 rows, 2 deletes" in told.stdout
