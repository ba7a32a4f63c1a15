"""Pure. One SELECT of Spark SQL in DuckDB's: what it reads from, what holds of its rows, what it makes of them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError
from lakelib.model.text import meant
from lakelib.plan.local_functions import ordered
from lakelib.plan.local_scalars import COMPARISONS
from lakelib.plan.local_translator import check_arguments, field_of, placed
from lakelib.plan.local_types import INTEGERS, VOID, Value, duck_type, literal
from lakelib.plan.sql_conditions import Push, at_places, keeps_rows_apart, places_in, speaks_of_null, with_names
from lakelib.plan.sql_generators import GENERATORS, generated
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
    beside: tuple[tuple[str, str], ...] = ()
    """Columns that are there if they are named."""
    view: str | None = None
    """The view that it is."""
    push: Push | None = None
    """Hears what is said of its rows, if it is a query."""

    def find(self, name: str) -> list[tuple[str, Value]]:
        """The columns that the name means, by their own names."""
        folded = name.casefold()
        return [
            (each, Value(sql=f"{self.alias}.{in_quotes(each)}", type=kind))
            for each, kind in (*self.columns, *self.beside)
            if each.casefold() == folded
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    sql: str
    columns: tuple[tuple[str | None, str], ...]
    """Without a name where only Spark knows which it would be."""
    push: Push | None = None
    """Hears what holds of all of its rows that can make a difference, if that says anything of tables' rows."""

    def known(self, is_asked: bool) -> tuple[tuple[str, str], ...]:
        """As `named`; where people ask, each is called something, and one name may be two columns'."""
        if not is_asked:
            return self.named()
        return tuple((name or f"_c{place}", kind) for place, (name, kind) in enumerate(self.columns))

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

    def __init__(self, query: "Query", node: exp.Select, outer: "Select | None" = None) -> None:
        self._query = query
        self._is_asked = query.reach.is_asked
        self._outer = outer
        self._fillable: set[str] = set()
        """The aliases of relations whose rows an outer join may fill with NULL."""
        self._node = node
        self._relations: list[Relation] = []
        self._conjuncts: list[exp.Expr] = []
        self._generated: dict[int, list[tuple[str | None, Value]]] = {}
        """What is chosen that makes rows: its columns, by node."""
        self._translate = query.translator(self)

    def column(self, node: exp.Column) -> Value:
        fields: list[str] = []
        if self._is_asked and node.args.get("table"):
            node, fields = self._split_fields(node)
        check_arguments(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise OnlySparkError(quoted(node))
        try:
            relation, name, value = self._found(node)
        except OnlySparkError as error:
            raise placed(error, node) from None
        self._query.note_use(relation, name)
        for each in fields:
            value = field_of(value, each)
        return value

    def _split_fields(self, node: exp.Column) -> tuple[exp.Column, list[str]]:
        """`s.a.b` may be a field of a column, with its table before it or not."""
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        for count in (2, 1):
            table = parts[0] if count == 2 else None
            column = exp.Column(this=parts[count - 1].copy(), table=table.copy() if table is not None else None)
            if len(parts) >= count and self._is_there(column):
                return column, [each.name for each in parts[count:]]
        return node, []

    def _is_there(self, node: exp.Column) -> bool:
        return bool(self._meant(node)) or (self._outer is not None and self._outer._is_there(node))

    def _found(self, node: exp.Column) -> tuple[Relation, str, Value]:
        found = self._meant(node)
        if not found and self._is_asked and self._outer is not None:
            return self._outer._found(node)
        if len(found) == 1:
            return found[0]
        if found:
            raise OnlySparkError(f"the column {quoted(node)}, of which there is more than one", kind="ambiguous_column")
        raise OnlySparkError(
            f"the column {quoted(node)}, of which there is none",
            kind="unknown_column",
            remedy=meant(node.name, self._names()),
        )

    def _meant(self, node: exp.Column) -> list[tuple[Relation, str, Value]]:
        table = node.table.casefold()
        return [
            (relation, name, value)
            for relation in self._relations
            if (relation.name == table if table else node.name.casefold() not in relation.hidden)
            for name, value in relation.find(node.name)
        ]

    def _names(self) -> list[str]:
        own = [name for relation in self._relations for name, _ in relation.columns]
        return own if self._outer is None else own + self._outer._names()

    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        made = self._query.made(node, outer=self if self._is_asked else None)
        return made.sql, tuple(kind for _, kind in made.columns)

    def is_conjunct(self, node: exp.Expr) -> bool:
        return any(node is each for each in self._conjuncts)

    def made(self, *, is_outermost: bool) -> Made:
        node = self._node
        check_arguments(
            node, "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "with_", "hint",
            *(("limit", "offset", "qualify", "laterals") if self._is_asked else ()),
        )  # fmt: skip
        source = self._source()
        where = self._filtered()
        made_of_each = self._generated_columns() if self._is_asked else ""
        chosen = self._chosen()
        group = self._grouped(chosen)
        having = f" HAVING {self._having(chosen)}" if node.args.get("having") else ""
        qualify = f" QUALIFY {self._qualified(chosen)}" if node.args.get("qualify") else ""
        distinct = self._distinct(chosen)
        order = self._ordered(chosen, is_outermost=is_outermost)
        made = Made(sql="", columns=tuple((name, value.type) for name, value in chosen))
        if self._is_asked:
            made = replace(made, columns=_told_apart(made.columns) if is_outermost else made.known(True))
        names = [name for name, _ in made.named()] if is_outermost else [name for name, _ in made.columns]
        listed = ", ".join(
            value.sql if name is None else f"{value.sql} AS {in_quotes(name)}"
            for name, (_, value) in zip(names, chosen, strict=True)
        )
        cut = f"{order}{limit_of(node)}"
        sql = f"SELECT {distinct}{listed}{source}{made_of_each}{where}{group}{having}{qualify}{cut}"
        return Made(sql=sql, columns=made.columns, push=self._push_to(chosen) if self._is_asked else None)

    def _having(self, chosen: Sequence[tuple[str | None, Value]]) -> str:
        return self._translate.condition(self._with_chosen(self._node.args["having"].this, chosen))

    def _qualified(self, chosen: Sequence[tuple[str | None, Value]]) -> str:
        return self._translate.condition(self._with_chosen(self._node.args["qualify"].this, chosen))

    def _with_chosen(self, node: exp.Expr, chosen: Sequence[tuple[str | None, Value]]) -> exp.Expr:
        """Where people ask, what is chosen may be meant by its name, unless a column has it."""
        if not self._is_asked:
            return node
        by_name = {each.alias.casefold(): each.this for each in self._node.expressions if isinstance(each, exp.Alias)}

        def put(part: exp.Expr) -> exp.Expr:
            is_name = isinstance(part, exp.Column) and not part.table and not self._meant(part)
            return by_name.get(part.name.casefold(), part).copy() if is_name else part

        return node.copy().transform(put)

    def _source(self) -> str:
        clause = self._node.args.get("from_")
        if clause is None:
            return ""
        sql, relation = self._query.relation(clause.this, self)
        self._relations.append(relation)
        joined = "".join(self._joined(each) for each in self._node.args.get("joins") or ())
        return f" FROM {sql}{joined}" + "".join(map(self._viewed, self._node.args.get("laterals") or ()))

    def _viewed(self, node: exp.Expr) -> str:
        """LATERAL VIEW: the rows that are made of each."""
        check_arguments(node, "this", "view", "outer", "alias")
        sql, relation, keeps_all = self.generated(node.this, node.args.get("alias"))
        self._relations.append(relation)
        return _made_of_each(sql, keeps_all or bool(node.args.get("outer")))

    def generated(self, node: exp.Expr, alias: exp.Expr | None) -> tuple[str, Relation, bool]:
        """What explode and its kin make of a row, and whether that stays if it is nothing."""
        try:
            return self._generated_rows(node, alias)
        except OnlySparkError as error:
            raise placed(error, node) from None

    def _generated_rows(self, node: exp.Expr, alias: exp.Expr | None) -> tuple[str, Relation, bool]:
        if not isinstance(node, GENERATORS):
            raise OnlySparkError(quoted(node))
        found = generated(self._translate, node)
        named = [] if alias is None else [each.name for each in alias.args.get("columns") or ()]
        if named and len(named) != len(found.columns):
            wrong = f"{quoted(node)} gives {len(found.columns)} columns, and is to have {len(named)} names"
            raise OnlySparkError(wrong, kind="invalid_sql", remedy="Name each.")
        names = named or [name for name, _ in found.columns]
        columns = tuple((name, kind) for name, (_, kind) in zip(names, found.columns, strict=True))
        own = self._query.alias()
        relation = Relation(alias=own, name=alias.name.casefold() if alias is not None else None, columns=columns)
        listed = ", ".join(in_quotes(name) for name, _ in columns)
        return f"({found.sql}) AS {own}({listed})", relation, found.keeps_all

    def _joined(self, node: exp.Expr) -> str:
        check_arguments(node, "this", "side", "kind", "on", "using")
        side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
        sql, relation = self._query.relation(node.this, self)
        left = tuple(self._relations)
        if node.args.get("using"):
            relation, condition = self._using(node, left, relation)
        else:
            self._relations.append(relation)
            condition = self._translate.condition(node.args["on"]) if node.args.get("on") is not None else ""
        self._relations = [*left, relation]
        if self._is_asked:
            self._note_join(side, kind, node.args.get("on"), left, relation)
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
            self._translate.comparable(one, "USING")
            self._query.note_use(right, others[0][0])
            conditions.append(f"({one.sql} = {others[0][1].sql})")
        hidden = frozenset(each.name.casefold() for each in node.args["using"])
        return replace(right, hidden=hidden), " AND ".join(conditions)

    def _filtered(self) -> str:
        where = self._node.args.get("where")
        if where is None:
            return ""
        for each in conjuncts_of(where.this):
            if self._is_asked:
                self._note_asked(each, self._relations, self._fillable)
            else:
                self._note_condition(each)
            self._conjuncts.append(each.this if isinstance(each, exp.Not) else each)
        return f" WHERE {self._translate.condition(where.this)}"

    def _note_join(self, side: str, kind: str, on: exp.Expr | None, left: Sequence[Relation], right: Relation) -> None:
        """What a join asks of a side whose rows it drops where that is not so."""
        if side in ("LEFT", "FULL") and kind not in _FILTERING:
            self._fillable.add(right.alias)
        if side in ("RIGHT", "FULL"):
            self._fillable |= {each.alias for each in left}
        keeps_left, keeps_right = side in ("LEFT", "FULL") or kind == "ANTI", side in ("RIGHT", "FULL")
        asked = ([] if keeps_left and kind != "SEMI" else list(left)) + ([] if keeps_right else [right])
        for each in conjuncts_of(on):
            self._note_asked(each, asked, self._fillable - {right.alias})

    def _note_asked(self, node: exp.Expr, relations: Sequence[Relation], fillable: Collection[str]) -> None:
        """Tells of a condition over the columns of one relation alone, if rows for which it does not hold can make no
        difference. Of a row that a join fills with NULL only what is not true of NULL says anything."""
        if self._query.reach.note_condition is None or node.find(exp.Query, exp.Window, exp.AggFunc) is not None:
            return
        found = [self._meant(each) for each in node.find_all(exp.Column)]
        if all(len(each) == 1 for each in found):
            self._note(node, [(relation, name) for ((relation, name, _),) in found], relations, fillable)

    def _note(
        self,
        node: exp.Expr,
        columns: Sequence[tuple[Relation, str]],
        relations: Sequence[Relation],
        fillable: Collection[str],
    ) -> None:
        """As `_note_asked`, of a condition whose columns are these."""
        note = self._query.reach.note_condition
        aliases = {relation.alias for relation, _ in columns}
        if note is None or len(aliases) != 1 or not aliases <= {each.alias for each in relations}:
            return
        if aliases & {*fillable} and speaks_of_null(node):
            return
        relation, names = columns[0][0], [name for _, name in columns]
        if relation.view is not None:
            note(relation.view, with_names(node, names))
        elif relation.push is not None:
            places = [name for name, _ in relation.columns]
            relation.push(at_places(node, [places.index(name) for name in names]))

    def _push_to(self, chosen: Sequence[tuple[str | None, Value]]) -> Push | None:
        """What is said of the query's rows is said of those that they are made of, where it is of columns."""
        if self._query.reach.note_condition is None or not keeps_rows_apart(self._node):
            return None
        known = {
            value.sql: (relation, name)
            for relation in self._relations
            for own, _ in (*relation.columns, *relation.beside)
            for name, value in relation.find(own)
        }
        origins = [known.get(value.sql) for _, value in chosen]

        def push(node: exp.Expr) -> None:
            columns = [found for place in places_in(node) if (found := origins[place]) is not None]
            if len(columns) == len(places_in(node)):
                self._note(node, columns, self._relations, self._fillable)

        return push

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

    def _generated_columns(self) -> str:
        """explode where columns are chosen: the rows of FROM for which WHERE holds become so many."""
        found = [each for each in self._node.expressions if isinstance(_bare(each), GENERATORS)]
        if not found:
            return ""
        (first, *others), node = found, self._node
        if others or node.args.get("group") or node.args.get("having") or node.args.get("qualify"):
            raise placed(OnlySparkError(f"{quoted(first)} beside another, or a GROUP BY"), first)
        if _aggregates(node) or any(each.find(exp.Window) for each in node.expressions):
            raise placed(OnlySparkError(f"{quoted(first)} beside what is made of many rows"), first)
        named = first.expressions if isinstance(first, exp.Aliases) else []
        if isinstance(first, exp.Alias):
            named = [first.args["alias"]]
        sql, relation, keeps_all = self.generated(_bare(first), exp.TableAlias(columns=named))
        columns: list[tuple[str | None, Value]] = [(name, relation.find(name)[0][1]) for name, _ in relation.columns]
        self._generated[id(first)] = columns
        return _made_of_each(sql, keeps_all) if node.args.get("from_") else f" FROM {_kept(sql, keeps_all)}"

    def _chosen(self) -> list[tuple[str | None, Value]]:
        chosen: list[tuple[str | None, Value]] = []
        for node in self._node.expressions:
            if id(node) in self._generated:
                chosen += self._generated[id(node)]
                continue
            match node:
                case exp.Star():
                    check_arguments(node, *(("except_",) if self._is_asked else ()))
                    chosen += _without(node, self._all(self._relations, with_hidden=False))
                    self._note_star(node, self._relations, with_hidden=False)
                case exp.Column(this=exp.Star()):
                    check_arguments(node, "this", "table")
                    check_arguments(node.this)
                    named = [each for each in self._relations if each.name == node.table.casefold()]
                    if len(named) != 1:
                        raise OnlySparkError(quoted(node))
                    chosen += self._all(named, with_hidden=True)
                    self._note_star(node, named, with_hidden=True)
                case exp.Alias():
                    check_arguments(node, "this", "alias")
                    chosen.append((node.alias, self._translate.value(node.this)))
                case exp.Column():
                    chosen.append((node.name, self._translate.value(node)))
                case _:
                    name = (
                        node.sql(dialect="spark", normalize_functions="lower", comments=False)
                        if self._is_asked
                        else None
                    )
                    chosen.append((name, self._translate.value(node)))
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

    def _note_star(self, node: exp.Expr, relations: Sequence[Relation], *, with_hidden: bool) -> None:
        """Tells which columns it stands for, by relation."""
        note = self._query.reach.note_star
        if note is None:
            return
        left_out = {each.name.casefold() for each in node.args.get("except_") or ()}
        note(
            node,
            [
                (relation.name, name)
                for relation in relations
                for name, _ in relation.columns
                if name.casefold() not in left_out and (with_hidden or name.casefold() not in relation.hidden)
            ],
        )

    def _grouped(self, chosen: Sequence[tuple[str | None, Value]]) -> str:
        group = self._node.args.get("group")
        if group is None:
            return ""
        check_arguments(group, "expressions", *(("rollup", "cube", "grouping_sets") if self._is_asked else ()))
        terms = [self._grouped_by(each, chosen) for each in group.expressions]
        for word in ("rollup", "cube"):
            if group.args.get(word):  # GROUP BY a, b WITH ROLLUP
                return f" GROUP BY {word.upper()}({', '.join(terms)})"
        if group.args.get("grouping_sets"):  # GROUP BY a, b GROUPING SETS (…)
            terms = [self._grouped_by(each, chosen) for each in group.args["grouping_sets"]]
        return f" GROUP BY {', '.join(terms)}"

    def _grouped_by(self, node: exp.Expr, chosen: Sequence[tuple[str | None, Value]]) -> str:
        """One term of GROUP BY, which may stand for several groupings."""
        if self._is_asked and isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            check_arguments(node, "expressions")
            word = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else node.key.upper()
            return f"{word}({', '.join(self._grouped_by(each, chosen) for each in node.expressions)})"
        if self._is_asked and isinstance(node, exp.Tuple):
            return f"({', '.join(self._grouped_by(each, chosen) for each in node.expressions)})"
        return self._comparable(self._group_term(node, chosen), "GROUP BY").sql

    def groupings(self) -> list[exp.Expr]:
        """What is grouped by, each once."""
        group = self._node.args.get("group")
        waiting = [] if group is None else list(group.expressions)
        found: list[exp.Expr] = []
        while waiting:
            each = waiting.pop(0)
            if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
                waiting = [*each.expressions, *waiting]
            elif each not in found:
                found.append(each)
        return found

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
            self._comparable(value, "DISTINCT")
        return "DISTINCT "

    def _comparable(self, value: Value, what: str) -> Value:
        return self._translate.comparable(value, what)

    def _ordered(self, chosen: Sequence[tuple[str | None, Value]], *, is_outermost: bool) -> str:
        order = self._node.args.get("order")
        if order is None:
            return self._source_order() if is_outermost and not self._is_asked else ""
        if not is_outermost and not self._is_asked:
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


def _bare(node: exp.Expr) -> exp.Expr:
    """What is chosen, without its name."""
    bare: exp.Expr = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    return bare


def _made_of_each(sql: str, keeps_all: bool) -> str:
    return f" LEFT JOIN LATERAL {sql} ON true" if keeps_all else f" CROSS JOIN LATERAL {sql}"


def _kept(sql: str, keeps_all: bool) -> str:
    return f"(SELECT 1) LEFT JOIN LATERAL {sql} ON true" if keeps_all else sql


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


def _told_apart(columns: Sequence[tuple[str | None, str]]) -> tuple[tuple[str | None, str], ...]:
    """Of two columns of one name the later one gets a number."""
    taken: set[str] = set()
    found = []
    for name, kind in columns:
        free, number = name or "", 0
        while free.casefold() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.casefold())
        found.append((free, kind))
    return tuple(found)


def _without(node: exp.Star, chosen: list[tuple[str | None, Value]]) -> list[tuple[str | None, Value]]:
    """All but the columns that EXCEPT names."""
    left_out = {each.name.casefold(): each for each in node.args.get("except_") or ()}
    names = [name or "" for name, _ in chosen]
    for folded, each in left_out.items():
        if folded not in [name.casefold() for name in names]:
            raise OnlySparkError(
                f"the column {quoted(each)}, of which there is none", kind="unknown_column", remedy=meant(folded, names)
            )
    return [each for each in chosen if (each[0] or "").casefold() not in left_out]


def conjuncts_of(node: exp.Expr | None) -> list[exp.Expr]:
    """What must all be true for a condition to be."""
    found, waiting = [], [] if node is None else [node]
    while waiting:
        match each := waiting.pop():
            case exp.And():
                waiting += [each.expression, each.this]
            case exp.Paren():
                waiting.append(each.this)
            case _:
                found.append(each)
    return found


def limit_of(node: exp.Expr) -> str:
    """How many rows, and after how many."""
    parts = ""
    for name in ("limit", "offset"):
        clause = node.args.get(name)
        if clause is not None:
            check_arguments(clause, "expression")
            parts += f" {name.upper()} {_count_of(clause.expression)}"
    return parts


def _count_of(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        return str(int(node.this))
    raise OnlySparkError(f"{quoted(node)} where a number of rows has to stand")


def nulls_of(node: exp.Expr) -> str:
    return "FIRST" if node.args.get("nulls_first") else "LAST"


def kept_type(kind: str) -> str:
    if kind != VOID:
        duck_type(kind)
    return kind


def in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
