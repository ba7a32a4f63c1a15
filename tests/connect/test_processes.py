"""Jobs as clients of a Spark Connect server that stays: light, apart from each other, and no worse off if it dies."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from infra.spark.connect import Server, free_port, started_server
from lakelib import InvalidInputError, Lake, RetryableError
from lakelib.pipeline import sessions as remote_module
from lakelib.pipeline.sessions import connected
from tests.jobs.conftest import rows_of
from tests.jobs.ingest_support import DAY, Shop, new_shop, order

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-test"
WAIT_SECONDS = 90
STATUS = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}, "scope": "merged"}
SLOW = "SELECT * FROM source WHERE reflect('java.lang.Thread', 'sleep', 600000L) IS NULL OR order_id > 0"
"""A query that takes ten minutes a row."""

Run = Callable[..., "Job"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job that was started."""

    process: subprocess.Popen[bytes]
    result: Path
    log: Path

    def end(self) -> dict[str, Any]:
        """What it has told, once it has ended."""
        self.process.wait(WAIT_SECONDS)
        assert self.result.exists(), self.log.read_text()
        found: dict[str, Any] = json.loads(self.result.read_text())
        assert found["exit_code"] == self.process.returncode, self.log.read_text()
        return found


@dataclass(kw_only=True)
class Kept:
    """A server of the module's own, at an address that it keeps."""

    folder: Path
    port: int = field(default_factory=free_port)
    stack: ExitStack = field(default_factory=ExitStack)
    running: Server | None = None

    @property
    def url(self) -> str:
        return f"sc://localhost:{self.port}"

    def start(self) -> None:
        if self.running is None or self.running.process.poll() is not None:
            self.running = self.stack.enter_context(started_server(self.folder, port=self.port, token=TOKEN))

    @property
    def pid(self) -> int:
        assert self.running is not None
        return self.running.process.pid

    def kill(self) -> None:
        assert self.running is not None
        self.running.process.kill()
        self.running.process.wait()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    kept = Kept(folder=tmp_path_factory.mktemp("kept"))
    with kept.stack:
        yield kept


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return new_shop(tmp_path)


@pytest.fixture
def start(lake: Lake, tmp_path: Path) -> Iterator[Run]:
    """`start("ingest", …)` starts a job in a process that can start no JVM."""
    started: list[Job] = []
    (tmp_path / "bin").mkdir()

    def run(job: str, *arguments: object, through: tuple[object, ...] = (), **environment: str) -> Job:
        result, log = tmp_path / f"result-{len(started)}.json", tmp_path / f"log-{len(started)}"
        module = ["tests.jobs.killed_job", *map(str, through), job] if through else [f"jobs.{job}"]
        surroundings = {
            "PATH": str(tmp_path / "bin"),
            "JAVA_HOME": str(tmp_path),
            "LAKE_WAREHOUSE": lake.settings.warehouse,
            "LAKE_CATALOG": str(lake.settings.catalog),
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *module, *map(str, arguments), "--result", str(result)],
                cwd=ROOT,
                env={**os.environ, **surroundings, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started.append(Job(process=process, result=result, log=log))
        return started[-1]

    yield run
    for job in started:
        job.process.kill()
        job.process.wait()


def work(shop: Shop, version: int = 1) -> tuple[object, ...]:
    """Of the job ingest."""
    return ("--spec", shop.spec, "--partition", DAY, "--idempotency-key", f"{shop.table}:{version}")


def wait_until(met: Callable[[], bool], job: Job) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not met():
        assert job.process.poll() is None, job.log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def orders_of(lake: Lake, shop: Shop) -> list[tuple[Any, ...]]:
    return rows_of(lake.table(shop.table), "order_id", "status")


# A light client


def test_a_job_needs_no_jvm(shop: Shop, start: Run, lake: Lake, remote: str) -> None:
    (shop.folder / "all.sql").write_text("SELECT * FROM source")
    shop.write_spec(gate=shop.write_gate(STATUS), transform="all.sql")
    shop.deliver([order(1), order(2)])
    told = start("ingest", *work(shop), "--remote", remote).end()
    assert (told["exit_code"], told["outcome"], told["rows_in"]) == (0, "accept", 2)
    told = start("publish", "--commit", told["commit"], SPARK_REMOTE=remote).end()
    assert told["exit_code"] == 0
    assert orders_of(lake, shop) == [(1, "open"), (2, "open")]


def test_a_server_is_asked_only_for_what_takes_spark(shop: Shop, start: Run, lake: Lake, remote: str) -> None:
    """A row shows it: one word of the second order has another length in the other case."""
    nowhere = f"sc://localhost:{free_port()}"
    (shop.folder / "lower.sql").write_text(
        "SELECT order_id, dt, lower(status) AS status, amount, updated_at FROM source"
    )
    shop.write_spec(engine="auto", gate=shop.write_gate(STATUS), transform="lower.sql")
    engines = []
    for version, (status, server) in enumerate((("Open", nowhere), ("İstanbul", remote)), start=1):
        shop.deliver([order(version, status=status)])
        told = start("ingest", *work(shop, version), SPARK_REMOTE=server).end()
        assert start("publish", "--commit", told["commit"], SPARK_REMOTE=nowhere).end()["exit_code"] == 0
        engines.append(told["engine"])
    assert engines == ["local", "spark"]
    assert orders_of(lake, shop) == [(1, "open"), (2, "İstanbul".lower())]


def test_compaction_runs_where_the_environment_says(start: Run, lake: Lake, remote: str) -> None:
    table = lake.create_table("shop.many", "id BIGINT", primary_key=["id"], buckets=1)
    for number in range(4):
        table.upsert(pa.table({"id": [number, 10]}))
    (told,) = start("compact", table.name, "--full", SPARK_REMOTE=remote).end()["tables"]
    assert (told["files_before"], told["files_after"], told["rows_after"]) == (4, 1, 5)


def test_settings_of_the_session_are_said_in_a_file(start: Run, lake: Lake, remote: str, tmp_path: Path) -> None:
    table = lake.create_table("shop.zones", "at STRING")
    settings = tmp_path / "spark.json"
    query = ("--sql", "SELECT current_timezone() AS at")
    for name, code in (("spark.sql.session.timeZone", 0), ("spark.executor.memory", 3)):
        settings.write_text(json.dumps({name: "Asia/Tokyo"}))
        told = start("append", table.name, *query, "--remote", remote, "--spark-conf", settings).end()
        assert told["exit_code"] == code, told
    assert rows_of(table, "at") == [("Asia/Tokyo",)]
    assert "spark.executor.memory" in told["error"]["message"]


def test_runs_at_once_do_not_see_each_others_views_and_settings(
    start: Run, lake: Lake, remote: str, tmp_path: Path
) -> None:
    """Both have a view `source`, and one that is named alike of tables that are not."""
    jobs, shops = [], []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        shop = new_shop(tmp_path / str(number))
        other = lake.create_table(f"{shop.table}_other", "name STRING")
        other.append(pa.table({"name": [f"other of {number}"]}))
        (shop.folder / "both.sql").write_text(
            "SELECT order_id, dt, concat(name, ', ', :partition) AS status, amount, updated_at FROM source, other"
        )
        shop.write_spec(transform="both.sql", reads=f"{{other: {other.name}}}")
        shop.deliver([order(100 * number + each) for each in range(3)])
        jobs.append(start("ingest", *work(shop), "--remote", remote))
        shops.append(shop)
    for number, (job, shop) in enumerate(zip(jobs, shops, strict=True)):
        lake.staged(UUID(job.end()["commit"])).publish()
        expected = [(100 * number + each, f"other of {number}, {DAY}") for each in range(3)]
        assert orders_of(lake, shop) == expected


# A server that dies


def test_a_job_waits_for_a_server_that_is_about_to_come_back(kept: Kept, shop: Shop, start: Run, lake: Lake) -> None:
    """The first of those with this server, which need not be ended before."""
    assert kept.running is None
    shop.write_spec()
    shop.deliver([order(1)])
    with socket.create_server(("127.0.0.1", kept.port)) as knocked_at:
        job = start("ingest", *work(shop), SPARK_REMOTE=kept.url, SPARK_CONNECT_AUTHENTICATE_TOKEN=TOKEN)
        knocked_at.settimeout(WAIT_SECONDS)
        knocked_at.accept()[0].close()
    kept.start()
    assert job.end()["outcome"] == "accept"


def test_a_server_that_dies_in_mid_run_costs_a_try_and_loses_nothing(
    kept: Kept, shop: Shop, start: Run, lake: Lake
) -> None:
    kept.start()
    (shop.folder / "query.sql").write_text(SLOW)
    shop.write_spec(gate=shop.write_gate(STATUS), transform="query.sql")
    shop.deliver([order(1), order(2)])
    known = {"SPARK_REMOTE": kept.url, "SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}
    job = start("ingest", *work(shop), "--progress", **known)
    wait_until(lambda: "of 1 tasks" in job.log.read_text() or "of 2 tasks" in job.log.read_text(), job)
    kept.kill()
    kept.start()
    told = job.end()
    assert (told["exit_code"], told["error"]["kind"]) == (7, "spark_lost"), job.log.read_text()
    assert TOKEN not in job.log.read_text()
    assert lake.table(shop.table).head is None
    (shop.folder / "query.sql").write_text("SELECT * FROM source")
    told = start("ingest", *work(shop), **known).end()
    assert (told["outcome"], told["adopted"]) == ("accept", False)
    lake.staged(UUID(told["commit"])).publish()
    assert orders_of(lake, shop) == [(1, "open"), (2, "open")]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_that_dies_between_writing_and_judging_leaves_a_commit_to_be_taken_up(
    moment: str, kept: Kept, shop: Shop, start: Run, lake: Lake
) -> None:
    kept.start()
    shop.write_spec(gate=shop.write_gate(STATUS))
    shop.deliver([order(1), order(2)])
    known = {"SPARK_REMOTE": kept.url, "SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}
    job = start("ingest", *work(shop), through=(kept.pid, moment, "stage"), **known)
    wait_until(lambda: kept.running is not None and kept.running.process.poll() is not None, job)
    kept.start()
    assert job.end()["exit_code"] == 7, job.log.read_text()
    assert lake.table(shop.table).head is None
    told = start("ingest", *work(shop), **known).end()
    assert (told["outcome"], told["adopted"]) == ("accept", True)
    lake.staged(UUID(told["commit"])).publish()
    assert orders_of(lake, shop) == [(1, "open"), (2, "open")]


def test_who_has_no_token_is_not_let_in(kept: Kept, start: Run, lake: Lake) -> None:
    kept.start()
    table = lake.create_table("shop.closed", "id BIGINT")
    for token in ({}, {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "another"}):
        told = start("append", table.name, "--sql", "SELECT 1L AS id", "--remote", kept.url, **token).end()
        assert (told["exit_code"], told["error"]["kind"]) == (3, "spark_unauthenticated")


def test_a_server_that_stays_away_is_named_and_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "_PATIENCE_SECONDS", 1.0)
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    url = f"sc://localhost:{free_port()}"
    begun = time.monotonic()
    with (
        pytest.raises(RetryableError, match=url) as raised,
        connected(f"{url}/;use_ssl=false", {"spark.sql.session.timeZone": "UTC"}),
    ):
        raise AssertionError("there is no server")
    assert raised.value.kind == "spark_lost"
    assert re.search(r"started anew: \w.*refused", raised.value.message)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("wrong", ["sc://", "sc://host/path", "sc://host:x", "sc://host/;token"])
def test_an_address_that_is_none_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(InvalidInputError) as raised, connected(wrong, {}):
        raise AssertionError("this is no address")
    assert raised.value.kind == "invalid_remote"
