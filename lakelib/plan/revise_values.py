"""Pure. What a clause of a revision makes of each column, and of which rows that cannot be."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from lakelib.model.merge import MergeEngine
from lakelib.model.schema import Column
from lakelib.plan.revise import Action, Clause, identity_ids
from lakelib.plan.revise_join import Joined
from lakelib.plan.revise_names import Names, alike, all_of, any_of, both, either, is_null
from lakelib.plan.sql_wrong import place_of
from lakelib.plan.store_assignment import stored_in

MOVED, OLDER, LOST = 1, 2, 3
"""What can be wrong with a row that is to be updated."""


class Values:
    """What becomes of the columns, clause by clause."""

    def __init__(self, names: Names, joined: Joined) -> None:
        self._names = names
        self._joined = joined

    def value(self, clause: Clause, column: Column) -> exp.Expr:
        """As it is stored."""
        table = self._names.table
        told = (*table.primary_key_ids, *table.partition_ids, *table.sequence_ids)
        if clause.action is Action.DELETE:
            return self._names.of_table(column) if column.id in told else stored_in(exp.null(), column, "")
        given = self.given(clause, column)
        if clause.action is Action.INSERT:
            return stored_in(exp.null() if given is None else given[0], column, "" if given is None else given[1])
        if given is None or self.is_joined(column, given):
            return self._names.of_table(column)
        return stored_in(given[0], column, given[1])

    def given(self, clause: Clause, column: Column) -> tuple[exp.Expr, str] | None:
        """What the clause says that the column is to be, and where it says so."""
        if clause.values is None:
            return self._names.of_source(column), ""
        for each in clause.values:
            if each.column.name.casefold() == column.name.casefold():
                return self._names.own(each.value, clause), place_of(each.value) or each.column.place
        return None

    def is_joined(self, column: Column, given: tuple[exp.Expr, str] | None) -> bool:
        """Whether that is what ON says the column is equal to."""
        value = self._joined.value_of(column)
        return value is not None and given is not None and alike(value, given[0])

    def wrong_with(self, clause: Clause) -> exp.Expr | None:
        """The number of what is wrong with a row that it is for; None if nothing can be."""
        if clause.action is not Action.UPDATE:
            return None
        table = self._names.table
        moved = [
            exp.Not(this=exp.NullSafeEQ(this=self.value(clause, column), expression=self._names.of_table(column)))
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
            exp.If(this=any_of(conditions), true=exp.Literal.number(number))
            for number, conditions in told
            if conditions
        ]
        return exp.Case(ifs=branches) if branches else None

    def _is_changed(self, clause: Clause, column: Column) -> bool:
        given = self.given(clause, column)
        return given is not None and not self.is_joined(column, given)

    def _any_changed(self, clause: Clause, columns: Sequence[Column]) -> bool:
        return any(self._is_changed(clause, column) for column in columns)

    def _older(self, clause: Clause, columns: Sequence[Column]) -> exp.Expr:
        """Whether what the columns become is lower than what they are: NULL is the lowest."""
        first, *rest = columns
        new, old = self.value(clause, first), self._names.of_table(first)
        is_null = exp.Is(this=new.copy(), expression=exp.null())
        was_null = exp.Is(this=old.copy(), expression=exp.null())
        lower = exp.Coalesce(this=exp.LT(this=new.copy(), expression=old.copy()), expressions=[exp.false()])
        below = either(both(is_null, exp.Not(this=was_null)), lower)
        if not rest:
            return below
        same = exp.NullSafeEQ(this=new.copy(), expression=old.copy())
        return either(below, both(same, self._older(clause, rest)))

    def _lost(self, clause: Clause) -> Iterator[exp.Expr]:
        """What an upsert cannot say to a table with partial updates: NULL in place of a value, and anything of a group
        without its sequence."""
        table = self._names.table
        outside = [
            column
            for column in table.schema.columns
            if column.id not in {*table.merge.group_ids, *table.primary_key_ids, *table.partition_ids}
            and column.id not in table.sequence_ids
        ]
        for column in outside:
            if self._is_changed(clause, column):
                yield both(is_null(self.value(clause, column)), exp.Not(this=is_null(self._names.of_table(column))))
        for group in table.merge.groups:
            members = table.schema.select((*group.sequence, *group.columns))
            if self._any_changed(clause, members):
                untold = [is_null(self.value(clause, each)) for each in table.schema.select(group.sequence)]
                said = [
                    exp.Not(this=is_null(value))
                    for each in members
                    for value in (self.value(clause, each), self._names.of_table(each))
                ]
                yield both(all_of(untold), any_of(said))
