"""Use case: a verdict becomes a page that people read, with what they ask next.

Step by step: the newest verdict on the commit; where its rows come from; what the gate found in the partition before;
for each check that failed, the rows of the commit that it means, as far as a bounded look at them tells.
"""

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID

from lakelib.catalog import commits, gates, tables
from lakelib.errors import LakeError, NotFoundError
from lakelib.gates.evidence import MASK, as_json
from lakelib.gates.failing import failing_columns, failing_where
from lakelib.gates.report import report_html
from lakelib.model.commit import CommitInfo
from lakelib.model.gate import Background, Before, CheckResult, FailingRows, Scope, Status, Verdict
from lakelib.model.options import MIB, sensitive_names
from lakelib.model.table import TableInfo
from lakelib.ops.effect import known_effect
from lakelib.ops.read import ScanPlan, ScanRequest, plan_scan, staged_view, stream_batches
from lakelib.ops.runtime import Runtime
from lakelib.rows.convert import python_rows
from lakelib.storage.local_files import write_local_file

_MOST_KEYS = 10
_MOST_VALUES = 20
_MOST_ROWS = 10_000
"""Of those that a check means, so many are looked at."""
_MOST_CHECKS = 20
_MOST_BYTES = 256 * MIB
"""Of files that are looked into, for a check."""
_MOST_SECONDS = 20.0
"""So long the rows of all checks are looked for. People wait for the page."""


def write_report(
    runtime: Runtime, commit_id: UUID, path: str | PathLike[str], background: Background | None = None
) -> Path:
    """The newest verdict on a commit as one file of HTML; its absolute path. Raises NotFoundError if there is none."""
    commit = commits.load_commit(runtime.catalog, commit_id)
    verdict = gates.find_verdict(runtime.catalog, commit_id)
    if verdict is None:
        raise NotFoundError(
            f"No gate has judged commit {commit_id} of {commit.table.full_name}.",
            kind="verdict_not_found",
            remedy="Judge it with staged.judge(gate).",
        )
    found = find_out(runtime, verdict) if background is None else background
    page = report_html(verdict, table=commit.table.full_name, state=commit.state.value, background=found)
    return write_local_file(path, page)


def find_out(runtime: Runtime, verdict: Verdict) -> Background:
    """What people ask of a judged commit. Rows that cannot be read any more are left out."""
    commit = commits.load_commit(runtime.catalog, verdict.commit_id)
    table = tables.load_table(runtime.catalog, commit.table)
    told: Mapping[str, str] = commit.properties
    return Background(
        partition=told.get("partition"),
        source=told.get("source"),
        source_files=told.get("source_files"),
        run=commit.application,
        engine=told.get("engine"),
        rows=commit.summary.get("rows_in"),
        effect=str(known_effect(commit, verdict)),
        before=_find_before(runtime, table, told.get("partition"), verdict.gate),
        failing=dict(_find_failing(runtime, table, commit, verdict)),
    )


def _find_before(runtime: Runtime, table: TableInfo, partition: str | None, gate: str) -> Before | None:
    before = None if partition is None else commits.find_judged_before(runtime.catalog, table.id, partition, gate)
    verdict = None if before is None else gates.find_verdict(runtime.catalog, before.id)
    if before is None or verdict is None:
        return None
    return Before(
        partition=before.partition,
        rows=before.summary.get("rows_in"),
        checks={check.name: check for check in verdict.checks},
    )


def _find_failing(
    runtime: Runtime, table: TableInfo, commit: CommitInfo, verdict: Verdict
) -> Iterator[tuple[str, FailingRows]]:
    until = time.monotonic() + _MOST_SECONDS
    failed = [check for check in verdict.checks if check.status is Status.FAILED]
    for check in failed[:_MOST_CHECKS]:
        where = failing_where(check)
        if where is None:
            continue
        try:
            yield check.name, _look(runtime, table, commit.id, check, where, until)
        except LakeError:  # the rows are gone, or are no such values by now
            continue


def _look(
    runtime: Runtime, table: TableInfo, commit_id: UUID, check: CheckResult, where: str, until: float
) -> FailingRows:
    """The rows of the commit; where a check is about others, too, those of its own that have a part in it."""
    keys = list(dict.fromkeys(column.name for column in (*table.primary_key, *table.partition_by)))
    looked_at = failing_columns(check)
    names = tuple(dict.fromkeys((*keys, *looked_at)))
    request = ScanRequest(columns=names, where=where, staged=staged_view(commit_id, Scope.STAGED.value))
    sensitive = sensitive_names(table.options)
    found: list[Mapping[str, Any]] = []
    plan, has_more = _within_reach(plan_scan(runtime, table, request), until)
    for batch in stream_batches(runtime, plan):
        found += python_rows(batch.slice(0, _MOST_ROWS + 1 - len(found)))
        if len(found) > _MOST_ROWS or time.monotonic() > until:
            has_more = True
            break
    rows = [{name: _shown(name, row[name], sensitive) for name in names} for row in found[:_MOST_ROWS]]
    return FailingRows(
        command=_command(table, commit_id, names, where),
        keys=tuple({name: row[name] for name in keys} for row in rows[:_MOST_KEYS]) if keys and check.sample else (),
        values=tuple(_counted(rows, looked_at)) if check.sample else (),
        rows=len(rows),
        has_more=has_more,
    )


def _within_reach(plan: ScanPlan, until: float) -> tuple[ScanPlan, bool]:
    """So much of the scan as people wait for, and whether there is more: where few rows match, none may come to stop
    at."""
    sizes = accumulate(sum(file.size_bytes for file in split.files) for split in plan.splits)
    most_bytes = _MOST_BYTES if time.monotonic() < until else 0
    splits = tuple(split for split, size in zip(plan.splits, sizes, strict=True) if size <= most_bytes)
    return replace(plan, splits=splits), len(splits) < len(plan.splits)


def _shown(name: str, value: Any, sensitive: frozenset[str]) -> Any:
    return MASK if name in sensitive and value is not None else as_json(value)


def _counted(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[tuple[Any, int]]:
    """Values with how often they come; of several columns, the values of a row together."""
    single = len(names) == 1
    seen: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        value = row[names[0]] if single else {name: row[name] for name in names}
        counts[repr(value)] += 1
        seen[repr(value)] = value
    yield from ((seen[text], count) for text, count in counts.most_common(_MOST_VALUES))


def _command(table: TableInfo, commit_id: UUID, names: Sequence[str], where: str) -> str:
    words = ["lake", "scan", table.full_name, "--staged", str(commit_id), "--where", where]
    return shlex.join([*words, "--columns", ",".join(map(_quoted, names))])


def _quoted(name: str) -> str:
    return name if "," not in name and '"' not in name else '"' + name.replace('"', '""') + '"'
