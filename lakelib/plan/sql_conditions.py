"""Pure. What a query says of its tables' rows goes inwards: through queries in FROM, and those of a WITH clause that
are named once, to the tables themselves. It says which rows can make no difference; the query still asks it."""

from collections.abc import Callable, Sequence
from dataclasses import field

from sqlglot import exp

from lakelib.dataclass import dataclass

Push = Callable[[exp.Expr], None]
"""Hears what holds of all rows of a query that can make a difference; its columns are called by their places."""

_NULL_OF_NULL = (
    exp.Column, exp.Identifier, exp.Literal, exp.Parameter, exp.Placeholder, exp.Var, exp.Paren, exp.Tuple, exp.Dot,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like,
    exp.ILike, exp.RegexpLike, exp.Escape, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Year, exp.Month, exp.Day, exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Length,
)  # fmt: skip
"""A condition that is made of these alone is true of a row of NULLs only where it is true of all rows."""


_SEVERAL_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets)
"""Of which a row of NULLs is made of all rows."""


def speaks_of_null(node: exp.Expr) -> bool:
    """Whether it may be true of a row that a join has filled with NULL, and of another not."""
    return any(not isinstance(part, _NULL_OF_NULL) for part in node.walk())


def at_places(node: exp.Expr, places: Sequence[int]) -> exp.Expr:
    """The condition with each of its columns called by its place."""
    return with_names(node, list(map(str, places)))


def with_names(node: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """The condition with each of its columns called so."""
    found = node.copy()
    for each, name in zip(list(found.find_all(exp.Column)), names, strict=True):
        each.set("table", None)
        each.set("this", exp.to_identifier(name, quoted=True))
    return found


def places_in(node: exp.Expr) -> list[int]:
    """Of its columns, as `at_places` has called them."""
    return [int(each.name) for each in node.find_all(exp.Column)]


def keeps_rows_apart(node: exp.Select) -> bool:
    """Whether each row of the query is made of rows of which some condition on it holds as well, and of no others."""
    if any(node.args.get(each) for each in ("limit", "offset", "qualify")) or node.find(exp.Window) is not None:
        return False
    group = node.args.get("group")
    if group is None:
        return True
    is_plain = not any(value for name, value in group.args.items() if name != "expressions")
    return is_plain and not any(isinstance(each, _SEVERAL_GROUPINGS) for each in group.expressions)


@dataclass(slots=True)
class Shared:
    """A query of a WITH clause. What one who names it says of its rows may be wrong for another."""

    push: Push
    is_named: int = 0
    """How often, so far."""
    _is_over: bool = False
    _waiting: list[exp.Expr] = field(default_factory=list)

    def hear(self, node: exp.Expr) -> None:
        if self._is_over:
            self._tell(node)
        else:
            self._waiting.append(node)

    def end(self) -> None:
        """All have named it who can."""
        self._is_over = True
        for each in self._waiting:
            self._tell(each)

    def _tell(self, node: exp.Expr) -> None:
        if self.is_named == 1:
            self.push(node)
