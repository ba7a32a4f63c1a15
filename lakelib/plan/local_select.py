"""Pure. One SELECT of Spark SQL in DuckDB's: what it reads from, what holds of its rows, what it makes of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.model.text import meant
from lakelib.plan.local_functions import ordered
from lakelib.plan.local_scalars import COMPARISONS
from lakelib.plan.local_translator import check_arguments, check_comparable
from lakelib.plan.local_types import INTEGERS, VOID, Value, duck_type, literal
from lakelib.plan.sqltext import quoted

if TYPE_CHECKING:
    from lakelib.plan.local_query import Query

_PLACE = "rowid"
"""What DuckDB calls the place of a row in its table."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_INNER = ("", "INNER", "CROSS")
_OUTER = ("LEFT", "RIGHT", "FULL")
_FILTERING = ("SEMI", "ANTI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What a FROM clause or a join brings."""

    alias: str
    """DuckDB's."""
    name: str | None
    """The query's, casefolded."""
    columns: tuple[tuple[str, str], ...]
    hidden: frozenset[str] = frozenset()
    """Columns, casefolded, that the other side of a join by USING has, too."""
    view: str | None = None
    """The view that it is."""

    def find(self, name: str) -> list[tuple[str, Value]]:
        """The columns that the name means, by their own names."""
        folded = name.casefold()
        return [
            (each, Value(sql=f"{self.alias}.{in_quotes(each)}", type=kind))
            for each, kind in self.columns
            if each.casefold() == folded
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    sql: str
    columns: tuple[tuple[str | None, str], ...]
    """Without a name where only Spark knows which it would be."""

    def named(self) -> tuple[tuple[str, str], ...]:
        names = [name for name, _ in self.columns]
        if None in names:
            raise OnlySparkError("a column without AS")
        folded = {str(name).casefold() for name in names}
        if len(folded) < len(names):
            raise OnlySparkError("two columns of one name")
        return tuple((str(name), kind) for name, kind in self.columns)


class Select:
    """One SELECT: the scope of its expressions."""

    def __init__(self, query: "Query", node: exp.Select) -> None:
        self._query = query
        self._node = node
        self._relations: list[Relation] = []
        self._conjuncts: list[exp.Expr] = []
        self._translate = query.translator(self)

    def column(self, node: exp.Column) -> Value:
        check_arguments(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise OnlySparkError(quoted(node))
        relation, name, value = self._found(node)
        self._query.note_use(relation, name)
        return value

    def _found(self, node: exp.Column) -> tuple[Relation, str, Value]:
        table = node.table.casefold()
        found = [
            (relation, name, value)
            for relation in self._relations
            if (relation.name == table if table else node.name.casefold() not in relation.hidden)
            for name, value in relation.find(node.name)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise OnlySparkError(f"the column {quoted(node)}, of which there is more than one")
        known = [name for relation in self._relations for name, _ in relation.columns]
        raise OnlySparkError(f"the column {quoted(node)}, of which there is none", remedy=meant(node.name, known))

    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        made = self._query.made(node)
        return made.sql, tuple(kind for _, kind in made.columns)

    def is_conjunct(self, node: exp.Expr) -> bool:
        return any(node is each for each in self._conjuncts)

    def made(self, *, is_outermost: bool) -> Made:
        node = self._node
        check_arguments(
            node, "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "with_", "hint"
        )
        source = self._source()
        where = self._filtered()
        chosen = self._chosen()
        group = self._grouped(chosen)
        having = f" HAVING {self._translate.condition(node.args['having'].this)}" if node.args.get("having") else ""
        distinct = self._distinct(chosen)
        order = self._ordered(chosen, is_outermost=is_outermost)
        made = Made(sql="", columns=tuple((name, value.type) for name, value in chosen))
        names = [name for name, _ in made.named()] if is_outermost else [name for name, _ in made.columns]
        listed = ", ".join(
            value.sql if name is None else f"{value.sql} AS {in_quotes(name)}"
            for name, (_, value) in zip(names, chosen, strict=True)
        )
        return Made(sql=f"SELECT {distinct}{listed}{source}{where}{group}{having}{order}", columns=made.columns)

    def _source(self) -> str:
        clause = self._node.args.get("from_")
        if clause is None:
            return ""
        sql, relation = self._query.relation(clause.this)
        self._relations.append(relation)
        return f" FROM {sql}" + "".join(self._joined(each) for each in self._node.args.get("joins") or ())

    def _joined(self, node: exp.Expr) -> str:
        check_arguments(node, "this", "side", "kind", "on", "using")
        side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
        sql, relation = self._query.relation(node.this)
        left = tuple(self._relations)
        if node.args.get("using"):
            relation, condition = self._using(node, left, relation)
        else:
            self._relations.append(relation)
            condition = self._translate.condition(node.args["on"]) if node.args.get("on") is not None else ""
        self._relations = [*left, relation]
        if kind in _FILTERING and side in ("", "LEFT") and condition:
            self._relations = [*left]
            return f" {kind} JOIN {sql} ON {condition}"
        if side in _OUTER and kind in ("", "OUTER") and condition and not (side != "LEFT" and node.args.get("using")):
            return f" {side} JOIN {sql} ON {condition}"
        if not side and kind in _INNER:
            return f" JOIN {sql} ON {condition}" if condition else f" CROSS JOIN {sql}"
        raise OnlySparkError(quoted(node))

    def _using(self, node: exp.Expr, left: Sequence[Relation], right: Relation) -> tuple[Relation, str]:
        conditions = []
        for each in node.args["using"]:
            column = exp.column(each.name)
            one = self.column(column)
            others = right.find(each.name)
            if [other.type for _, other in others] != [one.type]:
                raise OnlySparkError(f"USING of {each.name} in unlike types")
            check_comparable(one, "USING")
            self._query.note_use(right, others[0][0])
            conditions.append(f"({one.sql} = {others[0][1].sql})")
        hidden = frozenset(each.name.casefold() for each in node.args["using"])
        relation = Relation(alias=right.alias, name=right.name, columns=right.columns, hidden=hidden, view=right.view)
        return relation, " AND ".join(conditions)

    def _filtered(self) -> str:
        where = self._node.args.get("where")
        if where is None:
            return ""
        for each in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            self._note_condition(each)
            self._conjuncts.append(each.this if isinstance(each, exp.Not) else each)
        return f" WHERE {self._translate.condition(where.this)}"

    def _note_condition(self, node: exp.Expr) -> None:
        """A column that is compared with a constant need not be read where that is false: a row for which it is NULL,
        as the other side of a join may make it, is left out as well."""
        if type(node) not in COMPARISONS or not isinstance(node.this, exp.Column):
            return
        relation, name, value = self._found(node.this)
        constant = self._constant(node.expression, value.type)
        if constant is not None:
            quoted_name = name.replace("`", "``")
            self._query.note_condition(relation, f"`{quoted_name}` {COMPARISONS[type(node)]} {constant}")

    def _constant(self, node: exp.Expr, kind: str) -> str | None:
        """A day, a text or a whole number as SQL, where a column of that type is compared with it; else None."""
        match node:
            case exp.Cast(this=inner) | exp.TryCast(this=inner) if kind == node.args["to"].sql().lower() == "date":
                return self._constant(inner, kind)
            case exp.Literal(is_string=False) if kind in INTEGERS and str(node.this).isdecimal():
                return str(node.this)
        text = self._query.partition if isinstance(node, exp.Placeholder) else node.name
        if kind not in ("string", "date") or not isinstance(node, exp.Placeholder | exp.Literal) or node.is_number:
            return None
        if kind == "date" and not _DAY.fullmatch(text):
            return None
        return ("DATE " if kind == "date" else "") + literal(text)

    def _chosen(self) -> list[tuple[str | None, Value]]:
        chosen: list[tuple[str | None, Value]] = []
        for node in self._node.expressions:
            match node:
                case exp.Star():
                    check_arguments(node)
                    chosen += self._all(self._relations, with_hidden=False)
                case exp.Column(this=exp.Star()):
                    check_arguments(node, "this", "table")
                    check_arguments(node.this)
                    named = [each for each in self._relations if each.name == node.table.casefold()]
                    if len(named) != 1:
                        raise OnlySparkError(quoted(node))
                    chosen += self._all(named, with_hidden=True)
                case exp.Alias():
                    check_arguments(node, "this", "alias")
                    chosen.append((node.alias, self._translate.value(node.this)))
                case exp.Column():
                    chosen.append((node.name, self._translate.value(node)))
                case _:
                    chosen.append((None, self._translate.value(node)))
        if not chosen:
            raise OnlySparkError("a query of no columns")
        return chosen

    def _all(self, relations: Sequence[Relation], *, with_hidden: bool) -> list[tuple[str | None, Value]]:
        if not relations:
            raise OnlySparkError(quoted(self._node))
        chosen: list[tuple[str | None, Value]] = []
        for relation in relations:
            for name, kind in relation.columns:
                if with_hidden or name.casefold() not in relation.hidden:
                    self._query.note_use(relation, name)
                    chosen.append((name, Value(sql=f"{relation.alias}.{in_quotes(name)}", type=kind)))
        return chosen

    def _grouped(self, chosen: Sequence[tuple[str | None, Value]]) -> str:
        group = self._node.args.get("group")
        if group is None:
            return ""
        check_arguments(group, "expressions")
        terms = [check_comparable(self._group_term(each, chosen), "GROUP BY").sql for each in group.expressions]
        return f" GROUP BY {', '.join(terms)}"

    def _group_term(self, node: exp.Expr, chosen: Sequence[tuple[str | None, Value]]) -> Value:
        """A number is a place among what is chosen; a name is a column, else what is chosen under it."""
        if isinstance(node, exp.Literal):
            return _at_place(node, chosen)
        is_known = any(relation.find(node.name) for relation in self._relations)
        if isinstance(node, exp.Column) and not node.table and not is_known:
            return _of_name(node, chosen)
        return self._translate.value(node)

    def _distinct(self, chosen: Sequence[tuple[str | None, Value]]) -> str:
        distinct = self._node.args.get("distinct")
        if distinct is None:
            return ""
        check_arguments(distinct)
        for _, value in chosen:
            check_comparable(value, "DISTINCT")
        return "DISTINCT "

    def _ordered(self, chosen: Sequence[tuple[str | None, Value]], *, is_outermost: bool) -> str:
        order = self._node.args.get("order")
        if order is None:
            return self._source_order() if is_outermost else ""
        if not is_outermost:
            raise OnlySparkError("ORDER BY in an inner query")
        check_arguments(order, "expressions")
        terms = [ordered(self._translate, each, self._order_term(each.this, chosen)) for each in order.expressions]
        return f" ORDER BY {', '.join(terms)}"

    def _source_order(self) -> str:
        """DuckDB keeps the order of rows where it filters and computes. Joins, inner queries and windows lose it: there
        it is said to be that of the first view."""
        first = self._relations[0] if self._relations else None
        if first is None or first.view is None or any(name.casefold() == _PLACE for name, _ in first.columns):
            return ""
        node = self._node
        is_lost = node.args.get("joins") or node.find(exp.Window, exp.Subquery, exp.Exists)
        is_gathered = node.args.get("group") or node.args.get("distinct") or _aggregates(node)
        return f" ORDER BY {first.alias}.{_PLACE}" if is_lost and not is_gathered else ""

    def _order_term(self, node: exp.Expr, chosen: Sequence[tuple[str | None, Value]]) -> Value:
        """A name is what is chosen under it, else a column."""
        if isinstance(node, exp.Literal):
            return _at_place(node, chosen)
        is_chosen = any(name is not None and name.casefold() == node.name.casefold() for name, _ in chosen)
        if isinstance(node, exp.Column) and not node.table and is_chosen:
            return _of_name(node, chosen)
        return self._translate.value(node)


def _aggregates(node: exp.Select) -> bool:
    """Whether all rows become one."""
    found = (each for chosen in node.expressions for each in chosen.find_all(exp.AggFunc))
    return any(each.find_ancestor(exp.Window, exp.Subquery, exp.Exists) is None for each in found)


def _at_place(node: exp.Literal, chosen: Sequence[tuple[str | None, Value]]) -> Value:
    text = str(node.this)
    if node.is_string or not text.isdecimal() or not 0 < int(text) <= len(chosen):
        raise OnlySparkError(quoted(node))
    return chosen[int(text) - 1][1]


def _of_name(node: exp.Column, chosen: Sequence[tuple[str | None, Value]]) -> Value:
    found = [value for name, value in chosen if name is not None and name.casefold() == node.name.casefold()]
    if len(found) != 1:
        raise OnlySparkError(f"the column {quoted(node)}")
    return found[0]


def kept_type(kind: str) -> str:
    if kind != VOID:
        duck_type(kind)
    return kind


def in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
