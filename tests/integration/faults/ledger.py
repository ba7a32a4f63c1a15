"""A lake under test, seen from outside: by SQL, and by its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg

import lakelib
from tests.waiting import wait_until


@dataclass(frozen=True, kw_only=True)
class Ledger:
    lake: lakelib.Lake
    url: str
    connection: psycopg.Connection[Any]

    @property
    def place(self) -> tuple[str, str]:
        """What another process needs to connect: warehouse and catalog."""
        return self.lake.warehouse, self.url

    def query(self, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(text.encode(), parameters).fetchall()

    def commits(self, state: str, version: int | None = None) -> list[str]:
        """The tables of the commits in this state, one entry a commit; of one version, or of all."""
        found = self.query(
            'select t.name from lake.commit c join lake."table" t on t.id = c.table_id'
            " where c.state = %s and (%s::bigint is null or c.version = %s) order by t.name",
            state,
            version,
            version,
        )
        return [name for (name,) in found]

    def backends(self) -> set[int]:
        return {
            pid
            for (pid,) in self.query(
                "select pid from pg_stat_activity"
                " where datname = current_database() and backend_type = 'client backend'"
            )
        }

    def wait_until_come(self, known: set[int]) -> None:
        """Returns once there is a connection beside the known ones."""
        wait_until(lambda: bool(self.backends() - known))

    def wait_until_gone(self, known: set[int]) -> None:
        """Returns once PostgreSQL has noticed the end of every connection but the known ones."""
        wait_until(lambda: not self.backends() - known)

    def wait_until_published(self, commits: int) -> None:
        """Returns once there are at least so many published commits."""
        wait_until(lambda: len(self.commits("published")) >= commits)

    def check_table(self, name: str) -> None:
        """History, head and files agree with each other."""
        table = self.lake.table(name)
        ids = [snapshot.id for snapshot in table.history()]
        assert ids == list(range(len(ids), 0, -1)), "snapshots are not dense"
        head = table.head
        assert (head.id if head else 0) == len(ids)
        folder = Path(unquote(urlsplit(table.location).path))
        for file in table.files():
            assert (folder / file.path).is_file(), f"the live file {file.path} is not there"
        [(published, snapshots)] = self.query(
            "select (select count(*) from lake.commit c where c.table_id = t.id and state = 'published'),"
            " (select count(*) from lake.snapshot s where s.table_id = t.id)"
            " from lake.\"table\" t where t.namespace || '.' || t.name = %s",
            name,
        )
        assert published == snapshots == len(ids)
