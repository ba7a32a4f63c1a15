"""Kills the process that it is loaded into at its n-th step.

A step is the moment before or after a file is opened, written, closed, made durable or deleted, before or after a
statement, before a transaction's end, after its message was sent but before the reply is read, and after the reply. A
statement that is a transaction of its own is sent and replied to in the same way.
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
    """Counts steps, and dies at the one asked for, or freezes. `say` hears its name first."""

    def __init__(self, kill_at: int, say: Say, how: signal.Signals, only: str) -> None:
        self._kill_at = kill_at
        self._say = say
        self._how = how
        self._only = only
        self.count = 0

    def pass_one(self, name: str) -> None:
        if self.is_last(name):
            self.die(name)

    def is_last(self, name: str) -> bool:
        self.count += self._only in name
        return self._only in name and self.count == self._kill_at

    def die(self, name: str) -> None:
        self._say(name)
        os.kill(os.getpid(), self._how)


def arm(kill_at: int, say: Say, *, how: signal.Signals = signal.SIGKILL, only: str = "") -> Steps:
    """From now on this process counts its steps, those with this in their names, and dies at the `kill_at`-th."""
    steps = Steps(kill_at, say, how, only)
    _surround(Storage, "open_output", "open a file", steps)
    _surround(parquet.ParquetWriter, "write_table", "write a file", steps)
    _surround(parquet.ParquetWriter, "close", "close a file", steps)
    _surround(Storage, "make_durable", "make a file durable", steps)
    _surround(Storage, "delete_files", "delete files", steps)
    _surround_execute(steps)
    _surround(psycopg.Cursor, "executemany", "execute many", steps)
    _surround_commit(steps)
    return steps


def _surround(owner: Any, method: str, name: str, steps: Steps) -> None:
    original = getattr(owner, method)

    def surrounded(self: Any, *args: Any, **keywords: Any) -> Any:
        steps.pass_one(f"before: {name}")
        result = original(self, *args, **keywords)
        steps.pass_one(f"after: {name}")
        return result

    setattr(owner, method, surrounded)


def _surround_execute(steps: Steps) -> None:
    original = psycopg.Cursor.execute

    def execute(self: psycopg.Cursor[Any], query: Any, params: Any = None, **options: Any) -> Any:
        label = f"execute {_first_line(query)}"
        steps.pass_one(f"before: {label}")
        connection = self.connection
        if connection.autocommit and steps.is_last(f"sent: {label}"):
            text = psycopg.ClientCursor(connection).mogrify(query, params)
            connection.pgconn.send_query(text.encode())
            connection.pgconn.flush()
            steps.die(f"sent: {label}")
            connection.close()  # it was frozen: the reply was lost meanwhile
            raise psycopg.OperationalError("the connection is lost")
        result = original(self, query, params, **options)
        steps.pass_one(f"after: {label}")
        return result

    psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def _surround_commit(steps: Steps) -> None:
    original = psycopg.Connection.commit

    def commit(self: psycopg.Connection[Any]) -> None:
        steps.pass_one("before: commit")
        if steps.is_last("sent: commit"):
            self.pgconn.send_query(b"COMMIT")
            self.pgconn.flush()
            steps.die("sent: commit")
        original(self)
        steps.pass_one("after: commit")

    psycopg.Connection.commit = commit  # type: ignore[method-assign]


def _first_line(query: Any) -> str:
    text = query.as_string(None) if hasattr(query, "as_string") else str(query)
    return " ".join(text.split())[:60]
