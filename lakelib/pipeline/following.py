"""What follows once a partition's commit is published, as its spec says: a tag, done marks. Safe to repeat."""

import logging
import os
from dataclasses import dataclass
from typing import Any

from lakelib import Lake, LakeError, Snapshot
from lakelib.specs.table_spec import TableSpec
from lakelib.specs.templates import fill_variables

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What was done."""

    tag: str | None
    done: tuple[str, ...]
    """The folders of the partitions that are marked done; "" for the whole table."""


def partition_about(snapshot: Snapshot) -> str | None:
    """The key of the partition that a run was about; None for what no run has brought."""
    return snapshot.properties.get("partition")


def follow(lake: Lake, spec: TableSpec, partition: str, snapshot: int) -> Followed:
    tag = tag_snapshot(lake, spec, partition, snapshot)
    done = mark_done(lake, spec, partition, snapshot) if spec.publish.mark_done else []
    export_delta(lake, spec)
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


def _ways(spec: TableSpec) -> list[str | dict[str, Any]]:
    """As `Table.mark_done` takes them."""
    return [_way(spec, each) for each in spec.publish.mark_done]


def _way(spec: TableSpec, way: Any) -> str | dict[str, Any]:
    if way.http_report is None:
        kind: str = way.kind
        return kind
    url = fill_variables(way.http_report.url, os.environ, f"{spec.path}, field publish.mark_done")
    return {way.kind: {"url": url, "params": way.http_report.params}}
