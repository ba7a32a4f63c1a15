"""Use case: which rows of a snapshot's files its readers do not see.

Step by step: what is kept of the partitions' masks; where that is of an earlier state, or nothing is, the masks are
found, from what has come since then alone where that can be; and kept, for all who read after this one. Whoever may not
keep them has them for himself.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from lakelib.catalog import masks
from lakelib.catalog.masks import FoundMasks
from lakelib.catalog.roles import has_right
from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError, IdentityDiffersError
from lakelib.model.files import DataFile, Mask, MaskState, Split, vector_path
from lakelib.model.roles import Right
from lakelib.model.table import TableInfo
from lakelib.ops.hold import Held
from lakelib.ops.merging import require_newest
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan
from lakelib.ops.runtime import Runtime
from lakelib.plan.scan import needs_merge
from lakelib.storage.filesystem import Storage
from lakelib.storage.vectors import read_vector, unite, write_vector
from lakelib.work import engines
from lakelib.work.masks import MaskWork
from lakelib.work.parallel import collect_in_order
from lakelib.work.read import ReadTarget

_LOG = logging.getLogger(__name__)

_MOST_INLINE_BYTES = 4096
"""A vector of at most this size is kept in the catalog."""


def masks_at(
    runtime: Runtime,
    table: TableInfo,
    snapshot_id: int,
    partition_ids: Collection[int] | None = None,
    *,
    session: Any = None,
    anew: bool = False,
) -> Mapping[int, Mask]:
    """The masks of a snapshot's files, by file, of these partitions or of all; files whose rows are all seen have none.
    What is missing is found, and kept if the user may; with `anew` nothing that is kept is believed. Raises
    NotFoundError for a snapshot that is not there."""
    if not table.primary_key_ids or not snapshot_id:
        return {}
    require_newest(table, "A mask")
    chosen = None if partition_ids is None else tuple(partition_ids)
    plan = plan_scan(runtime, table, _request(table, snapshot_id, chosen))
    splits = _splits_by_partition(plan)
    if not splits:
        return {}
    with Held(runtime, plan):
        states = {
            each.partition_id: each for each in masks.find_states(runtime.catalog, table.id, snapshot_id, list(splits))
        }
        known = {} if anew else _load_known(runtime, plan, states)
        missing = [
            _Missing(state=state, splits=splits[state.partition_id], anew=anew)
            for state in states.values()
            if anew or not state.is_known
        ]
        if not missing:
            return known
        try:
            return known | _make(runtime, plan, missing, known, session)
        except CorruptionError:  # of what is kept, unless it comes again
            return known | _make(runtime, plan, [replace(each, anew=True) for each in missing], {}, session)


def vectors_at(runtime: Runtime, plan: ScanPlan, *, session: Any = None) -> Mapping[int, bytes]:
    """The vectors of the masks of what the plan reads, by file. Where some that are kept cannot be read, all are found
    anew, for this reader alone."""
    partition_ids = {split.partition.id for split in plan.splits}

    def load(anew: bool) -> Mapping[int, bytes]:
        found = masks_at(runtime, plan.table, plan.snapshot_id, partition_ids, session=session, anew=anew)
        return load_vectors(runtime, plan.table, found)

    try:
        return load(anew=False)
    except CorruptionError as error:
        _LOG.warning("masks of %s are found anew: %s", plan.table.full_name, error)
        return load(anew=True)


def known_masks(runtime: Runtime, plan: ScanPlan) -> Mapping[int, Mask] | None:
    """The masks of what the plan reads, if all are kept."""
    splits = _splits_by_partition(plan)
    states = masks.find_states(runtime.catalog, plan.table.id, plan.snapshot_id, list(splits))
    if not all(state.is_known for state in states):
        return None
    return _load_known(runtime, plan, {state.partition_id: state for state in states})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missing:
    """A partition whose masks are to be found."""

    state: MaskState
    splits: tuple[Split, ...]
    anew: bool = False
    """Whether nothing that is kept is believed."""

    @property
    def base(self) -> int | None:
        """The snapshot whose masks still hold, if there is one."""
        return None if self.state.is_reset or self.anew else self.state.known_at

    @property
    def files(self) -> dict[int, DataFile]:
        return {file.id: file for split in self.splits for file in split.files}


def _request(table: TableInfo, snapshot_id: int, partition_ids: tuple[int, ...] | None) -> ScanRequest:
    """All files of the partitions."""
    at = None if snapshot_id == table.head_id else snapshot_id
    return ScanRequest(at=at, partition_ids=partition_ids)


def _key_target(plan: ScanPlan) -> ReadTarget:
    return replace(plan.target, columns=plan.target.primary_key, predicate=None, asked_columns=())


def _splits_by_partition(plan: ScanPlan) -> dict[int, tuple[Split, ...]]:
    """Of the partitions in which some row may not be seen, all splits."""
    found: dict[int, list[Split]] = defaultdict(list)
    for split in plan.splits:
        found[split.partition.id].append(split)
    return {key: tuple(own) for key, own in found.items() if any(map(needs_merge, own))}


def _load_known(runtime: Runtime, plan: ScanPlan, states: Mapping[int, MaskState]) -> dict[int, Mask]:
    """What is kept, also of partitions that were touched since: what holds of it still does."""
    known_at = {
        state.partition_id: state.known_at
        for state in states.values()
        if state.known_at is not None and not state.is_reset
    }
    return masks.load_masks(runtime.catalog, plan.table.id, plan.snapshot_id, known_at) if known_at else {}


def _make(
    runtime: Runtime, plan: ScanPlan, missing: Sequence[_Missing], known: Mapping[int, Mask], session: Any
) -> dict[int, Mask]:
    vectors = _find(runtime, [work for each in missing for work in _works(plan, each)], session)
    made = [
        FoundMasks(state=each.state, masks=tuple(_united(runtime, plan, each, vectors, known)), anew=each.base is None)
        for each in missing
    ]
    return {mask.file_id: mask for found in _keep(runtime, plan, made) for mask in found.masks}


def _find(runtime: Runtime, works: Sequence[MaskWork], session: Any) -> dict[int, list[bytes]]:
    """Of each file the vectors that were found, of its splits."""
    vectors: dict[int, list[bytes]] = defaultdict(list)
    for found in engines.find_masked(runtime.storage, works, session=session, threads=runtime.threads):
        for file_id, vector in found.items():
            vectors[file_id].append(vector)
    return vectors


def _works(plan: ScanPlan, missing: _Missing) -> Iterator[MaskWork]:
    base = missing.base
    target = _key_target(plan)
    for split in filter(needs_merge, missing.splits):
        if base is None:
            yield MaskWork(target=target, split=split, fresh_ids=None)
            continue
        fresh = frozenset(file.id for file in split.files if (file.added_snapshot or 0) > base)
        if fresh:
            yield MaskWork(target=target, split=split, fresh_ids=fresh)


def _united(
    runtime: Runtime,
    plan: ScanPlan,
    missing: _Missing,
    vectors: Mapping[int, Sequence[bytes]],
    known: Mapping[int, Mask],
) -> Iterator[Mask]:
    """The masks that are others than before."""
    for file_id in missing.files:
        if file_id not in vectors:
            continue
        before = known.get(file_id)
        parts = [*vectors[file_id], *([] if before is None else [load_vector(runtime, plan.table, before)])]
        vector, cardinality = unite(parts)
        if before is None or cardinality > before.cardinality:
            yield Mask(file_id=file_id, path=None, inline=vector, size_bytes=len(vector), cardinality=cardinality)


def _keep(runtime: Runtime, plan: ScanPlan, made: Sequence[FoundMasks]) -> list[FoundMasks]:
    """The same masks, kept where that can be: large ones in files."""
    if not _may_keep(runtime):
        return list(made)
    newest = [each for each in made if each.state.newest_at is None or each.state.newest_at < each.state.touched_at]
    others = [each for each in made if each not in newest]
    if not newest:
        return others
    root = runtime.storage.at(plan.table.location)
    written = [replace(each, masks=tuple(_written(root, mask) for mask in each.masks)) for each in newest]
    kept = masks.keep_masks(runtime.catalog, plan.table.id, written)
    lost = {place for place, each in enumerate(written) if each.state.partition_id not in kept}
    paths = [mask.path for place in lost for mask in written[place].masks if mask.path is not None]
    delete_unnamed(runtime, plan.table, paths)
    return [*others, *(newest[place] if place in lost else each for place, each in enumerate(written))]


def delete_unnamed(runtime: Runtime, table: TableInfo, paths: Sequence[str]) -> int:
    """Deletes files of masks that others have made unnecessary. Some may be named all the same, and stay: what named
    them was said twice, for its first answer was lost. How many stay."""
    if not paths:
        return 0
    named = masks.find_named(runtime.catalog, table.id, paths)
    runtime.storage.at(table.location).delete_files([path for path in paths if path not in named])
    return len(named)


def _may_keep(runtime: Runtime) -> bool:
    """Whether the user may, and the lake may be changed here."""
    if not has_right(runtime.catalog, Right.MAINTAIN):
        return False
    try:
        runtime.ownership.confirm()
    except IdentityDiffersError:
        return False
    return True


def _written(root: Storage, mask: Mask) -> Mask:
    if mask.inline is None or not is_long(mask):
        return mask
    path = vector_path(uuid4())
    write_vector(root, path, mask.inline)
    return replace(mask, path=path, inline=None)


def is_long(mask: Mask) -> bool:
    """Whether its vector is a file, where it is kept."""
    return mask.size_bytes > _MOST_INLINE_BYTES


def load_vectors(runtime: Runtime, table: TableInfo, found: Mapping[int, Mask]) -> dict[int, bytes]:
    """The vectors of masks, by file. Raises CorruptionError."""
    parts = collect_in_order(
        list(found.values()),
        lambda mask: iter([(mask.file_id, load_vector(runtime, table, mask))]),
        runtime.read_threads,
    )
    return dict(parts)


def load_vector(runtime: Runtime, table: TableInfo, mask: Mask) -> bytes:
    """The positions that a mask names, as `storage.vectors` has them. Raises CorruptionError."""
    if mask.inline is not None:
        return mask.inline
    assert mask.path is not None
    return read_vector(runtime.storage.at(table.location), mask.path)
