"""The keeper of an instance: starts again what has ended, as a scheduler does that has lost its database, or runs and
does nothing; and has the tables follow their specs.

`make up` starts one, `make down` ends it first. What keeps ending is tried at longer and longer intervals. Each try is
a process of its own, `up`, that inherits nothing from the one before.
"""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime

from dags.lake_dags.places import tables_folder
from infra.airflow.instance import PROJECT, Home, read_state
from infra.airflow.lifecycle import KEEPER, missing_parts, running_parts
from infra.airflow.postgres import SERVER, has_data, is_ready
from infra.airflow.providing import NOTHING_SEEN, Seen, is_due, provide
from infra.airflow.stuck import STUCK_SECONDS, Since, end_stuck

_PAUSE_SECONDS = 3.0
_LONGEST_PAUSE_SECONDS = 60.0
_CALM_SECONDS = 120.0
"""What has run for so long does not keep ending."""


def keep(home: Home) -> None:
    """Goes on until it is ended, or the instance has another keeper, or none, or no data."""
    _say("watching")
    pause, started_at, seen = _PAUSE_SECONDS, time.monotonic(), NOTHING_SEEN
    unhealthy_since: Since = {}
    while True:
        time.sleep(pause)
        if not _is_keeper(home):
            return _say("not the keeper any more")
        if not has_data(home.catalog):
            return _say(f"there is no catalog in {home.catalog} any more; `up` would make an empty one")
        unhealthy_since, stuck = end_stuck(home, unhealthy_since)
        if stuck:
            _say(f"ended, for it has done nothing for {STUCK_SECONDS} s: {', '.join(stuck)}")
        missing = find_missing(home)
        if missing:
            _say(f"not running: {', '.join(missing)}")
            _say("all of it runs" if _start(home) else "not started")
            pause, started_at = min(pause * 2, _LONGEST_PAUSE_SECONDS), time.monotonic()
            continue
        if time.monotonic() - started_at > _CALM_SECONDS:
            pause = _PAUSE_SECONDS
        seen = _provide_if_due(home, seen)


def find_missing(home: Home) -> list[str]:
    """What of the instance does not run."""
    missing = missing_parts(read_state(home), running_parts(home))
    return [*(() if is_ready(home.catalog) else (SERVER,)), *missing]


def _is_keeper(home: Home) -> bool:
    state = read_state(home)
    return state is not None and KEEPER in state.parts and state.parts[KEEPER].pid == os.getpid()


def _provide_if_due(home: Home, seen: Seen) -> Seen:
    """Nothing that is wrong with the specs' folder ends the keeper."""
    try:
        if not is_due(seen, tables_folder()):
            return seen
        seen = provide(home, tables_folder())
    except OSError as error:
        _say(f"the specs cannot be read: {error}")
        return seen
    _say("the tables are as their specs say" if seen.is_whole else "not all tables are as their specs say")
    return seen


def _start(home: Home) -> bool:
    """Why it has failed goes to the log; what it says of passwords does not."""
    command = [sys.executable, "-m", "infra.airflow", "up", "--home", str(home.folder)]
    return subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL, check=False).returncode == 0


def _say(words: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {words}", flush=True)
