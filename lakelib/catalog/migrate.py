"""Brings a database to the present schema: a ledger of migrations with checksums, one migrator at a time."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from psycopg import sql

from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.roles import become_owner, renew_privileges
from lakelib.errors import CorruptionError, InvalidInputError

_LOCK_ID = 0x6C616B65
_FILE_NAME = re.compile(r"^(\d{4})_(\w+)\.sql$")
_INCLUDE = re.compile(r"^-- include: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrate(catalog: Catalog) -> None:
    """The catalog has the present schema afterwards. An empty database gets it in one step, an older one migration by
    migration. Raises when the ledger disagrees with this version of lakelib; changes nothing then."""
    if not catalog.run(_is_current):
        catalog.run(_migrate)


def _migrate(connection: Connection) -> None:
    connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK_ID,))
    applied = _read_ledger(connection)
    known = load_migrations()
    check_ledger(applied, known)
    become_owner(connection)
    if not applied:
        connection.execute(sql.SQL(load_schema()))
    for migration in known[len(applied) :]:
        if applied:
            connection.execute(sql.SQL(migration.text))
        _record(connection, migration)
    renew_privileges(connection)


def check_ledger(applied: dict[int, str], known: tuple[Migration, ...]) -> None:
    """Raises unless what was applied is a beginning of what is known, to the letter."""
    newest = known[-1].version
    if applied and max(applied) > newest:
        raise InvalidInputError(
            f"The catalog has schema version {max(applied)}, this lakelib knows up to {newest}.",
            kind="catalog_too_new",
            remedy="Use the newer lakelib that made it.",
        )
    for migration in known[: len(applied)]:
        if applied.get(migration.version) != migration.checksum:
            raise CorruptionError(
                f"Migration {migration.version} ({migration.name}) was applied to the catalog with another text.",
                kind="migration_changed",
                remedy="Restore the migration file: an applied migration never changes.",
            )


@cache
def load_migrations() -> tuple[Migration, ...]:
    """All migrations in order."""
    folder = resources.files("lakelib.catalog") / "sql" / "migrations"
    found = []
    for file in folder.iterdir():
        parts = _FILE_NAME.match(file.name)
        if parts:
            found.append(Migration(version=int(parts[1]), name=parts[2], text=_with_included(file.read_text())))
    return tuple(sorted(found, key=lambda migration: migration.version))


def load_schema() -> str:
    """The present schema."""
    return _with_included((resources.files("lakelib.catalog") / "sql" / "schema.sql").read_text())


def _with_included(text: str) -> str:
    """The text with the files that it includes in their places. A migration's checksum covers them: a function that has
    been part of one never changes, its successor has another version in its name."""
    folder = resources.files("lakelib.catalog") / "sql"
    return _INCLUDE.sub(lambda line: (folder / line[1]).read_text(), text)


def _is_current(connection: Connection) -> bool:
    applied = _read_ledger(connection)
    return applied == {migration.version: migration.checksum for migration in load_migrations()}


def _read_ledger(connection: Connection) -> dict[int, str]:
    # Names are looked up in a cache, which remembers that there was no such schema before another migrator made it.
    # Reading the system catalogs themselves sees what is there, and brings the cache up to date.
    present = "select from pg_catalog.pg_tables where schemaname = 'lake' and tablename = 'migration'"
    if connection.execute(present).fetchone() is None:
        return {}
    return {
        row["version"]: row["checksum"] for row in connection.execute("select version, checksum from lake.migration")
    }


def _record(connection: Connection, migration: Migration) -> None:
    connection.execute(
        "insert into lake.migration (version, name, checksum) values (%s, %s, %s)",
        (migration.version, migration.name, migration.checksum),
    )
