"""The way to PostgreSQL: units of work are run within the caller's patience, errors translated, lost connections
retried.

Every unit of work given to `Catalog.run` is one transaction and must be safe to run again: a reply that got lost leaves
open whether the transaction took effect, and `run` cannot know.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from lakelib.catalog.address import check_address, login_of, place_of
from lakelib.catalog.connections import STREAM_SECONDS, Address, NoneFreeError, Session, Stack
from lakelib.catalog.denied import denied
from lakelib.catalog.queries import changes_nothing, name_of, query
from lakelib.errors import InvalidInputError, LakeError, OutcomeUnknownError, RetryableError
from lakelib.model.roles import Right

Connection = psycopg.Connection[DictRow]
Statement = str | sql.SQL | sql.Composed
"""The name of a query, or a query."""
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS = 5.0
_FIRST_CONTACT_SECONDS = 3.0
"""How long to look for a server that has never answered: most likely its address is wrong."""
_AFTERMATH_SECONDS = 1.0
"""Who comes so soon after a call that waited in vain belongs to it, as who tidies up, and is to look no longer than for
a first contact."""
_SERVER_SPOKE = "FATAL:"
"""What a server says that is there and does not take a connection, as while it starts."""
_BUSY = (
    NoneFreeError,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
_PASSING = (psycopg.OperationalError, psycopg.InterfaceError, *_BUSY)
_FULL_WORDS = ("too many clients", "remaining connection slots", "too many connections", "no more connections allowed")
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

_REVIVE_PAUSE_SECONDS = 0.2


class CatalogBusyError(RetryableError):
    """Others hold what a unit of work needs. Nothing was changed."""

    default_kind = "catalog_busy"


@dataclass(slots=True)
class _Effect:
    """What is known of the changes that a unit of work makes."""

    is_unknown: bool = False
    """Whether one of the tries lost its connection when its changes were under way."""

    @contextmanager
    def sent(self, *, changes: bool) -> Iterator[None]:
        """What fails inside may have taken effect, unless the server said that it has not."""
        try:
            yield
        except psycopg.Error as error:
            self.is_unknown |= changes and _is_lost(error)
            raise


class Catalog:
    """Connections to one catalog, none while nobody needs it. Safe to share between threads; a forked child makes its
    own."""

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
        self.patience_seconds = patience_seconds
        """For how long a unit of work is tried. Whoever has people waiting sets a shorter time."""
        self._max_connections = max_connections
        self._revive = revive
        self._closed = False
        self._reached = False
        self._gave_up_at = -_AFTERMATH_SECONDS
        self._address = Address(url)
        self._begin()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self._stack = Stack(self._address, self._max_connections)

    def run(
        self,
        work: Callable[[Connection], Result],
        *,
        only_reads: bool = False,
        lock_patience_seconds: float | None = None,
    ) -> Result:
        """Runs `work` in one transaction, again if the connection fails or what it needs is held by others, as long as
        the patience lasts; `lock_patience_seconds` is a shorter one for what others hold. Work that `only_reads` gets
        no transaction around it: each of its statements sees what was committed before, as it would inside one.

        Raises RetryableError when it is over and nothing was changed: kind `catalog_unreachable`, `catalog_full` or
        `catalog_busy`, which is a CatalogBusyError. Raises OutcomeUnknownError when a try was lost while its end was
        under way, unless the work `only_reads`. Raises InvalidInputError at once when the server refuses the connection
        for good.
        """
        return self._run(work, alone=only_reads, changes=not only_reads, lock_patience_seconds=lock_patience_seconds)

    def one(self, statement: Statement, parameters: Mapping[str, Any] | None = None) -> DictRow | None:
        """The first row that one statement gives, which is a transaction of its own and one round trip. Raises what
        `run` raises."""
        return self._alone(statement, parameters, lambda cursor: cursor.fetchone())

    def all(self, statement: Statement, parameters: Mapping[str, Any] | None = None) -> list[DictRow]:
        """As `one`: all rows."""
        return self._alone(statement, parameters, lambda cursor: cursor.fetchall())

    def do(self, statement: Statement, parameters: Mapping[str, Any] | None = None) -> int:
        """As `one`: how many rows there were, or were changed."""
        return self._alone(statement, parameters, lambda cursor: cursor.rowcount)

    @contextmanager
    def stream(self, statement: Any, parameters: dict[str, Any], *, rows_at_once: int) -> Iterator[Iterator[DictRow]]:
        """The rows of a query through a server-side cursor: memory does not grow with the result.

        They come over a connection of their own: a consumer that pauses, for up to an hour, keeps none from other work.
        Raises RetryableError when the server goes away meanwhile.
        """

        @contextmanager
        def opened(deadline: float) -> Iterator[Iterator[DictRow]]:
            self._check_open()
            session = self._address.open(self._connect_seconds(deadline), idle_transaction_seconds=STREAM_SECONDS)
            session.listen_for(self.patience_seconds)
            cursor = session.cursor("lakelib_stream", binary=True)
            cursor.itersize = rows_at_once
            try:
                with _telling_misuse(self.url, session):
                    cursor.execute(statement, parameters)
                    self._reached = True
                    yield iter(cursor)
            finally:
                session.close()
                with suppress(psycopg.Error):  # which the driver asks for; nothing is sent any more
                    cursor.close()

        ended = False
        try:
            with ExitStack() as stack:
                yield self._patiently(lambda deadline: stack.enter_context(opened(deadline)), _Effect())
                ended = True
        except _PASSING as error:
            if not ended:
                raise _gave_up(self.url, error, 0.0) from error

    def close(self) -> None:
        """Gives the connections back. The catalog cannot be used any more."""
        self._closed = True
        if self._process_id == os.getpid():
            self._stack.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError("The lake is closed.", kind="lake_closed", remedy="Connect again.")

    def _alone(
        self,
        statement: Statement,
        parameters: Mapping[str, Any] | None,
        fetch: Callable[[psycopg.Cursor[DictRow]], Result],
    ) -> Result:
        asked = query(statement) if isinstance(statement, str) else statement
        changes = not changes_nothing(asked.as_string())
        return self._run(lambda db: fetch(db.execute(asked, parameters)), alone=True, changes=changes)

    def _run(
        self,
        work: Callable[[Connection], Result],
        *,
        alone: bool,
        changes: bool,
        lock_patience_seconds: float | None = None,
    ) -> Result:
        """`alone`: each statement is a transaction of its own, as the server understands it. Where it was not told how
        to isolate those, they get one around them."""
        effect = _Effect()

        def attempt(deadline: float) -> Result:
            with self._session(deadline) as session:
                if alone and session.is_tuned:
                    _set_autocommit(session, True)
                    with suppress(psycopg.errors.FeatureNotSupported), effect.sent(changes=changes):
                        return work(session)
                _set_autocommit(session, False)
                return self._run_once(session, work, effect, changes=changes)

        return self._patiently(attempt, effect, lock_patience_seconds)

    def _run_once(
        self, session: Session, work: Callable[[Connection], Result], effect: _Effect, *, changes: bool
    ) -> Result:
        """Does the work, again where a statement prepared on this connection gives other columns since a migration.

        The rollback makes the connection forget what it has prepared.
        """
        try:
            result = work(session)
        except psycopg.errors.FeatureNotSupported:
            session.rollback()
            result = work(session)
        with effect.sent(changes=changes):
            session.commit()
        return result

    @contextmanager
    def _session(self, deadline: float) -> Iterator[Session]:
        """A connection, given back when the work ends, without a transaction if it ends with an error."""
        self._check_open()
        if self._process_id != os.getpid():
            # In a forked child one thread is left: what others of the parent's held is nobody's.
            self._begin()
        stack = self._stack
        session = stack.take(deadline - time.monotonic(), self._connect_seconds(deadline))
        self._reached = True
        try:
            session.listen_for(deadline - time.monotonic())
            with _telling_misuse(self.url, session):
                yield session
        except BaseException as error:
            _roll_back(session)
            if isinstance(error, _BUSY) and (name := name_of(session.asked)):
                error.add_note(name)
            if isinstance(error, psycopg.Error) and _is_lost(error):
                stack.drop_idle()
            raise
        finally:
            stack.give_back(session)

    def _connect_seconds(self, deadline: float) -> float:
        longest = _CONNECT_SECONDS if self._reached else _FIRST_CONTACT_SECONDS
        return min(longest, deadline - time.monotonic())

    def _patiently(
        self, attempt: Callable[[float], Result], effect: _Effect, lock_patience_seconds: float | None = None
    ) -> Result:
        """What the attempt gives; it is told until when, and made again if what failed may pass."""
        began = time.monotonic()
        patience_seconds = self.patience_seconds
        if began - self._gave_up_at < _AFTERMATH_SECONDS:
            patience_seconds = min(patience_seconds, _FIRST_CONTACT_SECONDS)
        deadline = began + patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return attempt(deadline)
            except _PASSING as error:
                if lock_patience_seconds is not None and isinstance(error, _BUSY):
                    deadline = min(deadline, began + lock_patience_seconds)
                self._check_worth_waiting(error, effect, began, deadline)
            except psycopg.Error as error:
                raise _ended_with(self.url, error, effect) from error
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            self._try_to_revive(deadline, effect)

    def _check_worth_waiting(self, error: psycopg.Error, effect: _Effect, began: float, deadline: float) -> None:
        """Raises what the caller should see, unless the failure may pass before the deadline."""
        if any(word in str(error) for word in _LASTING_WORDS):
            raise _refused(self.url, error) from error
        if not self._reached and self._revive is None and _SERVER_SPOKE not in str(error):
            deadline = min(deadline, began + _FIRST_CONTACT_SECONDS)
        if time.monotonic() < deadline:
            _LOG.debug("catalog out of reach, trying again: %s", error)
            return
        if _is_lost(error) and not isinstance(error, _BUSY):
            self._gave_up_at = time.monotonic()
        if effect.is_unknown:
            raise _outcome_unknown(self.url, error) from error
        if self._reached or _is_full(error) or isinstance(error, _BUSY):
            raise _gave_up(self.url, error, time.monotonic() - began) from error
        raise _never_reached(self.url, error) from error

    def _try_to_revive(self, deadline: float, effect: _Effect) -> None:
        if self._revive is None:
            return
        while True:
            try:
                self._revive()
                break
            except RetryableError as error:
                if time.monotonic() >= deadline:
                    if effect.is_unknown:
                        raise _outcome_unknown(self.url, error) from error
                    raise
                _LOG.debug("catalog not started, trying again: %s", error)
            time.sleep(_REVIVE_PAUSE_SECONDS)


def check_url(url: str) -> None:
    """Raises InvalidInputError when the text is no PostgreSQL connection string."""
    check_address(url)


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
        connection.execute(b"") if connection.autocommit else connection.rollback()
    except psycopg.Error:
        return False
    return not connection.closed


def _set_autocommit(session: Session, value: bool) -> None:
    """Without it a statement begins a transaction, which costs a round trip, as does its end."""
    if session.autocommit != value:
        session.autocommit = value


def _roll_back(session: Session) -> None:
    """A connection on which that fails is of no more use."""
    if session.closed:
        return
    try:
        session.rollback()
    except psycopg.Error:
        session.close()


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or was never there, rather than that a statement failed."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P", "25P03"))


def _is_full(error: psycopg.Error) -> bool:
    """A refused connection carries no error code."""
    return error.sqlstate is None and any(word in str(error) for word in _FULL_WORDS)


def _refused(url: str, error: Exception) -> LakeError:
    return InvalidInputError(
        f"The catalog at {login_of(url)} refused the connection: {_said(error)}.",
        kind="catalog_refused",
        remedy="Check address, user, password and database in the setting catalog (LAKE_CATALOG, or lake.pg.url in the "
        "properties file).",
    )


def _failed(url: str, error: psycopg.Error) -> LakeError:
    """What is neither the connection's fault nor foreseen by the work itself."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return denied(url, error)
    return LakeError(
        f"The catalog at {login_of(url)} refused a statement: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Find out whether its schema was changed by hand.",
    )


def _misused(url: str, error: psycopg.Error) -> LakeError:
    return LakeError(
        f"A statement cannot be sent to the catalog at {login_of(url)}: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Ask for less at once, such as a predicate of fewer values.",
    )


def _gave_up(url: str, error: psycopg.Error, waited_seconds: float) -> LakeError:
    """What the patience was spent on; nothing was changed."""
    place, said = login_of(url), _said(error)
    if _is_full(error):
        return RetryableError(
            f"The catalog at {place} had no connection to give for {waited_seconds:.0f} s: {said}.",
            kind="catalog_full",
            remedy="Nothing was changed. Raise max_connections of the server, put a pooler before it, or run fewer"
            " processes at once; a lake holds a connection only while it works, and for some seconds after.",
        )
    if isinstance(error, _BUSY):
        asked = "".join(f" (in {name})" for name in getattr(error, "__notes__", ()))
        return CatalogBusyError(
            f"The catalog at {place} was busy for {waited_seconds:.0f} s: {said}{asked}.",
            remedy="Nothing was changed. Try again; pg_stat_activity and pg_locks of the server show who holds what.",
        )
    return RetryableError(
        f"The catalog at {place} stayed out of reach for {waited_seconds:.0f} s: {said}.",
        kind="catalog_unreachable",
        remedy="Nothing was changed. Repeat the call once the server is back, with the same idempotency key. If there"
        " never was one, correct the setting catalog (LAKE_CATALOG).",
    )


def _ended_with(url: str, error: psycopg.Error, effect: _Effect) -> LakeError:
    """What the server refuses at last may be what an earlier try has done."""
    return _outcome_unknown(url, error) if effect.is_unknown else _failed(url, error)


def _outcome_unknown(url: str, error: BaseException) -> LakeError:
    return OutcomeUnknownError(
        f"The catalog at {login_of(url)} went out of reach before it confirmed a change: {_said(error)}.",
        kind="outcome_unknown",
        remedy="Whether the last request took effect is unknown: repeat it, with the same idempotency key, once the"
        " server is back.",
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
