"""The public API: MergeInto. What a merge makes of a table's rows, clause by clause. Nothing happens before it is
carried out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from lakelib.model.table import Snapshot
from lakelib.ops.request import WriteOptions
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.staged import StagedCommit

if TYPE_CHECKING:
    from lakelib.ops.merge_into import Merging


class MergeInto:
    """Of several clauses the first that is for a row counts. Each method gives a new builder, and leaves this one as it
    was. Expressions are SQL in Spark's dialect, over the names `target` and `source` (or those that were given); `set`
    and `values` are such expressions by column, and without them all columns are as the source has them."""

    def __init__(self, merging: "Merging", staged: Callable[..., StagedCommit]) -> None:
        self._merging = merging
        self._staged = staged

    def when_matched_update(self, set: Mapping[str, str] | None = None, condition: str | None = None) -> "MergeInto":
        """Rows that both have are changed."""
        return self._with("matched", "update", set, condition)

    def when_matched_delete(self, condition: str | None = None) -> "MergeInto":
        """Rows that both have are deleted."""
        return self._with("matched", "delete", None, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, str] | None = None, condition: str | None = None
    ) -> "MergeInto":
        """Rows of the source that the table does not have are added. Columns that are not named are NULL."""
        return self._with("not matched", "insert", values, condition)

    def when_not_matched_by_source_update(self, set: Mapping[str, str], condition: str | None = None) -> "MergeInto":
        """Rows of the table that the source does not have are changed."""
        return self._with("not matched by source", "update", set, condition)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> "MergeInto":
        """Rows of the table that the source does not have are deleted."""
        return self._with("not matched by source", "delete", None, condition)

    def execute(self, **options: Unpack[WriteOptions]) -> Snapshot | None:
        """Does it in one commit; None where no row changes, unless an idempotency key is to be kept. What others change
        meanwhile is looked at again. Raises InvalidInputError, before
        anything is written, where two rows of the source would change one of the table."""
        return self._merging.execute(options)

    def stage(self, **options: Unpack[WriteOptions]) -> StagedCommit:
        """As a staged commit, which conflicts with whatever changes the table from now on."""
        return self._staged(*self._merging.stage(options))

    def explain(self) -> QueryExplanation:
        """What would be read, what was pruned and why, and what the engine makes of the query whose rows are the
        change."""
        return self._merging.explain()

    def _with(self, match: str, action: str, values: Mapping[str, str] | None, condition: str | None) -> "MergeInto":
        clauses = (*self._merging.clauses, self._merging.clause(match, action, values, condition))
        return MergeInto(replace(self._merging, clauses=clauses), self._staged)
