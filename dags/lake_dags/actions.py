"""What tasks ask of the lake and tell it: the state of a commit; tags, done marks, discards. Safe to repeat, for each
says what is to be so."""

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress

from airflow.sdk.exceptions import AirflowFailException

from lakelib.errors import DecidedError, LakeError, NotFoundError, RetryableError
from lakelib.specs.table_spec import TableSpec


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
    from lakelib.pipeline import following

    if spec.publish.tag is None:
        return None
    with final_errors(), lakelib.connect() as lake:
        return following.tag_snapshot(lake, spec, partition, snapshot)


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
    from lakelib.pipeline import following

    with final_errors(), lakelib.connect() as lake:
        return following.mark_done(lake, spec, partition, snapshot)


def report(spec: TableSpec, partition: str, snapshot: int) -> str:
    """Tells the Hive metastore of what the snapshot has changed; returns what is to be noticed."""
    import lakelib
    from lakelib.pipeline import following

    with final_errors(), lakelib.connect() as lake:
        return repr(following.report(lake, spec, partition, snapshot))


def report_at_rest(specs: Iterable[TableSpec]) -> list[str]:
    """Tells the Hive metastores what they do not know of these tables. What fails at one keeps no other back: raises
    RetryableError in the end."""
    import lakelib
    from lakelib.pipeline import following

    told: list[str] = []
    failed: list[LakeError] = []
    with final_errors(), lakelib.connect() as lake:
        for spec in specs:
            try:
                result = following.report_at_rest(lake, spec)
                told.append(repr(following.require_told(result)) if result is not None else f"{spec.table}: nothing")
            except LakeError as error:
                print(f"{spec.table}: {error}")
                failed.append(error)
        if failed:
            raise failed[0]
    return told


def changed_keys(spec: TableSpec, partition: str, snapshot: int, announced: Callable[[], Container[int]]) -> list[str]:
    """The keys of the partitions whose rows the snapshot has changed, in their order; the run's own always, unless the
    changes that it has read tell which it makes.

    One that an overwrite put in place of itself is left out if the snapshot that touched it before was announced: else
    nobody may have heard of the rows that are there.
    """
    import lakelib

    with final_errors(), lakelib.connect() as lake:
        touched = lake.table(spec.table).touched_partitions(at=snapshot)
    heard_of = announced() if any(each.is_same for each in touched) else ()
    changed = [each for each in touched if not (each.is_same and each.previous_snapshot in heard_of)]
    touched_keys = {spec.key_of_row(each.values) for each in changed} - {None}
    own = set() if spec.partition.from_changes and touched_keys else {partition}
    return sorted(key for key in own | touched_keys if key is not None)


def stale_keys(spec: TableSpec) -> set[str]:
    """The partitions that have fallen behind what they were made from."""
    import lakelib
    from lakelib.model.status import Standing
    from lakelib.ops.status import look_at_table

    with final_errors(), lakelib.connect() as lake:
        detail = look_at_table(lake.runtime, spec.table, [spec])
    return {each.partition for each in detail.partitions if each.standing is Standing.STALE}


@contextmanager
def final_errors() -> Iterator[None]:
    """A task is tried again where that can help: not for input that stays wrong."""
    try:
        yield
    except RetryableError:
        raise
    except LakeError as error:
        raise AirflowFailException(str(error)) from error
