"""Who serves a folder: what the starter of a server writes into its lock, what PostgreSQL leaves behind, and the locks.

Reads /proc where there is one. Ends no process and waits for none. Locks are on files, by flock: they hold across pid
and ipc namespaces, and where the file system is shared by hosts and says so to each, across hosts. The kernel lets go
of a lock when the last descriptor of its opening is closed, however the processes end that had it.
"""

import errno
import fcntl
import json
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from lakelib.catalog.postgresql import PORT, own_like_folder
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError

_POSTMASTER = "postmaster.pid"
_SOCKET_LOCK = f".s.PGSQL.{PORT}.lock"
_LONGEST_RECORD_BYTES = 4096
_OF_ONE_HOST = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
"""File systems that no second host has mounted: their locks are the whole truth."""
_HELD_BY_OTHERS = (errno.EACCES, errno.EAGAIN)
_OURS: set[int] = set()
"""Locks that this process has for a moment: a child that is forked meanwhile must not keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """Who has started a server, and when."""

    host: str
    machine: str
    boot: str
    since: str

    def may_run_elsewhere(self) -> bool:
        """Whether it may live on a host that is not this one. Containers of one host are of one boot."""
        here = _here()
        return self.boot != here.boot and (self.host, self.machine) != (here.host, here.machine)


def note_starter(lock: int) -> None:
    """Writes who starts the server into the locked file."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(asdict(_here())).encode(), 0)


def read_starter(path: Path) -> Starter | None:
    """Who has started the last server; None if that was an older lakelib, or is being written."""
    try:
        with path.open("rb") as file:
            return Starter(**json.loads(file.read(_LONGEST_RECORD_BYTES)))
    except (OSError, TypeError, ValueError):
        return None


def check_not_served_elsewhere(folder: Path, starter: Starter | None) -> None:
    """For who has the lock. Raises InvalidInputError if a host that this one shares no locks with may serve the folder.

    A server that was stopped in order has left nothing behind, and is not in question.
    """
    left = folder / _POSTMASTER
    if starter is None or not left.exists() or not starter.may_run_elsewhere() or is_of_one_host(folder):
        return
    raise InvalidInputError(
        f"The embedded PostgreSQL in {folder} was started by the host {starter.host} at {starter.since}, and has not"
        " been stopped in order: it may run there. No second one is started here.",
        kind="embedded_catalog",
        remedy=f"End what uses the lake on {starter.host}. If that host is down for good, remove {left}. To share a"
        " lake among hosts, name a server of your own in LAKE_CATALOG.",
    )


def is_served_without_lock(folder: Path) -> bool:
    """Whether a server that holds no lock runs in this folder, in this namespace: an older lakelib has started it."""
    with suppress(OSError, ValueError):
        process = Path("/proc", (folder / _POSTMASTER).read_text().split("\n", 1)[0].strip() or "none")
        if (process / "comm").read_text().strip() != "postgres":
            return False
        return (process / "cwd").resolve(strict=True).samefile(folder)
    return False


def clear_after_dead(folder: Path) -> None:
    """For who has the lock. Removes what a killed server has left: PostgreSQL takes its pid for alive if any process
    has it now."""
    for name in (_SOCKET_LOCK, _POSTMASTER):
        (folder / name).unlink(missing_ok=True)


def _here() -> Starter:
    return Starter(
        host=platform.node(),
        machine=_first_line("/etc/machine-id"),
        boot=_first_line("/proc/sys/kernel/random/boot_id") or f"{uuid.getnode():x}",
        since=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    )


def _first_line(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def is_of_one_host(folder: Path) -> bool:
    """Where this cannot be told, as without /proc, it is taken to be shared."""
    found = (0, "")
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            mounted, _, system = line.partition(" - ")
            point = Path(mounted.split()[4].replace("\\040", " "))
            if folder.is_relative_to(point):
                found = max(found, (len(point.parts), system.split()[0]), key=lambda each: each[0])
    return found[1] in _OF_ONE_HOST


# Locks


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
