"""The keeper of an instance: starts again what has ended, as a scheduler does that has lost its database.

`make up` starts one, `make down` ends it first. What keeps ending is tried at longer and longer intervals.
"""

import os
import signal
import sys
import time
from datetime import UTC, datetime
from types import FrameType

import psycopg

from infra.airflow.instance import Home, read_state
from infra.airflow.lifecycle import KEEPER, PARTS, StartError, running_parts, up
from infra.airflow.postgres import SERVER, is_ready
from lakelib.errors import LakeError

_PAUSE_SECONDS = 3.0
_LONGEST_PAUSE_SECONDS = 60.0
_CALM_SECONDS = 120.0
"""What has run for so long does not keep ending."""


def keep(home: Home) -> None:
    """Goes on until it is ended, or the instance has another keeper, or none."""
    signal.signal(signal.SIGTERM, _leave)
    _say("watching")
    pause, started_at = _PAUSE_SECONDS, time.monotonic()
    while True:
        time.sleep(pause)
        if not _is_keeper(home):
            return _say("not the keeper any more")
        missing = find_missing(home)
        if missing:
            _say(f"not running: {', '.join(missing)}")
            _try_to_start(home)
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


def _try_to_start(home: Home) -> None:
    try:
        up(home)
    except (StartError, LakeError, psycopg.Error, OSError) as error:
        _say(f"not started: {error}")
    else:
        _say("all of it runs")


def _say(words: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {words}", flush=True)


def _leave(signal_number: int, frame: FrameType | None) -> None:
    """What is being started ends with it."""
    sys.exit(0)
