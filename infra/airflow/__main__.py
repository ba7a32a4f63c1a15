"""Starts and ends Airflow with an embedded PostgreSQL on this machine: `make up`, `make down`, `make status`.

    python -m infra.airflow up | down | status [--home FOLDER] [--port PORT]

`keep` is what `up` leaves running to start again what ends.

Everything lies in one folder, `.lake` by default, and stays there: the lake's catalog and warehouse where
`lakelib.connect()` finds them, the landing folder, and under `airflow` logs, secrets and passwords (mode 0600).
"""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from infra.airflow.api import health
from infra.airflow.instance import (
    DEFAULT_HOME,
    DEFAULT_TABLES,
    Home,
    State,
    read_environment,
    read_passwords,
    read_state,
)
from infra.airflow.keeper import find_missing, keep
from infra.airflow.lifecycle import PARTS, StartError, down, running_parts, up
from infra.airflow.postgres import SERVER, is_ready


def main() -> int:
    arguments = _parse_arguments()
    # Whoever is ended while it starts something ends that, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    home = Home(arguments.home.resolve())
    match arguments.action:
        case "up":
            return _up(home, arguments.port)
        case "down":
            return _down(home)
        case "keep":
            keep(home)
            return 0
        case _:
            return _status(home)


def _up(home: Home, port: int | None) -> int:
    if not find_missing(home):
        print("Airflow is running already.", *_other_tables(home))
    else:
        print("Starting PostgreSQL and Airflow …", flush=True)
    start = time.monotonic()
    try:
        state = up(home, port=port)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Healthy after {time.monotonic() - start:.0f} s.\n\n{how_to_use(home, state)}")
    return 0


def _other_tables(home: Home) -> tuple[str, ...]:
    wanted, started = os.environ.get("LAKE_TABLES"), read_environment(home).get("LAKE_TABLES")
    if not wanted or started is None or Path(wanted).absolute() == Path(started):
        return ()
    return (f"It has the tables of {started}: end it first to have those of {wanted}.",)


def _down(home: Home) -> int:
    ended = down(home)
    print(f"Ended: {', '.join(ended)}. Data and logs stay in {home.folder}." if ended else "Nothing was running.")
    return 0


def _status(home: Home) -> int:
    """Exit code 0 if everything runs and is healthy."""
    state = read_state(home)
    running = running_parts(home)
    told = health(state.url) if state is not None and running else {}
    print(f"{SERVER:<15} {'running' if is_ready(home.catalog) else 'not running'}")
    for part in PARTS:
        print(f"{part:<15} {f'running, pid {running[part].pid}' if part in running else 'not running'}")
    if state is not None and running:
        print("Airflow says:   " + (", ".join(f"{part} {status}" for part, status in told.items()) or "no answer"))
        print(f"\n{how_to_use(home, state)}")
    return 0 if len(running) == len(PARTS) and set(told.values()) == {"healthy"} else 1


def how_to_use(home: Home, state: State) -> str:
    """Where all of it is, as it was started."""
    passwords, started = read_passwords(home), read_environment(home)
    tables, landing = (started.get(name, "") for name in ("LAKE_TABLES", "LANDING"))
    inside = home.folder == DEFAULT_HOME
    return "\n".join(
        (
            f"Airflow     {state.url}",
            f"user        admin     password  {passwords['admin']}",
            f"read only   viewer    password  {passwords['viewer']}",
            f"tables      {tables}",
            f"warehouse   {home.warehouse}",
            f"landing     {landing}",
            f"runs        {home.runs}",
            f"logs        {home.logs}",
            "",
            "For Airflow's commands in a shell (airflow dags list, airflow backfill create …):",
            f"  . {shlex.quote(str(home.environment))}",
            "",
            "Every DAG is paused until you switch it on. Put files into the landing folder (docs/airflow.md), or make",
            f"some: .venv/bin/python -m infra.demo.shop {landing}",
            *_own_tables(tables),
            "In this folder `.venv/bin/lake tables` shows the same lake. End it all with `make down`."
            if inside
            else f"End it all with: python -m infra.airflow down --home {home.folder}",
        )
    )


def _own_tables(tables: str) -> tuple[str, ...]:
    if Path(tables) != DEFAULT_TABLES:
        return ()
    return (
        "These are the tables of the example. For your own: `.venv/bin/lake init FOLDER`, `make down`, and",
        "`LAKE_TABLES=FOLDER/tables make up`.",
    )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m infra.airflow", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("action", choices=("up", "down", "status", "keep"))
    parser.add_argument("--home", type=Path, default=DEFAULT_HOME, help="the folder of it all")
    parser.add_argument("--port", type=int, help="of Airflow; any free one if it is taken. 8080, if not given")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
