"""The way to PostgreSQL: one pool a catalog, errors translated, lost connections retried.

Every unit of work given to `Catalog.run` is one transaction and must be safe to run again: a reply that got lost leaves
open whether the transaction took effect, and `run` cannot know.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from lakelib.errors import InvalidInputError, LakeError, RetryableError

Connection = psycopg.Connection[DictRow]
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS = 5.0
_PASSING = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, psycopg.errors.DeadlockDetected)
_LASTING = (
    psycopg.errors.InvalidPassword,
    psycopg.errors.InvalidAuthorizationSpecification,
    psycopg.errors.InvalidCatalogName,
    psycopg.errors.DiskFull,
)


class Catalog:
    """A pool of connections to one catalog. Safe to share between threads; a forked child makes its own pool."""

    def __init__(
        self,
        url: str,
        *,
        patience_seconds: float = 30.0,
        max_connections: int = 8,
        revive: Callable[[], None] | None = None,
    ) -> None:
        """`revive` is called before a retry: it starts an embedded server that has died."""
        self.url = url
        self._patience_seconds = patience_seconds
        self._max_connections = max_connections
        self._revive = revive
        self._pool: ConnectionPool[Connection] | None = None
        self._pool_pid = 0

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Runs `work` in one transaction, again if the connection fails.

        Raises RetryableError when the server stays out of reach: whether the last try took effect is then unknown.
        """
        deadline = time.monotonic() + self._patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                with self._connections().connection() as connection:
                    return work(connection)
            except _LASTING as error:
                raise _refused(self.url, error) from error
            except _PASSING as error:
                if time.monotonic() >= deadline:
                    raise _out_of_reach(self.url, error, self._patience_seconds) from error
                _LOG.debug("catalog out of reach, trying again: %s", error)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            if self._revive is not None:
                self._revive()

    @contextmanager
    def stream(self, statement: Any, parameters: dict[str, Any], *, rows_at_once: int) -> Iterator[Iterator[DictRow]]:
        """The rows of a query through a server-side cursor: memory does not grow with the result."""
        with (
            self._connections().connection() as connection,
            connection.cursor("lakelib_stream", binary=True) as cursor,
        ):
            cursor.itersize = rows_at_once
            cursor.execute(statement, parameters)
            yield iter(cursor)

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None and self._pool_pid == os.getpid():
            pool.close()

    def _connections(self) -> ConnectionPool[Connection]:
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = _open_pool(self.url, self._max_connections)
            self._pool_pid = os.getpid()
        return self._pool


def check_url(url: str) -> None:
    """Raises InvalidInputError when the text is no PostgreSQL connection string."""
    try:
        conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidInputError(
            f"The catalog's address {_without_password(url)!r} is not a PostgreSQL connection string: {error}.",
            kind="invalid_catalog_url",
            remedy="Give postgresql://user@host:5432/database.",
        ) from None


def _open_pool(url: str, max_connections: int) -> ConnectionPool[Connection]:
    return ConnectionPool(
        url,
        kwargs={"row_factory": dict_row, "application_name": "lakelib", "connect_timeout": int(_CONNECT_SECONDS)},
        configure=_configure,
        min_size=1,
        max_size=max_connections,
        num_workers=1,
        timeout=_CONNECT_SECONDS,
        reconnect_timeout=_CONNECT_SECONDS,
        open=True,
    )


def _configure(connection: psycopg.Connection[Any]) -> None:
    """Publishing counts on READ COMMITTED: each statement sees what others committed before it."""
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    connection.prepare_threshold = 2


def _refused(url: str, error: psycopg.Error) -> LakeError:
    return InvalidInputError(
        f"The catalog at {_without_password(url)} refused the connection: {str(error).strip()}.",
        kind="catalog_refused",
        remedy="Check the catalog's address, user, password and database.",
    )


def _out_of_reach(url: str, error: BaseException, waited_seconds: float) -> LakeError:
    return RetryableError(
        f"The catalog at {_without_password(url)} stayed out of reach for {waited_seconds:g} s: {str(error).strip()}.",
        kind="catalog_unreachable",
        remedy="Whether the last request took effect is unknown: repeat it, with the same idempotency key, once the"
        " server is back.",
    )


def _without_password(url: str) -> str:
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "(unreadable)"
    return " ".join(f"{name}={value}" for name, value in parts.items() if name != "password")
