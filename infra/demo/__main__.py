"""`make demo`: a small shop's days go through the real DAGs of a real Airflow, from landing files to published tables.

It has an instance of its own in `.lake/demo`, made anew each time, and leaves that of `make up` alone. It ends what it
has started, unless KEEP=1 is set; the data stays.
"""

import os
import shutil
import signal
import sys

from infra.airflow.api import ApiError
from infra.airflow.instance import PROJECT, Home, read_passwords
from infra.airflow.lifecycle import StartError, down, up
from infra.demo.story import DemoError, Story, say, tell_story

FOLDER = PROJECT / ".lake" / "demo"
# Java compiles with less care and starts sooner: these applications live for seconds.
SETTINGS = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    keep = os.environ.get("KEEP") == "1"
    home = Home(FOLDER / ".lake")
    down(home)
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        say("Starting PostgreSQL and Airflow (api server, scheduler, DAG processor, triggerer)")
        state = up(home, os.environ | SETTINGS)
        say(f"Healthy at {state.url}: user admin, password {read_passwords(home)['admin']}. You may look on.")
        tell_story(Story.on(home, state))
    except (StartError, DemoError, TimeoutError, ApiError) as error:
        print(f"The demo ends here: {error}\nLogs are in {home.logs} and {home.runs}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        if not keep:
            down(home)
    _say_how_to_look_further(home, state.url if keep else None)
    return 0


def _say_how_to_look_further(home: Home, url: str | None) -> None:
    """The folder above is one in which `lakelib.connect()` finds the demo's lake without any setting."""
    folder = FOLDER.relative_to(PROJECT)
    command = f"python -m infra.airflow {{}} --home {home.folder.relative_to(PROJECT)}"
    print("\nTo look further")
    if url is None:
        print(f"  Airflow was ended, the data is in {folder}. Start it again: .venv/bin/{command.format('up')}")
    else:
        print(f"  Airflow runs on at {url}. End it: .venv/bin/{command.format('down')}")
    print(f"  The lake: cd {folder} && ../../.venv/bin/lake tables")
    print("            ../../.venv/bin/lake history shop.orders")
    print("            ../../.venv/bin/lake scan shop.daily_revenue")
    print("  Your own: make up, a file in dags/tables, a file in the landing folder (docs/airflow.md)")


if __name__ == "__main__":
    sys.exit(main())
