"""Use case: a table that somebody else's system has written becomes a lake table, its rows copied.

Step by step: what the source is, as of now, pinned; what the table is to be; are its keys whole, and each there once?
Then the table is made, and the plan written down beside it. Batches of files follow, each a commit under a key of its
own: a run that was killed is followed by one that goes on after the last batch, of the same files.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelib.catalog import commits, tables
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.imports import Duplicates, ImportPlan, ImportResult, PinnedFile, SourceKind
from lakelib.model.options import MIB, parse_options
from lakelib.model.schema import TableSchema
from lakelib.model.table import CommitKind, IdempotencyKey, Snapshot, TableInfo
from lakelib.ops import create
from lakelib.ops.import_plan import (
    Source,
    cut_batches,
    find_plan,
    forget_plan,
    keep_plan,
    open_delta_source,
    open_parquet_source,
    pinned_source,
)
from lakelib.ops.import_request import ImportRequest
from lakelib.ops.request import WriteRequest, target_columns
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import write
from lakelib.plan.declare import declare_schema
from lakelib.progress import bar
from lakelib.rows.align import plan_alignment
from lakelib.rows.types import arrow_schema
from lakelib.rows.unite import TargetColumns
from lakelib.storage.paths import complete_uri
from lakelib.work import engines
from lakelib.work.source_files import SourceFile
from lakelib.work.source_rows import FileRows

_BATCH_BYTES = 1024 * MIB
_MOST_NAMED = 3


def import_delta(runtime: Runtime, given: str, name: str, request: ImportRequest) -> ImportResult:
    """A Delta table's rows, as of a version, become a table's. Raises NotFoundError where there is no Delta table."""
    return _Import(runtime, SourceKind.DELTA, given, name, request).run()


def import_parquet(runtime: Runtime, given: str, name: str, request: ImportRequest) -> ImportResult:
    """The rows of Parquet files below a folder become a table's; its folders' names and values are columns. Raises
    NotFoundError where there is no file."""
    return _Import(runtime, SourceKind.PARQUET, given, name, request).run()


class _Import:
    """One call's way."""

    def __init__(self, runtime: Runtime, kind: SourceKind, given: str, name: str, request: ImportRequest) -> None:
        self._runtime = runtime
        self._kind = kind
        self._uri = complete_uri(given, runtime.storage.settings.default_fs).rstrip("/")
        self._name = name
        self._request = request
        self._start = time.monotonic()

    def run(self) -> ImportResult:
        namespace, name = create.split_name(self._name)
        table = tables.find_table(self._runtime.catalog, namespace, name)
        if table is None:
            return self._begin(None)
        self._check_alike(table)
        plan = find_plan(self._runtime, table)
        if plan is not None:
            return self._go_on(table, plan)
        if table.head_id == 0:
            return self._begin(table)
        return self._finished(table)

    # The first run

    def _begin(self, table: TableInfo | None) -> ImportResult:
        """With a table that is there, and empty, or one that is made."""
        source = self._open_source(table)
        shape = table or self._define(source)
        required = frozenset(column.id for column in shape.schema.columns if not column.nullable)
        plan_alignment(source.columns, shape.schema, required_ids=required)
        # In which partition a key is unique.
        within = () if shape.options.cross_partition else shape.partition_ids
        self._check_keys(source, shape.schema, shape.primary_key_ids, within)
        pinned = tuple(
            PinnedFile(uri=file.uri, size_bytes=file.size_bytes, version=file.version, folder_values=file.folder_values)
            for file in source.files
        )
        plan = ImportPlan(kind=self._kind, source=source.uri, version=source.version, files=pinned, batches=())
        plan = cut_batches(plan, self._batch_bytes())
        if self._request.dry_run:
            return self._result(plan, 0, None, None)
        if table is None:
            table = self._create(source)
        if not plan.files:
            return self._result(plan, 0, 0, None)
        return self._copy(table, keep_plan(self._runtime, table, plan), source)

    def _open_source(self, table: TableInfo | None) -> Source:
        if self._kind is SourceKind.DELTA:
            return open_delta_source(self._runtime.storage, self._uri, self._request.version)
        return open_parquet_source(self._runtime.storage, self._uri, self._declared(table))

    def _declared(self, table: TableInfo | None) -> TargetColumns:
        """The types that the files' columns are to have, as far as that is said."""
        if table is not None:
            return TargetColumns(columns=table.schema.columns)
        if self._request.schema is None:
            return TargetColumns()
        return TargetColumns(columns=declare_schema(self._request.schema))

    def _define(self, source: Source) -> tables.NewTable:
        request = self._request
        namespace, name = create.split_name(self._name)
        return create.define_table(
            self._runtime,
            namespace,
            name,
            self._schema(source),
            request.primary_key,
            self._partition_by(source),
            request.buckets,
            request.sequence_by,
            "deduplicate",
            parse_options(request.options),
        )

    def _create(self, source: Source) -> TableInfo:
        request = self._request
        return create.create_table(
            self._runtime,
            self._name,
            self._schema(source),
            primary_key=request.primary_key,
            partition_by=self._partition_by(source),
            buckets=request.buckets,
            sequence_by=request.sequence_by,
            merge="deduplicate",
            options=request.options,
            if_not_exists=False,
        )

    def _schema(self, source: Source) -> Any:
        return source.columns if self._request.schema is None else self._request.schema

    def _partition_by(self, source: Source) -> Sequence[str]:
        return source.partition_by if self._request.partition_by is None else self._request.partition_by

    def _batch_bytes(self) -> int:
        if self._request.batch_bytes is not None:
            return self._request.batch_bytes
        session = self._request.session
        return _BATCH_BYTES if session is None else _BATCH_BYTES * engines.task_count(session)

    def _check_keys(
        self, source: Source, schema: TableSchema, key_ids: Sequence[int], partition_ids: Sequence[int]
    ) -> None:
        """Raises InvalidInputError, before anything is made, for keys that the table could not have."""
        if not key_ids or not source.files:
            return
        key, partition_by = schema.select(tuple(key_ids)), schema.select(tuple(partition_ids))
        names = tuple(dict.fromkeys(column.name for column in (*partition_by, *key)))
        target = TargetColumns(
            columns=schema.columns,
            roles=frozenset(name.casefold() for name in names),
            fixed=frozenset(name.casefold() for name in names),
        )
        found = self._look(source.files, target, names)
        found.check_roles(target.roles)
        repeated = engines.find_repeated(found, key, partition_by, self._runtime.threads)
        if repeated and self._request.duplicates is Duplicates.REFUSE:
            raise _repeated_keys(self._uri, repeated)

    def _look(
        self, files: Sequence[SourceFile], target: TargetColumns, columns: Sequence[str] | None = None
    ) -> FileRows:
        storage, session = self._runtime.storage, self._request.session
        return engines.look_into(session, storage, files, "parquet", target=target, columns=columns)

    # Runs that go on

    def _go_on(self, table: TableInfo, plan: ImportPlan) -> ImportResult:
        if (plan.kind, plan.source) != (self._kind, self._uri):
            raise InvalidInputError(
                f"The import of {plan.source} into {self._name} was begun, and is not finished.",
                kind="table_exists",
                remedy="Finish that one first, or give the name of another table.",
            )
        self._check_version(plan.version)
        if self._request.dry_run:
            done = self._batches_done(table, len(plan.batches))
            return self._result(plan, done, None, None)
        return self._copy(table, plan, pinned_source(self._runtime.storage, plan))

    def _finished(self, table: TableInfo) -> ImportResult:
        """What an import has brought that was finished. Raises InvalidInputError for a table that has other rows."""
        first = self._find_batch(table, 1)
        if first is None:
            raise InvalidInputError(
                f"There is a table {self._name} already, and it has rows of its own.",
                kind="table_exists",
                remedy="Give another name, or drop it. What is imported becomes a new table, or an empty one.",
            )
        told = first.properties
        version = int(told["import_version"]) if "import_version" in told else None
        self._check_version(version)
        count = int(told["import_batch"].partition("/")[2])
        if self._batches_done(table, count) < count:
            raise NotFoundError(
                f"The import of {self._uri} into {self._name} was not finished, and its plan is gone.",
                kind="plan_missing",
                remedy=f"Drop {self._name}, and import it anew.",
            )
        files, size_bytes = int(told["import_files"]), int(told["import_bytes"])
        plan = ImportPlan(kind=self._kind, source=self._uri, version=version, files=(), batches=(0,) * count)
        if self._request.dry_run:
            done = self._result(plan, count, None, None)
        else:
            done = self._result(plan, count, *self._came(table, count))
        return replace(done, files=files, size_bytes=size_bytes)

    def _check_version(self, pinned: int | None) -> None:
        if self._request.version not in (None, pinned):
            raise InvalidInputError(
                f"{self._name} is imported from version {pinned} of {self._uri}, not from {self._request.version}.",
                kind="table_exists",
                remedy="Leave the version out to go on, or give the name of another table.",
            )

    def _check_alike(self, table: TableInfo) -> None:
        """Raises InvalidInputError for a table that is there, and is another than what is asked for."""
        request = self._request
        asked = {
            "primary_key": (request.primary_key or None, table.primary_key),
            "partition_by": (request.partition_by, table.partition_by),
            "sequence_by": (request.sequence_by or None, table.sequence_by),
        }
        for what, (names, columns) in asked.items():
            is_other = names is not None and [each.casefold() for each in names] != [
                column.name.casefold() for column in columns
            ]
            if is_other:
                raise InvalidInputError(
                    f"There is a table {self._name} already, and its {what} is another one:"
                    f" {', '.join(column.name for column in columns) or 'none'}.",
                    kind="table_exists",
                    remedy="Give another name, or what the table has.",
                )

    # Copying

    def _copy(self, table: TableInfo, plan: ImportPlan, source: Source) -> ImportResult:
        if self._request.session is not None:
            engines.task_count(self._request.session)
        self._runtime.ownership.confirm()
        count = len(plan.batches)
        before = self._batches_done(table, count)
        sizes = [sum(plan.files[place].size_bytes for place in places) for places in plan.ranges]
        with bar(f"Importing {self._name}", sum(sizes)) as shown:
            shown.advance(sum(sizes[:before]))
            for number in range(before + 1, count + 1):
                places = plan.ranges[number - 1]
                self._copy_batch(table, plan, number, source.files[places.start : places.stop])
                shown.advance(sizes[number - 1])
                if self._request.tell is not None:
                    self._request.tell(sum(sizes[:number]), sum(sizes))
        forget_plan(self._runtime, table)
        return self._result(plan, before, *self._came(table, count))

    def _copy_batch(self, table: TableInfo, plan: ImportPlan, number: int, files: Sequence[SourceFile]) -> None:
        properties = {
            "import": plan.source,
            "import_format": plan.kind.value,
            "import_batch": f"{number}/{len(plan.batches)}",
            "import_files": str(len(plan.files)),
            "import_bytes": str(plan.size_bytes),
        }
        if plan.version is not None:
            properties["import_version"] = str(plan.version)
        request = WriteRequest(idempotency_key=self._key(number), properties=properties, session=self._request.session)
        current = tables.load_table(self._runtime.catalog, table.ref)
        rows = self._look(files, target_columns(current, request))
        if not rows.files:  # a commit all the same: the batch is done
            columns = arrow_schema(current.schema.columns)
            write(self._runtime, table.ref, CommitKind.APPEND, engines.open_source(columns.empty_table()), request)
            return
        kind = CommitKind.UPSERT if table.primary_key_ids else CommitKind.APPEND
        write(self._runtime, table.ref, kind, rows, request)

    def _key(self, number: int) -> IdempotencyKey:
        told = f"{self._kind.value} {self._uri}"
        return IdempotencyKey(application=f"import:{hashlib.sha256(told.encode()).hexdigest()[:16]}", version=number)

    def _find_batch(self, table: TableInfo, number: int) -> Snapshot | None:
        return commits.find_published(self._runtime.catalog, table, self._key(number))

    def _batches_done(self, table: TableInfo, count: int) -> int:
        """How many batches, which come in their order, were published."""
        low, high = 0, count
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._find_batch(table, middle) is not None else (low, middle - 1)
        return low

    def _came(self, table: TableInfo, count: int) -> tuple[int, int | None]:
        """The rows that all batches have read, and the last one's snapshot."""
        found = [self._find_batch(table, number) for number in range(1, count + 1)]
        rows = sum(int(each.summary.get("rows_in", 0)) for each in found if each is not None)
        return rows, max((each.id for each in found if each is not None), default=None)

    def _result(self, plan: ImportPlan, before: int, rows: int | None, snapshot: int | None) -> ImportResult:
        return ImportResult(
            table=self._name,
            kind=self._kind.value,
            source=plan.source,
            version=plan.version,
            dry_run=self._request.dry_run,
            files=len(plan.files),
            size_bytes=plan.size_bytes,
            batches=len(plan.batches),
            batches_before=before,
            rows=rows,
            snapshot=snapshot,
            seconds=time.monotonic() - self._start,
        )


def _repeated_keys(uri: str, repeated: Sequence[Mapping[str, Any]]) -> InvalidInputError:
    told = "; ".join(", ".join(f"{name}={value!r}" for name, value in key.items()) for key in repeated[:_MOST_NAMED])
    return InvalidInputError(
        f"Keys come more than once at {uri}, such as {told}. Nothing was imported.",
        kind="duplicate_key",
        remedy='Choose another primary key, or say which one stays: duplicates="last" takes the highest of sequence_by,'
        " and without it the one that comes last.",
    )
