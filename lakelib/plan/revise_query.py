"""Pure. A revision as one query in Spark's SQL: its rows are the change, each with what becomes of it. Whoever carries
it out, DuckDB or Spark, is told the same."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.merge import MergeEngine
from lakelib.model.predicate import Constant, Predicate
from lakelib.model.schema import HIDDEN_PREFIX, Column
from lakelib.model.table import TableInfo
from lakelib.plan.local_select import conjuncts_of
from lakelib.plan.revise import Action, Beside, Clause, Match, Revision, identity_ids, no_such_row
from lakelib.plan.sql_statement import filled, place_of
from lakelib.plan.store_assignment import all_stored, stored_in
from lakelib.plan.where import bind_condition

Tree = exp.Expr
CHANGE = f"{HIDDEN_PREFIX}change"
"""What becomes of a row: the number of an Action."""
WRONG = f"{HIDDEN_PREFIX}wrong"
"""Why a row cannot be changed so: the number of what is wrong with it; NULL for nothing."""
MOVED, OLDER, LOST = 1, 2, 3
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


class ReviseQuery:
    """The query of a revision, of a table as it is now. `table_node` is what the query reads of it."""

    def __init__(self, revision: Revision, table: TableInfo, source_names: Sequence[str]) -> None:
        self._revision = revision
        self._table = table
        self._source_names = tuple(source_names)
        namespace, name = table.namespace, table.name
        self.table_node = exp.Table(
            this=_identifier(name),
            db=_identifier(namespace),
            alias=exp.TableAlias(this=_identifier(revision.alias)),
        )
        beside = revision.beside
        self.joined = Joined(pairs=(), is_all=False) if beside is None else self._join_of(beside)

    # What is asked

    def tree(self, columns: Sequence[Column] | None = None) -> exp.Expr:
        """The rows of the change, in these columns of the table; None for all."""
        chosen = self._table.schema.columns if columns is None else columns
        listed = [_named(self._chosen(lambda clause: exp.Literal.number(clause.action.value)), CHANGE)]
        listed += [_named(self._made(column), column.name) for column in chosen]
        wrong = self._wrong() if columns is None else None
        if wrong is not None:
            listed.append(_named(wrong, WRONG))
        conditions = list(map(self._condition, self._revision.clauses))
        where = None if exp.true() in conditions else _any_of(conditions)
        return self._select(listed, where, self._from())

    def source_tree(self, listed: Sequence[exp.Expr], **more: exp.Expr) -> exp.Expr:
        """A query over the source alone."""
        assert self._revision.beside is not None
        return self._select(listed, None, {"from_": exp.From(this=self._revision.beside.table.copy())}, **more)

    def upserted(self) -> exp.Expr:
        """The source's rows as they are, in the table's columns."""
        columns = self._table.schema.columns
        return self.source_tree([_named(stored_in(self._of_source(each), each, ""), each.name) for each in columns])

    def repeated(self) -> exp.Expr:
        """Some of what the source has twice of what ON goes by."""
        values = [each.value.copy() for each in self.joined.pairs]
        there = [exp.Not(this=_is_null(each.value.copy())) for each in self.joined.pairs if not each.with_null]
        query = self.source_tree(
            [_named(value, f"k{place}") for place, value in enumerate(values)],
            group=exp.Group(expressions=[value.copy() for value in values]),
            having=exp.Having(
                this=exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
            ),
            limit=exp.Limit(expression=exp.Literal.number(1)),
        )
        if there:
            query.set("where", exp.Where(this=_all_of(there)))
        return query

    def sought(self, columns: Sequence[Column], most: int) -> exp.Expr:
        """What the source has of columns that ON goes by, each once; so many at most."""
        return self.source_tree(
            [_named(self._sought(column), f"k{place}") for place, column in enumerate(columns)],
            distinct=exp.Distinct(),
            limit=exp.Limit(expression=exp.Literal.number(most)),
        )

    def range_of(self, column: Column) -> exp.Expr:
        """The lowest and the highest of them."""
        low, high = exp.Min(this=self._sought(column)), exp.Max(this=self._sought(column))
        return self.source_tree([_named(low, "low"), _named(high, "high")])

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
            self._is_joined(each.column, self._given(clause, each.column))
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

    def _join_of(self, beside: Beside) -> Joined:
        pairs: list[Pair] = []
        conjuncts = conjuncts_of(beside.on)
        for each in conjuncts:
            if isinstance(each, exp.EQ | exp.NullSafeEQ):
                for one, other in ((each.this, each.expression), (each.expression, each.this)):
                    column = self._column_of_table(one)
                    if column is not None and self._is_of_source(other):
                        value, with_null = self._of_side(other, beside.alias), isinstance(each, exp.NullSafeEQ)
                        pairs.append(Pair(column=column, value=value, with_null=with_null))
                        break
        return Joined(pairs=tuple(pairs), is_all=len(pairs) == len(conjuncts))

    def _column_of_table(self, node: exp.Expr) -> Column | None:
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        found = self._table.schema.find(node.name)
        if node.table:
            return found if node.table.casefold() == self._revision.alias.casefold() else None
        return None if self._has(node.name) else found

    def _is_of_source(self, node: exp.Expr) -> bool:
        assert self._revision.beside is not None
        alias = self._revision.beside.alias.casefold()
        if node.find(exp.Query, exp.Rand) is not None:
            return False
        columns = list(node.find_all(exp.Column))
        return bool(columns) and all(
            each.table.casefold() == alias
            if each.table
            else self._has(each.name) and self._table.schema.find(each.name) is None
            for each in columns
        )

    def _has(self, name: str) -> bool:
        return name.casefold() in {each.casefold() for each in self._source_names}

    def _from(self) -> dict[str, object]:
        beside = self._revision.beside
        if beside is None:
            return {"from_": exp.From(this=self.table_node)}
        source = beside.table.copy()
        if self._has_clause(Match.TABLE):
            inner = exp.Select(expressions=[exp.Star(), _named(exp.true(), _IS_THERE)], from_=exp.From(this=source))
            source = exp.Subquery(this=inner, alias=exp.TableAlias(this=_identifier(beside.alias)))
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
        parts = [*self._matched(clause.match), *([] if given is None else [self._own(given, clause)])]
        return _all_of(parts) if parts else exp.true()

    def _matched(self, match: Match) -> Iterator[exp.Expr]:
        beside = self._revision.beside
        if beside is None or {each.match for each in self._revision.clauses} == {Match.BOTH}:
            return
        key = exp.Is(this=self._of_table(self._table.primary_key[0]), expression=exp.null())
        if match is Match.SOURCE:
            yield key
            return
        is_lone = exp.Is(this=_column(beside.alias, _IS_THERE), expression=exp.null())
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
        return self._chosen(lambda clause: self._value(clause, column), column)

    def _value(self, clause: Clause, column: Column) -> exp.Expr:
        table = self._table
        told = (*table.primary_key_ids, *table.partition_ids, *table.sequence_ids)
        if clause.action is Action.DELETE:
            return self._of_table(column) if column.id in told else stored_in(exp.null(), column, "")
        given = self._given(clause, column)
        if clause.action is Action.INSERT:
            return stored_in(exp.null() if given is None else given[0], column, "" if given is None else given[1])
        if given is None or self._is_joined(column, given):
            return self._of_table(column)
        return stored_in(given[0], column, given[1])

    def _given(self, clause: Clause, column: Column) -> tuple[exp.Expr, str] | None:
        """What the clause says that the column is to be, and where it says so."""
        if clause.values is None:
            return self._of_source(column), ""
        for each in clause.values:
            if each.column.name.casefold() == column.name.casefold():
                return self._own(each.value, clause), place_of(each.value) or each.column.place
        return None

    def _is_joined(self, column: Column, given: tuple[exp.Expr, str] | None) -> bool:
        """Whether that is what ON says the column is equal to."""
        value = self.joined.value_of(column)
        return value is not None and given is not None and _alike(value, given[0])

    # What cannot be

    def _wrong(self) -> exp.Expr | None:
        found = [(clause, self._wrong_with(clause)) for clause in self._revision.clauses]
        if all(wrong is None for _, wrong in found):
            return None
        branches = [
            exp.If(this=self._condition(clause), true=exp.null() if wrong is None else wrong) for clause, wrong in found
        ]
        return exp.Case(ifs=branches)

    def _wrong_with(self, clause: Clause) -> exp.Expr | None:
        if clause.action is not Action.UPDATE:
            return None
        table = self._table
        moved = [
            exp.Not(this=exp.NullSafeEQ(this=self._value(clause, column), expression=self._of_table(column)))
            for column in table.schema.select(identity_ids(table))
            if self._is_changed(clause, column)
        ]
        older = [self._older(clause, table.sequence_by)] if self._any_changed(clause, table.sequence_by) else []
        lost: list[exp.Expr] = []
        if table.merge.engine is MergeEngine.PARTIAL_UPDATE:
            lost = list(self._lost(clause))
            older += [
                self._older(clause, sequence)
                for group in table.merge.groups
                if self._any_changed(clause, sequence := table.schema.select(group.sequence))
            ]
        told: list[tuple[int, Sequence[exp.Expr]]] = [(MOVED, moved), (OLDER, older), (LOST, lost)]
        branches = [
            exp.If(this=_any_of(conditions), true=exp.Literal.number(number))
            for number, conditions in told
            if conditions
        ]
        return exp.Case(ifs=branches) if branches else None

    def _is_changed(self, clause: Clause, column: Column) -> bool:
        given = self._given(clause, column)
        return given is not None and not self._is_joined(column, given)

    def _any_changed(self, clause: Clause, columns: Sequence[Column]) -> bool:
        return any(self._is_changed(clause, column) for column in columns)

    def _older(self, clause: Clause, columns: Sequence[Column]) -> exp.Expr:
        """Whether what the columns become is lower than what they are: NULL is the lowest."""
        first, *rest = columns
        new, old = self._value(clause, first), self._of_table(first)
        is_null = exp.Is(this=new.copy(), expression=exp.null())
        was_null = exp.Is(this=old.copy(), expression=exp.null())
        lower = exp.Coalesce(this=exp.LT(this=new.copy(), expression=old.copy()), expressions=[exp.false()])
        below = _or(_and(is_null, exp.Not(this=was_null)), lower)
        if not rest:
            return below
        same = exp.NullSafeEQ(this=new.copy(), expression=old.copy())
        return _or(below, _and(same, self._older(clause, rest)))

    def _lost(self, clause: Clause) -> Iterator[exp.Expr]:
        """What an upsert cannot say to a table with partial updates: NULL in place of a value, and anything of a group
        without its sequence."""
        table = self._table
        outside = [
            column
            for column in table.schema.columns
            if column.id not in {*table.merge.group_ids, *table.primary_key_ids, *table.partition_ids}
            and column.id not in table.sequence_ids
        ]
        for column in outside:
            if self._is_changed(clause, column):
                yield _and(_is_null(self._value(clause, column)), exp.Not(this=_is_null(self._of_table(column))))
        for group in table.merge.groups:
            members = table.schema.select((*group.sequence, *group.columns))
            if self._any_changed(clause, members):
                untold = [_is_null(self._value(clause, each)) for each in table.schema.select(group.sequence)]
                said = [
                    exp.Not(this=_is_null(value))
                    for each in members
                    for value in (self._value(clause, each), self._of_table(each))
                ]
                yield _and(_all_of(untold), _any_of(said))

    # Names

    def _own(self, node: exp.Expr, clause: Clause) -> exp.Expr:
        """As it stands in a clause, where rows of one side alone are told by that side's names."""
        beside = self._revision.beside
        if clause.match is Match.BOTH or beside is None:
            return node.copy()
        is_source = clause.match is Match.SOURCE
        side, other = (beside.alias, self._revision.alias) if is_source else (self._revision.alias, beside.alias)
        for each in _columns_of(node):
            if each.table and each.table.casefold() == other.casefold():
                raise no_such_row(each, clause)
        return self._of_side(node, side)

    def _of_side(self, node: exp.Expr, alias: str) -> exp.Expr:
        """Columns without a table are those of that side, outside of inner queries."""
        beside = self._revision.beside
        names = self._source_names if beside is not None and alias == beside.alias else self._table.schema.names
        known = {name.casefold() for name in names}
        own = node.copy()
        for each in list(_columns_of(own)):
            if not each.table and each.name.casefold() in known:
                each.set("table", _identifier(alias))
        return own

    def _of_table(self, column: Column) -> exp.Expr:
        return _column(self._revision.alias, column.name)

    def _of_source(self, column: Column) -> exp.Expr:
        assert self._revision.beside is not None
        name = next(each for each in self._source_names if each.casefold() == column.name.casefold())
        return _column(self._revision.beside.alias, name)


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


def all_names(revision: Revision) -> Tree:
    """A query that names all tables that the revision does."""
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


def _columns_of(node: exp.Expr) -> Iterator[exp.Column]:
    for each in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(each, exp.Column):
            yield each


def _alike(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether both say the same, whatever the case of their names."""

    def folded(node: exp.Expr) -> str:
        own = node.copy()
        for each in own.find_all(exp.Identifier):
            each.set("this", each.name.casefold())
            each.set("quoted", True)
        return own.sql(dialect="spark")

    return folded(one) == folded(other)


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=_identifier(name))


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=_identifier(name), table=_identifier(table))


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _and(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.And(this=_inside(one), expression=_inside(other))


def _or(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Or(this=_inside(one), expression=_inside(other))


def _all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(_and, conditions)


def _any_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(_or, conditions)


def _inside(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.And | exp.Or) else node
