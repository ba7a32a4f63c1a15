"""Use case: a partition is marked done. Downstream may take it for complete, until other rows come.

Step by step: the mark enters the catalog, as of the head; then the file `_SUCCESS` is written, if it is asked for; then
services are told. Publishing rows of a done partition resets its mark in the publish transaction (`lake.publish_v1`)
and deletes the file after it (`ops.done_files`).
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakelib.catalog import done
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.interop.http_report import DEFAULT_TIMEOUT_SECONDS, HttpReport, check_report, send_report
from lakelib.model import sortable
from lakelib.model.files import MAX_PARTITION_KEY_BYTES, PartitionKey
from lakelib.model.table import TableInfo
from lakelib.ops.done_files import settle_file
from lakelib.ops.overwrite import parse_target
from lakelib.ops.runtime import Runtime
from lakelib.rows.values import partition_values
from lakelib.storage.paths import join_uri, partition_path

ACTIONS = ("done_partition", "success_file", "http_report")
DEFAULT_ACTIONS = ("done_partition", "success_file")

Action = str | Mapping[str, Any]
"""A name, or `{"http_report": {"url": …, "params": {…}, "timeout_seconds": 10}}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DonePartition:
    """A partition that was marked done, as of the head of that moment."""

    values: dict[str, Any]
    path: str
    snapshot_id: int
    """0 for a table that had no snapshot."""
    created_at: datetime
    """When it was marked for the first time."""
    modified_at: datetime
    reset_at: datetime | None
    """When rows came after all; None while the mark stands."""

    @property
    def is_done(self) -> bool:
        return self.reset_at is None


def mark_done(
    runtime: Runtime, table: TableInfo, values: Mapping[str, Any], actions: Sequence[Action]
) -> DonePartition:
    """Marks a partition, with rows or without, and carries the actions out; safe to repeat.

    The catalog's mark is always made: a reset goes by it. Where rows come while the actions are under way, the mark
    that is returned is reset, and nobody is told. Raises RetryableError if a service was not told; the mark stands.
    """
    with_file, reports = parse_actions(actions)
    return _mark(runtime, table, parse_partition(table, values), with_file, reports)


def mark_again(runtime: Runtime, table: TableInfo, snapshot_id: int, actions: Sequence[Action]) -> list[DonePartition]:
    """Marks the partitions that were done until this snapshot brought them other rows. Safe to repeat: each is marked
    again, and services hear of it again. One whose mark others have taken back, before or since, is left to them."""
    with_file, reports = parse_actions(actions)
    found = done.list_reset_by(runtime.catalog, table.id, snapshot_id)
    return [_mark(runtime, table, each.key, with_file, reports) for each in found]


def _mark(
    runtime: Runtime, table: TableInfo, key: PartitionKey, with_file: bool, reports: Sequence[HttpReport]
) -> DonePartition:
    path = partition_path(table.partition_by, key)
    runtime.ownership.confirm()
    mark = done.mark_partition(runtime.catalog, table, key, path, success_file=with_file)
    if mark.success_file:
        mark = settle_file(runtime, mark.table_id, mark.partition_id)
    if mark.reset_at is None:
        for report in reports:
            send_report(
                report,
                table=table.full_name,
                path=join_uri(runtime.storage.place_of(table.location), path),
                partition=path,
            )
    return _shown(table, mark)


def list_done(runtime: Runtime, table: TableInfo, *, with_reset: bool) -> list[DonePartition]:
    return [_shown(table, mark) for mark in done.list_marks(runtime.catalog, table.id, with_reset=with_reset)]


def is_done(runtime: Runtime, table: TableInfo, values: Mapping[str, Any]) -> bool:
    """Whether the partition was marked and no rows have come since."""
    mark = done.find_mark(runtime.catalog, table.id, parse_partition(table, values))
    return mark is not None and mark.reset_at is None


def parse_partition(table: TableInfo, values: Mapping[str, Any]) -> PartitionKey:
    """A partition's key; None is NULL. Raises InvalidInputError unless each partition column has a fitting value."""
    if not isinstance(values, Mapping):
        raise _wrong_partition(table, f"The partition is {values!r}.")
    given = parse_target(table, values).values if values else {}
    missing = [column.name for column in table.partition_by if column not in given]
    if missing:
        raise _wrong_partition(table, f"The partition {dict(values)!r} lacks {', '.join(map(repr, missing))}.")
    raws = ((column, given[column]) for column in table.partition_by)
    key = tuple(None if raw is None else sortable.encode(column.type, raw) for column, raw in raws)
    if sum(len(part or b"") for part in key) > MAX_PARTITION_KEY_BYTES:
        raise _wrong_partition(table, f"The values of the partition take more than {MAX_PARTITION_KEY_BYTES} bytes.")
    return key


def _wrong_partition(table: TableInfo, what: str) -> InvalidInputError:
    names = ", ".join(f'"{column.name}": …' for column in table.partition_by)
    return InvalidInputError(
        f"{table.full_name}: {what}", kind="invalid_partitions", remedy=f"Give every partition column: {{{names}}}."
    )


def parse_actions(actions: Sequence[Action]) -> tuple[bool, list[HttpReport]]:
    """Whether a file is asked for, and the services to be told. Raises InvalidInputError for anything unknown."""
    listed = [actions] if isinstance(actions, str | Mapping) else list(actions)
    reports: list[HttpReport] = []
    with_file = False
    for action in listed:
        match action:
            case "done_partition":
                pass
            case "success_file":
                with_file = True
            case Mapping() if list(action) == ["http_report"]:
                reports.append(_parse_report(action["http_report"]))
            case _:
                raise InvalidInputError(
                    f"{_shown_action(action)} is no action to mark a partition done with.",
                    kind="invalid_action",
                    remedy='Known: "done_partition", "success_file", {"http_report": {"url": …, "params": {…}}}.',
                )
    return with_file, reports


def _parse_report(given: Any) -> HttpReport:
    match given:
        case {"url": str(url), **rest} if not rest.keys() - {"params", "timeout_seconds"}:
            params: Any = rest.get("params") or {}
            timeout: Any = rest.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)
            if isinstance(params, Mapping) and _is_duration(timeout):
                report = HttpReport(url=url, params=params, timeout_seconds=float(timeout))
                check_report(report)
                return report
    raise InvalidInputError(
        f"http_report is {_shown_action(given)}.",
        kind="invalid_action",
        remedy="Give url, and if need be params (names and values) and timeout_seconds (a number above 0).",
    )


def _shown_action(action: object) -> str:
    """Of names and values the names: a token may be among the values."""
    return f"{{{', '.join(f'{name!r}: …' for name in action)}}}" if isinstance(action, Mapping) else repr(action)


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _shown(table: TableInfo, mark: done.Mark) -> DonePartition:
    return DonePartition(
        values=partition_values(table.partition_by, mark.key),
        path=mark.path,
        snapshot_id=mark.snapshot_id,
        created_at=mark.created_at,
        modified_at=mark.modified_at,
        reset_at=mark.reset_at,
    )
