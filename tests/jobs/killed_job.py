"""Runs a job in this process, and kills a process at one moment: `VICTIM MOMENT QUERY JOB ARGUMENT…`.

The victim is a process id, or "self". The moment is "before" or "after" the end of the transaction in which the query
of that name was executed for the first time.
"""

import importlib
import os
import signal
import sys
from typing import Any

import psycopg

from lakelib.catalog.queries import query


def arm(victim: int, moment: str, name: str) -> None:
    wanted, seen, done = query(name).as_string(None), False, False
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

    def kill() -> None:
        nonlocal done
        if not done:
            os.kill(victim, signal.SIGKILL)
        done = True

    def watching(self: Any, statement: Any, *args: Any, **keywords: Any) -> Any:
        nonlocal seen
        is_wanted = hasattr(statement, "as_string") and statement.as_string(None) == wanted
        seen = seen or is_wanted
        if not (is_wanted and self.connection.autocommit):
            return execute(self, statement, *args, **keywords)
        if moment == "before":
            kill()
        executed = execute(self, statement, *args, **keywords)  # a statement that is a transaction of its own
        kill()
        return executed

    def ending(self: psycopg.Connection[Any]) -> None:
        if seen and moment == "before":
            kill()
        commit(self)
        if seen:
            kill()

    psycopg.Cursor.execute = watching  # type: ignore[method-assign, assignment]
    psycopg.Connection.commit = ending  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(os.getpid() if sys.argv[1] == "self" else int(sys.argv[1]), sys.argv[2], sys.argv[3])
    sys.exit(importlib.import_module(f"jobs.{sys.argv[4]}").main(sys.argv[5:]))
