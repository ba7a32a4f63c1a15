"""Use case: a DuckDB file with a view of each table, for programs that open such files and know nothing of lakes.

A view reads the table's Delta log: it needs no catalog, and no credentials but those of the store, which whoever opens
the file has. Tables without a log, and those without a snapshot, are left out, and named.
"""

import os
from pathlib import Path

from lakelib.catalog import tables
from lakelib.errors import InvalidInputError
from lakelib.local.views import View, write_views
from lakelib.model.exports import ViewsFile
from lakelib.model.table import TableInfo
from lakelib.ops.delta_content import HEAD
from lakelib.ops.runtime import Runtime


def write(runtime: Runtime, given: str | os.PathLike[str], *, replace: bool) -> ViewsFile:
    """Raises InvalidInputError for a file that is there already, unless it is to be replaced, and for a lake that has
    no table with a log; nothing is written then."""
    path = Path(given).absolute()
    _check_path(path, replace)
    found = [table for table, _ in tables.list_table_heads(runtime.catalog, None)]
    told = [table for table in found if table.options.delta == HEAD and table.head_id]
    # DuckDB does not tell names apart that differ in case alone.
    seen = list({table.full_name.lower(): table for table in reversed(told)}.values())[::-1]
    left_out = tuple(table.full_name for table in found if table not in seen)
    if not seen:
        raise InvalidInputError(
            "No table of the lake has a Delta log: there would be no view.",
            kind="no_views",
            remedy="`lake options TABLE delta=head` gives a table one.",
        )
    write_views(path, [_view(runtime, table) for table in seen])
    return ViewsFile(path=str(path), views=tuple(table.full_name for table in seen), left_out=left_out)


def _check_path(path: Path, replace: bool) -> None:
    if not path.parent.is_dir():
        raise InvalidInputError(f"There is no folder {path.parent}.", kind="invalid_path", remedy="Make it first.")
    if path.is_dir() or (path.exists() and not replace):
        what = "a folder" if path.is_dir() else "there already"
        raise InvalidInputError(
            f"{path} is {what}.", kind="path_taken", remedy="Give another name, or replace the file (--replace)."
        )


def _view(runtime: Runtime, table: TableInfo) -> View:
    return View(
        schema=table.namespace,
        name=table.name,
        columns=table.schema.columns,
        place=runtime.storage.place_of(table.location).removeprefix("file://"),
    )
