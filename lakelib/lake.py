"""The public API: connect, Lake, Transaction."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from lakelib.catalog import tables
from lakelib.catalog.connect import Catalog, check_url
from lakelib.catalog.embedded import EmbeddedServer
from lakelib.catalog.migrate import migrate
from lakelib.catalog.rights import load_rights
from lakelib.errors import InvalidInputError
from lakelib.model.gate import RegisteredSuite
from lakelib.model.maintenance import VacuumResult
from lakelib.model.roles import Grant
from lakelib.model.table import Snapshot
from lakelib.ops import create, gates, inspect, judge, publish, roles, vacuum
from lakelib.ops.runtime import Runtime
from lakelib.settings import Settings, load_settings
from lakelib.specs.suite import Suite
from lakelib.storage.filesystem import open_storage
from lakelib.storage.local_check import check_folder
from lakelib.storage.paths import complete_uri
from lakelib.table import StagedCommit, Table

_REMOTE_READS_A_PROCESSOR = 4


def connect(
    warehouse: str | os.PathLike[str] | None = None, catalog: str | None = None, **settings: str | None
) -> "Lake":
    """A lake: settings come from the arguments, else the environment, else the properties file named by LAKE_HOME.

    With nothing set: a PostgreSQL of its own and a warehouse, both under ./.lake. Brings the catalog to the present
    schema. Raises InvalidInputError naming a wrong setting and where it came from, or a local warehouse that can be no
    folder; RetryableError if the catalog is out of reach.
    """
    return Lake(load_settings(warehouse=warehouse, catalog=catalog, environ=os.environ, **settings))


class Lake:
    """A catalog and a warehouse. Threads may share it; a context manager that closes it."""

    def __init__(self, settings: Settings) -> None:
        location = complete_uri(settings.warehouse, settings.storage.default_fs)
        storage = open_storage(location, settings.storage)
        check_folder(location)
        threads = os.cpu_count() or 1
        self._settings = settings
        self._runtime = Runtime(
            catalog=_open_catalog(settings),
            storage=storage,
            warehouse=location,
            threads=threads,
            read_threads=threads if storage.is_local else threads * _REMOTE_READS_A_PROCESSOR,
        )

    @property
    def warehouse(self) -> str:
        return self._runtime.warehouse

    @property
    def runtime(self) -> Runtime:
        """For lakelib's own parts."""
        return self._runtime

    @property
    def settings(self) -> Settings:
        """With which another process reaches this lake, as long as it is open here."""
        return replace(self._settings, warehouse=self.warehouse, catalog=self._runtime.catalog.url)

    def create_namespace(self, name: str) -> None:
        """The namespace exists afterwards."""
        create.create_namespace(self._runtime, name)

    def namespaces(self) -> list[str]:
        return tables.list_namespaces(self._runtime.catalog)

    def tables(self, namespace: str | None = None) -> list[str]:
        """The names of the namespace's tables; without one those of all tables, as `namespace.table`."""
        if namespace is None:
            return [each.table.full_name for each in inspect.list_tables(self._runtime, None)]
        return create.list_tables(self._runtime, namespace)

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        buckets: int | str | None = None,
        sequence_by: Sequence[str] = (),
        merge: str = "deduplicate",
        options: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """A new table. `schema` is a pyarrow Schema, a Spark StructType or DDL text.

        With a primary key, which is unique within a partition, rows are upserted by it; `buckets` is then a power of
        two, "dynamic" (the default) or "postpone". Without one, rows are only appended. Of two rows of a key the one
        with the higher `sequence_by` columns is newer; among equals, the later commit's.
        """
        info = create.create_table(
            self._runtime,
            name,
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            buckets=buckets,
            sequence_by=sequence_by,
            merge=merge,
            options=options or {},
            if_not_exists=if_not_exists,
        )
        return Table(self._runtime, info)

    def table(self, name: str) -> Table:
        """The table of that name. Raises NotFoundError."""
        return Table(self._runtime, create.find_table(self._runtime, name))

    def drop_table(self, name: str) -> None:
        """The table is gone, and its name free. Raises NotFoundError."""
        create.drop_table(self._runtime, name)

    def vacuum(
        self,
        dry_run: bool = False,
        *,
        grace: timedelta = vacuum.DEFAULT_GRACE,
        orphans: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> VacuumResult:
        """Deletes the files that nothing needs: those that expiries gave up, once they are due; those of tables that
        were dropped longer ago than the `grace`; and orphans, which no commit names, if they are older than that.

        What a running writer has written and not staged yet looks like an orphan: the grace has to be longer than the
        longest write. `tell` hears the URI of each file. A dry run deletes nothing and tells what would go.
        """
        return vacuum.vacuum(self._runtime, dry_run=dry_run, grace=grace, orphans=orphans, tell=tell)

    def register_gate(self, suite: str | os.PathLike[str] | Suite, *, by: str | None = None) -> RegisteredSuite:
        """Keeps a suite, or the file of one, in the catalog: under the next version of its name, or as the version that
        checks the same. `by` says who; the database's user, unless told. Tables require it: `table.require_gate(name)`.
        """
        return gates.register(self._runtime, suite, by)

    def gates(self) -> list[RegisteredSuite]:
        """All suites that were registered, by name, the newest version first."""
        return gates.list_gates(self._runtime)

    def grant(self, role: str, user: str) -> None:
        """A user of the catalog's database may do what the role says: "reader", "writer", "publisher", "maintainer" or
        "owner". With the first one the catalog gets its roles: until then one user owns everything."""
        roles.grant(self._runtime, role, user)

    def revoke(self, role: str, user: str) -> None:
        """Takes a role from a user. Raises NotFoundError if it was not granted."""
        roles.revoke(self._runtime, role, user)

    def grants(self) -> list[Grant]:
        """Who was given which role."""
        return roles.list_grants(self._runtime)

    def grant_sql(self, role: str, user: str) -> str:
        """What an administrator runs in the catalog's database to grant a role, where its owner may make none."""
        return roles.grant_sql(self._runtime, role, user)

    def staged(self, commit_id: UUID | str) -> StagedCommit:
        """A commit by its id, in whatever state it is: rejected ones stay inspectable. Raises NotFoundError."""
        return StagedCommit(self._runtime, *publish.find_staged(self._runtime, commit_id))

    def transaction(self) -> "Transaction":
        """Publishes several staged commits, of any tables, all or none, when its `with` block ends without an error."""
        return Transaction(self._runtime)

    def close(self) -> None:
        """Gives the catalog's connections back."""
        self._runtime.leases.close()
        self._runtime.catalog.close()

    def __enter__(self) -> "Lake":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Lake at {self.warehouse}>"


class Transaction:
    """Staged commits that become visible in one instant, or not at all."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._staged: list[StagedCommit] = []
        self.snapshots: list[Snapshot] = []
        """The snapshots that the commits became, in the order in which they were added."""

    def add(self, staged: StagedCommit) -> None:
        if not isinstance(staged, StagedCommit):
            raise InvalidInputError(
                f"{staged!r} is no staged commit.",
                kind="not_staged",
                remedy="Add what a stage_…() call gives.",
            )
        if any(each.id == staged.id for each in self._staged):
            raise InvalidInputError(
                f"Commit {staged.id} was added to the transaction before.", kind="added_twice", remedy="Add it once."
            )
        self._staged.append(staged)

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._staged:
            judgings = {each.id: each.judgings for each in self._staged}
            self.snapshots = judge.publish_judged(self._runtime, list(judgings), judgings)


def _open_catalog(settings: Settings) -> Catalog:
    if settings.catalog is None:
        server = EmbeddedServer(Path(settings.embedded_catalog).absolute())
        catalog = Catalog(server.url, revive=server.ensure_running)
    else:
        check_url(settings.catalog)
        catalog = Catalog(settings.catalog)
    try:
        migrate(catalog)
        load_rights(catalog)
    except BaseException:
        catalog.close()
        raise
    return catalog
