"""Part of revisions: what is read, and whether the rows of the change are each for a row of its own. Writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.predicate import And, Compare, Comparison, In, Predicate
from lakelib.model.schema import Column
from lakelib.model.table import MAX_DEPTH, TableInfo
from lakelib.ops import read, sql
from lakelib.ops.delete import rows_with_keys
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_plan import Given, QueryPlan, Within
from lakelib.plan.asked import AskedQuery, TableName
from lakelib.plan.literals import never
from lakelib.plan.local_types import INTEGERS
from lakelib.plan.revise import Action, Match, Revision, check_revision, check_update, has
from lakelib.plan.revise_query import CHANGE, ReviseQuery, Tree, all_of_source, bound_where, references_of
from lakelib.plan.sql_references import GIVEN, key_of
from lakelib.plan.sql_statement import Parsed, Statement, query_of
from lakelib.rows.convert import shown_key
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.key_set import KeySet
from lakelib.rows.types import arrow_type
from lakelib.rows.values import raw_values

_MOST_KEYS = 10_000
"""Of so many keys the files that may have them are told by hash, key range and Bloom filter; of more by range alone."""
_MOST_HELD = 4_000_000
_MOST_HELD_SHARE = 8
"""Of so many keys, and of at most one for so many rows of the table, lakelib takes the rows out of the files: it looks
at their other columns where keys are found, and drops what is not sought before it is merged. Of more the engine reads
all."""
_MOST_PARTITIONS = 1_000
_WORTH_A_RANGE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a revision comes to, of the tables at one moment."""

    table: TableInfo
    plan: QueryPlan
    """Gives the rows of the change."""
    is_upsert: bool = False
    """They take the place of what is there, whatever that is: nothing of the table is read."""
    replaces: Predicate | None = None
    """The rows of a table without a key that they take the place of."""
    is_counted: bool = True
    """Whether each of them is for another row."""


def plan_revision(runtime: Runtime, ref_name: str, table_id: int, revision: Revision, given: Given | None) -> Planned:
    """Raises InvalidInputError for what cannot be meant, or cannot be done to a table of this kind, and where two rows
    would change one; NotFoundError for tables that are not there."""
    return _Planner(runtime, ref_name, table_id, revision, given).planned()


def check_planned(runtime: Runtime, ref_name: str, table_id: int, revision: Revision) -> None:
    """Raises what `plan_revision` does, as far as no rows have to be looked at."""
    _Planner(runtime, ref_name, table_id, revision, None).check()


class _Planner:
    def __init__(
        self, runtime: Runtime, full_name: str, table_id: int, revision: Revision, given: Given | None
    ) -> None:
        self._runtime, self._revision = runtime, revision
        self._given = {} if given is None else {GIVEN: given}
        self._found = sql.look_up(runtime, [*references_of(revision), TableName(name=full_name, place="")])
        self._table = self._found[full_name]
        if self._table.id != table_id:
            raise NotFoundError(f"{full_name} is another table by now.", kind="table_not_found", remedy="Open it anew.")
        self._query = ReviseQuery(revision, self._table, self._source_names())
        self._is_known_apart = False
        """Whether the source is known to have no key twice, without being asked for it."""

    def check(self) -> None:
        self._check_said()
        if self._table.primary_key_ids:
            sql.columns_of(self._runtime, self._statement(self._query.tree()), self._found, self._given)
        else:
            self._of_rows_without_key()

    def _check_said(self) -> None:
        check_revision(self._revision, self._table, self._source_names())
        if self._revision.beside is None:
            check_update(self._revision, self._table)

    def planned(self) -> Planned:
        table, query = self._table, self._query
        self._check_said()
        if not table.primary_key_ids:
            return self._of_rows_without_key()
        if query.is_upsert and not self._reads_itself and self._keys_fit and not self._is_repeated():
            return Planned(table=table, plan=self._planned(query.upserted()), is_upsert=True, is_counted=False)
        within = self._within()
        doubles = self._check_apart(within)
        return Planned(table=table, plan=self._planned(query.tree(), within), is_counted=not doubles)

    @property
    def _reads_itself(self) -> bool:
        """Whether the source is made of the table's own rows: then it depends on them, whatever it is merged into."""
        references = self._statement(all_of_source(self._revision)).references
        return any(each.name == self._table.full_name for each in references)

    def _statement(self, tree: Tree) -> Statement:
        return query_of(
            Parsed(text=self._revision.text, tree=tree, values=self._revision.parameters, is_explained=False)
        )

    def _planned(self, tree: Tree, within: Within | None = None) -> QueryPlan:
        statement = self._statement(tree)
        limits = {} if within is None else {key_of(self._query.table_node): within}
        return sql.plan_statement(
            self._runtime, statement, self._found, self._as_stored, given=self._given, within=limits
        )

    def _as_stored(self, query: AskedQuery) -> AskedQuery:
        """A column that is NULL in all rows has the table's type."""
        kinds = {column.name: column.type for column in self._table.schema.columns}
        typed = zip(query.columns, query.types, strict=True)
        columns = tuple((name, kinds.get(name, "int") if kind == "void" else told) for (name, told), kind in typed)
        return replace(query, columns=columns)

    def _source_names(self) -> tuple[str, ...]:
        if self._revision.beside is None:
            return ()
        columns = sql.columns_of(
            self._runtime, self._statement(all_of_source(self._revision)), self._found, self._given
        )
        return tuple(name for name, _ in columns)

    def _ask(self, tree: Tree, within: Within | None = None) -> pa.Table:
        plan = self._planned(tree, within)
        return pa.Table.from_batches(sql.stream_batches(self._runtime, plan), plan.schema)

    # Rows without a key

    def _of_rows_without_key(self) -> Planned:
        """The rows for which a predicate is TRUE make way for what they become."""
        table, (clause, *others) = self._table, self._revision.clauses
        where = None if self._revision.beside else bound_where(self._revision, table)
        if others or where is None or clause.action is not Action.UPDATE:
            raise InvalidInputError(
                f"{table.full_name} has no primary key, by which rows are told: where it is changed, by other rows or"
                " by an inner query, nobody could say which row it is.",
                kind="no_primary_key",
                remedy="Create it with a primary_key; or overwrite rows by a condition: overwrite(rows, where=…).",
            )
        everywhere = replace(self._revision, clauses=(replace(clause, condition=None),))
        self._query = ReviseQuery(everywhere, table, ())
        plan = self._planned(self._query.tree(), Within(predicate=where, is_exact=True))
        return Planned(table=table, plan=plan, replaces=where)

    # Which rows it can be about

    def _within(self) -> Within | None:
        """What the source says of the table's rows, unless those are asked for that it does not have."""
        clauses = self._revision.clauses
        if self._revision.beside is None or any(each.match is Match.TABLE for each in clauses):
            return None
        key_ids = self._table.primary_key_ids
        pairs = [each for each in self._query.joined.pairs if self._is_own_type(each.column)]
        keys = [each.column for each in pairs if each.column.id in key_ids]
        places = [each for each in pairs if each.column.id in self._table.partition_ids and each.column not in keys]
        parts: list[Predicate] = []
        prefixes: tuple[int, ...] | None = None
        among: KeySet | None = None
        if keys:
            found = self._sought(keys, _MOST_KEYS)
            if found is None:
                parts += self._ranges(keys)
                among = self._held(keys)
            else:
                parts += [_one_of(column, values) for column, values in zip(keys, found, strict=True)]
                if self._are_whole_keys(keys):
                    by_id = {column.id: values for column, values in zip(keys, found, strict=True)}
                    hashes = key_hashes([by_id[each] for each in self._table.primary_key_ids])
                    prefixes = tuple(sorted(set(hash_prefixes(hashes, MAX_DEPTH).tolist())))
        for pair in places:
            few = None if pair.with_null else self._sought([pair.column], _MOST_PARTITIONS)
            if few is not None:
                parts.append(_one_of(pair.column, few[0]))
        if not parts and among is None:
            return None
        return Within(
            predicate=And(parts=tuple(parts)) if parts else None,
            hash_prefixes=prefixes,
            among=among,
            is_exact=prefixes is not None or among is not None,
        )

    def _are_whole_keys(self, columns: Sequence[Column]) -> bool:
        """One of them may be there twice."""
        return {column.id for column in columns} >= {*self._table.primary_key_ids}

    def _held(self, columns: Sequence[Column]) -> KeySet | None:
        """All keys that the source has, if they are few beside those of the table."""
        if not self._are_whole_keys(columns) or self._runtime.session is not None:
            return None
        most = min(_MOST_HELD, _row_count_of(self._whole) // _MOST_HELD_SHARE)
        found = self._sought(columns, most, each_once=False) if most > _MOST_KEYS else None
        if found is None:
            return None
        by_id = {column.id: values for column, values in zip(columns, found, strict=True)}
        held = KeySet([[by_id[each] for each in self._table.primary_key_ids]])
        self._is_known_apart = held.is_of_unlike
        return held

    def _sought(self, columns: Sequence[Column], most: int, *, each_once: bool = True) -> list[pa.Array] | None:
        """What the source has of the columns, if that is not too much, and can be a value of the table's. A row with
        NULL belongs to none."""
        rows = self._ask(self._query.sought(columns, most + 1, each_once=each_once))
        if rows.num_rows > most:
            return None
        try:
            return [
                values.cast(arrow_type(column.type)).combine_chunks()
                for column, values in zip(columns, rows.columns, strict=True)
            ]
        except pa.ArrowException:
            return None

    def _ranges(self, columns: Sequence[Column]) -> list[Predicate]:
        """Between which keys the source's are, if most of the table's files are not there. Who asks for keys has rows
        merged, which takes longer than to leave masked ones out."""
        ranges = [each for column in columns if (each := self._range(column)) is not None]
        if not ranges:
            return []
        request = read.ScanRequest(columns=self._key_names, where=And(parts=tuple(ranges)))
        near = read.plan_scan(self._runtime, self._table, request)
        return ranges if _size_of(near) < _size_of(self._whole) * _WORTH_A_RANGE else []

    @cached_property
    def _whole(self) -> read.ScanPlan:
        return read.plan_scan(self._runtime, self._table, read.ScanRequest(columns=self._key_names))

    @property
    def _key_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._table.primary_key)

    def _range(self, column: Column) -> Predicate | None:
        row = self._ask(self._query.range_of(column))
        try:
            found = row.combine_chunks().cast(pa.schema([(name, arrow_type(column.type)) for name in row.column_names]))
        except pa.ArrowException:
            return None
        low, high = (raw_values(found.column(name).combine_chunks())[0] for name in ("low", "high"))
        if low is None or high is None:
            return never(column)
        ends = ((Comparison.GE, low), (Comparison.LE, high))
        return And(parts=tuple(Compare(column=column, op=op, value=value) for op, value in ends))

    # Whether each is for a row of its own

    def _check_apart(self, within: Within | None) -> bool:
        """Whether rows are deleted twice, which is no harm. Raises InvalidInputError, naming the key, where what
        becomes of a row would depend on which of two rows of the source came first, or a row that is inserted has the
        key of another."""
        if self._revision.beside is None:
            return False
        is_new = self._query.inserts_new_keys and (not has(self._revision, Action.INSERT) or self._keys_fit)
        if self._query.is_told_by_key and is_new and not self._is_repeated():
            return False
        table = self._table
        names = table.primary_key_ids + (() if table.options.cross_partition else table.partition_ids)
        columns = table.schema.select(dict.fromkeys(names))
        rows = self._ask(self._query.tree(columns), within)
        told = [column.name for column in columns]
        counted = rows.group_by(told).aggregate([(CHANGE, "count"), (CHANGE, "min"), (CHANGE, "max")])
        twice = counted.filter(pc.greater(counted.column(f"{CHANGE}_count"), 1))
        deletes = pc.equal(twice.column(f"{CHANGE}_min"), Action.DELETE.value)
        wrong = twice.filter(pc.invert(deletes))
        if wrong.num_rows:
            raise _two_for_one(table, shown_key(wrong, told), wrong.column(f"{CHANGE}_max")[0].as_py())
        if not is_new:
            self._check_new(rows.filter(pc.equal(rows.column(CHANGE), Action.INSERT.value)))
        return bool(twice.num_rows)

    @cached_property
    def _keys_fit(self) -> bool:
        """Whether what ON compares a column with would be stored in it as it is."""
        return all(self._is_own_type(each.column) for each in self._query.joined.pairs)

    def _is_own_type(self, column: Column) -> bool:
        """Whether ON compares the column with values of its own type: what is converted to be compared may be equal to
        others of the table's than the one that it would be stored as."""
        kind = self._compared[column.id]
        return kind == column.type or {kind, column.type} <= {*INTEGERS}

    @cached_property
    def _compared(self) -> Mapping[int, str]:
        """By column, the type of what ON compares it with."""
        columns = [each.column for each in self._query.joined.pairs]
        if not columns:
            return {}
        statement = self._statement(self._query.sought(columns, 1))
        told = sql.columns_of(self._runtime, statement, self._found, self._given)
        return {column.id: kind for column, (_, kind) in zip(columns, told, strict=True)}

    def _is_repeated(self) -> bool:
        return not self._is_known_apart and bool(self._ask(self._query.repeated()).num_rows)

    def _check_new(self, inserted: pa.Table) -> None:
        table = self._table
        names = dict.fromkeys((*table.primary_key, *table.partition_by))
        keys = inserted.select([column.name for column in names if column.name in inserted.column_names])
        for found in rows_with_keys(self._runtime, table, keys.to_batches()):
            if found.num_rows:
                named = shown_key(found, [column.name for column in table.primary_key])
                raise InvalidInputError(
                    f"A row that is inserted has the key {named}, and {table.full_name} has one of that key,"
                    " which the condition of the merge does not match.",
                    kind="duplicate_key",
                    remedy="Match by the key (ON target.id = source.id), and ask for the rest in WHEN MATCHED AND ….",
                )


def _size_of(plan: read.ScanPlan) -> int:
    return sum(split.size_bytes for split in plan.splits)


def _row_count_of(plan: read.ScanPlan) -> int:
    return sum(file.row_count for split in plan.splits for file in split.files)


def _one_of(column: Column, values: pa.Array) -> Predicate:
    found = tuple(raw for raw in raw_values(pc.unique(values)) if raw is not None)
    return In(column=column, values=found) if found else never(column)


def _two_for_one(table: TableInfo, key: str, change: int) -> InvalidInputError:
    if change == Action.INSERT.value:
        return InvalidInputError(
            f"Two rows that are inserted into {table.full_name} have the key {key}.",
            kind="duplicate_key",
            remedy="Leave one of them out of the source.",
        )
    return InvalidInputError(
        f"Two rows of the source change the row {key} of {table.full_name}: what becomes of it would depend on"
        " which came first.",
        kind="ambiguous_source",
        remedy="Have the source hold one row a key, the newest: QUALIFY row_number() OVER (PARTITION BY …) = 1.",
    )
