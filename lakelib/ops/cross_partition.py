"""Use case: the rows of a table are looked at whose key stands in several partitions, and taken away but the newest."""

from collections.abc import Sequence
from typing import Any

from lakelib.catalog import files, tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.commit import Conflict
from lakelib.model.table import WHOLE_TABLE, CommitKind, Proposal, Snapshot, TableInfo, TableRef
from lakelib.ops.commit import Redo, Work, commit_work
from lakelib.ops.delete import OVERTAKEN
from lakelib.ops.hold import Held
from lakelib.ops.merging import moves_target
from lakelib.ops.read import target_of
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, propose
from lakelib.plan.declare_merge import check_definition
from lakelib.plan.moves import arrange_all
from lakelib.plan.where import COMMIT
from lakelib.progress import bar
from lakelib.rows.convert import python_rows
from lakelib.work import engines
from lakelib.work.moves import MoveWork, find_leaving_keys

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    table: TableInfo
    snapshot_id: int
    splits: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strays:
    """Rows that stand in another partition than the newest of their key."""

    count: int
    shown: tuple[dict[str, Any], ...]
    """Some of them: key and partition."""

    @property
    def said(self) -> str:
        several = ", ".join(map(str, self.shown))
        return f"{self.count:,} rows stand in another partition than the newest of their key: {several}"


def find_strays(runtime: Runtime, table: TableInfo, snapshot_id: int) -> Strays:
    """Reads the keys of all rows at a snapshot."""
    count, shown = 0, list[dict[str, Any]]()
    works = _plan(runtime, table, snapshot_id)
    sizes = [sum(split.size_bytes for split in work.sought.own) for work in works]
    pin = _Pin(table=table, snapshot_id=snapshot_id, splits=[work.sought for work in works])
    with Held(runtime, pin), bar(f"Looking at the keys of {table.full_name}", sum(sizes)) as shown_bar:
        for work, size_bytes in zip(works, sizes, strict=True):
            found = find_leaving_keys(work, runtime.read_threads)
            shown_bar.advance(size_bytes)
            count += found.num_rows
            shown += python_rows(found.slice(0, _SHOWN - len(shown))) if len(shown) < _SHOWN else []
    return Strays(count=count, shown=tuple(shown))


def check_each_once(runtime: Runtime, table: TableInfo, snapshot_id: int) -> None:
    """Raises InvalidInputError where a key stands in several partitions."""
    strays = find_strays(runtime, table, snapshot_id)
    if strays.count:
        raise InvalidInputError(
            f"{table.full_name} has keys in several partitions at snapshot {snapshot_id}; {strays.said}.",
            kind="keys_in_several_partitions",
            remedy="settle_keys() (`lake doctor --repair keys --yes`) takes all rows of a key away but the newest; or"
            " delete those that are not to stay.",
        )


def settle_keys(runtime: Runtime, ref: TableRef) -> Snapshot | None:
    """Of each key the newest row stays, in one commit; None where nothing has to go. Raises InvalidInputError for a
    table in which a key may be in several partitions by right."""
    table = tables.load_table(runtime.catalog, ref)
    check_definition(table.schema, table.primary_key_ids, table.partition_ids, table.sequence_ids, table.merge)
    if not find_strays(runtime, table, table.head_id).count:
        return None
    work = Work(prepare=lambda now: _propose_marks(runtime, now), redo=_redo, looks_again=True)
    return commit_work(runtime, ref, WriteRequest(), work)


def _redo(conflict: Conflict, proposal: Proposal) -> Redo:
    return Redo.ANEW if set(conflict.reasons) <= OVERTAKEN else Redo.NOT


def _propose_marks(runtime: Runtime, table: TableInfo) -> Proposal:
    works = _plan(runtime, table, table.head_id)
    with Held(runtime, _Pin(table=table, snapshot_id=table.head_id, splits=[work.sought for work in works])):
        marks = engines.write_leaving(works, session=None, threads=runtime.threads)
    written = WrittenRows(files=tuple(marks), rows_in=0)
    return propose(table, CommitKind.DELETE, WriteRequest(), written, read_scope=WHOLE_TABLE)


def _plan(runtime: Runtime, table: TableInfo, snapshot_id: int) -> list[MoveWork]:
    query = files.FileQuery(table_id=table.id, snapshot_id=snapshot_id)
    found = files.load_files(runtime.catalog, query)
    columns = dict.fromkeys((*table.primary_key, *table.sequence_by))
    target = target_of(runtime, table, table.schema, (*columns, COMMIT), None, found.files)
    return [
        MoveWork(
            storage=runtime.storage,
            target=target,
            writes=moves_target(table, table.schema),
            sought=sought,
            buffer_bytes=table.options.write_buffer_bytes,
            is_stored=True,
        )
        for sought in arrange_all(found.files, found.partitions)
    ]
