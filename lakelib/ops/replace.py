"""Use case: rows take the place of those for which a predicate is TRUE: overwrite(where=…).

Step by step: the predicate must be one that this can be said of; each row must be one for which it is TRUE, else
nothing is written; what a delete by the predicate would do, and the rows behind it, in one commit. Rows that others add
meanwhile where it looks make it look again.
"""

from contextlib import suppress
from dataclasses import replace

from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.commit import Conflict
from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.table import CommitKind, Proposal, TableInfo
from lakelib.ops.commit import Redo, Work, give_up, schema_again
from lakelib.ops.delete import OVERTAKEN, Doomed, find_doomed
from lakelib.ops.moves import NOTHING_REPLACED, Replaced
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import WrittenRows, propose, write_rows
from lakelib.plan.describe import describe_predicate
from lakelib.plan.where import COMMIT, bind_where
from lakelib.rows.inside import WhereCheck
from lakelib.work.sources import RowSource

_FILE_KIND = "replace"


def replace_work(runtime: Runtime, source: RowSource, where: str | Predicate, request: WriteRequest) -> Work:
    """The rows in place of those that match, those of other writers included that were published before."""
    after_schema = schema_again if source.rereadable else give_up

    def prepare(table: TableInfo) -> Proposal:
        return _propose(runtime, table, source, parse_replaced(table, where, request), request)

    def redo(conflict: Conflict, proposal: Proposal) -> Redo:
        if source.rereadable and set(conflict.reasons) <= OVERTAKEN:
            return Redo.ANEW
        return after_schema(conflict, proposal)

    return Work(prepare=prepare, redo=redo, looks_again=source.rereadable)


def parse_replaced(table: TableInfo, where: str | Predicate, request: WriteRequest) -> Predicate:
    """Raises InvalidInputError for a predicate by which rows cannot be replaced."""
    predicate = bind_where(where, table.schema)
    if predicate is None:
        raise InvalidInputError(
            "The overwrite has no predicate.", kind="invalid_predicate", remedy="Leave where out to replace all rows."
        )
    asked = columns_of(predicate)
    if COMMIT.id in asked:
        raise InvalidInputError(
            "An overwrite cannot ask which commit has made a row: its own rows have none yet.",
            kind="invalid_predicate",
            remedy="Ask for columns of the table.",
        )
    if asked <= set(table.partition_ids):
        return predicate
    if table.sequence_ids:
        names = ", ".join(column.name for column in table.sequence_by)
        raise InvalidInputError(
            f"{table.full_name} has the sequence {names}, by which a row that is replaced may be newer than the one in"
            f" its place: {describe_predicate(predicate)} looks at more than partition columns.",
            kind="invalid_predicate",
            remedy="Replace whole partitions, or delete the rows and upsert newer ones.",
        )
    if not table.merge.is_newest:
        raise InvalidInputError(
            f"{table.full_name} merges rows that are given with those that stay ({table.merge.engine.value}), and the"
            f" row may be none of those that {describe_predicate(predicate)} replaces.",
            kind="invalid_predicate",
            remedy="Replace whole partitions, or delete the rows and upsert others.",
        )
    if request.merge_schema:
        raise InvalidInputError(
            "An overwrite by a predicate over more than partition columns cannot change the schema as well.",
            kind="invalid_predicate",
            remedy="Call evolve first, and leave merge_schema out.",
        )
    return predicate


def _propose(
    runtime: Runtime, table: TableInfo, source: RowSource, predicate: Predicate, request: WriteRequest
) -> Proposal:
    inside = WhereCheck(predicate=predicate, text=describe_predicate(predicate))
    is_of_partitions = columns_of(predicate) <= set(table.partition_ids)
    replaced = Replaced(where=predicate) if is_of_partitions else NOTHING_REPLACED
    written = write_rows(runtime, table, source, request, file_kind=_FILE_KIND, inside=inside, replaced=replaced)
    try:
        doomed = find_doomed(runtime, table, predicate)
    except BaseException:
        with suppress(LakeError):  # what cannot be deleted now is an orphan: no commit names it
            runtime.storage.at(table.location).delete_files(file.path for file in written.files)
        raise
    return propose(
        table,
        CommitKind.REPLACE,
        request,
        behind(doomed, written),
        removed_file_ids=doomed.removed_file_ids,
        read_scope=doomed.scope,
    )


def behind(doomed: Doomed, written: WrittenRows) -> WrittenRows:
    """The rows in runs that are newer than all of the delete's: no mark of the commit hides them."""
    first = 1 + max((file.run for file in doomed.written.files), default=-1)
    both = (*doomed.written.files, *(replace(file, run=first + file.run) for file in written.files))
    keys = written.keys and replace(written.keys, marks_run=first + written.keys.marks_run)
    return WrittenRows(files=both, rows_in=written.rows_in, new_schema=written.new_schema, keys=keys)
