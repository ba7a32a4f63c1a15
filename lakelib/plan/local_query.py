"""Pure. A query in Spark SQL becomes one in DuckDB's that gives the same rows, or it is said what takes Spark.

The text is parsed as Spark's; every name is looked up and every expression gets the type that Spark gives it. So what
DuckDB is given has no name, literal or function that it could understand in its own way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError
from lakelib.plan.local_functions import FUNCTIONS
from lakelib.plan.local_scalars import SCALARS
from lakelib.plan.local_select import Made, Relation, Select, in_quotes, kept_type, limit_of, nulls_of
from lakelib.plan.local_translator import Known, Translator, check_arguments, placed
from lakelib.plan.local_types import VOID, WRONG, Value, all_typed, failing
from lakelib.plan.sql_conditions import Shared, places_in
from lakelib.plan.sql_generators import GENERATORS
from lakelib.plan.sqltext import MAX_TEXT, quoted

Columns = Sequence[tuple[str, str]]
"""Names and types."""
TRANSLATED: Known = {**SCALARS, **FUNCTIONS}
"""All that is translated of Spark SQL's expressions. Each of it was tried against Spark, value by value; all else takes
Spark."""

_LONGEST = 1 << 22
STRUCTURE = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Distinct, exp.With,
    exp.CTE, exp.Table, exp.TableAlias, exp.Alias, exp.Star, exp.Identifier, exp.Union, exp.Except, exp.Intersect,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.DataType, exp.DataTypeParam, exp.Var, exp.Hint,
)  # fmt: skip
"""What the parts of a query are made of, besides values."""


_STEP = "lake_step"
"""The column that tells in which step a query that names itself has made a row."""
_ROWS = "lake_rows"
"""The column that tells how many rows it had made by the end of that step."""
_MOST_STEPS, _MOST_MADE = 100, 1_000_000
"""As Spark has it."""
_FILLS_BEFORE, _FILLS_JOINED = ("RIGHT", "FULL"), ("LEFT", "FULL", "SEMI", "ANTI")
"""Joins after which a row may have none of those that stand before them, and none of what they join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuery:
    sql: str
    """Over tables that are called as the views are, `"source"` …, with columns in their types."""
    columns: tuple[tuple[str, str], ...]
    uses: Mapping[str, tuple[str, ...]]
    """By view, the columns that the query looks at."""
    where: Mapping[str, str]
    """By view, what holds of all of its rows that can make a difference; as the `where` of a scan."""


def check_query(text: str) -> None:
    """Raises OnlySparkError for a query that is not translated, as far as that shows without knowing any column."""
    for node in _parsed(text).walk():
        if type(node) not in TRANSLATED and not isinstance(node, STRUCTURE):
            raise OnlySparkError(quoted(node))


def translate_query(text: str, views: Mapping[str, Columns], partition: str) -> LocalQuery:
    """The query over views of these columns. Raises OnlySparkError, which says for what it takes Spark."""
    known = {
        name.casefold(): Source(sql=in_quotes(name), columns=tuple(columns), view=name)
        for name, columns in views.items()
    }
    query = Query(known, partition)
    try:
        made = query.made(_parsed(text), is_outermost=True)
    except RecursionError:
        raise OnlySparkError("a query as deep as this one") from None
    if len(made.sql) > _LONGEST:
        raise OnlySparkError("a query as long as this one")
    for name, kind in made.named():
        if kind == VOID:
            raise OnlySparkError(f"a column, {name}, that is always NULL and has no type")
    return LocalQuery(sql=made.sql, columns=made.named(), uses=query.uses(), where=query.where())


def _parsed(text: str) -> exp.Expr:
    if len(text) > MAX_TEXT:
        raise OnlySparkError(f"a query of {len(text):,} characters")
    if "\\" in text:
        raise OnlySparkError("a backslash in a query")
    dialect = Dialect.get_or_raise("spark")
    try:
        tokens = dialect.tokenize(text)
        check_texts(tokens)
        found = dialect.parser().parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise OnlySparkError(f"a query that is not understood without it{_place_of(error)}") from error
    if len(found) != 1 or found[0] is None:
        raise OnlySparkError("other than one query")
    return found[0]


def _place_of(error: Exception) -> str:
    """Where the parser gave up, if it says."""
    first: dict[str, Any] = next(iter(getattr(error, "errors", ())), {})
    return f" (line {first['line']}, near {first['highlight']!r})" if first.get("line") else ""


def _names_itself(node: exp.Expr) -> bool:
    return any(not each.args.get("db") and each.name.casefold() == node.alias.casefold() for each in _tables(node.this))


def _tables(node: exp.Expr) -> list[exp.Table]:
    return [each for each in node.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]


def _with_step(node: exp.Expr, name: str) -> exp.Expr:
    """The query of a step, which tells of each row how many there were, and how many rows before it. It names the rows
    of the one before once, behind its FROM, and makes each of its rows of one of them."""
    sources = [node.args.get("from_"), *(node.args.get("joins") or ())] if isinstance(node, exp.Select) else []
    named = [
        each.this
        for each in sources
        if each is not None and isinstance(each.this, exp.Table) and each.this.name.casefold() == name.casefold()
    ]
    inner = [each for each in _tables(node) if not each.args.get("db") and each.name.casefold() == name.casefold()]
    gathers = any(node.args.get(each) for each in ("group", "having", "distinct", "limit", "offset", "with_"))
    if len(named) != 1 or len(inner) != 1 or gathers or node.find(exp.AggFunc, exp.Window) is not None:
        raise placed(OnlySparkError(f"a step of the query {name} that makes its rows of more than one before"), node)
    if not _keeps_to(named[0], node):
        raise placed(OnlySparkError(f"a step of the query {name} that makes rows of none before"), node)
    before, rows = (exp.column(each, table=named[0].alias_or_name) for each in (_STEP, _ROWS))
    step = exp.Add(this=before, expression=exp.Literal.number(1))
    own = node.copy()
    own.append("expressions", exp.Alias(this=step, alias=exp.to_identifier(_STEP)))
    own.append("expressions", exp.Alias(this=rows, alias=exp.to_identifier(_ROWS)))
    return own


def _keeps_to(table: exp.Table, node: exp.Expr) -> bool:
    """Whether each joined row has one of the table's: no join fills those with NULL, or only looks among them."""
    is_before = node.args["from_"].this is table
    for each in node.args.get("joins") or ():
        filled = _FILLS_BEFORE if is_before else _FILLS_JOINED if each.this is table else ()
        if not {str(each.args.get(word) or "").upper() for word in ("side", "kind")}.isdisjoint(filled):
            return False
        is_before = is_before or each.this is table
    return True


def check_texts(tokens: Sequence[Token]) -> None:
    """Texts that follow each other are one, and how depends on Spark's settings."""
    for one, other in pairwise(tokens):
        if one.token_type is other.token_type is TokenType.STRING:
            raise OnlySparkError("texts beside each other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A view, or a query of the WITH clause."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    view: str | None = None
    hidden: tuple[tuple[str, str], ...] = ()
    """Columns that are there if they are named."""
    shared: Shared | None = None
    """What hears of its rows, if it is a query of the WITH clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a query may go. That of a transform has to give Spark's rows to the last bit, in the source's order, and
    is one of views; what people ask may also be of tables, have parameters, and compute with doubles."""

    translated: Known
    is_asked: bool = False
    """Whether people ask it."""
    find_table: Callable[[exp.Table], Source] | None = None
    arguments: Mapping[type[exp.Expr], tuple[str, ...]] | None = None
    narrow: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Types, by name."""
    note_condition: Callable[[str, exp.Expr], None] | None = None
    """Hears what holds of all rows of a view that can make a difference, in its own columns."""
    note_star: Callable[[exp.Expr, Sequence[tuple[str | None, str]]], None] | None = None
    """Hears which columns a star stands for, by relation."""


TRANSFORM = Reach(translated=TRANSLATED)


class Query:
    """A query and those within it. Aliases are its own: none of the query's names can be mistaken for another."""

    def __init__(self, known: Mapping[str, Source], partition: str, reach: Reach = TRANSFORM) -> None:
        self._known = dict(known)
        self.partition = partition
        self.reach = reach
        self._count = 0
        self._uses: dict[str, dict[str, None]] = {}
        self._where: dict[str, list[str]] = {}
        self._views: list[str] = []

    def uses(self) -> dict[str, tuple[str, ...]]:
        return {view: tuple(self._uses.get(view, ())) for view in dict.fromkeys(self._views)}

    def where(self) -> dict[str, str]:
        """Of views that the query names once: what else it does with one may need the other rows."""
        return {view: " AND ".join(found) for view, found in self._where.items() if self._views.count(view) == 1}

    def note_use(self, relation: Relation, name: str) -> None:
        if relation.view is not None:
            self._uses.setdefault(relation.view, {})[name] = None

    def note_condition(self, relation: Relation, condition: str) -> None:
        if relation.view is not None:
            self._where.setdefault(relation.view, []).append(condition)

    def made(self, node: exp.Expr, *, is_outermost: bool = False, outer: Select | None = None) -> Made:
        """`outer` is the query around it, whose names it may use."""
        match node:
            case exp.Subquery():
                check_arguments(node, "this", *self._cutting())
                made = self.made(node.this, is_outermost=is_outermost, outer=outer)
                return self._cut(node, made)
            case exp.Select():
                return self._with_before(node, lambda: Select(self, node, outer).made(is_outermost=is_outermost))
            case exp.Union() | exp.Except() | exp.Intersect():
                return self._with_before(node, lambda: self._cut(node, self._combined(node)))
            case exp.Values() if self.reach.is_asked:
                return self._listed(node)
            case _:
                raise OnlySparkError(quoted(node))

    def _listed(self, node: exp.Expr) -> Made:
        """VALUES: rows that stand in the text."""
        check_arguments(node, "expressions", "alias")
        bare = self.translator(Select(self, exp.Select()))
        rows = [bare.values(each.expressions if isinstance(each, exp.Tuple) else [each]) for each in node.expressions]
        if len({len(row) for row in rows}) != 1:
            unlike = OnlySparkError("rows of unlike width", kind="invalid_sql", remedy="Give all rows as many values.")
            raise placed(unlike, node)
        kinds = [bare.common(column, "VALUES") for column in zip(*rows, strict=True)]
        listed = ", ".join(
            f"({', '.join(all_typed([value], kind)[0] for value, kind in zip(row, kinds, strict=True))})"
            for row in rows
        )
        columns = tuple((f"col{place}", kind) for place, kind in enumerate(kinds, start=1))
        names = ", ".join(in_quotes(name) for name, _ in columns)
        return Made(sql=f"SELECT * FROM (VALUES {listed}) AS {self.alias()}({names})", columns=columns)

    def _with_before(self, node: exp.Expr, make: Callable[[], Made]) -> Made:
        clause = node.args.get("with_")
        if clause is None:
            return make()
        check_arguments(clause, "expressions", *(("recursive",) if self.reach.is_asked else ()))
        before = dict(self._known)
        named: list[str] = []
        shared: list[Shared] = []
        for each in clause.expressions:
            check_arguments(each, "this", "alias")
            if clause.args.get("recursive") and _names_itself(each):
                named.append(self._recursive(each))
                continue
            inner = self.made(each.this)
            columns = self.renamed(each.args["alias"], inner)
            if self.reach.is_asked:
                alias = self.alias()
                places = ", ".join(in_quotes(name) for name, _ in columns)
                named.append(f"{alias}({places}) AS ({inner.sql})")
                own = None if inner.push is None else Shared(inner.push)
                shared += [] if own is None else [own]
                self._known[each.alias.casefold()] = Source(sql=alias, columns=columns, shared=own)
            else:
                self._known[each.alias.casefold()] = Source(sql=f"({inner.sql})", columns=columns)
        made = make()
        for each in reversed(shared):  # a later one may name those before it
            each.end()
        self._known = before
        word = "WITH RECURSIVE" if clause.args.get("recursive") else "WITH"
        return replace(made, sql=f"{word} {', '.join(named)} {made.sql}") if named else made

    def _recursive(self, node: exp.Expr) -> str:
        """A query that names itself: rows to begin with, and what is made of those of the step before, as long as there
        are any. How many steps there were goes with each row, and how many rows: Spark ends at so many, too, and what
        a step makes is held in memory."""
        query, name = node.this, node.alias
        if not isinstance(query, exp.Union) or query.args.get("distinct"):
            raise placed(OnlySparkError(f"the query {name}, which names itself and is no UNION ALL"), node)
        check_arguments(query, "this", "expression", "distinct")
        first = self.made(query.this)
        columns = self.renamed(node.args["alias"], first)
        alias = self.alias()
        self._known[name.casefold()] = Source(sql=alias, columns=columns, hidden=((_STEP, "int"), (_ROWS, "bigint")))
        step = self.made(_with_step(query.expression, name))
        kinds = [kind for _, kind in step.columns]
        if kinds[:-2] != [kind for _, kind in columns]:
            wrong = f"the query {name}, of which a step gives {', '.join(kinds[:-2])}, and the first rows have"
            known = ", ".join(kind for _, kind in columns)
            raise placed(OnlySparkError(f"{wrong} {known}", kind="invalid_sql", remedy="Cast them."), node)
        names = [in_quotes(each) for each, _ in columns]
        places = [f"c{place}" for place in range(len(columns))]
        return (
            f"{alias}({', '.join(names)}, {in_quotes(_STEP)}, {in_quotes(_ROWS)}) AS"
            f" ({self._counted(first.sql, places, '0', '0')} UNION ALL"
            f" {self._counted(step.sql, [*places, 'step', 'made'], 'step', 'made')})"
        )

    def _counted(self, sql: str, given: Sequence[str], step: str, made: str) -> str:
        """The rows of one step, with its number and that of all rows until its end. Of too many no more are made than
        it takes to know it."""
        rows, counted = self.alias(), self.alias()
        places = ", ".join(each for each in given if each not in (step, made))
        too_long = failing(WRONG, f"a query that names itself and does not end within {_MOST_STEPS} steps")
        too_many = failing(WRONG, f"a query that names itself and makes more than {_MOST_MADE:,} rows")
        return (
            f"SELECT {places}, step, made FROM (SELECT {places}, CAST({step} AS INTEGER) AS step,"
            f" {made} + count(*) OVER () AS made FROM (SELECT * FROM ({sql}) LIMIT {_MOST_MADE + 1})"
            f" AS {rows}({', '.join(given)})) AS {counted}"
            f" WHERE CASE WHEN step > {_MOST_STEPS} THEN {too_long} WHEN made > {_MOST_MADE} THEN {too_many}"
            " ELSE true END"
        )

    def renamed(self, alias: exp.Expr | None, made: Made) -> tuple[tuple[str, str], ...]:
        """The columns of an inner query, by their names outside it."""
        if alias is None or not alias.args.get("columns"):
            if alias is not None:
                check_arguments(alias, "this")
            return made.known(self.reach.is_asked)
        check_arguments(alias, "this", "columns")
        names = [each.name for each in alias.args["columns"]]
        if not self.reach.is_asked or len(names) != len(made.columns):
            raise OnlySparkError(quoted(alias))
        return tuple((name, kind) for name, (_, kind) in zip(names, made.columns, strict=True))

    def _cutting(self) -> tuple[str, ...]:
        return ("order", "limit", "offset") if self.reach.is_asked else ()

    def _cut(self, node: exp.Expr, made: Made) -> Made:
        """The rows in an order, and the first of them, where that is said of a query in parentheses, or of several."""
        if not any(node.args.get(each) for each in ("order", "limit", "offset")):
            return made
        alias, names = self.alias(), [name for name, _ in made.known(True)]
        places = {name.casefold(): f"{alias}.c{place}" for place, name in enumerate(names)}
        terms = []
        for each in node.args["order"].expressions if node.args.get("order") else ():
            check_arguments(each, "this", "desc", "nulls_first")
            number = int(each.this.name) - 1 if isinstance(each.this, exp.Literal) and each.this.is_number else -1
            sql = f"{alias}.c{number}" if 0 <= number < len(names) else places.get(each.this.name.casefold())
            if sql is None or not isinstance(each.this, exp.Literal | exp.Column):
                raise OnlySparkError(f"an order by {quoted(each.this)}, which is no column of what is put together")
            terms.append(f"{sql} {'DESC' if each.args.get('desc') else 'ASC'} NULLS {nulls_of(each)}")
        chosen = ", ".join(f"{alias}.c{place} AS {in_quotes(name)}" for place, name in enumerate(names))
        listed = ", ".join(f"c{place}" for place in range(len(names)))
        order = f" ORDER BY {', '.join(terms)}" if terms else ""
        push = None if node.args.get("limit") or node.args.get("offset") else made.push
        sql = f"SELECT {chosen} FROM ({made.sql}) AS {alias}({listed}){order}{limit_of(node)}"
        return replace(made, sql=sql, push=push)

    def _combined(self, node: exp.Expr) -> Made:
        check_arguments(node, "this", "expression", "distinct", "with_", *self._cutting())
        one, other = self.made(node.this), self.made(node.expression)
        if len(one.columns) != len(other.columns):
            raise OnlySparkError("queries of unlike width, put together")
        is_distinct = bool(node.args.get("distinct"))
        if not is_distinct and not isinstance(node, exp.Union):
            raise OnlySparkError(f"{node.key.upper()} ALL")
        kinds = [
            kept_type(self._common((Value(sql="", type=first), Value(sql="", type=second)), node.key.upper()))
            for (_, first), (_, second) in zip(one.columns, other.columns, strict=True)
        ]
        if is_distinct:
            for kind in kinds:
                self._bare.comparable(Value(sql="", type=kind), node.key.upper())
        columns = tuple((name, kind) for (name, _), kind in zip(one.known(self.reach.is_asked), kinds, strict=True))
        word = node.key.upper() if is_distinct else "UNION ALL"
        sql = f"{self._retyped(one, columns)} {word} {self._retyped(other, columns)}"

        def push(condition: exp.Expr) -> None:
            for each in (one, other):
                alike = all(each.columns[place][1] == kinds[place] for place in places_in(condition))
                if each.push is not None and alike:
                    each.push(condition)

        return Made(sql=f"SELECT * FROM ({sql})", columns=columns, push=push)

    def _retyped(self, made: Made, columns: Columns) -> str:
        alias = self.alias()
        places = [f"c{place}" for place in range(len(columns))]
        values = [
            Value(sql=f"{alias}.{place}", type=kind) for place, (_, kind) in zip(places, made.columns, strict=True)
        ]
        chosen = (
            f"{all_typed([value], kind)[0]} AS {in_quotes(name)}"
            for value, (name, kind) in zip(values, columns, strict=True)
        )
        return f"(SELECT {', '.join(chosen)} FROM ({made.sql}) AS {alias}({', '.join(places)}))"

    def _common(self, values: Sequence[Value], what: str) -> str:
        return self._bare.common(values, what)

    def alias(self) -> str:
        self._count += 1
        return f"r{self._count}"

    def relation(self, node: exp.Expr, beside: Select) -> tuple[str, Relation]:
        """The text of a FROM clause, and what it brings. What stands there as LATERAL knows those beside it."""
        if self.reach.is_asked and isinstance(node, exp.Lateral):
            return self._lateral(node, beside)
        if self.reach.is_asked and isinstance(node, exp.Table) and isinstance(node.this, GENERATORS):
            return self._generated(node, beside)
        alias = self.alias()
        named = node.args.get("alias")
        if named is not None:
            check_arguments(named, "this", *(("columns",) if isinstance(node, exp.Subquery | exp.Values) else ()))
        name = named.name if named is not None else None
        match node:
            case exp.Table():
                found = self._table(node)
                relation = Relation(
                    alias=alias,
                    name=(name or node.name).casefold(),
                    columns=found.columns,
                    beside=found.hidden,
                    view=found.view,
                    push=None if found.shared is None else found.shared.hear,
                )
                if found.shared is not None:
                    found.shared.is_named += 1
                self._views += [] if found.view is None else [found.view]
                return f"{found.sql} AS {alias}", relation
            case exp.Subquery() | exp.Values():
                check_arguments(node, "this", "alias", *(("expressions",) if isinstance(node, exp.Values) else ()))
                made = self.made(node if isinstance(node, exp.Values) else node.this)
                columns = self.renamed(named, made)
                relation = Relation(
                    alias=alias, name=name.casefold() if name else None, columns=columns, push=made.push
                )
                if not self.reach.is_asked:
                    return f"({made.sql}) AS {alias}", relation
                return f"({made.sql}) AS {alias}({', '.join(in_quotes(each) for each, _ in columns)})", relation
            case _:
                raise OnlySparkError(quoted(node))

    def _lateral(self, node: exp.Expr, beside: Select) -> tuple[str, Relation]:
        check_arguments(node, "this", "alias")
        if isinstance(node.this, GENERATORS):
            return self._generated(node, beside)
        if not isinstance(node.this, exp.Subquery):
            raise OnlySparkError(quoted(node))
        alias, named = self.alias(), node.args.get("alias")
        made = self.made(node.this.this, outer=beside)
        columns = self.renamed(named, made)
        name = named.name.casefold() if named is not None and named.name else None
        listed = ", ".join(in_quotes(each) for each, _ in columns)
        relation = Relation(alias=alias, name=name, columns=columns, push=made.push)
        return f"LATERAL ({made.sql}) AS {alias}({listed})", relation

    def _generated(self, node: exp.Expr, beside: Select) -> tuple[str, Relation]:
        check_arguments(node, "this", "alias")
        sql, relation, keeps_all = beside.generated(node.this, node.args.get("alias"))
        if keeps_all:
            raise OnlySparkError(f"{quoted(node)}: LATERAL VIEW OUTER says so")
        return f"LATERAL {sql}", relation

    def _table(self, node: exp.Table) -> Source:
        find = self.reach.find_table
        found = None if node.args.get("db") else self._known.get(node.name.casefold())
        if found is None and find is not None:
            return find(node)
        check_arguments(node, "this", "alias")
        if found is None:
            raise OnlySparkError(f"the table {quoted(node)}")
        return found

    @cached_property
    def _bare(self) -> Translator:
        """Where there are no names."""
        return self.translator(None)

    def translator(self, scope: Select | None) -> Translator:
        return Translator(
            scope=scope,  # type: ignore[arg-type]
            partition=self.partition,
            known=self.reach.translated,
            nearly=self.reach.is_asked,
            narrow=self.reach.narrow,
            parameters=self.reach.parameters,
            arguments=self.reach.arguments,
        )
