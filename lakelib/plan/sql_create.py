"""Pure. CREATE TABLE and CREATE NAMESPACE."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.plan.asked import AskedQuery, TableName
from lakelib.plan.declare import Declared, check_names, declare_nodes
from lakelib.plan.local_types import VOID
from lakelib.plan.sql_parts import check_parts, column_names, properties_of, table_name
from lakelib.plan.sql_statement import Parsed, Statement, query_of
from lakelib.plan.sql_wrong import SAYS_WHAT, place_of, unknown_sql

_NAMESPACES = ("NAMESPACE", "SCHEMA", "DATABASE")
_OWN = ("primary_key", "partition_by", "sequence_by", "buckets", "merge")
"""What properties may say of a table, besides its options."""
_PROVIDERS = ("lake", "lakelib")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNamespace:
    parsed: Parsed
    name: str
    if_not_exists: bool
    may_take_away: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    parsed: Parsed
    table: TableName
    columns: tuple[Declared, ...] | None
    """None for those of the query."""
    source: Statement | None
    if_not_exists: bool
    or_replace: bool
    definition: Mapping[str, Any] = field(default_factory=dict)
    """`primary_key`, `partition_by` and the like, as `Lake.create_table` takes them."""

    @property
    def may_take_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        return self.or_replace


def read_create(parsed: Parsed) -> CreateTable | CreateNamespace:
    """Raises InvalidInputError for what is not known of it."""
    tree = parsed.tree
    kind = str(tree.args.get("kind")).upper()
    if kind in _NAMESPACES:
        check_parts(tree, "this", "kind", "exists")
        return CreateNamespace(parsed=parsed, name=_namespace(tree.this), if_not_exists=bool(tree.args.get("exists")))
    if kind != "TABLE":
        raise InvalidInputError(
            f"CREATE {kind} is no statement that is known here{place_of(tree)}.", kind="sql_refused", remedy=SAYS_WHAT
        )
    check_parts(tree, "this", "kind", "exists", "replace", "expression", "properties")
    if tree.args.get("exists") and tree.args.get("replace"):
        raise _wrong("OR REPLACE and IF NOT EXISTS say two things", tree, "Say one of them.")
    definition = _Definition(tree)
    source = tree.args.get("expression")
    if source is None and not definition.columns:
        raise _wrong("The table has no columns", tree, "Name them with their types, or take those of AS SELECT ….")
    if source is not None and definition.columns:
        raise _wrong("The columns are said twice: there, and by the query", tree, "Leave them out; CAST says a type.")
    return CreateTable(
        parsed=parsed,
        table=definition.table,
        columns=definition.columns or None,
        source=None if source is None else query_of(parsed, source),
        if_not_exists=bool(tree.args.get("exists")),
        or_replace=bool(tree.args.get("replace")),
        definition=definition.given,
    )


def columns_of_query(query: AskedQuery) -> tuple[Declared, ...]:
    """The columns that a table of the query's rows has. Raises InvalidInputError for one of no type."""
    for (name, _), kind in zip(query.columns, query.types, strict=True):
        if kind == VOID:
            raise InvalidInputError(
                f"The column {name!r} of the query is always NULL, and has no type.",
                kind="invalid_schema",
                remedy=f"Say which: CAST(NULL AS STRING) AS {name}.",
            )
    check_names([name for name, _ in query.columns])
    return tuple(Declared(name=name, type=kind, nullable=True) for name, kind in query.columns)


def _namespace(node: exp.Expr) -> str:
    if not isinstance(node, exp.Table):
        raise unknown_sql(node)
    check_parts(node, "this" if node.args.get("this") else "db")
    return node.name or node.db


def _wrong(what: str, node: exp.Expr, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"{what}{place_of(node)}.", kind="invalid_sql", remedy=remedy)


class _Definition:
    """What a CREATE TABLE says of its table, part by part."""

    def __init__(self, tree: exp.Expr) -> None:
        target = tree.this
        nodes: list[exp.Expr] = []
        if isinstance(target, exp.Schema):
            check_parts(target, "this", "expressions")
            nodes, target = list(target.expressions), target.this
        self.table = table_name(target)
        self.given: dict[str, Any] = {}
        self._key_of_columns(nodes)
        self._columns = [each for each in nodes if not isinstance(each, exp.PrimaryKey | exp.Constraint)]
        properties = tree.args.get("properties")
        for each in () if properties is None else properties.expressions:
            self._read(each)
        self._buckets_of_key()

    @property
    def columns(self) -> tuple[Declared, ...]:
        return declare_nodes(self._columns)

    def _say(self, name: str, value: Any, node: exp.Expr) -> None:
        if name in self.given:
            raise _wrong(f"{name.upper().replace('_', ' ')} is said twice", node, "Say it once.")
        self.given[name] = value

    def _key_of_columns(self, nodes: Sequence[exp.Expr]) -> None:
        for node in nodes:
            if isinstance(node, exp.Constraint):
                check_parts(node, "this", "expressions")
                (node,) = node.expressions if len(node.expressions) == 1 else (node,)
            if isinstance(node, exp.PrimaryKey):
                self._say("primary_key", [each.name for each in column_names(node.expressions)], node)
            elif isinstance(node, exp.Constraint):
                raise unknown_sql(node)
            elif isinstance(node, exp.ColumnDef):
                self._key_of_column(node)

    def _key_of_column(self, node: exp.Expr) -> None:
        constraints = node.args.get("constraints") or []
        keys = [each for each in constraints if isinstance(each.args.get("kind"), exp.PrimaryKeyColumnConstraint)]
        if keys:
            self._say("primary_key", [node.name], node)
            node.set("constraints", [each for each in constraints if each not in keys])

    def _read(self, node: exp.Expr) -> None:
        match node:
            case exp.FileFormatProperty() if node.name.casefold() in _PROVIDERS:
                pass
            case exp.PartitionedByProperty(this=exp.Schema() as named):
                self._say("partition_by", self._partitions(named.expressions), node)
            case exp.ClusteredByProperty():
                check_parts(node, "expressions", "buckets")
                self._clusters = [each.name for each in column_names(node.expressions)]
                self._say("buckets", int(node.args["buckets"].name), node)
            case exp.OptionsProperty():
                self._take(properties_of(node.expressions), node)
            case exp.Property() if type(node) is exp.Property:
                self._take(properties_of([node]), node)
            case _:
                raise unknown_sql(node)

    _clusters: Sequence[str] | None = None

    def _buckets_of_key(self) -> None:
        key = [name.casefold() for name in self.given.get("primary_key", ())]
        if self._clusters is not None and sorted(key) != sorted(name.casefold() for name in self._clusters):
            raise InvalidInputError(
                f"The table is clustered by ({', '.join(self._clusters)}), and its key is ({', '.join(key)}).",
                kind="invalid_buckets",
                remedy="Rows are in buckets by their primary key: CLUSTERED BY names just its columns.",
            )

    def _partitions(self, nodes: Sequence[exp.Expr]) -> list[str]:
        """Names; a column that is defined there comes behind the others."""
        names = []
        for node in nodes:
            if isinstance(node, exp.ColumnDef):
                self._columns.append(node)
                names.append(node.name)
            else:
                (named,) = column_names([node])
                names.append(named.name)
        return names

    def _take(self, properties: Mapping[str, Any], node: exp.Expr) -> None:
        for name, value in properties.items():
            if name not in _OWN:
                options = self.given.setdefault("options", {})
                if name in options:
                    raise _wrong(f"The property {name!r} is given twice", node, "Give it once.")
                options[name] = value
            else:
                self._say(name, _READ[name](value), node)


def _listed(value: Any) -> list[str]:
    return [each.strip() for each in str(value).split(",") if each.strip()]


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def _described(value: Any) -> Any:
    """A merge engine by its name, or as JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise InvalidInputError(
            f"The property merge is no JSON: {error}.", kind="invalid_merge", remedy="Give an engine, or an object."
        ) from None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "primary_key": _listed,
    "partition_by": _listed,
    "sequence_by": _listed,
    "buckets": _number,
    "merge": _described,
}
