"""Fixtures of the command's tests: a lake with a small shop, and the command run on it in this process."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fcntl import ioctl
from itertools import count
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lakelib import Lake, Table
from lakelib.cli.command import Start
from lakelib.cli.main import main, make_app

APP = make_app()
SCHEMA = "order_id BIGINT, dt DATE, customer STRING, amount DECIMAL(10, 2), at TIMESTAMP, note STRING"
DAYS = (date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18))
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Ran]


_NUMBERS = count()


@pytest.fixture
def orders(lake: Lake) -> Table:
    """A table of a name of its own: two upserts of 30 orders over three days."""
    table = lake.create_table(
        f"shop.orders{next(_NUMBERS)}",
        SCHEMA,
        primary_key=["order_id"],
        partition_by=["dt"],
        buckets=2,
        sequence_by=["at"],
    )
    for version in (1, 2):
        table.upsert(order_rows(30, version), idempotency_key=("loader", version), properties={"run": f"r{version}"})
    return table


def order_rows(many: int, version: int = 1) -> pa.Table:
    rows = [
        {
            "order_id": number,
            "dt": DAYS[number % 3],
            "customer": f"customer {number % 7}",
            "amount": Decimal(number) / 100,
            "at": datetime(2026, 11, 18, 10, 0, version, tzinfo=UTC),
            "note": None if number % 5 else "",
        }
        for number in range(many)
    ]
    kinds = [pa.int64(), pa.date32(), pa.string(), pa.decimal128(10, 2), pa.timestamp("us", "UTC"), pa.string()]
    names = ("order_id", "dt", "customer", "amount", "at", "note")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, kinds, strict=True))))


def write_suite(folder: Path, *, most: float = 100.0, severity: str = "critical") -> Path:
    """A gate that wants customers, and amounts up to so much."""
    path = folder / "orders.yaml"
    path.write_text(
        "name: orders\nexpectations:\n"
        "  - {type: expect_column_values_to_not_be_null, kwargs: {column: customer}, name: customers are named}\n"
        "  - type: expect_column_values_to_be_between\n"
        f"    kwargs: {{column: amount, min_value: 0, max_value: {most}}}\n"
        f"    severity: {severity}\n"
    )
    return path


@pytest.fixture
def environment(lake: Lake) -> dict[str, str]:
    """Names the lake."""
    return {"LAKE_WAREHOUSE": lake.warehouse, "LAKE_CATALOG": str(lake.settings.catalog)}


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """`run("history", "shop.orders")` runs the command in this process, as if somebody read along through a pipe."""

    def run(*arguments: object, env: dict[str, str | None] | None = None, start: Start | None = None) -> Ran:
        given = [str(argument) for argument in arguments]
        narrowness: dict[str, str | None] = {"COLUMNS": None}  # of the terminal in which the tests were started
        wanted = narrowness | environment | (env or {})
        result = CliRunner().invoke(APP, given, prog_name="lake", env=wanted, obj=start)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def run_process(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m lakelib.cli` as a process of its own."""

    def run(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lakelib.cli", *arguments],
            env=_surroundings() | environment | env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def run_on_terminal(environment: dict[str, str]) -> Callable[..., Ran]:
    """`run_on_terminal(80, "tables")` runs the command in this process, which has a terminal so many columns wide, and
    gives what it showed."""

    def run(columns: int, *arguments: str) -> Ran:
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        with ThreadPoolExecutor(1) as reader, pytest.MonkeyPatch.context() as patch:
            patch.delenv("COLUMNS", raising=False)
            for name, value in (environment | {"TERM": "xterm-256color"}).items():
                patch.setenv(name, value)
            shown = reader.submit(lambda: b"".join(iter(lambda: _read(ours), b"")))
            with _having(theirs, patch):
                code = main(arguments)
            found = shown.result(60)
        os.close(ours)
        return Ran(code, _ESCAPES.sub("", found.decode()).replace("\r\n", "\n"), "")

    return run


@contextmanager
def _having(terminal: int, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process has the terminal, which is closed in the end."""
    before = [os.dup(each) for each in range(3)]
    with open(terminal, "w", buffering=1, encoding="utf-8") as shown:
        for each in range(3):
            os.dup2(terminal, each)
        patch.setattr(sys, "stdout", shown)
        patch.setattr(sys, "stderr", shown)
        try:
            yield
        finally:
            for each, kept in enumerate(before):
                os.dup2(kept, each)
                os.close(kept)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # nobody has the other end open any more
        return b""


def _surroundings() -> dict[str, str]:
    """This process's environment, but for the width of the terminal in which the tests were started."""
    return {name: value for name, value in os.environ.items() if name != "COLUMNS"}
