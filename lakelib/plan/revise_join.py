"""Pure. How ON tells the table's rows of a merge by the source's."""

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.model.schema import Column
from lakelib.plan.local_select import conjuncts_of
from lakelib.plan.revise_names import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A column of the table, and what of the source it is equal to."""

    column: Column
    value: exp.Expr
    with_null: bool
    """Whether NULL belongs to NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """How ON tells the table's rows by the source's."""

    pairs: tuple[Pair, ...]
    is_all: bool
    """Whether ON says nothing else."""

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.column.id for each in self.pairs)

    def value_of(self, column: Column) -> exp.Expr | None:
        return next((each.value for each in self.pairs if each.column.id == column.id), None)


NOT_JOINED = Joined(pairs=(), is_all=False)


def join_of(names: Names) -> Joined:
    """What ON says is equal."""
    beside = names.revision.beside
    if beside is None:
        return NOT_JOINED
    pairs: list[Pair] = []
    conjuncts = conjuncts_of(beside.on)
    for each in conjuncts:
        if isinstance(each, exp.EQ | exp.NullSafeEQ):
            for one, other in ((each.this, each.expression), (each.expression, each.this)):
                column = _column_of_table(names, one)
                if column is not None and _is_of_source(names, other):
                    value, with_null = names.of_side(other, beside.alias), isinstance(each, exp.NullSafeEQ)
                    pairs.append(Pair(column=column, value=value, with_null=with_null))
                    break
    return Joined(pairs=tuple(pairs), is_all=len(pairs) == len(conjuncts))


def _column_of_table(names: Names, node: exp.Expr) -> Column | None:
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return None
    found = names.table.schema.find(node.name)
    if node.table:
        return found if node.table.casefold() == names.revision.alias.casefold() else None
    return None if names.has(node.name) else found


def _is_of_source(names: Names, node: exp.Expr) -> bool:
    assert names.revision.beside is not None
    alias = names.revision.beside.alias.casefold()
    if node.find(exp.Query, exp.Rand) is not None:
        return False
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(
        each.table.casefold() == alias
        if each.table
        else names.has(each.name) and names.table.schema.find(each.name) is None
        for each in columns
    )
