"""What Spark writes down of a job, and shows on its pages."""

import os
import subprocess
import sys
from pathlib import Path

SECRET = "swordfish"


def test_neither_event_log_nor_pages_have_a_secret(catalog_url: str, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    catalog = catalog_url.replace("postgres:@", f"postgres:{SECRET}@")
    job = Path(__file__).with_name("event_log_job.py")

    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        [sys.executable, str(job), str(events), str(tmp_path / "lake"), catalog, SECRET],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert ran.returncode == 0, ran.stderr
    log = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert "MapInArrow" in log
    assert SECRET not in log + ran.stdout + ran.stderr
