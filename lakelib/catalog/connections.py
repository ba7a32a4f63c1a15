"""Connections to PostgreSQL on which every wait has an end, and the few of them that a process keeps for a moment.

Three things end a wait. The server ends its own: for a lock, for a statement that takes too long, for a client that
falls silent in the middle of a transaction. The operating system ends a TCP connection whose packets vanish. And the
client ends what none of them sees: it hears nothing for a while, asks over another connection whether the server is
still at work, and gives up if not.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.rows import DictRow, dict_row

from lakelib.dataclass import dataclass

LOCK_SECONDS = 5
"""The longest a statement waits for a lock."""
STATEMENT_SECONDS = 300
"""The longest a server works on one statement."""
IDLE_TRANSACTION_SECONDS = 10
"""The longest a server keeps a transaction whose client says nothing."""
STREAM_SECONDS = 3600
"""The same for a stream of rows, whose consumer may pause."""
SILENCE_SECONDS = 10.0
"""How long nothing is heard of a statement before the server is asked whether it is still at work."""

_SHORTEST_SILENCE_SECONDS = 2.0
_ASKING_SECONDS = 2.0
_IDLE_SECONDS = 1.0
_UNKNOWN_SETTINGS = "unsupported startup parameter"
"""What a pooler in front of the server says that does not pass on a session's settings."""
_WATCHED_SOCKET = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_IS_AT_WORK = """
select state = 'active' and wait_event_type is distinct from 'Client' as is_at_work
from pg_catalog.pg_stat_activity where pid = %s
"""


class SilentError(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed."""


class NoneFreeError(psycopg.OperationalError):
    """All connections that this process may have stayed in use."""


class Session(psycopg.Connection[DictRow]):
    """A connection whose waits end. `address` and `is_tuned` are set by who opens it."""

    address: "Address"
    is_tuned: bool
    """Whether the server knows the settings of `Address`, else a pooler kept them to itself."""
    asked: Any = None
    """The statement that was executed last."""
    silence_seconds = SILENCE_SECONDS
    patience_seconds = SILENCE_SECONDS
    """How long to listen where nobody can be asked whether the server is at work."""

    def wait(self, gen: Generator[Any, Any, Any], *how: Any, **more: Any) -> Any:
        """As the driver's own. Raises SilentError, and closes the connection, if nothing is heard of the server."""
        return super().wait(self._listening(gen), *how, **more)

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[DictRow]:
        self.asked = query
        return super().execute(query, params, **options)

    def listen_for(self, seconds: float) -> None:
        """Who uses the connection from now on has so much patience."""
        self.asked = None
        self.patience_seconds = max(seconds, _SHORTEST_SILENCE_SECONDS)
        self.silence_seconds = min(self.patience_seconds, SILENCE_SECONDS)

    def is_quiet(self) -> bool:
        """Whether the server has said nothing unasked, such as that it ends the session."""
        if self.closed or not hasattr(select, "poll"):
            return not self.closed
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return not poll.poll(0)

    def __del__(self, _warn: Any = None, /) -> None:
        """Not closed is no mistake: who forgets a lake leaves its connections to the garbage collector."""

    def _listening(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        began = heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    began = heard = now
                elif now - heard >= self.silence_seconds:
                    self._check_at_work(now - began)
                    heard = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _check_at_work(self, silent_seconds: float) -> None:
        if self._is_worth_waiting(silent_seconds) or not self.is_quiet():
            return
        self.close()
        raise SilentError(f"the server did not answer for {silent_seconds:.0f} s")

    def _is_worth_waiting(self, silent_seconds: float) -> bool:
        if not self.is_tuned:
            is_at_work, limit_seconds = True, self.patience_seconds
        else:
            is_at_work = self.address.is_at_work(self.pgconn.backend_pid)
            limit_seconds = STATEMENT_SECONDS + SILENCE_SECONDS
        if is_at_work and silent_seconds >= limit_seconds:
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=_ASKING_SECONDS)
            return False
        return is_at_work


class Address:
    """How a database is reached. What its URL says goes before what is set here."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._takes_settings = True

    def open(self, seconds: float, *, idle_transaction_seconds: int = IDLE_TRANSACTION_SECONDS) -> Session:
        """A new connection. Raises psycopg.OperationalError if there is none in time."""
        given = conninfo.conninfo_to_dict(self.url)
        parameters = {
            "application_name": "lakelib",
            **_WATCHED_SOCKET,
            **given,
            "connect_timeout": max(2, int(seconds)),
        }
        if not self._takes_settings:
            return self._open(parameters, is_tuned=False)
        settings = _settings(idle_transaction_seconds)
        theirs = given.get("options") or os.environ.get("PGOPTIONS") or ""
        try:
            return self._open({**parameters, "options": f"{settings} {theirs}".rstrip()}, is_tuned=True)
        except psycopg.OperationalError as error:
            if _UNKNOWN_SETTINGS not in str(error):
                raise
        self._takes_settings = False
        return self._open(parameters, is_tuned=False)

    def is_at_work(self, backend_pid: int) -> bool:
        """Whether the server still works on the statement of that session, as far as can be found out in short time."""
        try:
            with closing(self.open(_ASKING_SECONDS)) as session:
                session.is_tuned = False  # it is not asked about in turn
                session.autocommit = True
                session.listen_for(_ASKING_SECONDS)
                row = session.execute(_IS_AT_WORK, (backend_pid,)).fetchone()
        except psycopg.Error:
            return False
        return row is not None and bool(row["is_at_work"])

    def _open(self, parameters: dict[str, Any], *, is_tuned: bool) -> Session:
        session = Session.connect("", **parameters, row_factory=dict_row, prepare_threshold=2)
        session.address, session.is_tuned = self, is_tuned
        # Publishing counts on it: each statement sees what others committed before it.
        session.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return session


def _settings(idle_transaction_seconds: int) -> str:
    """What the server does by itself, sent with the request for a session: no round trip."""
    settings = {
        "lock_timeout": f"{LOCK_SECONDS}s",
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "idle_in_transaction_session_timeout": f"{idle_transaction_seconds}s",
        "default_transaction_isolation": r"read\ committed",
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "2",
        "tcp_keepalives_count": "3",
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


@dataclass(frozen=True, slots=True)
class _Idle:
    session: Session
    since: float


class Stack:
    """The connections of one process to one database: opened when they are needed, closed when nobody has needed them
    for a moment, never more than `most`. Who waits for one gets one in the order of coming."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._most = most
        # A finaliser may come here in the middle of anything that its own thread does here.
        self._lock = threading.RLock()
        self._in_use = 0
        self._waiting: deque[threading.Event] = deque()
        self._idle: list[_Idle] = []
        self._closer: threading.Thread | None = None
        self._closed = threading.Event()

    def take(self, deadline: float, connect_seconds: float) -> Session:
        """A connection that nobody else uses until it is given back, for work that ends by then. Raises
        psycopg.OperationalError if there is none in time."""
        self._await_turn(deadline - time.monotonic())
        try:
            session = self._take_idle() or self._address.open(connect_seconds)
            session.listen_for(deadline - time.monotonic())
            return session
        except BaseException:
            self._pass_turn()
            raise

    def give_back(self, session: Session) -> None:
        """A connection in the middle of a transaction is closed."""
        try:
            if session.closed or session.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                session.close()
            else:
                self._keep(session)
        finally:
            self._pass_turn()

    def drop_idle(self) -> None:
        """Closes the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.session.close()

    def close(self) -> None:
        """Closes what nobody uses now, and the rest when it is given back."""
        self._closed.set()
        self.drop_idle()

    def _await_turn(self, seconds: float) -> None:
        turn = threading.Event()
        with self._lock:
            if self._in_use < self._most:
                self._in_use += 1
                return
            self._waiting.append(turn)
        try:
            if turn.wait(max(0.0, seconds)):
                return
        except BaseException:
            if not self._leave(turn):
                self._pass_turn()
            raise
        if self._leave(turn):
            raise NoneFreeError(f"all {self._most} connections of this process stayed in use")

    def _leave(self, turn: threading.Event) -> bool:
        """Waits no longer; False if the turn has come in the last moment."""
        with self._lock:
            if turn.is_set():
                return False
            self._waiting.remove(turn)
            return True

    def _pass_turn(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._in_use -= 1

    def _take_idle(self) -> Session | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                session = self._idle.pop().session
            if session.is_quiet():
                return session
            session.close()

    def _keep(self, session: Session) -> None:
        with self._lock:
            self._idle.append(_Idle(session, time.monotonic()))
            if self._closer is None and not self._closed.is_set():
                self._closer = self._start_closer()
            is_watched = self._closer is not None and not self._closed.is_set()
        if not is_watched:
            self.drop_idle()

    def _start_closer(self) -> threading.Thread | None:
        closer = threading.Thread(target=self._close_in_time, name="lakelib-connections", daemon=True)
        try:
            closer.start()
        except RuntimeError:  # no more threads, or the interpreter is ending
            return None
        return closer

    def _close_in_time(self) -> None:
        """Ends once nothing is idle."""
        while not self._closed.is_set():
            with self._lock:
                before = time.monotonic() - _IDLE_SECONDS
                due = [one.session for one in self._idle if one.since <= before]
                self._idle = [one for one in self._idle if one.since > before]
                if not self._idle:
                    self._closer = None
                pause_seconds = self._idle[0].since - before if self._idle else 0.0
            for session in due:
                session.close()
            if not pause_seconds:
                return
            self._closed.wait(pause_seconds)
