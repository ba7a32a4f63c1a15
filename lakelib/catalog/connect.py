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
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from lakelib.catalog.connections import STREAM_SECONDS, Address, Session, Stack
from lakelib.catalog.failures import (
    BUSY,
    LASTING_WORDS,
    PASSING,
    SERVER_SPOKE,
    failed,
    gave_up,
    is_full,
    is_lost,
    never_reached,
    outcome_unknown,
    refused,
    tell_misuse,
)
from lakelib.catalog.queries import changes_nothing, name_of, query
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, RetryableError
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
_REVIVE_PAUSE_SECONDS = 0.2
_HINT_SECONDS = 2.0


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
            self.is_unknown |= changes and is_lost(error)
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
        """Those that the user was seen to have; `catalog.roles` looks."""
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

    def hint(self, statement: Statement, parameters: Mapping[str, Any]) -> None:
        """Has one statement done that is of use only now, and is left undone where that fails."""
        asked = query(statement) if isinstance(statement, str) else statement
        with suppress(psycopg.Error, LakeError), self._session(time.monotonic() + _HINT_SECONDS) as session:
            _set_autocommit(session, True)
            session.execute(asked, parameters)

    def open_apart(self, seconds: float) -> Session:
        """A connection of its own, each of whose statements is a transaction, for who waits at it. The caller closes
        it. Raises psycopg.OperationalError if there is none in time."""
        self._check_open()
        session = self._address.open(seconds)
        _set_autocommit(session, True)
        session.listen_for(seconds)
        return session

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
                cursor.execute(statement, parameters)
                self._reached = True
                yield iter(cursor)
            except psycopg.Error as error:
                tell_misuse(self.url, session, error)
                raise
            finally:
                session.close()
                with suppress(psycopg.Error):  # which the driver asks for; nothing is sent any more
                    cursor.close()

        ended = False
        try:
            with ExitStack() as stack:
                yield self._patiently(lambda deadline: stack.enter_context(opened(deadline)), _Effect())
                ended = True
        except PASSING as error:
            if not ended:
                raise gave_up(self.url, error, 0.0) from error

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
        session = stack.take(deadline, self._connect_seconds(deadline))
        self._reached = True
        try:
            yield session
        except BaseException as error:
            try:
                tell_misuse(self.url, session, error)
            finally:
                _roll_back(session)
            if isinstance(error, BUSY) and (name := name_of(session.asked)):
                error.add_note(name)
            if isinstance(error, psycopg.Error) and is_lost(error):
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
            except PASSING as error:
                if lock_patience_seconds is not None and isinstance(error, BUSY):
                    deadline = min(deadline, began + lock_patience_seconds)
                self._check_worth_waiting(error, effect, began, deadline)
            except psycopg.Error as error:
                raise _ended_with(self.url, error, effect) from error
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            self._try_to_revive(deadline, effect)

    def _check_worth_waiting(self, error: psycopg.Error, effect: _Effect, began: float, deadline: float) -> None:
        """Raises what the caller should see, unless the failure may pass before the deadline."""
        if any(word in str(error) for word in LASTING_WORDS):
            raise refused(self.url, error) from error
        if not self._reached and self._revive is None and SERVER_SPOKE not in str(error):
            deadline = min(deadline, began + _FIRST_CONTACT_SECONDS)
        if time.monotonic() < deadline:
            _LOG.debug("catalog out of reach, trying again: %s", error)
            return
        if is_lost(error) and not isinstance(error, BUSY):
            self._gave_up_at = time.monotonic()
        if effect.is_unknown:
            raise outcome_unknown(self.url, error) from error
        if self._reached or is_full(error) or isinstance(error, BUSY):
            raise gave_up(self.url, error, time.monotonic() - began) from error
        raise never_reached(self.url, error) from error

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
                        raise outcome_unknown(self.url, error) from error
                    raise
                _LOG.debug("catalog not started, trying again: %s", error)
            time.sleep(_REVIVE_PAUSE_SECONDS)


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


def _ended_with(url: str, error: psycopg.Error, effect: _Effect) -> LakeError:
    """What the server refuses at last may be what an earlier try has done."""
    return outcome_unknown(url, error) if effect.is_unknown else failed(url, error)
