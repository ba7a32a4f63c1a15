"""Tables that follow another one, which others write to meanwhile: whoever reads, makes and publishes is killed at each
step, and what was made is in the end what making it from scratch would give.

`python -m tests.soak --following 20` goes through so many rounds.
"""

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakelib
from jobs import ingest, publish
from lakelib import Lake
from tests.integration.faults.server import own_server

ROOT = Path(__file__).resolve().parents[2]
ORDERS = "followed.orders"
DAYS = ("2026-11-16", "2026-11-17", "2026-11-18")
STEPS = tuple(
    (job, moment, query)
    for job, query in (
        ("ingest", "make_consumer"),
        ("ingest", "find_standing"),
        ("ingest", "stage"),
        ("publish", "publish"),
        ("publish", "publish_advancing"),
    )
    for moment in ("before", "after")
)
"""When who works is killed: which job, and on which side of which statement's end."""
_SPECS = {
    # What each run adds is right only if it has read each change once.
    "followed.total": (
        "SELECT coalesce(sum(CASE WHEN _change = 'insert' OR _change = 'update_after' THEN amount ELSE 0 - amount END)"
        ", 0) AS amount FROM orders",
        "columns: amount BIGINT\nwrite: {mode: append}\nreads: {orders: {table: followed.orders, changes: net}}\n",
    ),
    # What is gone, and what has moved to another day, shows.
    "followed.revenue": (
        "SELECT dt, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY dt",
        "columns: dt DATE, orders BIGINT, revenue BIGINT\npartition_by: [dt]\nwrite: {mode: overwrite}\n"
        "partition: {column: dt, every: day, from_changes: true}\n"
        "reads: {orders: {table: followed.orders, changes: latest}}\n",
    ),
}


@dataclass(kw_only=True)
class Following:
    """A lake with a table of orders and those that follow it."""

    lake: Lake
    folder: Path
    seed: int
    keys: Iterator[int] = field(default_factory=count)
    kills: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.lake.create_namespace("followed")
        schema = "id BIGINT NOT NULL, dt DATE, amount BIGINT"
        self.lake.create_table(ORDERS, schema, primary_key=["id"], partition_by=["dt"], buckets=2)
        for table, (query, said) in _SPECS.items():
            self._spec(table).with_suffix(".sql").write_text(query)
            transform = self._spec(table).with_suffix(".sql").name
            self._spec(table).write_text(f"table: {table}\n{said}transform: {transform}\nengine: local\n")
        self.write()

    def round(self, table: str, step: tuple[str, str, str]) -> None:
        """Somebody is killed at the step, beside a writer; then the work is finished, and once more without one."""
        with self._writing():
            key = self._key()
            self._killed(table, key, step)
            self._finish(table, key)
        self._finish(table, self._key())
        self.check(table)

    def write(self) -> None:
        """As anybody may."""
        orders, choose = self.lake.table(ORDERS), self.random
        match choose.randrange(6):
            case 0:
                orders.delete(f"id = {choose.randrange(12)}")
            case 1:
                orders.compact(full=True)
            case 2:
                day = choose.choice(DAYS)
                orders.overwrite(self._rows(day), partitions={"dt": day})
            case _:
                orders.upsert(self._rows(choose.choice(DAYS)))

    def check(self, table: str) -> None:
        """Raises AssertionError unless the table is as made from scratch."""
        rows = self.lake.table(ORDERS).scan().to_arrow().to_pylist()
        made = self.lake.table(table).scan().to_arrow().to_pylist()
        if table == "followed.total":
            assert sum(row["amount"] for row in made) == sum(row["amount"] for row in rows), (self.seed, made)
            return
        wanted: dict[Any, tuple[int, int]] = {}
        for row in rows:
            orders, revenue = wanted.get(row["dt"], (0, 0))
            wanted[row["dt"]] = (orders + 1, revenue + row["amount"])
        assert {row["dt"]: (row["orders"], row["revenue"]) for row in made} == wanted, self.seed

    def _rows(self, day: str) -> pa.Table:
        ids = self.random.sample(range(12), 3)
        dt = pa.array([day] * len(ids), pa.string()).cast(pa.date32())
        return pa.table({"id": ids, "dt": dt, "amount": [self.random.randrange(1, 100) for _ in ids]})

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Somebody writes all the while."""
        ended, errors = threading.Event(), []

        def work() -> None:
            try:
                while not ended.wait(0.2):
                    self.write()
            except Exception as error:
                errors.append(error)

        writer = threading.Thread(target=work)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()
        assert not errors, errors

    def _killed(self, table: str, key: str, step: tuple[str, str, str]) -> None:
        job, moment, query = step
        arguments = self._ingest(table, key)
        if job == "publish":
            commit = _run(ingest.main, [*arguments, *self._place()], self.folder)["commit"]
            if commit is None:
                return
            arguments = [f"--commit={commit}"]
        command = [
            sys.executable,
            "-m",
            "tests.jobs.killed_job",
            "self",
            moment,
            query,
            job,
            *arguments,
            *self._place(),
        ]
        environment = {**os.environ, "LAKE_CATALOG": str(self.lake.settings.catalog)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=180, check=False)
        # A consumer is made once; a run that has nothing to do does not come as far as others.
        assert done.returncode in (-signal.SIGKILL, 0), (step, done.stdout[-2000:], done.stderr[-2000:])
        self.kills += done.returncode == -signal.SIGKILL

    def _finish(self, table: str, key: str) -> None:
        """What a scheduler does: the same jobs again, until they are through."""
        for _ in range(10):
            made = _run(ingest.main, [*self._ingest(table, key), *self._place()], self.folder)
            assert "error" not in made, made
            commit = made["commit"]
            if commit is None:
                return
            done = _run(publish.main, [f"--commit={commit}", *self._place()], self.folder)
            if "error" not in done:
                return
            assert done["error"]["family"] == "ConflictError", done
        raise AssertionError(f"{table} is not through after ten attempts")

    def _ingest(self, table: str, key: str) -> list[str]:
        partition = DAYS[-1] if table == "followed.revenue" else "all"
        return [f"--spec={self._spec(table)}", f"--partition={partition}", f"--idempotency-key={key}"]

    def _place(self) -> list[str]:
        return [f"--warehouse={self.lake.settings.warehouse}", f"--catalog={self.lake.settings.catalog}"]

    def _key(self) -> str:
        return f"run{next(self.keys)}:1"

    def _spec(self, table: str) -> Path:
        return self.folder / f"{table.partition('.')[2]}.yaml"


def _run(main: Any, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main([*arguments, f"--result={result}"], None)
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def run(rounds: int, seed: int) -> list[str]:
    """What went wrong."""
    with tempfile.TemporaryDirectory(prefix="lakelib-soak-", dir="/tmp") as text, own_server() as server:
        folder = Path(text)
        with lakelib.connect(warehouse=f"file://{folder}/warehouse", catalog=server.url) as lake:
            following = Following(lake=lake, folder=folder, seed=seed)
            for number in range(rounds):
                table, step = list(_SPECS)[number % 2], STEPS[number // 2 % len(STEPS)]
                print(f"round {number + 1}: {table}, {' '.join(step)}", flush=True)
                try:
                    following.round(table, step)
                except AssertionError as error:
                    return [f"seed {seed}, round {number + 1}: {error}"]
            print(f"{following.kills} were killed")
    return []
