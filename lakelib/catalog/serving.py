"""Who serves a folder: what the starter of a server writes into its lock, and what PostgreSQL leaves behind.

Reads /proc where there is one. Ends no process and waits for none.
"""

import json
import os
import platform
import uuid
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from lakelib.catalog.postgresql import PORT
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError

_POSTMASTER = "postmaster.pid"
_SOCKET_LOCK = f".s.PGSQL.{PORT}.lock"
_LONGEST_RECORD_BYTES = 4096
_OF_ONE_HOST = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
"""File systems that no second host has mounted: their locks are the whole truth."""


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
