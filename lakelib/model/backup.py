"""Frozen values: what a backup holds, and what making one or restoring from one has done."""

from datetime import datetime, timedelta
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model.doctor import DoctorReport
from lakelib.model.upkeep import readable_bytes

DEFAULT_HOLD = timedelta(days=7)
FORMAT = 1
"""What a backup's own description is written in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFile:
    """A file that a backup needs."""

    table_id: int
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedTable:
    """A table as a backup holds it, at the moment of the backup."""

    id: int
    name: str
    location: str
    folder: str
    """Its files' folder: in the backup below `data`, in a restored warehouse below the warehouse."""
    head_id: int
    files: int
    """Of the head."""
    stored_rows: int
    """In the head's files: superseded rows and delete marks too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupNote:
    """A backup's description of itself. It is written last: a folder without one is no backup."""

    id: str
    made_at: datetime
    """By the catalog's clock: what was committed before is in the backup, what came later is not."""
    warehouse: str
    server_version: int
    """PostgreSQL's major version."""
    with_files: bool
    held_until: datetime | None
    """Until when the original keeps the files that the backup names; None for one that has its own."""
    tables: tuple[BackedTable, ...]
    migrations: tuple[tuple[int, str, str], ...]
    """The catalog's schema: version, name and checksum of each migration."""
    files: int
    size_bytes: int
    dump_bytes: int
    dump_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackupResult:
    """What a backup holds."""

    id: str
    destination: str
    made_at: datetime
    with_files: bool
    held_until: datetime | None
    tables: tuple[str, ...]
    files: int
    size_bytes: int
    """Of those files."""
    dump_bytes: int
    seconds: float

    def __repr__(self) -> str:
        files = f"{self.files:,} files, {readable_bytes(self.size_bytes)}"
        kept = "copied" if self.with_files else f"held until {self.held_until}"
        return f"<BackupResult {self.id} of {len(self.tables):,} tables at {self.made_at}; {files} {kept}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RestoreResult:
    """What was restored, and whether it is sound."""

    id: str
    made_at: datetime
    warehouse: str
    with_files: bool
    """Whether the lake has files of its own. One without reads the original's, and may not be changed."""
    tables: tuple[str, ...]
    files: int
    size_bytes: int
    report: DoctorReport
    seconds: float

    def __repr__(self) -> str:
        return f"<RestoreResult of {self.id}: {len(self.tables):,} tables in {self.warehouse}; {self.report!r}>"


def note_to_json(note: BackupNote) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "id": note.id,
        "made_at": note.made_at.isoformat(),
        "warehouse": note.warehouse,
        "server_version": note.server_version,
        "with_files": note.with_files,
        "held_until": None if note.held_until is None else note.held_until.isoformat(),
        "tables": [
            {
                "id": table.id,
                "name": table.name,
                "location": table.location,
                "folder": table.folder,
                "head_id": table.head_id,
                "files": table.files,
                "stored_rows": table.stored_rows,
            }
            for table in note.tables
        ],
        "migrations": [list(migration) for migration in note.migrations],
        "files": note.files,
        "size_bytes": note.size_bytes,
        "dump_bytes": note.dump_bytes,
        "dump_sha256": note.dump_sha256,
    }


def note_from_json(said: dict[str, Any]) -> BackupNote:
    """Raises KeyError, TypeError or ValueError for what is no such description."""
    if said["format"] != FORMAT:
        raise ValueError(f"it has format {said['format']}, and this lakelib knows {FORMAT}")
    return BackupNote(
        id=str(said["id"]),
        made_at=datetime.fromisoformat(said["made_at"]),
        warehouse=str(said["warehouse"]),
        server_version=int(said["server_version"]),
        with_files=bool(said["with_files"]),
        held_until=None if said["held_until"] is None else datetime.fromisoformat(said["held_until"]),
        tables=tuple(BackedTable(**table) for table in said["tables"]),
        migrations=tuple((int(number), str(name), str(checksum)) for number, name, checksum in said["migrations"]),
        files=int(said["files"]),
        size_bytes=int(said["size_bytes"]),
        dump_bytes=int(said["dump_bytes"]),
        dump_sha256=str(said["dump_sha256"]),
    )
