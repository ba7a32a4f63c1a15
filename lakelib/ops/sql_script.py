"""Use case: several statements of SQL in one text.

All of them are understood, and each is checked as far as what it depends on is not made by one before it: what is wrong
with a later one is said before the first one has changed anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Change, Told
from lakelib.ops.sql_plan import QueryPlan
from lakelib.ops.sql_revise import check_revise
from lakelib.ops.sql_statements import not_in_transaction, prepare
from lakelib.ops.sql_understood import understand
from lakelib.plan import sql_kinds
from lakelib.plan.revise_query import references_of
from lakelib.plan.sql_alter import AlterTable, DropTable, Truncate
from lakelib.plan.sql_call import Call
from lakelib.plan.sql_create import CreateNamespace, CreateTable
from lakelib.plan.sql_insert import Insert
from lakelib.plan.sql_revise import Revise
from lakelib.plan.sql_show import Describe, ShowNamespaces, ShowTables
from lakelib.plan.sql_statement import Statement

_Said = Statement | sql_kinds.Change | sql_kinds.Show
_OF_ROWS = (Insert, Revise, Truncate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A statement that was checked."""

    text: str
    said: _Said
    change: Change | None
    """What it would do now; None for queries, and where that is known only when its turn comes."""

    @property
    def changed(self) -> str | None:
        """The table whose rows it changes."""
        return self.said.table.name if isinstance(self.said, _OF_ROWS) and not _is_explained(self.said) else None

    @property
    def takes_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        if self.change is not None:
            return self.change.takes_away
        return not _is_explained(self.said) and isinstance(self.said, sql_kinds.Change) and self.said.may_take_away

    @property
    def means(self) -> str:
        """What it would do, in words."""
        if self.change is not None:
            return self.change.explain().change
        match self.said:
            case Revise(word=word, table=table):
                return f"{word} {table.name}: {'rows go' if self.takes_away else 'rows are changed'}"
            case Statement() | ShowTables() | ShowNamespaces() | Describe():
                return "nothing is changed"
        return "what was made before it is changed"


def check_script(
    runtime: Runtime, texts: Sequence[str], values: Mapping[str, Any], *, in_transaction: bool
) -> tuple[Step, ...]:
    """Raises as `prepare` does, of the first statement that something is wrong with; changes nothing."""
    made = _Made()
    steps = []
    for text, said in [(text, understand(text, values)) for text in texts]:
        if in_transaction and isinstance(said, sql_kinds.Change) and not isinstance(said, _OF_ROWS):
            raise not_in_transaction()
        change = None if made.is_named_in(said) else _checked(runtime, text, said, values)
        steps.append(Step(text=text, said=said, change=change))
        made.add(said)
    return tuple(steps)


def _checked(runtime: Runtime, text: str, said: _Said, values: Mapping[str, Any]) -> Change | None:
    """Rows are not looked at: those before it may change them."""
    if isinstance(said, Revise):
        check_revise(runtime, said)
        return None
    prepared = prepare(runtime, text, values)
    return None if isinstance(prepared, QueryPlan | Told) else prepared


@dataclass(slots=True)
class _Made:
    """What statements make, or change beyond its rows: what names it cannot be looked up before."""

    _tables: set[str] = field(default_factory=set)
    _namespaces: set[str] = field(default_factory=set)

    def add(self, said: _Said) -> None:
        match said:
            case CreateNamespace(name=name):
                self._namespaces.add(name)
            case CreateTable() | AlterTable() | DropTable() | Call():
                self._tables.add(said.table.name)

    def is_named_in(self, said: _Said) -> bool:
        names = _names(said)
        return bool(names & self._tables) or any(name.partition(".")[0] in self._namespaces for name in names)


def _names(said: _Said) -> set[str]:
    """The tables, or the namespace, that a statement names."""
    match said:
        case Statement():
            return {each.name for each in said.references}
        case Insert():
            return {said.table.name, *_names(said.source)}
        case Revise():
            return {said.table.name, *(each.name for each in references_of(said.revision))}
        case CreateTable(source=source):
            return {said.table.name, *(() if source is None else _names(source))}
        case ShowTables(namespace=namespace):
            return set() if namespace is None else {namespace}
        case AlterTable() | DropTable() | Truncate() | Call() | Describe():
            return {said.table.name}
    return set()


def _is_explained(said: _Said) -> bool:
    return said.is_explained if isinstance(said, Statement) else said.parsed.is_explained
