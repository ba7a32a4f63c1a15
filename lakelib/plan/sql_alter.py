"""Pure. ALTER TABLE, DROP TABLE and TRUNCATE TABLE."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.plan.asked import TableName
from lakelib.plan.declare import declare_nodes
from lakelib.plan.evolve import SchemaChange
from lakelib.plan.sql_parts import (
    ColumnName,
    NamedPartition,
    check_parts,
    column_name,
    column_names,
    named_partition,
    properties_of,
    table_name,
)
from lakelib.plan.sql_statement import Parsed
from lakelib.plan.sql_wrong import SAYS_WHAT, place_of, unknown_sql
from lakelib.plan.sqltext import quoted

NOTHING = SchemaChange()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """Its columns change, or its options."""

    parsed: Parsed
    table: TableName
    change: SchemaChange = NOTHING
    options: Mapping[str, Any] = field(default_factory=dict)
    named: tuple[ColumnName, ...] = ()
    """Columns that have to be there."""
    if_there: tuple[ColumnName, ...] = ()
    """Columns to drop if they are."""
    unless_there: tuple[ColumnName, ...] = ()
    """Columns to add if they are not."""

    @property
    def may_take_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        return bool(self.change.drop)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    parsed: Parsed
    table: TableName
    if_exists: bool
    may_take_away: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """All rows go, or those of partitions."""

    parsed: Parsed
    table: TableName
    partition: NamedPartition | None
    may_take_away: ClassVar[bool] = True


def read_drop(parsed: Parsed) -> DropTable:
    """Raises InvalidInputError for what is not known of it."""
    tree = parsed.tree
    kind = str(tree.args.get("kind")).upper()
    if kind != "TABLE":
        raise InvalidInputError(
            f"DROP {kind} is no statement that is known here{place_of(tree)}.", kind="sql_refused", remedy=SAYS_WHAT
        )
    if tree.args.get("purge"):
        raise InvalidInputError(
            f"PURGE is not known in SQL on the lake{place_of(tree)}.",
            kind="unknown_sql",
            remedy="Leave it out: a vacuum deletes the table's files, once nobody may be reading them.",
        )
    check_parts(tree, "tables", "kind", "exists")
    return DropTable(parsed=parsed, table=_one(tree.args["tables"]), if_exists=bool(tree.args.get("exists")))


def read_truncate(parsed: Parsed) -> Truncate:
    """Raises InvalidInputError for what is not known of it."""
    tree = parsed.tree
    check_parts(tree, "expressions", "partition")
    partition = named_partition(tree.args.get("partition"), parsed.values)
    if partition is not None and partition.dynamic:
        raise InvalidInputError(
            f"The partition has no value of {partition.dynamic[0].name!r}{partition.dynamic[0].place}.",
            kind="invalid_partitions",
            remedy="Write PARTITION (dt = '2026-11-18').",
        )
    return Truncate(parsed=parsed, table=_one(tree.expressions), partition=partition)


def _one(nodes: list[exp.Expr]) -> TableName:
    if len(nodes) != 1:
        raise InvalidInputError(
            f"{len(nodes)} tables are named, and one is changed at a time{place_of(nodes[1])}.",
            kind="invalid_sql",
            remedy="Write a statement for each.",
        )
    return table_name(nodes[0])


def read_alter(parsed: Parsed) -> AlterTable:
    """Raises InvalidInputError for what is not known of it."""
    tree = parsed.tree
    if str(tree.args.get("kind")).upper() != "TABLE":
        raise unknown_sql(tree)
    check_parts(tree, "this", "kind", "actions", "options" if _is_typed_comment(tree) else "kind")
    actions: list[exp.Expr] = tree.args.get("actions") or []
    if len(actions) != 1:
        raise InvalidInputError(
            f"{len(actions)} changes are said at once{place_of(tree)}.",
            kind="unknown_sql",
            remedy="Write a statement for each, or ADD COLUMNS (…), DROP COLUMNS (…).",
        )
    alter = _with_action(AlterTable(parsed=parsed, table=table_name(tree.this)), actions[0])
    for each in tree.args.get("options") or ():
        alter = _with_comment(alter, actions[0], each)
    return alter


def _is_typed_comment(tree: exp.Expr) -> bool:
    """ALTER COLUMN a TYPE BIGINT COMMENT 'x', whose comment the parser takes for the table's."""
    options = tree.args.get("options") or ()
    return all(isinstance(each, exp.SchemaCommentProperty) for each in options) and all(
        isinstance(each, exp.AlterColumn) for each in tree.args.get("actions") or ()
    )


def _with_comment(alter: AlterTable, action: exp.Expr, node: exp.Expr) -> AlterTable:
    comment = {column_name(action.this).name: node.this.name}
    return replace(alter, change=replace(alter.change, comment=comment))


def _with_action(alter: AlterTable, node: exp.Expr) -> AlterTable:
    match node:
        case exp.ColumnDef() if alter.parsed.moves_column:
            name = column_name(node.this)
            named = (name, *_beside(node))
            return replace(alter, change=SchemaChange(move={name.name: _place(node)}), named=named)
        case exp.ColumnDef():
            return _with_added(alter, [node])
        case exp.Schema():
            check_parts(node, "expressions")
            return _with_added(alter, node.expressions)
        case exp.Drop() if str(node.args.get("kind")).upper() in ("COLUMN", "COLUMNS"):
            return _with_dropped(alter, node)
        case exp.RenameColumn():
            check_parts(node, "this", "to")
            old, new = column_name(node.this), column_name(node.args["to"])
            return replace(alter, change=SchemaChange(rename={old.name: new.name}), named=(old,))
        case exp.AlterColumn():
            return _with_altered(alter, node)
        case exp.AlterSet(expressions=[exp.Properties() as given]):
            check_parts(node, "expressions")
            return replace(alter, options=properties_of(given.expressions))
    raise InvalidInputError(
        f"{quoted(node)} is not known in SQL on the lake{place_of(node)}.",
        kind="unknown_sql",
        remedy="Columns are added, dropped, renamed and altered, and options set; docs/sql.md says how.",
    )


def _with_added(alter: AlterTable, nodes: list[exp.Expr]) -> AlterTable:
    moves: dict[str, str] = {}
    unless_there: list[ColumnName] = []
    added = {}
    beside: list[ColumnName] = []
    for node in nodes:
        if not isinstance(node, exp.ColumnDef):
            raise unknown_sql(node)
        check_parts(node, "this", "kind", "constraints", "position", "exists")
        name = column_name(node.this)
        added[name.name.casefold()] = name
        if node.args.get("exists"):
            unless_there.append(name)
        if node.args.get("position"):
            moves[name.name] = _place(node)
            beside += _beside(node)
        node.set("position", None)
        node.set("exists", None)
    return replace(
        alter,
        change=SchemaChange(add=declare_nodes(nodes), move=moves or None),
        named=tuple(each for each in beside if each.name.casefold() not in added),
        unless_there=tuple(unless_there),
    )


def _place(node: exp.Expr) -> str:
    position = node.args["position"]
    return "first" if position.args.get("this") is None else f"after {position.this.name}"


def _beside(node: exp.Expr) -> tuple[ColumnName, ...]:
    position = node.args["position"]
    return () if position.args.get("this") is None else (column_name(position.this),)


def _with_dropped(alter: AlterTable, node: exp.Expr) -> AlterTable:
    check_parts(node, "tables", "kind", "exists")
    nodes = [part for each in node.args["tables"] for part in (each.expressions if _is_list(each) else [each])]
    names = column_names(nodes)
    optional = names if node.args.get("exists") else ()
    return replace(
        alter,
        change=SchemaChange(drop=[each.name for each in names]),
        named=() if optional else names,
        if_there=optional,
    )


def _is_list(node: exp.Expr) -> bool:
    return isinstance(node, exp.Schema)


def _with_altered(alter: AlterTable, node: exp.Expr) -> AlterTable:
    check_parts(node, "this", "dtype", "comment", "allow_null", "drop", "rename_to")
    name = column_name(node.this)
    kind, comment, renamed = (node.args.get(each) for each in ("dtype", "comment", "rename_to"))
    if renamed is not None and renamed.name.casefold() != name.name.casefold():
        raise unknown_sql(node)
    if node.args.get("allow_null") is False:
        raise InvalidInputError(
            f"The column {name.name!r} cannot become NOT NULL{name.place}.",
            kind="invalid_evolution",
            remedy="Rows that are there may hold NULL. Create a table whose column is NOT NULL.",
        )
    change = SchemaChange(
        widen=None if kind is None else {name.name: declare_nodes([_definition(name, kind)])[0].type},
        comment={name.name: comment.name} if isinstance(comment, exp.Expr) else None,
        nullable=[name.name] if node.args.get("allow_null") else (),
    )
    if change.is_none:
        raise unknown_sql(node)
    return replace(alter, change=change, named=(name,))


def _definition(name: ColumnName, kind: exp.Expr) -> exp.Expr:
    return exp.ColumnDef(this=exp.to_identifier(name.name, quoted=True), kind=kind)
