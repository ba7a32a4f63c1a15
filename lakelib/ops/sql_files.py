"""Part of SQL: what of a scan the engine reads from files by itself, and which of their rows it leaves out.

Where rows supersede others masks say which are seen. They are found by the first who reads, and kept: unless the rows
are few, or keys are picked, of which some rows are merged sooner than masks are found.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace

from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError
from lakelib.model.files import Split
from lakelib.model.predicate import columns_of
from lakelib.ops.masks import known_masks, load_vectors, vectors_at
from lakelib.ops.masks_known import what_of
from lakelib.ops.read import ScanPlan
from lakelib.ops.runtime import Runtime
from lakelib.plan.own_files import Readings, sort_splits
from lakelib.plan.scan import needs_merge
from lakelib.plan.where import COMMIT
from lakelib.storage.paths import split_uri
from lakelib.storage.vectors import Positions, decode_positions

FEW_ROWS = 50_000
"""So many are merged in less time than it takes to ask for masks, and to keep them."""
_GLOBS = {*"*?[]{}"}
"""In a folder's name they would be read as a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles:
    """What the engine reads by itself."""

    paths: Sequence[str] = ()
    masked: Mapping[str, Positions] = field(default_factory=dict)
    """Paths, and the rows that are left out."""
    rest: Sequence[Split] = ()
    """What it does not."""


def choose_files(runtime: Runtime, plan: ScanPlan, *, may_find: bool) -> OwnFiles:
    """The snapshot is held by the caller. Masks are found where they are not known if that `may` be."""
    folder = engine_folder(runtime)
    place = runtime.storage.place_of(plan.table.location)
    _, _, root = split_uri(place)
    is_near = folder is not None and place.startswith("file:") and f"{root}/".startswith(folder.rstrip("/") + "/")
    target = plan.target
    if (
        not is_near
        or _GLOBS & {*root}
        or plan.query.commit_id is not None
        or COMMIT in target.columns
        or target.engine is not None
    ):
        return OwnFiles(rest=plan.splits)
    found = sort_splits(plan.splits, target.columns, target.schemas, merges=bool(target.primary_key))
    masks = _masks(runtime, plan, found, may_find=may_find)
    if masks is None:
        return OwnFiles(paths=_paths(root, found.plain), rest=(*found.masked, *found.merged))
    return OwnFiles(
        paths=_paths(root, [*found.plain, *found.masked], without=masks),
        masked={f"{root}/{path}": positions for path, positions in masks.items()},
        rest=found.merged,
    )


def engine_folder(runtime: Runtime) -> str | None:
    """Below which the engine may read files."""
    return split_uri(runtime.storage.uri)[2] if runtime.storage.is_local else None


def _masks(runtime: Runtime, plan: ScanPlan, found: Readings, *, may_find: bool) -> Mapping[str, Positions] | None:
    """By path, of files that have masked rows; None: their rows are merged."""
    partitions: dict[int, list[Split]] = defaultdict(list)
    for split in filter(needs_merge, found.masked):
        partitions[split.partition.id].append(split)
    picks_keys = _picks_keys(plan)
    known: dict[str, Positions] = {}
    missing: list[list[Split]] = []
    for splits in partitions.values():
        masks = None if picks_keys else runtime.masks.recall(what_of(splits))
        known |= masks or {}
        missing += [splits] if masks is None else []
    if not missing:
        return known
    if plan.query.hash_prefixes is not None or _row_count(missing) < FEW_ROWS:
        return None
    found_now = _load(runtime, plan, missing, may_find=may_find and not picks_keys)
    if found_now is None:
        return None
    for splits in missing:
        names = {file.path for split in splits for file in split.files}
        own = {path: positions for path, positions in found_now.items() if path in names}
        known |= own
        if not picks_keys:
            runtime.masks.remember(what_of(splits), own)
    return known


def _load(
    runtime: Runtime, plan: ScanPlan, missing: Sequence[Sequence[Split]], *, may_find: bool
) -> dict[str, Positions] | None:
    """Masks of these partitions. Where none may be found, and not all are kept, None."""
    splits = [split for each in missing for split in each]
    paths = {file.id: file.path for split in splits for file in split.files}
    asked = replace(plan, splits=tuple(splits))
    vectors: Mapping[int, bytes] | None = None
    if may_find:
        vectors = vectors_at(runtime, asked)
    else:
        kept = known_masks(runtime, asked)
        with suppress(CorruptionError):  # of what is kept: the rows are merged
            vectors = None if kept is None else load_vectors(runtime, plan.table, kept)
    if vectors is None:
        return None
    return {paths[file_id]: decode_positions(vector) for file_id, vector in vectors.items() if file_id in paths}


def _picks_keys(plan: ScanPlan) -> bool:
    """Whether files are left out of partitions by their keys."""
    asked = frozenset() if plan.predicate is None else columns_of(plan.predicate)
    inner = {column.id for column in plan.target.primary_key} - {column.id for column in plan.target.partition_by}
    return bool(asked & inner)


def _row_count(partitions: Sequence[Sequence[Split]]) -> int:
    return sum(file.row_count for splits in partitions for split in splits for file in split.files)


def _paths(root: str, splits: Sequence[Split], without: Collection[str] = ()) -> list[str]:
    """Of each file once."""
    paths = dict.fromkeys(file.path for split in splits for file in split.files)
    return [f"{root}/{path}" for path in paths if path not in without]
