"""Use case: a table is read as a Spark data frame.

Where rows would have to be merged in Python, and Spark reaches the files, their masks are found and Spark reads by
itself: unless a predicate picks some keys, of which few rows are merged sooner than masks are found.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lakelib.errors import CorruptionError
from lakelib.model.predicate import columns_of
from lakelib.ops.hold import hold_for_spark
from lakelib.ops.masks import known_masks, load_vectors, vectors_at
from lakelib.ops.read import ScanPlan, file_by_file
from lakelib.ops.runtime import Runtime
from lakelib.work import engines


def read_frame(runtime: Runtime, plan: ScanPlan, session: Any) -> Any:
    """The rows of the scan as a Spark data frame, read when Spark is told to: its snapshot stays held meanwhile."""
    engines.require_spark()
    hold_for_spark(runtime, plan)
    return held_frame(runtime, plan, session)


def held_frame(runtime: Runtime, plan: ScanPlan, session: Any) -> Any:
    """As `read_frame`, of a snapshot that is held."""
    if plan.unmerged is not None:
        return engines.read_change_frame(session, runtime.storage, plan.unmerged, file_by_file(plan.splits))
    vectors = _vectors(runtime, plan, session)
    return engines.read_frame(session, runtime.storage, plan.target, plan.splits, vectors)


def _vectors(runtime: Runtime, plan: ScanPlan, session: Any) -> Mapping[int, bytes] | None:
    """The vectors of the masks, where Spark is to read by them."""
    if not plan.shows_snapshot or not engines.takes_masks(session, runtime.storage, plan.target, plan.splits):
        return None
    if not _picks_keys(plan):
        return vectors_at(runtime, plan, session=session)
    masks = known_masks(runtime, plan)
    with suppress(CorruptionError):  # of what is kept: the few rows are merged
        return None if masks is None else load_vectors(runtime, plan.table, masks)
    return None


def _picks_keys(plan: ScanPlan) -> bool:
    asked = frozenset() if plan.predicate is None else columns_of(plan.predicate)
    return bool(asked & {column.id for column in plan.target.primary_key})
