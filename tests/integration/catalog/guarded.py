"""A server that asks for a password."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_PATIENCE_SECONDS = 10


@contextmanager
def guarded(url: str) -> Iterator[None]:
    """The server has the role `guarded`, and asks it for its password, while the block runs."""
    with psycopg.connect(url, autocommit=True) as connection:
        [(folder,)] = connection.execute("show data_directory").fetchall()
        rules = Path(folder, "pg_hba.conf")
        before = rules.read_text()
        connection.execute("create role guarded login password 'right'")
        try:
            _set_rules(connection, url, rules, f"local all guarded scram-sha-256\n{before}")
            yield
        finally:
            _set_rules(connection, url, rules, before)
            connection.execute("drop role guarded")


def _set_rules(connection: psycopg.Connection[Any], url: str, rules: Path, content: str) -> None:
    """Whoever connects afterwards meets them: a new session knows when the server has last read its settings."""
    rules.write_text(content)
    before = _load_time(url)
    connection.execute("select pg_reload_conf()")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _load_time(url) == before:
        assert time.monotonic() < deadline, "the server does not read its settings"
        time.sleep(0.01)


def _load_time(url: str) -> object:
    with psycopg.connect(url) as fresh:
        return fresh.execute("select pg_conf_load_time()").fetchone()
