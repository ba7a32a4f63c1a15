"""The way to PostgreSQL: one pool a catalog, errors translated, lost connections retried.

Every unit of work given to `Catalog.run` is one transaction and must be safe to run again: a reply that got lost leaves
open whether the transaction took effect, and `run` cannot know.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from lakelib.catalog.address import check_address, login_of, place_of
from lakelib.catalog.denied import denied
from lakelib.errors import InvalidInputError, LakeError, RetryableError
from lakelib.model.roles import Right

Connection = psycopg.Connection[DictRow]
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS = 5.0
_FIRST_CONTACT_SECONDS = 3.0
"""How long to look for a server that has never answered: most likely its address is wrong."""
_SERVER_SPOKE = "FATAL:"
"""What a server says that is there and does not take a connection, as while it starts."""
_PASSING = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, psycopg.errors.DeadlockDetected)
_LASTING_WORDS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    '" does not exist',
    "is not permitted to log in",
    "permission denied for database",
    "invalid sslmode value",
    "server does not support SSL",
    "certificate verify failed",
)
"""A refused connection carries no error code, only the server's words."""
_TOO_MUCH = "54"
"""The class of error codes for statements that are beyond a limit of the server."""

_SHORTEST_WAIT_SECONDS = 0.5
_REVIVE_PAUSE_SECONDS = 0.2


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
        self.rights: frozenset[Right] = frozenset()
        """Those that the user was seen to have; `catalog.rights` looks."""
        self._patience_seconds = patience_seconds
        self._max_connections = max_connections
        self._revive = revive
        self._pool: ConnectionPool[Connection] | None = None
        self._pool_pid = os.getpid()
        self._opening = threading.Lock()
        self._closed = False
        self._reached = False

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Runs `work` in one transaction, again if the connection fails.

        Raises RetryableError when the server stays out of reach: whether the last try took effect is then unknown.
        Raises InvalidInputError at once when the server refuses the connection for good.
        """

        def attempt(timeout_seconds: float) -> Result:
            with (
                self._connections().connection(timeout=timeout_seconds) as connection,
                _telling_misuse(self.url, connection),
            ):
                return _run_once(connection, work)

        return self._patiently(attempt)

    @contextmanager
    def stream(self, statement: Any, parameters: dict[str, Any], *, rows_at_once: int) -> Iterator[Iterator[DictRow]]:
        """The rows of a query through a server-side cursor: memory does not grow with the result.

        They come over a connection of their own: a consumer that pauses keeps none from other work. Raises
        RetryableError when the server goes away meanwhile.
        """

        @contextmanager
        def opened(timeout_seconds: float) -> Iterator[Iterator[DictRow]]:
            self._check_open()
            with (
                psycopg.connect(self.url, **_connection_options(timeout_seconds)) as connection,
                _telling_misuse(self.url, connection),
                connection.cursor("lakelib_stream", binary=True) as cursor,
            ):
                cursor.itersize = rows_at_once
                cursor.execute(statement, parameters)
                yield iter(cursor)

        ended = False
        try:
            with ExitStack() as stack:
                yield self._patiently(lambda timeout_seconds: stack.enter_context(opened(timeout_seconds)))
                ended = True
        except _PASSING as error:
            if not ended:
                raise _out_of_reach(self.url, error, 0.0) from error

    def close(self) -> None:
        """Gives the connections back. The catalog cannot be used any more."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._pool_pid == os.getpid():
            pool.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError("The lake is closed.", kind="lake_closed", remedy="Connect again.")

    def _connections(self) -> ConnectionPool[Connection]:
        self._check_open()
        if self._pool_pid != os.getpid():
            # In a forked child one thread is left: what others of the parent's held is nobody's.
            self._opening, self._pool, self._pool_pid = threading.Lock(), None, os.getpid()
        with self._opening:
            if self._pool is None:
                _connect_once(self.url)
                self._reached = True
                self._pool = _open_pool(self.url, self._max_connections)
            return self._pool

    def _patiently(self, attempt: Callable[[float], Result]) -> Result:
        """What the attempt gives; it is told how long it may wait for a connection, and made again if that fails."""
        deadline = time.monotonic() + self._patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            pool = self._pool
            try:
                return attempt(_wait_seconds(deadline))
            except _PASSING as error:
                self._forget_broken(pool, error)
                self._check_worth_waiting(error, deadline)
            except psycopg.Error as error:
                raise _failed(self.url, error) from error
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            self._try_to_revive(deadline)

    def _forget_broken(self, pool: ConnectionPool[Connection] | None, error: psycopg.Error) -> None:
        """After a lost connection the next try begins with a new pool: the old one holds more lost connections, makes
        long pauses before it asks the server again, and does not tell why the server refuses."""
        if pool is None or pool is not self._pool or not _is_lost(error):
            return
        if isinstance(error, PoolTimeout) and not pool.get_stats().get("connections_errors"):
            return
        self._pool = None
        pool.close(timeout=0)

    def _check_worth_waiting(self, error: psycopg.Error, deadline: float) -> None:
        """Raises what the caller should see, unless the failure may pass before the deadline."""
        if any(word in str(error) for word in _LASTING_WORDS):
            raise _refused(self.url, error) from error
        if not self._reached and self._revive is None and _SERVER_SPOKE not in str(error):
            deadline = min(deadline, deadline - self._patience_seconds + _FIRST_CONTACT_SECONDS)
        if time.monotonic() >= deadline:
            if not self._reached:
                raise _never_reached(self.url, error) from error
            raise _out_of_reach(self.url, error, self._patience_seconds) from error
        _LOG.debug("catalog out of reach, trying again: %s", error)

    def _try_to_revive(self, deadline: float) -> None:
        if self._revive is None:
            return
        while True:
            try:
                self._revive()
                break
            except RetryableError as error:
                if time.monotonic() >= deadline:
                    raise
                _LOG.debug("catalog not started, trying again: %s", error)
            time.sleep(_REVIVE_PAUSE_SECONDS)


def check_url(url: str) -> None:
    """Raises InvalidInputError when the text is no PostgreSQL connection string."""
    check_address(url)


def _run_once(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    """Does the work, again where a statement prepared on this connection gives other columns since a migration.

    The rollback makes the connection forget what it has prepared.
    """
    try:
        return work(connection)
    except psycopg.errors.FeatureNotSupported:
        connection.rollback()
        return work(connection)


@contextmanager
def _telling_misuse(url: str, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Raises LakeError for what the driver or the server cannot do, however often it is asked: the driver gives no
    code to its own refusals, as it gives none to a lost connection, but then the server still answers."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        is_own = error.sqlstate is None and _is_answered(connection)
        if is_own or (error.sqlstate or "").startswith(_TOO_MUCH):
            raise _misused(url, error) from error
        raise


def _is_answered(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server still answers. A connection that was cut off may look open until it is used, and one that was
    cut off among statements sent together stays between them."""
    if connection.closed or connection.pgconn.pipeline_status:
        return False
    try:
        connection.rollback()
    except psycopg.Error:
        return False
    return not connection.closed


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or was never there, rather than that a statement failed."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _connect_once(url: str) -> None:
    """Raises psycopg's own error, which a pool would hide, if the server cannot be reached or refuses."""
    psycopg.connect(url, connect_timeout=int(_CONNECT_SECONDS)).close()


def _wait_seconds(deadline: float) -> float:
    return min(_CONNECT_SECONDS, max(_SHORTEST_WAIT_SECONDS, deadline - time.monotonic()))


def _open_pool(url: str, max_connections: int) -> ConnectionPool[Connection]:
    return ConnectionPool(
        url,
        kwargs=_connection_options(_CONNECT_SECONDS),
        configure=_configure,
        min_size=1,
        max_size=max_connections,
        num_workers=1,
        timeout=_CONNECT_SECONDS,
        reconnect_timeout=_CONNECT_SECONDS,
        open=True,
    )


def _connection_options(timeout_seconds: float) -> dict[str, Any]:
    return {"row_factory": dict_row, "application_name": "lakelib", "connect_timeout": max(1, int(timeout_seconds))}


def _configure(connection: psycopg.Connection[Any]) -> None:
    """Publishing counts on READ COMMITTED: each statement sees what others committed before it."""
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    connection.prepare_threshold = 2


def _refused(url: str, error: Exception) -> LakeError:
    return InvalidInputError(
        f"The catalog at {_without_password(url)} refused the connection: {_said(error)}.",
        kind="catalog_refused",
        remedy="Check address, user, password and database in the setting catalog (LAKE_CATALOG, or lake.pg.url in the "
        "properties file).",
    )


def _failed(url: str, error: psycopg.Error) -> LakeError:
    """What is neither the connection's fault nor foreseen by the work itself."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return denied(url, error)
    return LakeError(
        f"The catalog at {_without_password(url)} refused a statement: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Find out whether its schema was changed by hand.",
    )


def _misused(url: str, error: psycopg.Error) -> LakeError:
    return LakeError(
        f"A statement cannot be sent to the catalog at {_without_password(url)}: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Ask for less at once, such as a predicate of fewer values.",
    )


def _out_of_reach(url: str, error: BaseException, waited_seconds: float) -> LakeError:
    return RetryableError(
        f"The catalog at {_without_password(url)} stayed out of reach for {waited_seconds:g} s: {_said(error)}.",
        kind="catalog_unreachable",
        remedy="Whether the last request took effect is unknown: repeat it, with the same idempotency key, once the"
        " server is back. If there never was one, correct the setting catalog (LAKE_CATALOG).",
    )


def _never_reached(url: str, error: BaseException) -> LakeError:
    return RetryableError(
        f"Cannot reach PostgreSQL at {place_of(url)}: {_said(error)}.",
        kind="catalog_unreachable",
        remedy="Start it, or correct the setting catalog (LAKE_CATALOG, or lake.pg.url in the properties file). "
        "Nothing was changed.",
    )


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _without_password(url: str) -> str:
    return login_of(url)
