"""Locks on files, by flock: they hold across pid and ipc namespaces, and where the file system is shared by hosts and
says so to each, across hosts. The kernel lets go of a lock when the last descriptor of its opening is closed, however
the processes end that had it.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakelib.catalog.postgresql import own_like_folder
from lakelib.errors import InvalidInputError

_HELD_BY_OTHERS = (errno.EACCES, errno.EAGAIN)
_OURS: set[int] = set()
"""Locks that this process has for a moment: a child that is forked meanwhile must not keep them."""
_CHANGING = threading.Lock()
_at_fork_is_set = False


def open_lock(path: Path) -> int:
    """A descriptor to lock. The file is made, with the owner of its folder; no program inherits the descriptor.

    Raises InvalidInputError where this user may not open it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInputError(
            f"The embedded PostgreSQL cannot have the folder {path.parent}: {error.strerror} ({path}).",
            kind="invalid_location",
            remedy="Work as the user whose lake it is, or name a server of your own in LAKE_CATALOG.",
        ) from error
    own_like_folder(descriptor, path.parent)
    return descriptor


def try_to_share(descriptor: int) -> bool:
    return _try(descriptor, fcntl.LOCK_SH)


@contextmanager
def tried_alone(path: Path) -> Iterator[int | None]:
    """The descriptor of the file, locked for nobody else, or None if others have it. Does not wait.

    It is closed at the end; who inherited it keeps the lock.
    """
    _set_at_fork()
    with _CHANGING:
        descriptor = open_lock(path)
        _OURS.add(descriptor)
    try:
        yield descriptor if _try(descriptor, fcntl.LOCK_EX) else None
    finally:
        with _CHANGING:
            _OURS.discard(descriptor)
            os.close(descriptor)


def _try(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_OTHERS:
            return False
        raise InvalidInputError(
            f"The embedded PostgreSQL needs a file system that can lock files; the lake's cannot: {error.strerror}.",
            kind="invalid_location",
            remedy="Put the lake on a local disk, or name a server of your own in LAKE_CATALOG.",
        ) from error
    return True


def _set_at_fork() -> None:
    global _at_fork_is_set
    if not _at_fork_is_set:
        _at_fork_is_set = True
        os.register_at_fork(before=_CHANGING.acquire, after_in_parent=_CHANGING.release, after_in_child=_forget)


def _forget() -> None:
    for descriptor in _OURS:
        os.close(descriptor)
    _OURS.clear()
    _CHANGING.release()
