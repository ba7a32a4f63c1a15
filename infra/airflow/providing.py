"""The tables of the specs follow their files: the owner of the lake makes them, for Airflow's tasks may not.

A process of its own does so each time: what looks at a gate takes seconds to load, and would stay in memory.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from infra.airflow.instance import PROJECT, Home
from infra.airflow.postgres import url_of_running
from lakelib.dataclass import dataclass
from lakelib.specs.table_spec import find_specs, scan_specs

AGAIN_SECONDS = 60.0
"""What kept a table from being as its spec says may have gone without a change of a file."""
_LONGEST_SECONDS = 300.0

Stamps = Mapping[Path, tuple[int, int] | None]
"""Of files, when they were written and how long they are; None of one that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What tables were last provided from."""

    files: Stamps
    """The specs and the suites that they name."""
    again_at: float
    """On the monotonic clock; infinity if all tables are as their specs say."""

    @property
    def is_whole(self) -> bool:
        return self.again_at == math.inf


NOTHING_SEEN = Seen(files={}, again_at=-math.inf)


def is_due(seen: Seen, folder: Path) -> bool:
    """Whether a spec has come, gone or changed, or its suite, or something went wrong the last time, a while ago."""
    return time.monotonic() >= seen.again_at or _stamps({*_specs(folder), *seen.files}) != seen.files


def provide(home: Home, folder: Path) -> Seen:
    """The tables of all specs in the folder. What is wrong goes to stderr, and costs the tables that it is about."""
    files = _stamps({*_specs(folder), *_gates(folder)})
    is_whole = not files or _run(home, folder)
    return Seen(files=files, again_at=math.inf if is_whole else time.monotonic() + AGAIN_SECONDS)


def _run(home: Home, folder: Path) -> bool:
    owner_url = url_of_running(home.catalog)
    if owner_url is None:
        return False
    command = [sys.executable, "-m", "lakelib.cli", "provide", str(folder)]
    lake = {"LAKE_CATALOG": owner_url, "LAKE_WAREHOUSE": home.warehouse.as_uri()}
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=os.environ | lake,
            stdout=subprocess.DEVNULL,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        return done.returncode == 0
    return False


def _specs(folder: Path) -> tuple[Path, ...]:
    return find_specs(folder) if folder.is_dir() else ()


def _gates(folder: Path) -> set[Path]:
    """Those of the specs that can be read."""
    specs = scan_specs(folder).specs if folder.is_dir() else ()
    return {spec.gate_path for spec in specs if spec.gate_path is not None}


def _stamps(files: Iterable[Path]) -> Stamps:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
