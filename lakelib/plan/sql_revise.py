"""Pure. UPDATE, DELETE and MERGE INTO: which table, and what becomes of its rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.plan.asked import TableName
from lakelib.plan.revise import Action, Assigned, Beside, Clause, Match, Revision, has
from lakelib.plan.sql_parts import ColumnName, check_parts, column_names, table_name
from lakelib.plan.sql_references import given_rows
from lakelib.plan.sql_statement import Parsed, parse_expression
from lakelib.plan.sql_wrong import place_of, unknown_sql
from lakelib.plan.sqltext import quoted

Condition = exp.Expr
_SOURCE = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """A statement that changes rows of a table."""

    parsed: Parsed
    word: str
    table: TableName
    revision: Revision

    @property
    def may_take_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""
        return has(self.revision, Action.DELETE)


def read_update(parsed: Parsed) -> Revise:
    """Raises InvalidInputError, with the place in the text, for what is not known of it."""
    tree = parsed.tree
    check_parts(tree, "this", "expressions", "where")
    table, alias = _target(tree.this)
    values = _assigned(tree.expressions, alias)
    clause = Clause(match=Match.TABLE, action=Action.UPDATE, condition=_where(tree), values=values)
    return _revise(parsed, "UPDATE", table, alias, (clause,))


def read_delete(parsed: Parsed) -> Revise:
    """Raises as `read_update` does."""
    tree = parsed.tree
    check_parts(tree, "this", "where")
    table, alias = _target(tree.this)
    clause = Clause(match=Match.TABLE, action=Action.DELETE, condition=_where(tree))
    return _revise(parsed, "DELETE", table, alias, (clause,))


def read_merge(parsed: Parsed) -> Revise:
    """Raises as `read_update` does."""
    tree = parsed.tree
    check_parts(tree, "this", "using", "on", "whens", "with_")
    table, alias = _target(tree.this)
    source = tree.args["using"]
    if not isinstance(source, exp.Table | exp.Subquery | exp.Values):
        raise unknown_sql(source)
    on = tree.args.get("on")
    if not isinstance(on, exp.Expr):
        raise InvalidInputError(
            f"The merge does not say which rows belong together{place_of(source)}.",
            kind="invalid_sql",
            remedy="Write ON target.id = source.id.",
        )
    beside = Beside(table=_aliased(source), alias=_alias_of(source), on=on)
    check_names(alias, beside.alias)
    clauses = tuple(_when(each, alias) for each in tree.args["whens"].expressions)
    return _revise(parsed, "MERGE", table, alias, clauses, beside, tree.args.get("with_"))


def _revise(
    parsed: Parsed,
    word: str,
    table: TableName,
    alias: str,
    clauses: tuple[Clause, ...],
    beside: Beside | None = None,
    before: exp.Expr | None = None,
) -> Revise:
    revision = Revision(
        text=parsed.text, alias=alias, clauses=clauses, beside=beside, before=before, parameters=parsed.values
    )
    return Revise(parsed=parsed, word=word, table=table, revision=revision)


def _target(node: exp.Expr | None) -> tuple[TableName, str]:
    """The table, and how the statement calls it."""
    table = table_name(node, "alias")
    assert node is not None
    if node.args.get("alias") is not None:
        check_parts(node.args["alias"], "this")
    return table, node.alias or node.name


def _where(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return None if where is None else where.this


def _aliased(source: exp.Expr) -> exp.Expr:
    own = source.copy()
    if not own.args.get("alias"):
        own.set("alias", exp.TableAlias(this=exp.to_identifier(_alias_of(source), quoted=True)))
    return own


def _alias_of(source: exp.Expr) -> str:
    return source.alias or (source.name if isinstance(source, exp.Table) else "") or _SOURCE


def check_names(target: str, source: str) -> None:
    """Raises InvalidInputError where names of the two could not be told apart."""
    if target.casefold() == source.casefold():
        raise InvalidInputError(
            f"The table and the source are both called {target!r}.",
            kind="invalid_merge_into",
            remedy="Give them names: MERGE INTO shop.orders AS target USING … AS source.",
        )


def _assigned(nodes: Sequence[exp.Expr], alias: str) -> tuple[Assigned, ...]:
    for each in nodes:
        if not isinstance(each, exp.EQ):
            raise unknown_sql(each)
    names = column_names([_bare(each.this, alias) for each in nodes])
    return tuple(Assigned(column=name, value=each.expression) for name, each in zip(names, nodes, strict=True))


def _bare(node: exp.Expr, alias: str) -> exp.Expr:
    """The column that is set, without its table."""
    if isinstance(node, exp.Column) and node.table and not node.args.get("db"):
        if node.table.casefold() != alias.casefold():
            raise InvalidInputError(
                f"{quoted(node)} is no column of {alias}{place_of(node)}.",
                kind="unknown_column",
                remedy="Columns of the table are set, each as a whole: a field of a struct is not.",
            )
        return exp.Column(this=node.this.copy())
    return node


def _when(node: exp.Expr, alias: str) -> Clause:
    check_parts(node, "matched", "source", "condition", "then")
    match = Match.BOTH if node.args.get("matched") else Match.TABLE if node.args.get("source") else Match.SOURCE
    condition, then = node.args.get("condition"), node.args["then"]
    match then:
        case exp.Var() if then.name.upper() == "DELETE" and match is not Match.SOURCE:
            return Clause(match=match, action=Action.DELETE, condition=condition)
        case exp.Update() if match is not Match.SOURCE:
            check_parts(then, "expressions")
            whole = match is Match.BOTH and [type(each) for each in then.expressions] == [exp.Star]
            values = None if whole else _assigned(then.expressions, alias)
            return Clause(match=match, action=Action.UPDATE, condition=condition, values=values)
        case exp.Insert() if match is Match.SOURCE:
            check_parts(then, "this", "expression")
            return Clause(match=match, action=Action.INSERT, condition=condition, values=_inserted(then, alias))
    raise unknown_sql(node)


def _inserted(node: exp.Expr, alias: str) -> tuple[Assigned, ...] | None:
    names, values = node.this, node.args.get("expression")
    if isinstance(names, exp.Star) and values is None:
        return None
    if not isinstance(names, exp.Tuple) or not isinstance(values, exp.Tuple):
        raise InvalidInputError(
            f"{quoted(node)} does not name the columns that are inserted{place_of(node)}.",
            kind="invalid_sql",
            remedy="Write INSERT * or INSERT (id, amount) VALUES (source.id, source.amount).",
        )
    columns = column_names([_bare(each, alias) for each in names.expressions])
    if len(columns) != len(values.expressions):
        raise InvalidInputError(
            f"{len(columns)} columns are named, and {len(values.expressions)} values are given{place_of(names)}.",
            kind="wrong_columns",
            remedy="Give each its value.",
        )
    return tuple(Assigned(column=name, value=value) for name, value in zip(columns, values.expressions, strict=True))


# As builders are given it


def assigned_texts(given: Any, alias: str) -> tuple[Assigned, ...]:
    """Columns and what they are to be, as SQL by name. Raises InvalidInputError for anything else."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInputError(
            f"What is set is {given!r}.",
            kind="invalid_values",
            remedy='Give SQL by column: {"status": "upper(status)", "amount": "amount * 2"}.',
        )
    return tuple(_assigned_texts(given, alias))


def _assigned_texts(given: Mapping[Any, Any], alias: str) -> Iterator[Assigned]:
    seen: set[str] = set()
    for name, text in given.items():
        if not isinstance(name, str) or name.casefold() in seen:
            raise InvalidInputError(
                f"{name!r} is no name of a column, or is set twice.", kind="invalid_values", remedy="Name each once."
            )
        seen.add(name.casefold())
        bare = name.removeprefix(f"{alias}.")
        value = parse_expression(text, f"what {name!r} is set to")
        yield Assigned(column=ColumnName(name=bare, place=""), value=value)


def condition_of(text: Any, what: str) -> Condition:
    """Raises InvalidInputError for what is no SQL."""
    return parse_expression(text, what)


def rows_beside(alias: str, on: exp.Expr) -> Beside:
    """Rows that were handed in."""
    return Beside(table=given_rows(alias), alias=alias, on=on)


def table_beside(full_name: str, alias: str, on: exp.Expr) -> Beside:
    """Another table of the lake."""
    namespace, name = full_name.split(".")
    node = exp.Table(
        this=exp.to_identifier(name, quoted=True),
        db=exp.to_identifier(namespace, quoted=True),
        alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)),
    )
    return Beside(table=node, alias=alias, on=on)


def equal_columns(names: Any, never_null: Collection[str], target: str, source: str) -> Condition:
    """A row of the source belongs to the one that has the same in these columns, NULL too. Raises InvalidInputError for
    what names none."""
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            f"on is {names!r}.",
            kind="invalid_on",
            remedy='Give a condition, "target.id = source.id", or names of columns.',
        )
    parts: list[exp.Expr] = [
        (exp.EQ if name.casefold() in never_null else exp.NullSafeEQ)(
            this=exp.column(name, table=target, quoted=True), expression=exp.column(name, table=source, quoted=True)
        )
        for name in names
    ]
    return reduce(lambda one, other: exp.And(this=one, expression=other), parts)
