"""Use cases: a name pins a snapshot, and lets go of it."""

from datetime import timedelta

from lakelib.catalog import snapshots
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.table import TableInfo
from lakelib.model.text import is_storable
from lakelib.model.upkeep import Tag, TagEnd
from lakelib.ops.expire import check_count, check_length
from lakelib.ops.read import At, resolve_snapshot
from lakelib.ops.request import LONGEST_NAME, check_label
from lakelib.ops.runtime import Runtime
from lakelib.plan.meant import TAG_PREFIX


def parse_end(keep: timedelta | None, keep_last: int | None, family: str) -> TagEnd:
    """Raises InvalidInputError for an end that cannot be."""
    check_length("keep", keep)
    check_count("keep_last", keep_last)
    if not isinstance(family, str) or len(family) > LONGEST_NAME or not is_storable(family):
        raise InvalidInputError(
            f"family is {family!r}.",
            kind="invalid_tag",
            remedy=f"Give up to {LONGEST_NAME} characters, without NUL characters and lone surrogates.",
        )
    return TagEnd(keep=keep, keep_last=keep_last, family=family)


def set_tag(runtime: Runtime, table: TableInfo, name: str, at: At, end: TagEnd) -> Tag:
    """The name pins the snapshot that `at` means; None is the head. Safe to repeat: then the tag stays for as long as
    any of those who have set it have said, without an end if one of them has said none. Raises InvalidInputError for a
    wrong name, NotFoundError if there is no such snapshot, ConflictError if the name pins another one."""
    check_label(name, "tag", TAG_PREFIX)
    snapshot = resolve_snapshot(runtime, table, at)
    if snapshot is None:
        raise NotFoundError(
            f"Table {table.full_name} has no snapshot to tag yet.",
            kind="snapshot_not_found",
            remedy="Write to it first; a commit of nothing makes a snapshot too.",
        )
    return snapshots.set_tag(runtime.catalog, table, name, snapshot.id, end)


def list_tags(runtime: Runtime, table: TableInfo) -> list[Tag]:
    """Those of the newest snapshots first."""
    return snapshots.list_tags(runtime.catalog, table.id)


def delete_tag(runtime: Runtime, table: TableInfo, name: str) -> None:
    """The name is free, and its snapshot may expire. Raises NotFoundError if there is no such tag."""
    check_label(name, "tag", TAG_PREFIX)
    if not snapshots.delete_tag(runtime.catalog, table.id, name):
        raise NotFoundError(
            f"Table {table.full_name} has no tag {name!r}.", kind="tag_not_found", remedy="tags() lists them."
        )
