"""The keeper of an instance: starts again what has ended, as a scheduler does that has lost its database.

`make up` starts one, `make down` ends it first. What keeps ending is tried at longer and longer intervals. Each try is
a process of its own, `up`, that inherits nothing from the one before.
"""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime

from infra.airflow.instance import PROJECT, Home, read_state
from infra.airflow.lifecycle import KEEPER, PARTS, running_parts
from infra.airflow.postgres import SERVER, has_data, is_ready

_PAUSE_SECONDS = 3.0
_LONGEST_PAUSE_SECONDS = 60.0
_CALM_SECONDS = 120.0
"""What has run for so long does not keep ending."""


def keep(home: Home) -> None:
    """Goes on until it is ended, or the instance has another keeper, or none, or no data."""
    _say("watching")
    pause, started_at = _PAUSE_SECONDS, time.monotonic()
    while True:
        time.sleep(pause)
        if not _is_keeper(home):
            return _say("not the keeper any more")
        if not has_data(home.catalog):
            return _say(f"there is no catalog in {home.catalog} any more; `up` would make an empty one")
        missing = find_missing(home)
        if missing:
            _say(f"not running: {', '.join(missing)}")
            _say("all of it runs" if _start(home) else "not started")
            pause, started_at = min(pause * 2, _LONGEST_PAUSE_SECONDS), time.monotonic()
        elif time.monotonic() - started_at > _CALM_SECONDS:
            pause = _PAUSE_SECONDS


def find_missing(home: Home) -> list[str]:
    """What of the instance does not run."""
    running = running_parts(home)
    return [*(() if is_ready(home.catalog) else (SERVER,)), *(part for part in PARTS if part not in running)]


def _is_keeper(home: Home) -> bool:
    state = read_state(home)
    return state is not None and KEEPER in state.parts and state.parts[KEEPER].pid == os.getpid()


def _start(home: Home) -> bool:
    """Why it has failed goes to the log; what it says of passwords does not."""
    command = [sys.executable, "-m", "infra.airflow", "up", "--home", str(home.folder)]
    return subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL, check=False).returncode == 0


def _say(words: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {words}", flush=True)
