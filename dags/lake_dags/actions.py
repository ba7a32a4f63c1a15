"""What tasks ask of the lake and tell it: the state of a commit; tags, done marks, discards. Safe to repeat, for each
says what is to be so."""

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from lakelib.errors import DecidedError, LakeError, NotFoundError, RetryableError
from lakelib.specs.table_spec import TableSpec
from lakelib.specs.templates import fill_variables


def state_of(commit: str) -> str | None:
    """ "staged", "published", "rejected" or "expired"; None for a commit that the catalog does not know."""
    import lakelib

    with final_errors(), lakelib.connect() as lake:
        try:
            return lake.staged(commit).state
        except lakelib.NotFoundError:
            return None


def tag_snapshot(spec: TableSpec, partition: str, snapshot: int) -> str | None:
    """Tags the snapshot as the spec says, and returns the tag's name."""
    import lakelib

    name = spec.tag_name(partition, snapshot)
    if name is not None:
        with final_errors(), lakelib.connect() as lake:
            end = spec.tag_end
            lake.table(spec.table).tag(name, at=snapshot, keep=end.keep, keep_last=end.keep_last, family=end.family)
    return name


def discard(commit_id: str, by: str, reason: str) -> None:
    """A person has decided against a commit: it waits for nobody any more, and neither does one that is gone, or has
    expired."""
    import lakelib

    with final_errors(), suppress(NotFoundError, DecidedError), lakelib.connect() as lake:
        lake.staged(commit_id).discard(by, reason)


def mark_done(spec: TableSpec, partition: str, snapshot: int) -> list[str]:
    """Marks the partition done in the ways that the spec says, and those again that were done until the snapshot
    brought them other rows; returns the folders of all."""
    import lakelib

    ways = done_actions(spec)
    with final_errors(), lakelib.connect() as lake:
        table = lake.table(spec.table)
        own = table.mark_done(spec.partition_value(partition), actions=ways)
        return [own.path, *(each.path for each in table.mark_done_again(snapshot, actions=ways))]


def changed_keys(spec: TableSpec, partition: str, snapshot: int, announced: Callable[[], Container[int]]) -> list[str]:
    """The keys of the partitions whose rows the snapshot has changed, in their order; the run's own always.

    One that an overwrite put in place of itself is left out if the snapshot that touched it before was announced: else
    nobody may have heard of the rows that are there.
    """
    import lakelib

    with final_errors(), lakelib.connect() as lake:
        touched = lake.table(spec.table).touched_partitions(at=snapshot)
    heard_of = announced() if any(each.is_same for each in touched) else ()
    changed = [each for each in touched if not (each.is_same and each.previous_snapshot in heard_of)]
    keys = {partition, *(spec.key_of_row(each.values) for each in changed)}
    return sorted(key for key in keys if key is not None)


def stale_keys(spec: TableSpec) -> set[str]:
    """The partitions that have fallen behind what they were made from."""
    import lakelib
    from lakelib.model.status import Standing
    from lakelib.ops.status import look_at_table

    with final_errors(), lakelib.connect() as lake:
        detail = look_at_table(lake.runtime, spec.table, [spec])
    return {each.partition for each in detail.partitions if each.standing is Standing.STALE}


def done_actions(spec: TableSpec) -> list[str | dict[str, Any]]:
    """The spec's ways to mark a partition done, as `Table.mark_done` takes them."""
    return [_done_action(spec, each) for each in spec.publish.mark_done]


def _done_action(spec: TableSpec, way: Any) -> str | dict[str, Any]:
    if way.http_report is None:
        kind: str = way.kind
        return kind
    url = fill_variables(way.http_report.url, os.environ, f"{spec.path}, field publish.mark_done")
    return {way.kind: {"url": url, "params": way.http_report.params}}


@contextmanager
def final_errors() -> Iterator[None]:
    """A task is tried again where that can help: not for input that stays wrong."""
    try:
        yield
    except RetryableError:
        raise
    except LakeError as error:
        raise AirflowFailException(str(error)) from error
