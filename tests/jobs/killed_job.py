"""Runs a job in this process, and kills the process at one moment: `MOMENT QUERY JOB ARGUMENT…`.

The moment is "before" or "after" the end of the transaction in which the query of that name was executed.
"""

import importlib
import os
import signal
import sys
from typing import Any

import psycopg

from lakelib.catalog.queries import query


def arm(moment: str, name: str) -> None:
    wanted, seen = query(name).as_string(None), False
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

    def watching(self: Any, statement: Any, *args: Any, **keywords: Any) -> Any:
        nonlocal seen
        is_wanted = hasattr(statement, "as_string") and statement.as_string(None) == wanted
        seen = seen or is_wanted
        if not (is_wanted and self.connection.autocommit):
            return execute(self, statement, *args, **keywords)
        if moment == "after":  # a statement that is a transaction of its own
            execute(self, statement, *args, **keywords)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")

    def ending(self: psycopg.Connection[Any]) -> None:
        if seen and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self)
        if seen:
            os.kill(os.getpid(), signal.SIGKILL)

    psycopg.Cursor.execute = watching  # type: ignore[method-assign, assignment]
    psycopg.Connection.commit = ending  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(sys.argv[1], sys.argv[2])
    sys.exit(importlib.import_module(f"jobs.{sys.argv[3]}").main(sys.argv[4:]))
