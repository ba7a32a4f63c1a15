"""Part of the export to Delta: what a version is to tell, from the catalog. Many snapshots are looked at together.

Files are looked up before it is asked which snapshots are kept: those of a kept snapshot were all there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from lakelib.catalog import exports, files, tables
from lakelib.catalog.roles import has_right
from lakelib.dataclass import dataclass
from lakelib.interop.delta.actions import Action, Add, DeletionVector, Remove
from lakelib.interop.delta.note import Note
from lakelib.interop.delta.translate import Content, ToldFile, milliseconds
from lakelib.interop.delta.values import inline_vector, log_path, vector_of
from lakelib.model.exports import CommitFacts
from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.options import MIB
from lakelib.model.roles import Right
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops.masks import is_long, masks_at
from lakelib.ops.read import target_of
from lakelib.ops.runtime import Runtime
from lakelib.plan.scan import compacted_files
from lakelib.storage.vectors import encode_positions
from lakelib.work.masks import Superseded, find_marks, find_superseded

HEAD, COMPACTED = "head", "compacted"
_WORTH_LOOKING = 4
"""Of so many snapshots the masks are found together."""
_MOST_UNKEPT_BYTES = MIB
"""Of vectors so large that they are files where they are kept."""
_MOST_ROWS = 4_000_000
"""Of a partition whose keys are held at once."""


class ToldState:
    """The files that a log tells of, as it does, by folder and path."""

    def __init__(self, files: Iterable[Add] = ()) -> None:
        self._folders: dict[str, dict[str, Add]] = defaultdict(dict)
        for each in files:
            self._folders[_folder(each.path)][each.path] = each

    def apply(self, actions: Sequence[Action]) -> None:
        """One version: what is removed and added again is there."""
        for each in actions:
            if isinstance(each, Remove):
                self._folders[_folder(each.path)].pop(each.path, None)
        for each in actions:
            if isinstance(each, Add):
                self._folders[_folder(each.path)][each.path] = each

    def of(self, partitions: Iterable[Partition]) -> dict[str, Add]:
        folders = {_folder(f"{log_path(each.path)}/") for each in partitions}
        return {path: each for folder in folders for path, each in self._folders.get(folder, {}).items()}

    def all(self) -> dict[str, Add]:
        return {path: each for found in self._folders.values() for path, each in found.items()}


def _folder(path: str) -> str:
    """Of a file: the values alone, for a partition's files are in folders of the names that its columns have had."""
    return "/".join(segment.partition("=")[2] for segment in path.split("/")[:-1])


class NotTold(Exception):  # noqa: N818
    """Why a snapshot cannot be told of now; a later one may."""


class NotByThisUser(Exception):  # noqa: N818
    """Why this user does not tell of a snapshot, nor of later ones; another one does."""


@dataclass(slots=True)
class Batch:
    """Snapshots that follow each other, and which files came and went by them."""

    runtime: Runtime
    table: TableInfo
    mode: str
    facts: Mapping[int, CommitFacts]
    """With the one before the first."""
    added: Mapping[int, Sequence[DataFile]]
    removed: Mapping[int, Sequence[DataFile]]
    partitions: dict[int, Partition]
    schemas: dict[int, TableSchema] = field(default_factory=dict)
    moments: dict[int, datetime] = field(default_factory=dict)
    _superseded: dict[int, Superseded | None] = field(default_factory=dict)
    _marks: dict[int, DeletionVector] = field(default_factory=dict)

    @property
    def has_key(self) -> bool:
        return bool(self.table.primary_key_ids)

    def schema(self, schema_id: int) -> TableSchema:
        if schema_id not in self.schemas:
            self.schemas |= tables.load_schemas(self.runtime.catalog, self.table.id, {schema_id})
        return self.schemas[schema_id]

    def content(self, snapshot_id: int, before: Note | None, state: ToldState | None = None) -> Content:
        """What the snapshot did. `state` is what the log says of the one before it, where that is asked for: of files
        with vectors, and where the catalog does not know that one any more."""
        schema = self.schema(self.facts[snapshot_id].snapshot.schema_id)
        removed: Sequence[ToldFile | Add] = ()
        if before is None:
            added: Sequence[ToldFile] = self.all_files(snapshot_id)
        elif state is not None:
            added, removed = self._differences_to(state, snapshot_id)
        elif self.has_key:
            added, removed = self._differences(snapshot_id)
        else:
            added = self._told(self.added.get(snapshot_id, ()))
            removed = self._told(self.removed.get(snapshot_id, ()))
        stored = self._stored(snapshot_id, schema, before, added)
        for schema_id in {*stored, *(() if before is None else (*before.seen, before.schema_id))}:
            self.schema(schema_id)
        return Content(
            added=added,
            removed=removed,
            all_files=lambda: self.all_files(snapshot_id),
            schema=schema,
            stored=[self.schemas[each] for each in sorted(stored)],
            schemas=self.schemas,
        )

    def contents_of(self, note: Note) -> Content:
        """All of a version that was told."""
        for schema_id in note.seen:
            self.schema(schema_id)
        return Content(
            added=(),
            removed=(),
            all_files=lambda: self.all_files(note.snapshot),
            schema=self.schema(note.schema_id),
            stored=(),
            schemas=self.schemas,
        )

    def all_files(self, snapshot_id: int) -> list[ToldFile]:
        """Of the whole snapshot."""
        return list(self._state(snapshot_id, None).values())

    def _differences_to(self, state: ToldState, snapshot_id: int) -> tuple[list[ToldFile], list[Add]]:
        """In the partitions that the snapshot has touched, if it is known which."""
        if not self.facts[snapshot_id - 1].is_kept:
            return _differences_to_log(state.all(), self.all_files(snapshot_id))
        touched = self._touched(snapshot_id)
        if not touched:
            return [], []
        known = [each for each in touched if self._superseded_in(each) is not None]
        rest = [each for each in touched if each not in known]
        added, removed = self._grown(known, snapshot_id, state)
        if rest:
            earlier = state.of(self.partitions[each] for each in rest)
            others = _differences_to_log(earlier, self._state(snapshot_id, rest).values())
            added, removed = [*added, *others[0]], [*removed, *others[1]]
        return added, removed

    def _grown(
        self, partition_ids: Sequence[int], snapshot_id: int, state: ToldState
    ) -> tuple[list[ToldFile], list[Add]]:
        """In partitions from which no file goes: what came, and files of which more rows are masked."""
        added: list[ToldFile] = []
        for partition_id in partition_ids:
            superseded = self._superseded_in(partition_id)
            assert superseded is not None
            new = [file for file in self.added.get(snapshot_id, ()) if file.partition_id == partition_id]
            changed = {file.id: file for file in (*new, *superseded.changed_at(snapshot_id))}
            vectors = {
                file_id: inline_vector(*found)
                for file_id in changed
                if (found := superseded.vector(file_id, snapshot_id)) is not None
            }
            added += self._told(changed.values(), vectors)
        earlier = state.of(self.partitions[each] for each in partition_ids)
        paths = {log_path(each.file.path) for each in added}
        return added, [earlier[path] for path in sorted(paths) if path in earlier]

    def _superseded_in(self, partition_id: int) -> Superseded | None:
        """Of a partition that is looked at once for many snapshots, for its files only come, and are not too many."""
        if partition_id not in self._superseded:
            self._superseded[partition_id] = self._find_superseded(partition_id)
        return self._superseded[partition_id]

    def _find_superseded(self, partition_id: int) -> Superseded | None:
        table, first_id, last_id = self.table, min(self.facts), max(self.facts)
        goes = any(file.partition_id == partition_id for found in self.removed.values() for file in found)
        if last_id - first_id < _WORTH_LOOKING or table.sequence_ids or not table.merge.is_newest or goes:
            return None
        query = files.FileQuery(
            table_id=table.id,
            snapshot_id=last_id,
            since=first_id,
            partition_ids=(partition_id,),
            with_bounds=True,
        )
        found = files.load_files(self.runtime.catalog, query)
        if sum(file.row_count for file in found.files) > _MOST_ROWS:
            return None
        schema = self.schema(self.facts[last_id].snapshot.schema_id)
        keys = schema.select(table.primary_key_ids)
        target = target_of(self.runtime, table, schema, keys, None, found.files)
        split = Split(partition=self.partitions[partition_id], depth=0, prefix=0, files=found.files)
        return find_superseded(self.runtime.storage, target, split)

    def _touched(self, snapshot_id: int) -> list[int]:
        moved = (*self.added.get(snapshot_id, ()), *self.removed.get(snapshot_id, ()))
        return sorted({file.partition_id for file in moved})

    def _differences(self, snapshot_id: int) -> tuple[list[ToldFile], list[ToldFile]]:
        """In the partitions that the snapshot has touched."""
        touched = self._touched(snapshot_id)
        if not touched:
            return [], []
        now = self._state(snapshot_id, touched)
        earlier = self._state(snapshot_id - 1, touched) if snapshot_id > 1 else {}
        added = [each for path, each in now.items() if path not in earlier]
        removed = [each for path, each in earlier.items() if path not in now]
        return added, removed

    def _state(self, snapshot_id: int, partition_ids: Sequence[int] | None) -> dict[str, ToldFile]:
        """The files of a snapshot that the log tells of, by path."""
        query = files.FileQuery(
            table_id=self.table.id,
            snapshot_id=snapshot_id,
            partition_ids=None if partition_ids is None else tuple(partition_ids),
            with_bounds=True,
        )
        found = files.load_files(self.runtime.catalog, query)
        self.partitions |= found.partitions
        told: Collection[DataFile] = found.files
        vectors: Mapping[int, DeletionVector] = {}
        if self.has_key and self.mode == COMPACTED:
            told = compacted_files(found.files, found.partitions, is_newest=self.table.merge.is_newest)
            vectors = self._vectors_of_marks(told)
        elif self.has_key:
            vectors = find_vectors(self.runtime, self.table, snapshot_id, partition_ids)
        return {each.file.path: each for each in self._told(told, vectors)}

    def _vectors_of_marks(self, told: Iterable[DataFile]) -> Mapping[int, DeletionVector]:
        """Of files that compactions have written the rows that are none: marks that stay for what comes later."""
        for file in told:
            if file.delete_count and file.id not in self._marks:
                places = find_marks(self.runtime.storage, self.table.location, file)
                self._marks[file.id] = inline_vector(encode_positions(places), len(places))
        return self._marks

    def _told(self, found: Iterable[DataFile], vectors: Mapping[int, DeletionVector] | None = None) -> list[ToldFile]:
        listed = list(found)
        self._learn_moments({file.added_snapshot or 0 for file in listed})
        return [
            ToldFile(
                file=file,
                partition=self.partitions[file.partition_id],
                added_ms=milliseconds(self.moments[file.added_snapshot or 0]),
                vector=None if vectors is None else vectors.get(file.id),
            )
            for file in listed
        ]

    def _learn_moments(self, ids: set[int]) -> None:
        known = {each for each in ids if each in self.facts}
        self.moments |= {each: self.facts[each].snapshot.committed_at for each in known}
        missing = ids - self.moments.keys()
        if missing:
            self.moments |= exports.list_moments(self.runtime.catalog, self.table.id, missing)

    def _stored(
        self, snapshot_id: int, schema: TableSchema, before: Note | None, added: Sequence[ToldFile]
    ) -> set[int]:
        """The versions of the schema that the snapshot's files have. Asked for only where there are several."""
        ids = {each.file.schema_id for each in added}
        if before is not None and ids <= {schema.id} and before.seen == (schema.id,):
            return {schema.id}
        return exports.list_stored_schemas(self.runtime.catalog, self.table.id, snapshot_id)


def load_batch(runtime: Runtime, table: TableInfo, mode: str, first_id: int, last_id: int) -> Batch:
    """The snapshots from one to another."""
    query = files.FileQuery(
        table_id=table.id, snapshot_id=last_id, since=first_id - 1, moved_only=True, with_bounds=True
    )
    moved = files.load_files(runtime.catalog, query)
    added: dict[int, list[DataFile]] = defaultdict(list)
    removed: dict[int, list[DataFile]] = defaultdict(list)
    for file in moved.files:
        if file.added_snapshot is not None and first_id <= file.added_snapshot <= last_id:
            added[file.added_snapshot].append(file)
        if file.removed_snapshot is not None and first_id <= file.removed_snapshot <= last_id:
            removed[file.removed_snapshot].append(file)
    return Batch(
        runtime=runtime,
        table=table,
        mode=mode,
        facts=exports.list_facts(runtime.catalog, table.id, first_id - 1, last_id),
        added=added,
        removed=removed,
        partitions=dict(moved.partitions),
        schemas={table.schema.id: table.schema},
    )


def find_vectors(
    runtime: Runtime, table: TableInfo, snapshot_id: int, partition_ids: Sequence[int] | None
) -> dict[int, DeletionVector]:
    """Which rows of which file are superseded or deleted, as of a snapshot. The one place where masks come in. Raises
    NotByThisUser where they would be long, and this user may not keep them as files."""
    found = masks_at(runtime, table, snapshot_id, partition_ids)
    unkept = sum(mask.size_bytes for mask in found.values() if mask.path is None and is_long(mask))
    if unkept > _MOST_UNKEPT_BYTES and not has_right(runtime.catalog, Right.MAINTAIN):
        raise NotByThisUser(
            f"the deletion vectors of snapshot {snapshot_id} take {unkept:,} bytes, which belong in files: somebody"
            " with the right to maintain tells of it"
        )
    return {file_id: vector_of(mask) for file_id, mask in found.items()}


def _differences_to_log(state: Mapping[str, Add], now: Iterable[ToldFile]) -> tuple[list[ToldFile], list[Add]]:
    """What has to be told so that the log has these files; a file that goes is told as the log has it."""
    paths = {log_path(each.file.path): each for each in now}
    added = [each for path, each in paths.items() if path not in state or state[path].deletion_vector != each.vector]
    removed = [each for path, each in state.items() if path not in paths or paths[path].vector != each.deletion_vector]
    return added, removed
