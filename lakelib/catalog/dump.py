"""A catalog as a file, and a file as a catalog, by pg_dump and pg_restore; what a restored catalog has to forget."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.migrate import Ledger, check_ledger, load_migrations, migrate_within
from lakelib.catalog.programs import TO_SERVER, find_program, run_program
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError, RetryableError
from lakelib.model.backup import NeededFile

_TRIES = 5
_STREAM_ROWS = 5000
_LOCK_WAIT = "30s"
_CONNECT_SECONDS = 10
_LEDGER_ENTRY = re.compile(r" TABLE DATA lake migration ")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTable:
    id: int
    name: str
    location: str
    head_id: int
    files: int
    stored_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The catalog at one moment, as long as its block lasts. The files that it names are held under `holder`."""

    db: Connection
    snapshot: str
    now: datetime
    server_version: int
    tables: tuple[HeldTable, ...]
    migrations: tuple[tuple[int, str, str], ...]

    def stream_files(self) -> Iterator[NeededFile]:
        """The files that the tables' readable snapshots need."""
        with self.db.cursor("lakelib_backup", binary=True) as cursor:
            cursor.itersize = _STREAM_ROWS
            cursor.execute(query("list_needed_files"), {"table_ids": [table.id for table in self.tables]})
            yield from (NeededFile(**row) for row in cursor)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredTable:
    """A table that a restored catalog is to have."""

    id: int
    location: str


@contextmanager
def held_moment(catalog: Catalog, names: Sequence[str] | None, holder: str, duration: timedelta) -> Iterator[Moment]:
    """One moment of the catalog in which every readable snapshot of the tables is held: no vacuum deletes their files
    for so long, or until `release`. Where an expiry is faster, a later moment is taken.

    Whoever leaves the block by an error gives up the holds.
    """
    for _ in range(_TRIES):
        with _snapshot(catalog) as db:
            moment = _look(db, names)
            try:
                if _hold(catalog, db, moment, holder, duration):
                    yield moment
                    return
            except BaseException:
                release(catalog, holder)
                raise
            release(catalog, holder)
    raise ConflictError(
        "Snapshots expired again and again while they were to be held for a backup.",
        kind="backup_overtaken",
        remedy="Make the backup when no expiry runs.",
    )


def renew(catalog: Catalog, holder: str, duration: timedelta) -> datetime | None:
    """All holds last for so long from now on; until when. None if there are none. Raises RetryableError if they were
    lost."""
    rows = catalog.run(lambda db: db.execute(query("renew_holds"), {"holder": holder, "duration": duration}).fetchall())
    return max((row["expires_at"].astimezone(UTC) for row in rows), default=None)


def release(catalog: Catalog, holder: str) -> None:
    catalog.run(lambda db: db.execute(query("release_holds"), {"holder": holder}))


@contextmanager
def _snapshot(catalog: Catalog) -> Iterator[Connection]:
    """A connection of its own whose statements all see the catalog at one moment, and which changes nothing. It may be
    idle for as long as a program runs. Raises RetryableError when the server goes away meanwhile."""
    catalog.run(lambda db: db.execute("select"))  # waits for the server, and says what is wrong with its address
    try:
        with psycopg.connect(
            catalog.url, row_factory=dict_row, application_name="lakelib", connect_timeout=_CONNECT_SECONDS
        ) as db:
            db.execute("set session idle_in_transaction_session_timeout = 0")
            db.commit()
            db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            db.read_only = True
            yield db
    except psycopg.Error as error:
        raise RetryableError(
            f"The catalog was lost while it was read: {' '.join(str(error).split())}.",
            kind="catalog_unreachable",
            remedy="Nothing was changed. Try again.",
        ) from error


def _look(db: Connection, names: Sequence[str] | None) -> Moment:
    told = db.execute(query("export_snapshot")).fetchone()
    assert told is not None
    rows = db.execute(query("list_backed_tables"), {"names": None if names is None else list(names)}).fetchall()
    return Moment(
        db=db,
        snapshot=told["snapshot"],
        now=told["now"].astimezone(UTC),
        server_version=told["version"] // 10_000,
        tables=tuple(HeldTable(**row) for row in rows),
        migrations=tuple(
            (row["version"], row["name"], row["checksum"]) for row in db.execute(query("list_migrations"))
        ),
    )


def _hold(catalog: Catalog, db: Connection, moment: Moment, holder: str, duration: timedelta) -> bool:
    """Whether all snapshots that the moment knows are held."""
    wanted = db.execute(query("list_backed_snapshots"), {"table_ids": [table.id for table in moment.tables]}).fetchall()
    parameters = {
        "table_ids": [row["table_id"] for row in wanted],
        "snapshot_ids": [row["id"] for row in wanted],
        "holder": holder,
        "duration": duration,
    }

    def hold(other: Connection) -> int:
        other.execute(query("release_holds"), {"holder": holder})
        return len(other.execute(query("hold_snapshots"), parameters).fetchall())

    return catalog.run(hold) == len(wanted)


def write_dump(moment: Moment, path: Path) -> None:
    """The whole schema at that moment, as a file of pg_restore's custom format. Raises InvalidInputError if there is no
    pg_dump that knows the server's version."""
    program = find_program("pg_dump", moment.server_version)
    arguments = [
        "--format=custom",
        "--schema=lake",
        "--no-owner",
        "--no-privileges",
        f"--lock-wait-timeout={_LOCK_WAIT}",
        f"--snapshot={moment.snapshot}",
        f"--file={path}",
        TO_SERVER,
    ]
    run_program(program, arguments, moment.db, path.parent)


def check_target(catalog: Catalog, made_by_version: int, migrations: Sequence[tuple[int, str, str]]) -> None:
    """The catalog's database can take a backup. What an earlier restore has left unfinished is cleared away. Raises
    InvalidInputError for one that has a catalog, or whose server is older than the backup's."""
    closed = {number: checksum for number, _, checksum in migrations}
    check_ledger(Ledger(added={}, closed=closed), load_migrations())
    found = _find(catalog)
    version = found["version"] // 10_000
    if version < made_by_version:
        raise InvalidInputError(
            f"The backup is of PostgreSQL {made_by_version}, and the server to restore to is PostgreSQL {version}.",
            kind="server_too_old",
            remedy=f"Name a server of version {made_by_version} or later.",
        )
    if not found["present"]:
        return
    if not found["has_ledger"] or catalog.run(_has_migrations):
        raise InvalidInputError(
            "There is a lake's catalog in the database to restore to.",
            kind="catalog_not_empty",
            remedy="Name an empty database, or a folder without a lake.",
        )
    clear(catalog)


def clear(catalog: Catalog) -> None:
    """Nothing is left of a restore that did not come to its end. Changes nothing of a catalog that did."""

    def drop(db: Connection) -> None:
        found = db.execute(query("find_catalog")).fetchone()
        if found is not None and found["present"] and not (found["has_ledger"] and _has_migrations(db)):
            db.execute("drop schema lake cascade")

    catalog.run(drop)


def read_dump(catalog: Catalog, path: Path) -> None:
    """The schema is in the database, all or nothing, but for its ledger of migrations: no client opens such a catalog.
    `settle` makes it one."""
    with _snapshot(catalog) as db:
        program = find_program("pg_restore", db.info.server_version // 10_000)
        contents = run_program(program, ["--list", str(path)], None, path.parent)
        wanted = path.parent / "contents"
        wanted.write_text("".join(f"{line}\n" for line in contents.splitlines() if not _LEDGER_ENTRY.search(line)))
        arguments = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
        run_program(program, [*arguments, f"--use-list={wanted}", TO_SERVER, str(path)], db, path.parent)


def settle(
    catalog: Catalog,
    restored: Sequence[RestoredTable],
    migrations: Sequence[tuple[int, str, str]],
    *,
    nowhere: str,
    has_files: bool,
) -> None:
    """What was read becomes a catalog, in one transaction: it has these tables, holds nothing, has nothing to delete,
    and is migrated. One whose files are the original's refuses changes until it is adopted."""

    def work(db: Connection) -> None:
        db.cursor().executemany(
            "insert into lake.migration (version, name, checksum) values (%s, %s, %s)", list(migrations)
        )
        migrate_within(db)
        db.execute("create temporary table restored (id bigint primary key, location text) on commit drop")
        db.execute("create temporary table nowhere (location text) on commit drop")
        db.cursor().executemany(
            "insert into restored values (%s, %s)", [(table.id, table.location) for table in restored]
        )
        db.execute("insert into nowhere values (%s)", (nowhere,))
        for script in ("settle", "own" if has_files else "borrow"):
            db.execute(_script(script))

    catalog.run(work)


def count_heads(catalog: Catalog) -> dict[str, tuple[int, int, int]]:
    """Of each table the head, its files and the rows that they store."""
    rows = catalog.run(lambda db: db.execute(query("list_backed_tables"), {"names": None}).fetchall())
    return {row["name"]: (row["head_id"], row["files"], row["stored_rows"]) for row in rows}


def _find(catalog: Catalog) -> Row:
    row = catalog.run(lambda db: db.execute(query("find_catalog")).fetchone())
    assert row is not None
    return row


def _has_migrations(db: Connection) -> bool:
    return db.execute("select from lake.migration limit 1").fetchone() is not None


def _script(name: str) -> bytes:
    return (resources.files("lakelib.catalog") / "sql" / "restore" / f"{name}.sql").read_bytes()
