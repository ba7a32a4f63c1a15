"""Use case: DuckDB attaches the lake by views of the catalog (`sql/functions/ducklake_views.sql`).

A table without a key needs nothing for it. Of one with a key a snapshot is shown once its masks are files that DuckDB
reads. Step by step: the snapshots behind the last shown one, the oldest first; of each the masks; those that are not
files yet are written; the catalog shows it, unless somebody else has.
"""

from collections.abc import Iterator, Mapping, Sequence

from lakelib.catalog import exports, tables
from lakelib.catalog.exports import ShownTable
from lakelib.catalog.roles import require_right
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.exports import DuckLake, DuckLakeShow, DuckLakeTable, NewShownMask
from lakelib.model.files import FOLDER, Mask
from lakelib.model.roles import Right
from lakelib.model.table import TableInfo, TableRef
from lakelib.ops.masks import delete_unnamed, load_vector, masks_at
from lakelib.ops.runtime import Runtime
from lakelib.storage.paths import file_name, join_uri, new_attempt_id
from lakelib.storage.vectors import decode_positions, digest_of, write_positions
from lakelib.work.parallel import collect_in_order

ATTACHED_AS = "lake"
"""What the lake is called in DuckDB."""


def open_ducklake(runtime: Runtime) -> DuckLake:
    """How DuckDB attaches the lake, and what it sees then."""
    found = exports.list_shown_tables(runtime.catalog)
    return DuckLake(attach=attach_statement(runtime), tables=tuple(_table_shown(each) for each in found))


def attach_statement(runtime: Runtime) -> str:
    """What makes the lake a database of DuckDB's that can be read."""
    options = ["READ_ONLY", f"METADATA_SCHEMA '{exports.SCHEMA}'"]
    home = runtime.storage.home
    if home is not None:  # it is not where the catalog says
        place = runtime.storage.uri.removeprefix("file://")
        options += [f"DATA_PATH {_quoted(place + '/')}", "OVERRIDE_DATA_PATH true"]
    target = f"ducklake:postgres:{exports.attach_target(runtime.catalog.url)}"
    return f"ATTACH {_quoted(target)} AS {ATTACHED_AS} ({', '.join(options)});"


def show(runtime: Runtime, ref: TableRef) -> DuckLakeShow:
    """All snapshots of a table with the option are shown that can be. Raises InvalidInputError for a table with a key
    that lacks the option."""
    require_right(runtime.catalog, Right.MAINTAIN)
    runtime.ownership.confirm()
    table = tables.load_table(runtime.catalog, ref)
    if not table.primary_key_ids:
        return DuckLakeShow(table=table.full_name, shown=0, snapshot=table.head_id or None, head=table.head_id)
    if not table.options.ducklake:
        raise InvalidInputError(
            f"{table.full_name} has a key and not the option ducklake: DuckDB does not see it.",
            kind="not_in_ducklake",
            remedy=_remedy(table.full_name),
        )
    unshown = exports.list_unshown(runtime.catalog, table.id)
    shown = show_snapshots(runtime, table, unshown)
    newest = exports.find_newest_shown(runtime.catalog, table.id)
    return DuckLakeShow(table=table.full_name, shown=shown, snapshot=newest, head=table.head_id)


def show_snapshots(runtime: Runtime, table: TableInfo, ids: Sequence[int]) -> int:
    """These snapshots are shown, the oldest first, unless they have expired meanwhile; how many this call has shown."""
    shown = 0
    for snapshot_id in ids:
        try:
            found = masks_at(runtime, table, snapshot_id)
        except NotFoundError:
            continue
        shown += _show(runtime, table, snapshot_id, found)
    return shown


def _show(runtime: Runtime, table: TableInfo, snapshot_id: int, masks: Mapping[int, Mask]) -> bool:
    before = exports.list_shown_masks(runtime.catalog, table.id)
    names = {file_id: _made_of(mask) for file_id, mask in masks.items()}
    kept = [each for file_id, each in before.items() if names.get(file_id) == each.made_of]
    known = {each.file_id for each in kept}
    attempt = new_attempt_id()
    fresh = [mask for file_id, mask in masks.items() if file_id not in known]

    def write(numbered: tuple[int, Mask]) -> Iterator[NewShownMask]:
        number, mask = numbered
        path = f"{FOLDER}/{file_name('positions', attempt, number)}"
        yield _written(runtime, table, mask, names[mask.file_id], path)

    written = collect_in_order(list(enumerate(fresh)), write, runtime.read_threads)
    if exports.show(runtime.catalog, table.id, snapshot_id, kept, written):
        return True
    return bool(delete_unnamed(runtime, table, [each.path for each in written]))


def _written(runtime: Runtime, table: TableInfo, mask: Mask, made_of: str, path: str) -> NewShownMask:
    root = runtime.storage.at(table.location)
    positions = decode_positions(load_vector(runtime, table, mask))
    size = write_positions(root, path, join_uri(table.location, path), positions)
    return NewShownMask(file_id=mask.file_id, made_of=made_of, path=path, size_bytes=size, row_count=mask.cardinality)


def _made_of(mask: Mask) -> str:
    if mask.path is not None:
        return mask.path
    assert mask.inline is not None
    return digest_of(mask.inline)


def _table_shown(found: ShownTable) -> DuckLakeTable:
    remedy = None
    if found.has_key and not found.mode:
        remedy = _remedy(found.name)
    elif found.snapshot_id is None and found.head_id and not found.has_key:
        remedy = "DuckDB does not tell its name from another table's, which differs in case alone"
    elif found.snapshot_id != (found.head_id or None):
        remedy = f"`lake ducklake {found.name}` goes on"
    return DuckLakeTable(name=found.name, snapshot=found.snapshot_id, head=found.head_id, remedy=remedy)


def _remedy(name: str) -> str:
    return f"`lake options {name} ducklake=head` has its masks written for DuckDB"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
