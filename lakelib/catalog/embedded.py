"""The embedded PostgreSQL: a server of this user's own, shared by any number of processes, stopped by the last one.

Its socket is in its folder, and what answers there is used, whoever has started it and in whichever container. Two
files beside the data are locked:

- `lakelib.server` by whoever starts the server, and then by the server and each of its sessions, which inherit it. As
  long as one of them lives, anywhere, nobody starts a second server. It names who has started the server.
- `lakelib.users` by each process that uses the server, shared. Who gets it alone when it ends stops the server, or
  leaves it to a keeper for a while.

No process is known by its pid, and none is sent a signal: a server is asked over its socket to stop.
"""

import atexit
import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from lakelib.catalog import postgresql
from lakelib.catalog.serving import (
    check_not_served_elsewhere,
    clear_after_dead,
    is_of_one_host,
    is_served_without_lock,
    note_starter,
    open_lock,
    read_starter,
    tried_alone,
    try_to_share,
)
from lakelib.errors import InvalidInputError, LakeError, RetryableError

_PATIENCE_SECONDS = 30.0
_REVIVAL_SECONDS = 5.0
_STOP_SECONDS = 60.0
_MOST_STARTS = 3
"""A server may be killed while it starts, and the next one will not be."""
_ANSWER_SECONDS = 3
_PAUSE_SECONDS = 0.02
_SERVER_LOCK = f"{postgresql.OWN_PREFIX}server"
_USERS_LOCK = f"{postgresql.OWN_PREFIX}users"
_SOCKET = f".s.PGSQL.{postgresql.PORT}"
_LONGEST_SOCKET_BYTES = 103
_SERVER_SPOKE = "FATAL:"
_SIGNALS = {"fast": "INT", "immediate": "QUIT"}
_FIRST_PROCESS = 1
_stay_seconds = 0.0
_USED: dict[Path, int] = {}
"""By folder, the shared lock that tells others that this process uses the server. Forked children have it, too."""


class EmbeddedServer:
    """A running server on a folder. It listens on a Unix socket only."""

    def __init__(self, folder: Path, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        """Starts the server if none runs; makes the folder and the database if they are not there.

        Raises InvalidInputError if the folder cannot be had, or may be served by another host. Raises RetryableError
        if the server does not start, or if one that is there does not answer in time: there is never a second one.
        """
        _prepare_folder(folder)
        self._folder = folder.resolve()
        self._patience_seconds = patience_seconds
        self.url = url_of(self._folder)
        self._sign_on()
        self._ensure_running(patience_seconds)

    @property
    def users_lock(self) -> int:
        """A descriptor: a child that inherits it uses the server for as long as it lives."""
        return _USED[self._folder]

    def ensure_running(self) -> None:
        """Starts the server again if it has died. Raises as the constructor does, but sooner: it is called again."""
        self._ensure_running(min(_REVIVAL_SECONDS, self._patience_seconds))

    def _ensure_running(self, patience_seconds: float) -> None:
        url_of(self._folder)
        deadline = time.monotonic() + patience_seconds
        starts, log_size = 0, postgresql.log_size_bytes(self._folder)
        while (silence := _why_silent(self.url)) is not None:
            with tried_alone(self._folder / _SERVER_LOCK) as lock:
                if lock is not None and starts == _MOST_STARTS:
                    words = postgresql.last_words(self._folder, since_bytes=log_size)
                    raise _not_started(self._folder, words or silence)
                if lock is not None and not is_served_without_lock(self._folder):
                    _start(self._folder, lock)
                    starts += 1
            if time.monotonic() >= deadline:
                raise _not_answering(self._folder, silence, patience_seconds)
            time.sleep(_PAUSE_SECONDS)

    def _sign_on(self) -> None:
        """Waits while the last user of before stops the server."""
        path = self._folder / _USERS_LOCK
        held = _USED.get(self._folder)
        if held is not None and _is_open(path, held):
            return
        deadline = time.monotonic() + self._patience_seconds
        descriptor = open_lock(path)
        while not try_to_share(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise _still_stopping(self._folder, self._patience_seconds)
            time.sleep(_PAUSE_SECONDS)
        if not _USED:
            atexit.register(_release_all)
        if held is not None and _USED.pop(self._folder, None) == held:
            os.close(held)
        if _USED.setdefault(self._folder, descriptor) != descriptor:
            os.close(descriptor)


def url_of(folder: Path) -> str:
    """The address of the server on a folder, whether it runs or not."""
    place = quote(str(_socket_folder(folder.resolve())), safe="/")
    return f"postgresql://postgres:@/postgres?host={place}&port={postgresql.PORT}"


def is_answering(folder: Path) -> bool:
    return _why_silent(url_of(folder)) is None


def release(folder: Path) -> bool:
    """This process does not use the server any more. Returns whether it was the last, and has stopped it."""
    folder = folder.resolve()
    descriptor = _USED.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)
    if not (folder / _USERS_LOCK).exists():
        return False
    with tried_alone(folder / _USERS_LOCK) as alone:
        has_stopped = alone is not None and stop(folder)
        if has_stopped and (link := _socket_folder(folder)) != folder:
            link.unlink(missing_ok=True)
    return has_stopped


def stop(folder: Path, *, mode: str = "fast") -> bool:
    """Ends the server, whoever uses it, and returns whether none is left. `mode` immediate is a crash.

    The server runs a shell that sends the signal: it is in the server's own namespace, and knows its process.
    """
    ask = f"COPY (SELECT WHERE false) TO PROGRAM 'read pid < postmaster.pid && kill -{_SIGNALS[mode]} $pid'"
    try:
        connection = psycopg.connect(url_of(folder), connect_timeout=_ANSWER_SECONDS, autocommit=True)
    except psycopg.Error:
        return not _is_served(folder)
    with suppress(psycopg.Error), connection:
        connection.execute(ask.encode())
    deadline = time.monotonic() + _STOP_SECONDS
    while _is_served(folder):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def keep_up_after_exit(seconds: float) -> None:
    """Lets the servers that this process uses live on after it for so long, for who comes next. Not where the process
    is all that its container runs, and not on a folder that another host may be the next to use: both would find a
    server that was killed."""
    global _stay_seconds
    _stay_seconds = 0.0 if os.getpid() == _FIRST_PROCESS else seconds


def _release_all() -> None:
    for folder in list(_USED):
        with suppress(LakeError, OSError):
            if not (_stay_seconds and is_of_one_host(folder) and _leave_up(folder, _stay_seconds)):
                release(folder)


def _leave_up(folder: Path, seconds: float) -> bool:
    """Whether somebody will stop the server: a keeper, or others who use it, too."""
    from lakelib.catalog.keeper import leave_keeper

    descriptor = _USED.pop(folder)
    with suppress(OSError):
        os.utime(descriptor)
    os.close(descriptor)
    with tried_alone(folder / _USERS_LOCK) as alone, suppress(OSError):
        if alone is not None and try_to_share(alone):
            leave_keeper(folder, alone, seconds)
        return True
    return False


def _is_served(folder: Path) -> bool:
    with tried_alone(folder / _SERVER_LOCK) as lock:
        return lock is None or is_served_without_lock(folder)


def _start(folder: Path, lock: int) -> None:
    """For who has the lock, which the server inherits."""
    check_not_served_elsewhere(folder, read_starter(folder / _SERVER_LOCK))
    note_starter(lock)
    clear_after_dead(folder)
    postgresql.ensure_data(folder, lock=lock)
    postgresql.start(folder, lock=lock, sockets=folder if _socket_folder(folder) == folder else Path("."))


def _why_silent(url: str) -> str | None:
    """What was said or seen in place of an answer; None if a server takes connections, be they too many for it."""
    try:
        psycopg.connect(url, connect_timeout=_ANSWER_SECONDS).close()
    except psycopg.OperationalError as error:
        words = " ".join(str(error).split()).rstrip(".")
        return None if _SERVER_SPOKE in words and postgresql.NOT_READY not in words else words
    return None


def _socket_folder(folder: Path) -> Path:
    """The folder, or another name of it where its own is too long for a socket, or means two folders to the driver."""
    if len(os.fsencode(folder / _SOCKET)) <= _LONGEST_SOCKET_BYTES and "," not in str(folder):
        return folder
    return _short_name(folder)


def _short_name(folder: Path) -> Path:
    """A link to the folder that is this user's own: nobody else can lead it elsewhere."""
    name = f"lakelib-{os.geteuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    links = [Path(place, name) for place in (tempfile.gettempdir(), "/tmp", Path.home())]
    for link in links:
        if len(os.fsencode(link / _SOCKET)) <= _LONGEST_SOCKET_BYTES and _leads_to(link, folder):
            return link
    raise InvalidInputError(
        f"The embedded PostgreSQL cannot have the folder {folder}: its path is too long for a socket, or has a comma,"
        f" and {links[0]}, which would be a short name of it, cannot be had.",
        kind="invalid_location",
        remedy="Work in a folder with a shorter path, or name a server of your own in LAKE_CATALOG.",
    )


def _leads_to(link: Path, folder: Path) -> bool:
    """Makes the link if it is not there."""
    try:
        with suppress(FileExistsError):
            link.symlink_to(folder)
        return link.lstat().st_uid == os.geteuid() and link.readlink() == folder
    except OSError:
        return False


def _is_open(path: Path, descriptor: int) -> bool:
    """Whether the descriptor is of this file, and not of one that was there before the folder was removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _prepare_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        postgresql.check_is_free(folder)
    except OSError as error:
        raise InvalidInputError(
            f"The embedded PostgreSQL cannot have the folder {folder}: {error.strerror} ({error.filename}).",
            kind="invalid_location",
            remedy="Work as the user whose folder it is or in one where it can be made, or name a server of your own in"
            " LAKE_CATALOG.",
        ) from error


def _not_started(folder: Path, words: str) -> RetryableError:
    return _failed(f"The embedded PostgreSQL in {folder} did not start: {words}.", f"Read {postgresql.log_of(folder)}")


def _not_answering(folder: Path, silence: str, seconds: float) -> RetryableError:
    lock = folder / _SERVER_LOCK
    starter = read_starter(lock)
    by = f"started by the host {starter.host} at {starter.since}" if starter else "started by an older lakelib"
    return _failed(
        f"The embedded PostgreSQL in {folder}, {by}, has not answered for {seconds:g} s and has not ended:"
        f" {silence}. No second one is started.",
        f"Repeat, if it is starting. Else end what uses it there; `fuser {lock}` names the processes",
    )


def _still_stopping(folder: Path, seconds: float) -> RetryableError:
    return _failed(
        f"The embedded PostgreSQL in {folder} has been stopping for {seconds:g} s.",
        f"Repeat. If that does not help, end what stops it; `fuser {folder / _USERS_LOCK}` names the process",
    )


def _failed(message: str, remedy: str) -> RetryableError:
    remedy = f"{remedy}, or name a server of your own in LAKE_CATALOG."
    return RetryableError(message, kind="embedded_catalog", remedy=remedy)
