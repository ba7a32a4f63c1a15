"""The public API: connect, Lake, Transaction."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack
from uuid import UUID

from lakelib.catalog import tables
from lakelib.catalog.address import check_address
from lakelib.catalog.connect import Catalog
from lakelib.catalog.embedded import EmbeddedServer
from lakelib.catalog.migrate import make_ready
from lakelib.catalog.migrate import migrate as migrate_catalog
from lakelib.catalog.roles import load_rights
from lakelib.consumer import Consumer
from lakelib.errors import InvalidInputError
from lakelib.model.backup import DEFAULT_HOLD, BackupResult, RestoreResult
from lakelib.model.commit import CommitSummary
from lakelib.model.doctor import DEFAULT_DOCTOR_GRACE, DoctorReport, Finding
from lakelib.model.exports import DuckLake, ViewsFile
from lakelib.model.flags import checked_flag, checked_flags
from lakelib.model.gate import RegisteredSuite
from lakelib.model.html import Listing
from lakelib.model.identity import Identity, WarehouseStanding
from lakelib.model.imports import ImportResult
from lakelib.model.positions import Advance, ConsumerStatus
from lakelib.model.roles import Grant
from lakelib.model.status import LakeStatus
from lakelib.model.table import Snapshot, TableInfo
from lakelib.model.upgrade import Upgrade
from lakelib.model.upkeep import DEFAULT_VACUUM_GRACE, VacuumResult
from lakelib.ops import (
    backup,
    consumers,
    create,
    decide,
    doctor,
    ducklake,
    gates,
    imports,
    inspect,
    publish,
    replace_table,
    roles,
    vacuum,
    views,
    watch,
)
from lakelib.ops import restore as ops_restore
from lakelib.ops.identity import Ownership
from lakelib.ops.import_request import ImportOptions, parse_import
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import SqlOptions
from lakelib.result import Result
from lakelib.settings import Settings, load_settings
from lakelib.specs.suite import Suite
from lakelib.staged import StagedCommit
from lakelib.storage.filesystem import Storage, open_storage
from lakelib.storage.local_files import check_folder
from lakelib.storage.marker import OwnCatalog, find_own_catalog, given_catalog
from lakelib.storage.paths import complete_uri
from lakelib.table import Table

_REMOTE_READS_A_PROCESSOR = 4
_COPIES_AT_ONCE = 8


def connect(
    warehouse: str | os.PathLike[str] | None = None, catalog: str | None = None, **settings: str | None
) -> "Lake":
    """A lake: settings come from the arguments, else the environment, else the properties file named by LAKE_HOME.

    With nothing set the warehouse is ./.lake/warehouse. Without a catalog a local warehouse has a PostgreSQL of its
    own, in its folder: such a lake is one folder, found from anywhere, which may be moved. An empty database becomes a
    catalog; an embedded one gets what this version adds. Raises InvalidInputError naming a wrong setting and where it
    came from, for a local warehouse that can be no folder, one whose catalog has to be named, and a catalog that is too
    new, or too old (`migrate`); RetryableError if the catalog is out of reach.
    """
    return Lake(load_settings(warehouse=warehouse, catalog=catalog, environ=os.environ, **settings))


def restore(
    source: str | os.PathLike[str],
    warehouse: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    **settings: str | None,
) -> RestoreResult:
    """A lake comes back from a backup that `Lake.backup` made, in an empty database (`catalog`, or a new embedded one).

    A backup with files becomes another lake, in the empty `warehouse`. One without reads the files where the original
    has them (or below the `warehouse` that stands in its place) and refuses every change until it is adopted. Raises
    InvalidInputError for a database or a warehouse that is in use; the original is never touched.
    """
    began = time.monotonic()
    given = load_settings(warehouse=warehouse, catalog=catalog, environ=os.environ, **settings)
    backup_storage = open_storage(complete_uri(os.fspath(source), given.storage.default_fs), given.storage)
    note = backup.load_note(backup_storage)
    if warehouse is None and not note.with_files:
        given = replace(given, warehouse=note.warehouse)
    location = complete_uri(given.warehouse, given.storage.default_fs)
    check_folder(location)
    storage = open_storage(location, given.storage)
    target, _ = _reach_catalog(given, storage)
    try:
        ops_restore.restore(target, backup_storage, storage, threads=_COPIES_AT_ONCE)
    finally:
        target.close()
    with Lake(given) as restored:
        report = ops_restore.examine(restored.runtime, note)
    return RestoreResult(
        id=note.id,
        made_at=note.made_at,
        warehouse=location,
        with_files=note.with_files,
        tables=tuple(table.name for table in note.tables),
        files=note.files,
        size_bytes=note.size_bytes,
        report=report,
        seconds=time.monotonic() - began,
    )


def migrate(
    warehouse: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    *,
    post: bool = False,
    dry_run: bool = False,
    **settings: str | None,
) -> Upgrade:
    """The catalog of a lake, named as for `connect`, gets all that this version needs: clients of the version before go
    on working beside those of this one. With `post` they are shut out, which nothing undoes. A dry run only tells.

    Raises RetryableError if the catalog's tables are in use for too long.
    """
    post, dry_run = checked_flags(post=post, dry_run=dry_run)
    found = load_settings(warehouse=warehouse, catalog=catalog, environ=os.environ, **settings)
    location = complete_uri(found.warehouse, found.storage.default_fs)
    opened, _ = _reach_catalog(found, open_storage(location, found.storage))
    try:
        return migrate_catalog(opened, post=post, dry_run=dry_run)
    finally:
        opened.close()


class Lake:
    """A catalog and a warehouse. Threads may share it; a context manager that closes it."""

    def __init__(self, settings: Settings) -> None:
        location = complete_uri(settings.warehouse, settings.storage.default_fs)
        storage = open_storage(location, settings.storage)
        check_folder(location)
        threads = os.cpu_count() or 1
        catalog, embedded = _open_catalog(settings, storage)
        ownership = Ownership(catalog=catalog, storage=storage, embedded=embedded)
        storage = replace(storage, home=ownership.greet())
        self._settings = settings
        self._runtime = Runtime(
            catalog=catalog,
            storage=storage,
            warehouse=location,
            ownership=ownership,
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
        merge: str | Mapping[str, Any] = "deduplicate",
        options: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
        cross_partition: bool = False,
    ) -> Table:
        """A new table. `schema` is a pyarrow Schema, a Spark StructType or DDL text.

        With a primary key, which is unique within a partition, rows are upserted by it; `buckets` is then a power of
        two, "dynamic" (the default) or "postpone". Without one, rows are only appended. Of two rows of a key the one
        with the higher `sequence_by` columns is newer; among equals, the later commit's.

        `merge` says how versions of a key become one row: "deduplicate" (the newest), "first_row" (the oldest),
        `{"engine": "partial_update", "groups": [{"sequence": […], "columns": […]}], "on_delete": "row"}` (column by
        column), `{"engine": "aggregate", "functions": {"amount": "sum"}, "retract": False}`; `docs/merge-engines.md`
        says all of it.

        With `cross_partition` the key is unique in the table: a row whose partition columns have changed leaves its
        old partition in the commit that brings it.
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
            options=_with_flag(options, cross_partition),
            if_not_exists=if_not_exists,
        )
        return Table(self._runtime, info)

    def create_or_replace_table(
        self,
        name: str,
        schema: Any,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        buckets: int | str | None = None,
        sequence_by: Sequence[str] = (),
        merge: str | Mapping[str, Any] = "deduplicate",
        options: Mapping[str, Any] | None = None,
        cross_partition: bool = False,
    ) -> Table:
        """A new table as by `create_table`; one that is there is replaced, in one snapshot (kind "overwrite"), by one
        without rows that has these columns. It stays the same table: older snapshots, tags, consumers, its gate and
        idempotency keys stay, and `rollback` brings the old rows back. Options and buckets that are given are set,
        others stay. Key, partition and sequence columns have to be the table's: raises InvalidInputError if not."""
        info = replace_table.create_or_replace(
            self._runtime,
            name,
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            buckets=buckets,
            sequence_by=sequence_by,
            merge=merge,
            options=_with_flag(options, cross_partition),
        )
        return Table(self._runtime, info)

    def import_delta(
        self,
        source: str | os.PathLike[str],
        table: str,
        *,
        version: int | None = None,
        **options: Unpack[ImportOptions],
    ) -> ImportResult:
        """Copies the rows of a Delta table, as it is or as of a `version`, into a new table, or an empty one.

        Options are `primary_key`, `partition_by`, `sequence_by`, `buckets` and `options` as for `create_table`, and
        `schema`: columns and partitions are the source's, unless told. Keys that are NULL are refused, and those that
        come more than once, unless `duplicates` is "last": the highest `sequence_by` stays, without it the one that
        comes last. Files are copied in batches of about `batch_bytes`, each a commit. Who calls again after a kill goes
        on where it ended, from the same version; once it is finished, a call changes nothing. With a Spark `session`
        its tasks do the work. `tell` hears how many bytes are copied, and of how many. A `dry_run` looks at the source
        and its keys, and tells what would be copied.

        Raises NotFoundError where there is no Delta table, and InvalidInputError for one that asks for what is not
        known here, types that a table lacks, and a table that has other rows.
        """
        request = parse_import("version", **options)
        return imports.import_delta(self._runtime, os.fspath(source), table, replace(request, version=version))

    def import_parquet(
        self, source: str | os.PathLike[str], table: str, **options: Unpack[ImportOptions]
    ) -> ImportResult:
        """Copies the rows of Parquet files into a table, as `import_delta` does. `source` is a folder, a file, or a
        pattern of either.

        Folders such as `dt=2026-11-18` give their files columns, of text unless the `schema` says otherwise, and the
        table is partitioned by them, unless told. The files are those that were there when the import began: a run
        that goes on leaves out what has come since, and raises RetryableError for a file that has changed.
        """
        return imports.import_parquet(self._runtime, os.fspath(source), table, parse_import(**options))

    def table(self, name: str) -> Table:
        """The table of that name. Raises NotFoundError."""
        return Table(self._runtime, create.find_table(self._runtime, name))

    def drop_table(self, name: str) -> None:
        """The table is gone, and its name free. Raises NotFoundError."""
        create.drop_table(self._runtime, name)

    def consumers(self) -> Listing[ConsumerStatus]:
        """The consumers of all tables, by table and name, and how far behind each is."""
        return consumers.list_consumers(self._runtime)

    def watch(
        self,
        table: str | Table,
        *,
        after: int | str | datetime | None = None,
        timeout: timedelta | float | None = None,
    ) -> Iterator[Snapshot]:
        """The commits of a table as they come, each once, in their order, with those that have come after a snapshot
        (an id, a "tag:…", a moment, a "consumer:…"; the present head, unless told; 0 is before the first).

        Ends after the `timeout`, a timedelta or seconds; without one it goes on until its caller does not. Who
        publishes wakes it, and it looks by itself every second: whoever goes on after the last one that he has seen
        misses none.
        """
        handle = self.table(table) if isinstance(table, str) else table
        return watch.watch(self._runtime, handle.info, after, timeout)

    def vacuum(
        self,
        dry_run: bool = False,
        *,
        grace: timedelta = DEFAULT_VACUUM_GRACE,
        orphans: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> VacuumResult:
        """Deletes the files that nothing needs: those that expiries gave up, once they are due; those of tables that
        were dropped longer ago than the `grace`; and orphans, which no commit names, if they are older than that.

        What a running writer has written and not staged yet looks like an orphan: the grace has to be longer than the
        longest write. `tell` hears the URI of each file. A dry run deletes nothing and tells what would go.
        """
        return vacuum.vacuum(self._runtime, dry_run=dry_run, grace=grace, orphans=orphans, tell=tell)

    def ducklake(self) -> DuckLake:
        """How DuckDB attaches the lake as a DuckLake, and which tables it sees then."""
        return ducklake.open_ducklake(self._runtime)

    def write_views(self, path: str | os.PathLike[str], *, replace: bool = False) -> ViewsFile:
        """Writes a DuckDB file with a view of each table that has a Delta log (the option `delta` is "head"), for
        programs that open such files. It has no rows and no credentials: a view reads the table as it is then, by
        DuckDB's extension `delta`. A file that is there is only replaced if that is said."""
        return views.write(self._runtime, path, replace=checked_flag("replace", replace))

    def register_gate(self, suite: str | os.PathLike[str] | Suite, *, by: str | None = None) -> RegisteredSuite:
        """Keeps a suite, or the file of one, in the catalog: under the next version of its name, or as the version that
        checks the same. `by` says who; the database's user, unless told. Tables require it: `table.require_gate(name)`.
        """
        return gates.register(self._runtime, suite, by)

    def gates(self) -> list[RegisteredSuite]:
        """All suites that were registered, by name, the newest version first."""
        return gates.list_gates(self._runtime)

    def doctor(
        self,
        *tables: str,
        deep: bool = False,
        repair: Collection[str] = (),
        from_backup: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        grace: timedelta = DEFAULT_DOCTOR_GRACE,
        tell: Callable[[Finding], None] | None = None,
    ) -> DoctorReport:
        """Compares the catalog with what is stored, of all tables or of these, beside readers and writers. A deep look
        reads every page, compares checksums and looks at every row.

        Nothing is changed but what `repair` names: "queue" takes live files out of the deletion queue, "leases" drops
        holds that ran out long ago, "files" brings damaged files back, from a backup with files. `tell` hears of every
        finding; the report holds the first thousand of each kind.
        """
        place = None if from_backup is None else complete_uri(os.fspath(from_backup), self._settings.storage.default_fs)
        return doctor.examine(
            self._runtime, tables, deep=deep, repair=repair, backup=place, dry_run=dry_run, grace=grace, tell=tell
        )

    def backup(
        self,
        destination: str | os.PathLike[str],
        *,
        tables: Sequence[str] | None = None,
        with_files: bool = False,
        hold_for: timedelta = DEFAULT_HOLD,
    ) -> BackupResult:
        """What is published at this moment goes into a folder of its own: the catalog's dump and the list of the files
        that it needs; with `with_files` these files too. Beside readers and writers. `restore` reads it.

        Without files the lake keeps them for `hold_for`, so that no vacuum deletes one; `release_backup` ends that.
        """
        target = open_storage(
            complete_uri(os.fspath(destination), self._settings.storage.default_fs), self._settings.storage
        )
        return backup.back_up(self._runtime, target, tables, with_files=with_files, hold_for=hold_for)

    def release_backup(self, backup_id: str) -> None:
        """The lake no longer keeps the files of a backup without files. Safe to repeat."""
        backup.release(self._runtime, backup_id)

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

    def commits(
        self, states: str | Sequence[str] = inspect.WAITING, limit: int = inspect.DEFAULT_COMMITS
    ) -> Listing[CommitSummary]:
        """As `Table.commits`, of all tables."""
        return inspect.list_commits(self._runtime, None, inspect.parse_states(states), limit)

    def status(self, specs: str | os.PathLike[str] | None = None) -> LakeStatus:
        """How the tables are doing: what waits for a person, what is missing, late or stale. `specs` is a folder of
        tables' specs, which say what is due; without one nothing is. `Table.status` tells partition by partition."""
        from lakelib.ops import status  # specs take long to load

        return status.look(self._runtime, status.read_right_specs(specs))

    def staged(self, commit_id: UUID | str) -> StagedCommit:
        """A commit by its id, or by the first digits of it, in whatever state: rejected ones stay inspectable. Raises
        NotFoundError, and InvalidInputError naming the commits whose ids begin so if there are several."""
        table, found = decide.find_staged(self._runtime, commit_id)
        return StagedCommit(self._runtime, table.ref, found)

    def sql(self, text: str, options: SqlOptions | None = None, /, **parameters: Any) -> Result:
        """A statement over tables of the lake, in Spark's SQL. A query: `SELECT … FROM shop.orders WHERE dt = $day`,
        with what `day` is as a keyword. All its tables are read as of one moment; `FOR VERSION AS OF`, `FOR TIMESTAMP
        AS OF`, `changes('shop.orders', after => 3)` and `shop.orders$snapshots` ask for another, for what has changed,
        and for what is known of a table; docs/sql.md says what else. It is carried out in this process (the extra
        `sql`), when its rows are asked for.

        A statement that changes something, as INSERT does, is carried out at once, by the same use cases as the methods
        are; the result's one row tells what was done. `options` are what a write takes besides: `idempotency_key`,
        `properties`, `gate`.

        Raises InvalidInputError, with the place in the text, for what is no SQL, what is not known, and names that mean
        no column, or two; NotFoundError for tables and snapshots that are not there; and what the method raises that a
        statement stands for. Then nothing was changed.
        """
        from lakelib.ops import sql_statements  # it takes long to load

        return Result(self._runtime, sql_statements.run(self._runtime, text, options, parameters))

    def transaction(self) -> "Transaction":
        """Publishes several staged commits, of any tables, all or none, when its `with` block ends without an error."""
        return Transaction(self._runtime)

    @property
    def identity(self) -> WarehouseStanding:
        """Which lake this is, and what speaks against changing it from here. Changes nothing."""
        return self._runtime.ownership.look()

    def adopt(self, by: str, reason: str) -> Identity:
        """From now on this catalog, on this server, is the one that the warehouse belongs to: a new epoch begins, and
        other catalogs of the lake, of which this one is a copy or the other way round, may only read it.

        Needed where publishing, expiry and vacuum are refused with `identity_differs` or `lake_disowned`. Raises
        InvalidInputError without a name and a reason.
        """
        return self._runtime.ownership.adopt(by, reason)

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

    def _repr_html_(self) -> str:
        return inspect.tables_as_html(self._runtime, f"Lake at {self.warehouse}")

    def __repr__(self) -> str:
        return f"<Lake at {self.warehouse}>"


class Transaction:
    """Staged commits, statements of SQL that change rows, and consumers that move on with them: all of it becomes
    visible in one instant, or nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._staged: list[StagedCommit] = []
        self._own: list[UUID] = []
        """The commits that statements of the transaction are."""
        self._done: set[UUID] = set()
        """Those of them whose work was published before."""
        self._seen: dict[int, TableInfo] = {}
        """Tables as its statements go by them."""
        self._is_over = False
        self._advances: list[tuple[Consumer, Advance]] = []
        self.snapshots: list[Snapshot] = []
        """The snapshots that the commits became, in the order in which they were added."""

    @property
    def runtime(self) -> Runtime:
        """For lakelib's own parts."""
        return self._runtime

    def add(self, staged: StagedCommit) -> None:
        """Raises InvalidInputError for what is no staged commit, or was added before, and after the block."""
        self._check_open()
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

    def sql(self, text: str, options: SqlOptions | None = None, /, **parameters: Any) -> Result:
        """As `Lake.sql`; what changes rows is staged, and published with the transaction. Each statement sees a table
        as it was when the first of them looked at it, and what the transaction has staged before. A gate judges it at
        once, on top of that. If the block ends with an error, or publishing does, what its statements have staged is
        given up.

        Raises as `Lake.sql` does, InvalidInputError for statements that change more than rows, and ConflictError for
        one that takes out rows which a statement before it has changed (an INSERT OVERWRITE of what was inserted).
        """
        return Result(self._runtime, self.carry_out(text, options, parameters))

    def carry_out(
        self, text: str, options: Mapping[str, Any] | None, parameters: Mapping[str, Any], session: Any = None
    ) -> Any:
        """For lakelib's own parts: what `sql` does, before it is a Result; with a Spark session by its tasks."""
        from lakelib.ops import sql_statements  # it takes long to load

        self._check_open()
        beneath: dict[int, tuple[UUID, ...]] = {}
        for each in self._staged:
            if each.id in self._done:
                continue
            beneath[each.ref.id] = (*beneath.get(each.ref.id, ()), each.id)
        runtime = replace(self._runtime, staged=beneath, seen=self._seen, session=session)
        found = sql_statements.stage(runtime, text, options, parameters)
        if not isinstance(found, sql_statements.StagedStatement):
            return found
        self._own.append(found.commit_id)
        if found.was_done:
            self._done.add(found.commit_id)
        self._staged.append(StagedCommit(self._runtime, found.ref, found.commit_id, judged_by=found.judging))
        return found.told

    def advance(self, consumer: Consumer, to: Any = None, *, backwards: bool = False) -> None:
        """A consumer moves, as by `Consumer.advance`, in the transaction that publishes what was made of its changes:
        either both happen, or nothing. Where somebody else has moved it since it was read nothing is published, and the
        transaction ends with a ConflictError. Repeated under the same idempotency keys, what was published with the
        move is no conflict.
        """
        self._check_open()
        if not isinstance(consumer, Consumer):
            raise InvalidInputError(
                f"{consumer!r} is no consumer.", kind="not_a_consumer", remedy="Give what table.consumer(NAME) gives."
            )
        wanted = consumer.plan_advance(to, backwards=backwards)
        if any((each.table_id, each.name) == (wanted.table_id, wanted.name) for _, each in self._advances):
            raise InvalidInputError(
                f"Consumer {consumer.name!r} was moved in this transaction before.",
                kind="advanced_twice",
                remedy="Move it once, to where it is to stand in the end.",
            )
        self._advances.append((consumer, wanted))

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if kind is not None:
            decide.end_all(self._runtime, self._own, "its transaction ended with an error")
        elif self._staged or self._advances:
            self._publish()

    def _check_open(self) -> None:
        if self._is_over:
            raise InvalidInputError(
                "The transaction has ended: what is added to it now would never be published.",
                kind="transaction_ended",
                remedy="Begin another one: with lake.transaction() as tx: ….",
            )

    def _publish(self) -> None:
        judgings = {each.id: each.judgings for each in self._staged}
        advances = [wanted for _, wanted in self._advances]
        try:
            self.snapshots = publish.publish(self._runtime, list(judgings), judgings.__getitem__, advances=advances)
        except BaseException:
            decide.end_all(self._runtime, self._own, "its transaction was not published")
            raise
        for consumer, wanted in self._advances:
            consumer.note_advance(wanted)


def has_own_catalog(settings: Settings) -> bool:
    """Whether there is a lake already where no catalog is named."""
    return _own_catalog(settings, open_storage(settings.warehouse, settings.storage)).is_there


def _open_catalog(settings: Settings, storage: Storage) -> tuple[Catalog, str | None]:
    """The catalog, and the folder of an embedded one relative to a local warehouse."""
    catalog, relative = _reach_catalog(settings, storage)
    try:
        make_ready(catalog, is_own=settings.catalog is None)
        load_rights(catalog)
    except BaseException:
        catalog.close()
        raise
    return catalog, relative


def _reach_catalog(settings: Settings, storage: Storage) -> tuple[Catalog, str | None]:
    """As it is, which may be empty."""
    if settings.catalog is None:
        own = _own_catalog(settings, storage)
        server = EmbeddedServer(Path(own.folder))
        return Catalog(server.url, revive=server.ensure_running), own.relative
    check_address(settings.catalog)
    return Catalog(settings.catalog), None


def _own_catalog(settings: Settings, storage: Storage) -> OwnCatalog:
    if settings.embedded_catalog is None:
        return find_own_catalog(storage)
    return given_catalog(storage, settings.embedded_catalog)


def _with_flag(options: Mapping[str, Any] | None, cross_partition: bool) -> Mapping[str, Any]:
    """The argument and the option say the same."""
    return {
        **(options or {}),
        **({"cross_partition": True} if checked_flag("cross_partition", cross_partition) else {}),
    }
