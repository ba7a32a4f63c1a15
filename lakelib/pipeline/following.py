"""What follows once a partition's commit is published, as its spec says: a tag, done marks, a report to a Hive
metastore. Safe to repeat."""

import logging
import os
from typing import Any

from lakelib import Lake, LakeError, Snapshot
from lakelib.dataclass import dataclass
from lakelib.errors import RetryableError
from lakelib.model.exports import HiveResult
from lakelib.specs.table_spec import TableSpec
from lakelib.specs.texts import fill_variables

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What was done."""

    tag: str | None
    done: tuple[str, ...]
    """The folders of the partitions that are marked done; "" for the whole table."""
    report: HiveResult | None = None
    """What a Hive metastore was told."""


def partition_about(snapshot: Snapshot) -> str | None:
    """The key of the partition that a run was about; None for what no run has brought."""
    return snapshot.properties.get("partition")


def follow(lake: Lake, spec: TableSpec, partition: str, snapshot: int) -> Followed:
    tag = tag_snapshot(lake, spec, partition, snapshot)
    done = mark_done(lake, spec, partition, snapshot) if spec.publish.mark_done else []
    export_delta(lake, spec)
    show_in_ducklake(lake, spec)
    return Followed(tag=tag, done=tuple(done))


def tag_snapshot(lake: Lake, spec: TableSpec, partition: str, snapshot: int) -> str | None:
    """The tag's name, if the spec wants one."""
    name = spec.tag_name(partition, snapshot)
    if name is not None:
        end = spec.tag_end
        lake.table(spec.table).tag(name, at=snapshot, keep=end.keep, keep_last=end.keep_last, family=end.family)
    return name


def mark_done(lake: Lake, spec: TableSpec, partition: str, snapshot: int) -> list[str]:
    """Marks the partition done in the ways that the spec says, and those again that were done until the snapshot
    brought them other rows; the folders of all."""
    table, ways = lake.table(spec.table), _ways(spec)
    own = table.mark_done(spec.partition_value(partition), actions=ways)
    return [own.path, *(each.path for each in table.mark_done_again(snapshot, actions=ways))]


def export_delta(lake: Lake, spec: TableSpec) -> None:
    """The table's Delta log goes on, if it has one and whoever has published did not get that far. What was published
    stands whatever becomes of it."""
    table = lake.table(spec.table)
    if not table.options.get("delta"):
        return
    try:
        table.export_delta()
    except LakeError as error:
        _LOG.warning("the Delta log of %s is behind: %s", spec.table, error)


def show_in_ducklake(lake: Lake, spec: TableSpec) -> None:
    """DuckDB sees the table's head, if the table is told to be seen and whoever has published did not get that far.
    What was published stands whatever becomes of it."""
    table = lake.table(spec.table)
    if not table.primary_key or not table.options.get("ducklake"):
        return
    try:
        table.show_in_ducklake()
    except LakeError as error:
        _LOG.warning("DuckDB does not see the head of %s: %s", spec.table, error)


def report(lake: Lake, spec: TableSpec, partition: str, snapshot: int) -> HiveResult | None:
    """Tells the Hive metastore of the partitions that the snapshot has changed, if the spec says so. Raises
    RetryableError if it was not told: another report makes up for it."""
    wanted = spec.publish.report
    if wanted is None or wanted.idle is not None:
        return None
    table = lake.table(spec.table)
    touched = [each.values for each in table.touched_partitions(at=snapshot)]
    own = spec.partition_value(partition)  # it may be marked done, and have no new rows
    named = [own] if {name.casefold() for name in own} == {name.casefold() for name in table.partition_by} else []
    return require_told(_report(lake, spec, partitions=[*named, *touched]))


def report_at_rest(lake: Lake, spec: TableSpec) -> HiveResult | None:
    """Tells the Hive metastore all that it does not know, but of partitions that are not at rest yet."""
    wanted = spec.publish.report
    return None if wanted is None else _report(lake, spec, idle=wanted.idle)


def require_told(result: HiveResult) -> HiveResult:
    """Raises RetryableError for a result of which a part has failed."""
    if result.failed:
        first = result.failed[0]
        raise RetryableError(
            f"The Hive metastore was not told of {len(result.failed):,} partitions of {result.table}, such as"
            f" {first.path}: {first.why}",
            kind="report_failed",
            remedy="What is published stands. Report again: `lake hive` does what is left.",
        )
    return result


def _report(lake: Lake, spec: TableSpec, **which: Any) -> HiveResult:
    wanted = spec.publish.report
    assert wanted is not None
    metastore = fill_variables(wanted.metastore, os.environ, f"{spec.path}, field publish.report")
    return lake.table(spec.table).report_hive(metastore, database=wanted.database, **which)


def _ways(spec: TableSpec) -> list[str | dict[str, Any]]:
    """As `Table.mark_done` takes them."""
    return [_way(spec, each) for each in spec.publish.mark_done]


def _way(spec: TableSpec, way: Any) -> str | dict[str, Any]:
    if way.http_report is None:
        kind: str = way.kind
        return kind
    url = fill_variables(way.http_report.url, os.environ, f"{spec.path}, field publish.mark_done")
    return {way.kind: {"url": url, "params": way.http_report.params}}
