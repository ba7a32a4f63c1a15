"""Use case: a statement of SQL, of whatever kind. A query is planned, and read when its rows are asked for; what
changes something is done at once."""

from collections.abc import Mapping
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql import look_up, plan_statement
from lakelib.ops.sql_change import Change, Told, explained, parse_options
from lakelib.ops.sql_insert import plan_insert
from lakelib.ops.sql_plan import QueryPlan
from lakelib.ops.sql_understood import understand
from lakelib.plan import sql_kinds
from lakelib.plan.sql_insert import Insert
from lakelib.plan.sql_statement import Statement


def run(runtime: Runtime, text: str, options: Mapping[str, Any] | None, values: Mapping[str, Any]) -> QueryPlan | Told:
    """A query's plan, or what was done. Raises as `prepare` does, and what the use case raises that a statement
    means."""
    parse_options(options)
    return carry_out(prepare(runtime, text, values), options)


def carry_out(prepared: QueryPlan | Told | Change, options: Mapping[str, Any] | None) -> QueryPlan | Told:
    """Does what is to be done."""
    if isinstance(prepared, QueryPlan) and options:
        raise InvalidInputError(
            "A query changes nothing, and takes no options.",
            kind="invalid_option",
            remedy="Give the values of parameters by name: lake.sql('… $day', day=…).",
        )
    if isinstance(prepared, QueryPlan | Told):
        return prepared
    return prepared.carry_out(parse_options(options))


def prepare(runtime: Runtime, text: str, values: Mapping[str, Any]) -> QueryPlan | Told | Change:
    """A query's plan, or a statement that is ready to be carried out, or what EXPLAIN tells of one. Nothing has
    changed. Raises InvalidInputError for what is no SQL, or none that is known, NotFoundError for tables and snapshots
    that are not there."""
    understood = understand(text, values)
    if isinstance(understood, Statement):
        return plan_statement(runtime, understood, look_up(runtime, understood.references))
    change = _plan_change(runtime, understood)
    return explained(text, change.explain()) if understood.parsed.is_explained else change


def _plan_change(runtime: Runtime, understood: sql_kinds.Change) -> Change:
    match understood:
        case Insert():
            return plan_insert(runtime, understood)
