"""Part of judging: what a staged commit does to the rows that there were, exactly.

Step by step: the files of the partitions that it touches, as they are and as they would be; what these tell by
themselves; where they do not, both states are compared, by keys alone unless values are asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.model.changes import ChangeSplit, ChangeView
from lakelib.model.commit import CommitInfo
from lakelib.model.effect import Effect
from lakelib.model.gate import Verdict
from lakelib.model.table import TableInfo
from lakelib.ops.hold import Held
from lakelib.ops.read import (
    ScanRequest,
    count_rows,
    file_query,
    plan_scan,
    schema_of_staged,
    staged_view,
    target_of,
    view_after,
)
from lakelib.ops.runtime import Runtime
from lakelib.plan.judging import arrange_effect
from lakelib.work import engines
from lakelib.work.changes import change_target


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    table: TableInfo
    snapshot_id: int
    splits: Sequence[ChangeSplit]


def measure_effect(
    runtime: Runtime,
    table: TableInfo,
    commit: CommitInfo,
    beneath: Sequence[UUID] = (),
    *,
    with_updates: bool,
    session: Any = None,
) -> Effect:
    """On top of the head of `table` and the commits beneath. Without `with_updates` it is not told how many rows have
    other values, and only keys are read."""
    has_key = bool(table.primary_key_ids)
    schema = schema_of_staged(runtime, table, commit, beneath)
    touched = files.find_touched_partitions(runtime.catalog, commit.id)

    def look(request: ScanRequest) -> files.FoundFiles:
        asked = replace(request, partition_ids=touched)
        return files.load_files(runtime.catalog, file_query(table, schema, table.head_id, None, asked))

    after = look(ScanRequest(staged=staged_view(commit.id, "merged", beneath, commit)))
    before = look(ScanRequest(staged=view_after(beneath)))
    told = arrange_effect(
        before.files,
        after.files,
        {**before.partitions, **after.partitions},
        has_key=has_key,
        moves_keys=table.options.cross_partition,
    )
    columns = schema.columns if with_updates or not has_key else schema.select(table.primary_key_ids)
    base = target_of(runtime, table, schema, columns, None, [file for split in told.splits for file in split.files])
    target = change_target(base, schema, view=ChangeView.NET, after_id=table.head_id)
    with Held(runtime, _Pin(table=table, snapshot_id=table.head_id, splits=told.splits)):
        counted = engines.count_changes(session, runtime.storage, target.narrow, told.splits, runtime.read_threads)
    effect = told.known + effect_of(counted)
    return effect if with_updates or not has_key else replace(effect, updated=None)


def effect_of(counted: dict[str, int]) -> Effect:
    """Of how many changes there are of each kind, in the view "net"."""
    return Effect(
        inserted=counted.get("insert", 0), updated=counted.get("update_after", 0), deleted=counted.get("delete", 0)
    )


def known_effect(commit: CommitInfo, verdict: Verdict) -> Effect:
    """As far as the commit tells it, or its gate has measured it."""
    found = {name: count for name, count in commit.summary.items() if count is not None}
    for check in verdict.checks:
        found |= check.observed if isinstance(check.observed, Mapping) else {}
    return Effect.of(found)


def count_rows_before(
    runtime: Runtime, table: TableInfo, beneath: Sequence[UUID], touched: tuple[int, ...] | None, session: Any = None
) -> int:
    """How many rows there are on the head of `table` and the commits beneath; of these partitions, if any are named."""
    plan = plan_scan(runtime, table, ScanRequest(staged=view_after(beneath), partition_ids=touched))
    return count_rows(runtime, plan, session)
