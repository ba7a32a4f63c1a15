"""Pure. Names in a revision: whose column is meant, and how it is said."""

from collections.abc import Iterator, Sequence
from functools import reduce

from sqlglot import exp

from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.plan.revise import Clause, Match, Revision, no_such_row


class Names:
    """Those of the table and of the source, as they are now."""

    def __init__(self, revision: Revision, table: TableInfo, source_names: Sequence[str]) -> None:
        self.revision = revision
        self.table = table
        self.source_names = tuple(source_names)

    def own(self, node: exp.Expr, clause: Clause) -> exp.Expr:
        """As it stands in a clause, where rows of one side alone are told by that side's names."""
        beside = self.revision.beside
        if clause.match is Match.BOTH or beside is None:
            return node.copy()
        is_source = clause.match is Match.SOURCE
        side, other = (beside.alias, self.revision.alias) if is_source else (self.revision.alias, beside.alias)
        for each in _columns_of(node):
            if each.table and each.table.casefold() == other.casefold():
                raise no_such_row(each, clause)
        return self.of_side(node, side)

    def of_side(self, node: exp.Expr, alias: str) -> exp.Expr:
        """Columns without a table are those of that side, outside of inner queries."""
        beside = self.revision.beside
        names = self.source_names if beside is not None and alias == beside.alias else self.table.schema.names
        known = {name.casefold() for name in names}
        own = node.copy()
        for each in list(_columns_of(own)):
            if not each.table and each.name.casefold() in known:
                each.set("table", identifier(alias))
        return own

    def of_table(self, column: Column) -> exp.Expr:
        return column_of(self.revision.alias, column.name)

    def of_source(self, column: Column) -> exp.Expr:
        assert self.revision.beside is not None
        name = next(each for each in self.source_names if each.casefold() == column.name.casefold())
        return column_of(self.revision.beside.alias, name)

    def has(self, name: str) -> bool:
        """Whether it is a column of the source."""
        return name.casefold() in {each.casefold() for each in self.source_names}


def _columns_of(node: exp.Expr) -> Iterator[exp.Column]:
    for each in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(each, exp.Column):
            yield each


def alike(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether both say the same, whatever the case of their names."""

    def folded(node: exp.Expr) -> str:
        own = node.copy()
        for each in own.find_all(exp.Identifier):
            each.set("this", each.name.casefold())
            each.set("quoted", True)
        return own.sql(dialect="spark")

    return folded(one) == folded(other)


def is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=identifier(name))


def column_of(table: str, name: str) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table))


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.And(this=_inside(one), expression=_inside(other))


def either(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Or(this=_inside(one), expression=_inside(other))


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(both, conditions)


def any_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(either, conditions)


def _inside(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.And | exp.Or) else node
