"""A part that runs and does nothing is ended, and no other."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from infra.airflow.instance import Home, State, write_state
from infra.airflow.processes import Started, end, is_running, start_detached
from infra.airflow.stuck import end_stuck

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def told() -> dict[str, str]:
    """What Airflow tells of its parts."""
    return {"scheduler": "healthy", "dag_processor": "healthy", "triggerer": "healthy"}


@pytest.fixture
def port(told: dict[str, str]) -> Iterator[int]:
    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({part: {"status": status} for part, status in told.items()}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[dict[str, Started]]:
    names = ("scheduler", "dag-processor", "triggerer", "api-server")
    found = {name: start_detached(name, SLEEP, os.environ, tmp_path, tmp_path / "log") for name in names}
    yield found
    end(found.values(), seconds=10)


def test_who_does_nothing_for_too_long_is_ended(
    tmp_path: Path, told: dict[str, str], port: int, parts: dict[str, Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "lake")
    home.airflow.mkdir(parents=True)
    write_state(home, State(port=port, parts=parts))

    assert end_stuck(home, {}) == ({}, [])
    told["dag_processor"] = "unhealthy"
    since, stuck = end_stuck(home, {})
    assert (list(since), stuck) == (["dag-processor"], [])
    told["dag_processor"] = "healthy"
    assert end_stuck(home, since) == ({}, [])

    told["scheduler"] = "unhealthy"
    since, _ = end_stuck(home, {})
    monkeypatch.setattr("infra.airflow.stuck.STUCK_SECONDS", 0)
    assert end_stuck(home, since) == ({}, ["scheduler"])
    assert [name for name, part in parts.items() if not is_running(part)] == ["scheduler"]


def test_nobody_is_ended_where_nobody_tells(
    tmp_path: Path, parts: dict[str, Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "lake")
    home.airflow.mkdir(parents=True)
    monkeypatch.setattr("infra.airflow.stuck.STUCK_SECONDS", -1)
    assert end_stuck(home, {}) == ({}, [])
    write_state(home, State(port=1, parts=parts))

    assert end_stuck(home, {}) == ({}, [])
    assert all(map(is_running, parts.values()))
