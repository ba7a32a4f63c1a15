"""Kills the process that it is loaded into at its n-th step.

A step is the moment before or after a file is opened, written, closed, made durable or deleted, before or after a
statement, before a transaction's end, after its message was sent but before the reply is read, and after the reply.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

import psycopg
from pyarrow import parquet

from lakelib.storage.filesystem import Storage

Say = Callable[[Any], None]


class Steps:
    """Counts steps, and dies at the one asked for. `say` hears its name first."""

    def __init__(self, kill_at: int, say: Say) -> None:
        self._kill_at = kill_at
        self._say = say
        self.count = 0

    def pass_one(self, name: str) -> None:
        if self.is_last():
            self.die(name)

    def is_last(self) -> bool:
        self.count += 1
        return self.count == self._kill_at

    def die(self, name: str) -> None:
        self._say(name)
        os.kill(os.getpid(), signal.SIGKILL)


def arm(kill_at: int, say: Say) -> Steps:
    """From now on this process counts its steps, and dies at the `kill_at`-th."""
    steps = Steps(kill_at, say)
    _surround(Storage, "open_output", "open a file", steps)
    _surround(parquet.ParquetWriter, "write_table", "write a file", steps)
    _surround(parquet.ParquetWriter, "close", "close a file", steps)
    _surround(Storage, "make_durable", "make a file durable", steps)
    _surround(Storage, "delete_files", "delete files", steps)
    _surround(psycopg.Cursor, "execute", "execute", steps)
    _surround(psycopg.Cursor, "executemany", "execute many", steps)
    _surround_commit(steps)
    return steps


def _surround(owner: Any, method: str, name: str, steps: Steps) -> None:
    original = getattr(owner, method)

    def surrounded(self: Any, *args: Any, **keywords: Any) -> Any:
        label = f"{name} {_first_line(args)}" if name.startswith("execute") else name
        steps.pass_one(f"before: {label}")
        result = original(self, *args, **keywords)
        steps.pass_one(f"after: {label}")
        return result

    setattr(owner, method, surrounded)


def _surround_commit(steps: Steps) -> None:
    original = psycopg.Connection.commit

    def commit(self: psycopg.Connection[Any]) -> None:
        steps.pass_one("before: commit")
        if steps.is_last():
            self.pgconn.send_query(b"COMMIT")
            self.pgconn.flush()
            steps.die("sent: commit")
        original(self)
        steps.pass_one("after: commit")

    psycopg.Connection.commit = commit  # type: ignore[method-assign]


def _first_line(args: tuple[Any, ...]) -> str:
    text = args[0].as_string(None) if args and hasattr(args[0], "as_string") else str(args[:1])
    return " ".join(text.split())[:60]
