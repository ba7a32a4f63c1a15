"""Part of imports: the plan. It is written down beside the table before the first row is copied, and read by the runs
that go on."""

import gzip
import json
from dataclasses import asdict, replace
from typing import Any

from lakelib.errors import CorruptionError, LakeError
from lakelib.model.imports import ImportPlan, PinnedFile, SourceKind
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime
from lakelib.storage.filesystem import Storage

_NAME = "_import.json.gz"
_FORMAT = 1


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
