"""Pure. INSERT: which rows go where."""

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.asked import AskedQuery, TableName
from lakelib.plan.sql_parts import (
    ColumnName,
    NamedPartition,
    check_parts,
    column_names,
    find_column,
    named_partition,
    table_name,
)
from lakelib.plan.sql_statement import Parsed, Statement, query_of
from lakelib.plan.sql_wrong import place_of
from lakelib.plan.store_assignment import shape_query


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """The rows of a query go into a table, or take the place of rows that it has."""

    parsed: Parsed
    table: TableName
    source: Statement
    columns: tuple[ColumnName, ...] | None
    """Those that the query's columns are for, in its order; None for all."""
    by_name: bool
    partition: NamedPartition | None
    overwrites: bool
    places: tuple[str, ...]
    """Of the query's columns in the text, where they stand there one by one."""

    @property
    def word(self) -> str:
        """What the statement is called."""
        return "INSERT OVERWRITE" if self.overwrites else "INSERT"

    @property
    def may_take_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        return self.overwrites

    @property
    def has_places(self) -> bool:
        """Whether the query's last column is the place of the row in the text, by which rows are told in order."""
        return isinstance(self.source.tree, exp.Values)


def read_insert(parsed: Parsed) -> Insert:
    """Raises InvalidInputError for what is not known of it."""
    tree = parsed.tree
    check_parts(tree, "this", "expression", "source", "overwrite", "by_name", "with_")
    target = tree.this
    columns = None
    if isinstance(target, exp.Schema):
        check_parts(target, "this", "expressions")
        columns = column_names(target.expressions)
        target = target.this
    table = table_name(target, "partition")
    query = _query(tree)
    return Insert(
        parsed=parsed,
        table=table,
        source=query_of(parsed, query),
        columns=columns,
        by_name=bool(tree.args.get("by_name")),
        partition=named_partition(target.args.get("partition"), parsed.values),
        overwrites=bool(tree.args.get("overwrite")),
        places=_places(query),
    )


def _query(tree: exp.Expr) -> exp.Expr:
    """Its query, with what is named before the word INSERT; rows that stand in the text with their places."""
    source = tree.args.get("source")
    query: exp.Expr = exp.select("*").from_(source.copy()) if source else tree.expression
    if isinstance(query, exp.Values):
        for place, row in enumerate(query.expressions):
            row.append("expressions", exp.Literal.number(place))
    before = tree.args.get("with_")
    if before is None:
        return query
    if query.args.get("with_") or "with_" not in query.arg_types:
        raise InvalidInputError(
            f"WITH stands before the word INSERT{place_of(before)}.",
            kind="unknown_sql",
            remedy="Write it behind: INSERT INTO … WITH … SELECT ….",
        )
    query.set("with_", before.pop())
    return query


def _places(query: exp.Expr) -> tuple[str, ...]:
    match query:
        case exp.Select() if not any(each.find(exp.Star) for each in query.expressions):
            return tuple(place_of(each) for each in query.expressions)
        case exp.Values(expressions=[exp.Tuple(expressions=[*cells, _]), *_]):
            return tuple(place_of(each) for each in cells)
    return ()


def shape_insert(insert: Insert, schema: TableSchema, full_name: str, query: AskedQuery) -> AskedQuery:
    """The query, whose columns are those of the table that its rows go into. Raises InvalidInputError for columns that
    are not there, too many or too few of them, and types that cannot be stored."""
    given = _given_by_name(insert, schema, full_name, query) if insert.by_name else _given(insert, schema, full_name)
    width = len(query.columns) - insert.has_places
    if len(given) != width:
        names = ", ".join(column.name for column in given)
        raise InvalidInputError(
            f"The query has {_count(width)}, and {full_name} takes {len(given)}{insert.table.place}: {names}.",
            kind="wrong_columns",
            remedy="Name those that are given: INSERT INTO shop.orders (id, amount) SELECT …; others are NULL.",
        )
    places = insert.places if len(insert.places) == len(given) else ("",) * len(given)
    return shape_query(query, given, places, ordered_by=width if insert.has_places else None)


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"


def _given(insert: Insert, schema: TableSchema, full_name: str) -> list[Column]:
    fixed = _fixed(insert)
    if insert.columns is None:
        return [column for column in schema.columns if column.name.casefold() not in fixed]
    for name in insert.columns:
        if name.name.casefold() in fixed:
            raise InvalidInputError(
                f"The column {name.name!r} has its value from PARTITION already{name.place}.",
                kind="duplicate_column",
                remedy="Give it once.",
            )
    return [find_column(schema, name, full_name) for name in insert.columns]


def _given_by_name(insert: Insert, schema: TableSchema, full_name: str, query: AskedQuery) -> list[Column]:
    if insert.columns is not None or insert.has_places:
        raise InvalidInputError(
            f"BY NAME takes the columns' names from the query{insert.table.place}.",
            kind="unknown_sql",
            remedy="Leave the list of columns out, and name them in a SELECT.",
        )
    fixed = _fixed(insert)
    places = insert.places or ("",) * len(query.columns)
    names = [ColumnName(name=name, place=place) for (name, _), place in zip(query.columns, places, strict=True)]
    for name in names:
        if name.name.casefold() in fixed:
            raise InvalidInputError(
                f"The column {name.name!r} has its value from PARTITION already{name.place}.",
                kind="duplicate_column",
                remedy="Give it once.",
            )
    return [find_column(schema, name, full_name) for name in names]


def _fixed(insert: Insert) -> set[str]:
    return {name.casefold() for name in insert.partition.values} if insert.partition else set()
