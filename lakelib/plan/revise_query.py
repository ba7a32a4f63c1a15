"""Pure. A revision as one query in Spark's SQL: its rows are the change, each with what becomes of it. Whoever carries
it out, DuckDB or Spark, is told the same."""

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import Constant, Predicate
from lakelib.model.schema import HIDDEN_PREFIX, Column
from lakelib.model.table import TableInfo
from lakelib.plan.asked import Reference
from lakelib.plan.revise import Action, Clause, Match, Revision
from lakelib.plan.revise_join import join_of
from lakelib.plan.revise_names import Names, all_of, any_of, column_of, identifier, is_null, named
from lakelib.plan.revise_values import Values
from lakelib.plan.sql_statement import Parsed, query_of
from lakelib.plan.sql_values import filled
from lakelib.plan.store_assignment import all_stored, stored_in
from lakelib.plan.where import bind_condition

Tree = exp.Expr
CHANGE = f"{HIDDEN_PREFIX}change"
"""What becomes of a row: the number of an Action."""
WRONG = f"{HIDDEN_PREFIX}wrong"
"""Why a row cannot be changed so: the number of what is wrong with it; NULL for nothing."""
_IS_THERE = f"{HIDDEN_PREFIX}source"
_SIDES: dict[frozenset[Match], str] = {
    frozenset({Match.BOTH}): "",
    frozenset({Match.SOURCE}): "RIGHT",
    frozenset({Match.BOTH, Match.SOURCE}): "RIGHT",
    frozenset({Match.TABLE}): "LEFT",
    frozenset({Match.BOTH, Match.TABLE}): "LEFT",
}
"""Which side's rows the join keeps, by which rows there are clauses for; else both. The table is the left one: engines
hold the right one in memory."""


class ReviseQuery:
    """The query of a revision, of a table as it is now. `table_node` is what the query reads of it."""

    def __init__(self, revision: Revision, table: TableInfo, source_names: Sequence[str]) -> None:
        self._revision = revision
        self._table = table
        namespace, name = table.namespace, table.name
        self.table_node = exp.Table(
            this=identifier(name),
            db=identifier(namespace),
            alias=exp.TableAlias(this=identifier(revision.alias)),
        )
        self._names = Names(revision, table, source_names)
        self.joined = join_of(self._names)
        self._values = Values(self._names, self.joined)

    # What is asked

    def tree(self, columns: Sequence[Column] | None = None) -> exp.Expr:
        """The rows of the change, in these columns of the table; None for all."""
        chosen = self._table.schema.columns if columns is None else columns
        listed = [named(self._chosen(lambda clause: exp.Literal.number(clause.action.value)), CHANGE)]
        listed += [named(self._made(column), column.name) for column in chosen]
        wrong = self._wrong() if columns is None else None
        if wrong is not None:
            listed.append(named(wrong, WRONG))
        conditions = list(map(self._condition, self._revision.clauses))
        where = None if exp.true() in conditions else any_of(conditions)
        return self._select(listed, where, self._from())

    def source_tree(self, listed: Sequence[exp.Expr], **more: exp.Expr) -> exp.Expr:
        """A query over the source alone."""
        assert self._revision.beside is not None
        return self._select(listed, None, {"from_": exp.From(this=self._revision.beside.table.copy())}, **more)

    def upserted(self) -> exp.Expr:
        """The source's rows as they are, in the table's columns."""
        columns = self._table.schema.columns
        return self.source_tree(
            [named(stored_in(self._names.of_source(each), each, ""), each.name) for each in columns]
        )

    def repeated(self) -> exp.Expr:
        """Some of what the source has twice of what ON goes by."""
        values = [each.value.copy() for each in self.joined.pairs]
        there = [exp.Not(this=is_null(each.value.copy())) for each in self.joined.pairs if not each.with_null]
        query = self.source_tree(
            [named(value, f"k{place}") for place, value in enumerate(values)],
            group=exp.Group(expressions=[value.copy() for value in values]),
            having=exp.Having(
                this=exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
            ),
            limit=exp.Limit(expression=exp.Literal.number(1)),
        )
        if there:
            query.set("where", exp.Where(this=all_of(there)))
        return query

    def sought(self, columns: Sequence[Column], most: int, *, each_once: bool = True) -> exp.Expr:
        """What the source has of columns that ON goes by, of rows that may belong to one of the table; so many at
        most."""
        there = [
            exp.Not(this=is_null(each.value.copy()))
            for each in self.joined.pairs
            if each.column in columns or not (each.with_null and self._may_be_null(each.column))
        ]
        query = self.source_tree(
            [named(self._sought(column), f"k{place}") for place, column in enumerate(columns)],
            limit=exp.Limit(expression=exp.Literal.number(most)),
        )
        query.set("where", exp.Where(this=all_of(there)))
        if each_once:
            query.set("distinct", exp.Distinct())
        return query

    def range_of(self, column: Column) -> exp.Expr:
        """The lowest and the highest of them."""
        low, high = exp.Min(this=self._sought(column)), exp.Max(this=self._sought(column))
        return self.source_tree([named(low, "low"), named(high, "high")])

    def _sought(self, column: Column) -> exp.Expr:
        value = self.joined.value_of(column)
        assert value is not None
        return value.copy()

    # What is so

    @property
    def is_told_by_key(self) -> bool:
        """Whether ON goes by all of the key, and its partition at most, so that no two rows of the table belong to one
        of the source, nor two of a source that has each once to one of the table."""
        ids = self.joined.ids
        key, place = set(self._table.primary_key_ids), set(self._table.partition_ids)
        return self.joined.is_all and len(set(ids)) == len(ids) and key <= set(ids) <= key | place

    @property
    def inserts_new_keys(self) -> bool:
        """Whether what is inserted for a row of the source that belongs to none cannot have the key of another row, as
        long as it is stored as it is compared."""
        inserts = [each for each in self._revision.clauses if each.action is Action.INSERT]
        if not inserts:
            return True
        knows = self.is_told_by_key
        if self._table.options.cross_partition:
            knows = knows and set(self.joined.ids) == set(self._table.primary_key_ids)
        return knows and all(
            self._values.is_joined(each.column, self._values.given(clause, each.column))
            and (each.with_null or not self._may_be_null(each.column))
            for clause in inserts
            for each in self.joined.pairs
        )

    def _may_be_null(self, column: Column) -> bool:
        return column.nullable and column.id not in self._table.primary_key_ids

    @property
    def is_upsert(self) -> bool:
        """Whether it comes to an upsert of the source: each of its rows, and nothing else of the table's, is written as
        it is; where versions have an order of their own, it may take place behind what is there."""
        table, clauses = self._table, self._revision.clauses
        if {(each.match, each.action) for each in clauses} != {
            (Match.BOTH, Action.UPDATE),
            (Match.SOURCE, Action.INSERT),
        }:
            return False
        is_whole = all(each.condition is None and each.values is None for each in clauses)
        is_newest = table.merge.is_newest and not table.sequence_ids
        stays = table.options.cross_partition or set(table.partition_ids) <= set(self.joined.ids)
        return is_whole and is_newest and stays and self.inserts_new_keys

    # From

    def _from(self) -> dict[str, object]:
        beside = self._revision.beside
        if beside is None:
            return {"from_": exp.From(this=self.table_node)}
        source = beside.table.copy()
        if self._has_clause(Match.TABLE):
            inner = exp.Select(expressions=[exp.Star(), named(exp.true(), _IS_THERE)], from_=exp.From(this=source))
            source = exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier(beside.alias)))
        side = _SIDES.get(frozenset(each.match for each in self._revision.clauses), "FULL")
        join = exp.Join(this=source, side=side, kind="", on=beside.on.copy())
        return {"from_": exp.From(this=self.table_node), "joins": [join]}

    def _has_clause(self, match: Match) -> bool:
        return any(each.match is match for each in self._revision.clauses)

    def _select(
        self, listed: Sequence[exp.Expr], where: exp.Expr | None, source: dict[str, object], **more: exp.Expr
    ) -> exp.Expr:
        tree = exp.Select(expressions=list(listed), **source, **more)
        if where is not None:
            tree.set("where", exp.Where(this=where))
        if self._revision.before is not None:
            tree.set("with_", self._revision.before.copy())
        return tree

    # Which rows, and what becomes of them

    def _condition(self, clause: Clause) -> exp.Expr:
        """Whether a clause is for a row, if none before it is."""
        given = clause.condition
        parts = [*self._matched(clause.match), *([] if given is None else [self._names.own(given, clause)])]
        return all_of(parts) if parts else exp.true()

    def _matched(self, match: Match) -> Iterator[exp.Expr]:
        beside = self._revision.beside
        if beside is None or {each.match for each in self._revision.clauses} == {Match.BOTH}:
            return
        key = exp.Is(this=self._names.of_table(self._table.primary_key[0]), expression=exp.null())
        if match is Match.SOURCE:
            yield key
            return
        is_lone = exp.Is(this=column_of(beside.alias, _IS_THERE), expression=exp.null())
        if self._has_clause(Match.TABLE):
            yield is_lone if match is Match.TABLE else exp.Not(this=is_lone)
        if match is Match.BOTH:
            yield exp.Not(this=key)

    def _chosen(self, value: Callable[[Clause], exp.Expr], column: Column | None = None) -> exp.Expr:
        """What each clause makes of it; alike for all, or by which clause is for the row."""
        clauses = self._revision.clauses
        values = [value(each) for each in clauses]
        if all(each == values[0] for each in values):
            return values[0]
        branches = [
            exp.If(this=self._condition(clause), true=made) for clause, made in zip(clauses, values, strict=True)
        ]
        case = exp.Case(ifs=branches)
        return case if column is None else all_stored(case)

    def _made(self, column: Column) -> exp.Expr:
        return self._chosen(lambda clause: self._values.value(clause, column), column)

    # What cannot be

    def _wrong(self) -> exp.Expr | None:
        found = [(clause, self._values.wrong_with(clause)) for clause in self._revision.clauses]
        if all(wrong is None for _, wrong in found):
            return None
        branches = [
            exp.If(this=self._condition(clause), true=exp.null() if wrong is None else wrong) for clause, wrong in found
        ]
        return exp.Case(ifs=branches)


def bound_where(revision: Revision, table: TableInfo) -> Predicate | None:
    """What the one condition says of the table's rows, as a scan's predicate; None if it says more than that can."""
    (clause,) = revision.clauses
    if clause.condition is None:
        return Constant(value=True)
    own = filled(clause.condition.copy(), revision.parameters)
    if own.find(exp.Query) is not None:
        return None
    for each in own.find_all(exp.Column):
        if each.table.casefold() == revision.alias.casefold():
            each.set("table", None)
    try:
        return bind_condition(own, table.schema)
    except InvalidInputError:
        return None


def references_of(revision: Revision) -> tuple[Reference, ...]:
    """The tables that it names, besides the one that it changes."""
    parsed = Parsed(text=revision.text, tree=_all_names(revision), values=revision.parameters, is_explained=False)
    return query_of(parsed).references


def _all_names(revision: Revision) -> Tree:
    """A query that names all of them."""
    parts = [each.condition for each in revision.clauses if each.condition is not None]
    parts += [each.value for clause in revision.clauses for each in clause.values or ()]
    tree = exp.Select(expressions=[each.copy() for each in parts])
    if revision.beside is not None:
        tree.set("from_", exp.From(this=revision.beside.table.copy()))
        tree.append("expressions", revision.beside.on.copy())
    if revision.before is not None:
        tree.set("with_", revision.before.copy())
    return tree


def all_of_source(revision: Revision) -> Tree:
    """The source's rows, with all columns."""
    assert revision.beside is not None
    tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=revision.beside.table.copy()))
    if revision.before is not None:
        tree.set("with_", revision.before.copy())
    return tree
