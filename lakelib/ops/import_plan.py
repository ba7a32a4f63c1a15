"""Part of imports: what is copied, as it was when the import began, and the plan. It is written down beside the table
before the first row is copied, and read by the next run."""

import gzip
import json
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError, EmptySourceError, InvalidInputError, LakeError, RetryableError
from lakelib.model.imports import ImportPlan, PinnedFile, SourceKind
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime
from lakelib.rows.types import COMMENT, is_list_like
from lakelib.rows.unite import TargetColumns
from lakelib.storage.filesystem import Storage
from lakelib.work import engines
from lakelib.work.source_delta import open_delta
from lakelib.work.source_files import SourceFile, find_source_files

_NAME = "_import.json.gz"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is imported, as it was pinned."""

    kind: SourceKind
    uri: str
    files: tuple[SourceFile, ...]
    version: int | None = None
    schema: pa.Schema | None = None
    """Of all its files; None: they would have to be looked into."""
    partition_by: tuple[str, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        assert self.schema is not None, "it was looked into"
        return self.schema


def open_delta_source(storage: Storage, uri: str, version: int | None) -> Source:
    """A Delta table as of a version, the newest unless told."""
    found = open_delta(storage, uri, version)
    return Source(
        kind=SourceKind.DELTA,
        uri=found.uri,
        files=found.files,
        version=found.version,
        schema=_loosened(found.schema),
        partition_by=found.partition_by,
    )


def open_parquet_source(storage: Storage, uri: str, target: TargetColumns) -> Source:
    """The files below a folder that have rows, as far as the target says in its types."""
    _check_plain(storage, uri)
    looked = engines.look_into(None, storage, find_source_files(storage, uri), "parquet", target=target)
    if not looked.files:
        raise EmptySourceError(f"The files at {uri} have no rows.", remedy="Look whether they are whole.")
    folders = tuple(name for name, _ in looked.files[0].folder_values)
    schema = _loosened(looked.schema)
    return Source(kind=SourceKind.PARQUET, uri=uri, files=looked.files, schema=schema, partition_by=folders)


def pinned_source(storage: Storage, plan: ImportPlan) -> Source:
    """The files of a plan, with what the log says of them. Raises RetryableError for a Delta table whose version has
    other files; of others that shows when they are read."""
    if plan.kind is SourceKind.PARQUET:
        files = tuple(
            SourceFile(uri=each.uri, size_bytes=each.size_bytes, version=each.version, folder_values=each.folder_values)
            for each in plan.files
        )
        return Source(kind=plan.kind, uri=plan.source, files=files)
    found = open_delta_source(storage, plan.source, plan.version)
    if [(file.uri, file.version) for file in found.files] != [(file.uri, file.version) for file in plan.files]:
        raise RetryableError(
            f"The files of version {plan.version} of the Delta table at {plan.source} are not those that they were when"
            " its import began.",
            kind="source_changed",
            remedy="Drop the table that it was to become, and import it anew.",
        )
    return found


def _check_plain(storage: Storage, uri: str) -> None:
    """Raises InvalidInputError for the folder of a table of another system, where not every file counts."""
    for inside, system, remedy in (
        ("_delta_log", "Delta", "Import it with import_delta."),
        (".hoodie", "Hudi", "Write its rows to Parquet files by a program that knows it."),
        ("metadata", "Iceberg", "Write its rows to Parquet files by a program that knows it."),
    ):
        names = (entry.path for entry in storage.at(f"{uri}/{inside}").list_files())
        if any(inside != "metadata" or name.endswith(".metadata.json") for name in names):
            raise InvalidInputError(
                f"At {uri} is a table of {system}, and not all of its files have rows that count.",
                kind="not_plain_files",
                remedy=remedy,
            )


def _loosened(schema: pa.Schema) -> pa.Schema:
    """Without fields inside of columns that may not be NULL, which a table does not have, and without metadata but
    comments."""
    return pa.schema([pa.field(each.name, _loose(each.type), each.nullable, _comment(each)) for each in schema])


def _comment(field: pa.Field) -> dict[bytes, bytes] | None:
    comment = (field.metadata or {}).get(COMMENT)
    return {COMMENT: comment} if comment else None


def _loose(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([pa.field(each.name, _loose(each.type)) for each in fields])
    if pa.types.is_map(kind):
        return pa.map_(_loose(kind.key_type), _loose(kind.item_type))
    if is_list_like(kind):
        return pa.list_(_loose(kind.value_type))
    return kind


def find_plan(runtime: Runtime, table: TableInfo) -> ImportPlan | None:
    """The plan of the import that is under way in the table."""
    root = _root(runtime, table)
    return _read(root, root.read_bytes(_NAME)) if root.exists(_NAME) else None


def keep_plan(runtime: Runtime, table: TableInfo, plan: ImportPlan) -> ImportPlan:
    """Writes the plan down, unless another run was first: the one that counts."""
    root = _root(runtime, table)
    content = asdict(plan) | {"kind": plan.kind.value, "format": _FORMAT}
    root.create_bytes(_NAME, gzip.compress(json.dumps(content).encode(), mtime=0))
    return _read(root, root.read_bytes(_NAME))


def forget_plan(runtime: Runtime, table: TableInfo) -> None:
    """Nobody goes on with it any more."""
    _root(runtime, table).delete_files([_NAME])


def cut_batches(plan: ImportPlan, batch_bytes: int) -> ImportPlan:
    """The plan in batches of about so many bytes, at least of a file each."""
    counts: list[int] = []
    size_bytes = batch_bytes
    for file in plan.files:
        if size_bytes >= batch_bytes:
            counts.append(0)
            size_bytes = 0
        counts[-1] += 1
        size_bytes += file.size_bytes
    return replace(plan, batches=tuple(counts))


def _root(runtime: Runtime, table: TableInfo) -> Storage:
    return runtime.storage.at(table.location)


def _read(root: Storage, content: bytes) -> ImportPlan:
    try:
        found: dict[str, Any] = json.loads(gzip.decompress(content))
        if found.pop("format") != _FORMAT:
            raise _unreadable(root)
        files = tuple(
            PinnedFile(**file | {"folder_values": tuple((name, value) for name, value in file["folder_values"])})
            for file in found.pop("files")
        )
        kind, batches = SourceKind(found.pop("kind")), tuple(found.pop("batches"))
        return ImportPlan(kind=kind, files=files, batches=batches, **found)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(root) from error


def _unreadable(root: Storage) -> LakeError:
    return CorruptionError(
        f"The plan of an import, {root.uri_of(_NAME)}, cannot be read.",
        kind="unreadable_plan",
        remedy="Drop the table and import it anew; or use the version of lakelib that began it.",
    )
