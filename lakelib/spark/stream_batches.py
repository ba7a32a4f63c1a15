"""Writes the batches of a streaming query to a table, each once.

A batch is a frame like any other, and is written as one: Spark's tasks write its files, and this process, which is the
driver's (with Spark Connect one of the server's), publishes them. Its key is the application, by default the query's
id, with the batch's number. So a batch that Spark runs again is known, whoever else has committed since.

Spark gives a query an id, which is in its checkpoint and stays what it is whoever starts the query again, and numbers
its batches; what a batch reads is written down before it runs.
"""

import hashlib
import json
import logging
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import functions as sf

from lakelib.catalog import tables
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError
from lakelib.lake import Lake
from lakelib.model.changes import DELETE
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN
from lakelib.model.table import CommitKind, IdempotencyKey, Snapshot, TableInfo, TableRef
from lakelib.ops.commit import check_writable, find_done
from lakelib.ops.overwrite import overwrite
from lakelib.ops.request import WriteRequest
from lakelib.ops.write import check_keyed, write, write_rows
from lakelib.settings import Settings
from lakelib.work.engines import open_source
from lakelib.work.sources import RowSource, open_arrow
from lakelib.work.spark.told import told_in_text
from lakelib.work.spark.types import arrow_schema_of

_LOG = logging.getLogger(__name__)
_ORDER = {COMMIT_COLUMN: "__lakelib_commit", OP_COLUMN: "__lakelib_op"}
"""The columns of changes, as they order rows: of one commit a delete comes before what takes its place."""
_QUERY, _BATCH, _OFFSETS = "stream.query", "stream.batch", "stream.offsets"
_HEAD_LINES = 2
"""Of a batch's note: its version, and what Spark was set to."""


@dataclass(slots=True, kw_only=True)
class BatchWriter:
    """What Spark calls with each batch. Spark Connect takes it to its server by pickle."""

    settings: Settings
    table: TableRef
    mode: str
    checkpoint: str
    application: str | None
    request: WriteRequest
    lake: Lake | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.settings, self.table, self.mode, self.checkpoint, self.application, self.request)

    def __call__(self, frame: Any, batch_id: int) -> None:
        with told_in_text():
            self._save(frame, batch_id)

    def _save(self, frame: Any, batch_id: int) -> None:
        """What was written by an earlier run of the batch is held against it first: nothing is computed then."""
        self.lake = self.lake or Lake(self.settings)
        runtime = self.lake.runtime
        mark = read_mark(frame.sparkSession, self.checkpoint, batch_id)
        application = self.application or mark.query_id
        request = replace(
            self.request,
            idempotency_key=IdempotencyKey(application=application, version=batch_id),
            properties={**self.request.properties, **mark.properties},
        )
        table = tables.load_table(runtime.catalog, self.table)
        found = find_done(runtime, table, request) or self._write(table, frame, request)
        if found.replayed:
            mark.check_replayed(found, application, table.full_name)
            _LOG.info("batch %d of %s is in snapshot %d already", batch_id, application, found.id)

    def _write(self, table: TableInfo, frame: Any, request: WriteRequest) -> Snapshot:
        assert self.lake is not None
        runtime = self.lake.runtime
        rows, request = arranged(frame, table, self.mode, request)
        source, request = _opened(rows, request)
        if self.mode == "complete":
            return overwrite(runtime, self.table, source, "all", request)
        kind = CommitKind.UPSERT if table.primary_key_ids else CommitKind.APPEND
        return write(runtime, self.table, kind, source, request)


def _restored(settings: Settings, *given: Any) -> BatchWriter:
    table, mode, checkpoint, application, request = given
    return BatchWriter(
        settings=settings, table=table, mode=mode, checkpoint=checkpoint, application=application, request=request
    )


def check_batches(lake: Lake, table: TableInfo, frame: Any, mode: str, request: WriteRequest) -> None:
    """Raises a LakeError, before anything runs, for rows that the table will not take. Values are seen in batches."""
    runtime = lake.runtime
    if mode == "update":
        check_keyed(table)
    check_writable(runtime, table, request)
    if not request.merge_schema:  # that would add the columns
        rows, request = arranged(frame, table, mode, request)
        write_rows(runtime, table, open_arrow(arrow_schema_of(rows.schema).empty_table()), request, file_kind="none")


def arranged(frame: Any, table: TableInfo, mode: str, request: WriteRequest) -> tuple[Any, WriteRequest]:
    """The batch as it is written: changes are applied in the order of their commits. Raises InvalidInputError for
    deletes whose order is not known."""
    if OP_COLUMN not in frame.columns or mode == "complete":
        return frame, request
    if not table.primary_key_ids:
        return _without_deletes(frame, table), request
    if COMMIT_COLUMN not in frame.columns:
        raise InvalidInputError(
            f"The stream has {OP_COLUMN}, and not {COMMIT_COLUMN}: which change of a row is the newer one?",
            kind="missing_column",
            remedy="Keep both columns to have deletes applied; drop both to upsert every row.",
        )
    for name, order in _ORDER.items():
        frame = frame.withColumnRenamed(name, order)
    return frame, replace(request, aux_order=tuple(_ORDER.values()), deletes_in=_ORDER[OP_COLUMN])


def _without_deletes(frame: Any, table: TableInfo) -> Any:
    """For a table without a key, which keeps every row. A delete is an error where the batch is computed."""
    error = (
        f"lakelib.errors.InvalidInputError: [no_primary_key] The stream deletes rows, and table {table.full_name} has"
        f" no primary key to delete by. Write to a table with one, or leave the deletes out: where {OP_COLUMN} ="
        " 'upsert'."
    )
    is_row = sf.when(sf.col(OP_COLUMN) == DELETE, sf.raise_error(sf.lit(error)).cast("boolean")).otherwise(True)
    return frame.where(is_row).drop(OP_COLUMN, COMMIT_COLUMN)


def _opened(frame: Any, request: WriteRequest) -> tuple[RowSource, WriteRequest]:
    session = frame.sparkSession
    judging = None if request.judging is None else replace(request.judging, session=session)
    return open_source(frame), replace(request, judging=judging, session=session)


# What is noted of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMark:
    """Which batch it is, and what it reads."""

    query_id: str
    batch_id: int
    offsets: str
    """Up to where each source is read, as a digest."""
    is_exact: bool
    """Whether that says which rows these are, whoever reads them: so it is with tables of a lake."""

    @property
    def properties(self) -> dict[str, str]:
        """Of the snapshot that the batch becomes."""
        return {_QUERY: self.query_id, _BATCH: str(self.batch_id), _OFFSETS: self.offsets}

    def check_replayed(self, found: Snapshot, application: str, table_name: str) -> None:
        """Raises ConflictError unless the snapshot, which has done the work of this key, is of the same batch: what the
        batch reads would be left out, or come twice."""
        noted = found.properties
        is_same = noted.get(_BATCH) == str(self.batch_id) and noted.get(_OFFSETS) == self.offsets
        if is_same and (self.is_exact or noted.get(_QUERY) == self.query_id):
            return
        raise ConflictError(
            f"Batch {self.batch_id} of query {self.query_id} is to be written to {table_name} for {application!r}, and"
            f" snapshot {found.id} has done that work with other rows (batch {noted.get(_BATCH, 'none')} of query"
            f" {noted.get(_QUERY, 'none')}).",
            kind="batch_differs",
            remedy="The checkpoint is not the one that wrote that snapshot, or it has gone back. Start the sources"
            " after what the table has, with a new checkpoint and another application.",
        )


def batch_key(frame: Any, checkpoint: str, batch_id: int) -> tuple[str, int]:
    """The idempotency key of a batch that `foreachBatch` was given: the id of the query whose checkpoint that is, which
    stays what it is whoever starts the query again, and the batch's number."""
    return _query_id(frame.sparkSession, checkpoint), batch_id


def read_mark(session: Any, location: str, batch_id: int) -> BatchMark:
    """Of the batch that is being run."""
    offsets = [_plain(line) for line in _read(session, location, f"offsets/{batch_id}").splitlines()[_HEAD_LINES:]]
    return BatchMark(
        query_id=_query_id(session, location),
        batch_id=batch_id,
        offsets=hashlib.sha256(json.dumps([text for text, _ in offsets]).encode()).hexdigest(),
        is_exact=all(is_ours for _, is_ours in offsets),
    )


def _query_id(session: Any, location: str) -> str:
    return str(json.loads(_read(session, location, "metadata"))["id"])


def _plain(line: str) -> tuple[str, bool]:
    """A source's offset, and whether it is a lake's: then without the name of who keeps its history."""
    try:
        found = json.loads(line)
    except ValueError:
        return line, False
    if not isinstance(found, dict) or not {"table_id", "snapshot_id", "asked"} <= found.keys():
        return line, False
    return json.dumps({name: value for name, value in found.items() if name != "consumer"}, sort_keys=True), True


def _read(session: Any, location: str, name: str) -> str:
    """Read here if it is here: a job of Spark's takes longer."""
    path = f"{location.rstrip('/')}/{name}"
    parts = urlsplit(path)
    local = Path(unquote(parts.path) if parts.scheme == "file" else path)
    if parts.scheme in ("", "file") and local.is_file():
        return local.read_text()
    return str(session.read.format("text").option("wholetext", "true").load(path).collect()[0][0])
