"""Commands about the suites that tables require: gate register, gate require, gate release, gate list."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import TableName
from lakelib.cli.command import Session, command
from lakelib.cli.show import Answer, Column, Listing, Sentence
from lakelib.cli.values import escaped, readable_count, readable_time

if TYPE_CHECKING:
    from lakelib.model.gate import GateRequirement, RegisteredSuite

By = Annotated[str | None, typer.Option(metavar="NAME", help="Who says so. (the database's user)", show_default=False)]


def add_to(group: typer.Typer) -> None:
    command(group, "register")(register)
    command(group, "require")(require)
    command(group, "release")(release)
    command(group, "list")(list_)


def register(
    session: Session,
    suite: Annotated[Path, typer.Argument(metavar="FILE", help="The gate's suite, in YAML.", show_default=False)],
    by: By = None,
) -> Answer:
    """Keeps a gate's suite in the catalog, as the next version of its name.

    What checks the same as a version that is there is that version."""
    made = session.lake.register_gate(suite, by=by)
    said = f"gate {made.name}: version {made.version} is registered ({made.hash})"
    return Answer(_suite_facts(made), Sentence(said))


def require(
    session: Session,
    table: TableName,
    gate: Annotated[str, typer.Argument(metavar="GATE", help="The name of a registered gate.", show_default=False)],
    by: By = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why, where it takes the place of another gate.", show_default=False),
    ] = None,
) -> Answer:
    """Publishes to a table only what a gate has passed, from now on.

    It is the newest version of the gate that counts, and no other suite of that name."""
    held = session.table(table).require_gate(gate, by=by, reason=reason)
    return Answer(requirement_facts(table, held), Sentence(f"{table} requires gate {described(held)}"))


def release(
    session: Session,
    table: TableName,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who answers for it.", show_default=False)],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.", show_default=False)],
) -> Answer:
    """Publishes to a table without a gate, from now on.

    Name and reason stay in the catalog."""
    found = session.table(table)
    found.release_gate(by=by, reason=reason)
    kept = found.gate_history()[0]
    said = f"{table} requires no gate any more; it was {described(kept)}"
    return Answer(requirement_facts(table, kept), Sentence(said))


def list_(session: Session) -> Answer:
    """Lists the gates that are registered, and the tables that require them."""
    from lakelib.ops.inspect import list_tables

    tables: dict[Any, list[str]] = {}
    for each in list_tables(session.lake.runtime, None):
        tables.setdefault(each.table.required_suite, []).append(each.table.full_name)
    found = [(each, tables.get(each.required, [])) for each in session.lake.gates()]
    columns = (
        Column("gate", fold=True),
        Column("version", right=True),
        Column("suite", optional=3),
        Column("critical checks", right=True, optional=2),
        Column("registered (UTC)", optional=1),
        Column("by", fold=True, optional=4),
        Column("required by", fold=True),
    )
    rows = [
        (
            escaped(each.name),
            str(each.version),
            each.hash,
            readable_count(each.critical_checks),
            readable_time(each.registered_at),
            escaped(each.registered_by),
            ", ".join(names),
        )
        for each, names in found
    ]
    documents = [_suite_facts(each) | {"tables": names} for each, names in found]
    return Answer(documents, Listing(columns, rows, "No gate is registered."))


def show_requirements(session: Session, table: str) -> Answer:
    """Which gate a table requires, and which it has required."""
    found = session.table(table)
    held, kept = found.required_gate, found.gate_history()
    history = [held, *kept] if held is not None and held not in kept else kept
    columns = (
        Column("gate", fold=True),
        Column("version", right=True),
        Column("suite", optional=3),
        Column("required (UTC)", optional=2),
        Column("by", fold=True, optional=1),
        Column("released (UTC)"),
        Column("by", fold=True),
        Column("reason", fold=True),
    )
    rows = [
        (
            escaped(each.name),
            str(each.version or "any"),
            each.hash or "",
            readable_time(each.required_at),
            escaped(each.required_by or ""),
            readable_time(each.released_at),
            escaped(each.released_by or ""),
            escaped(each.release_reason or ""),
        )
        for each in history
    ]
    documents = [requirement_facts(table, each) for each in history]
    return Answer(documents, Listing(columns, rows, f"{table} requires no gate, and never has."))


def described(requirement: "GateRequirement") -> str:
    """ "orders, version 2 (0123456789abcdef)"."""
    if requirement.version is None:
        return f"{escaped(requirement.name)}, by its name alone"
    return f"{escaped(requirement.name)}, version {requirement.version} ({requirement.hash})"


def requirement_facts(table: str, requirement: "GateRequirement") -> dict[str, Any]:
    return {
        "table": table,
        "gate": requirement.name,
        "version": requirement.version,
        "hash": requirement.hash,
        "required_by": requirement.required_by,
        "required_at": requirement.required_at,
        "released_by": requirement.released_by,
        "release_reason": requirement.release_reason,
        "released_at": requirement.released_at,
    }


def _suite_facts(suite: "RegisteredSuite") -> dict[str, Any]:
    return {
        "gate": suite.name,
        "version": suite.version,
        "hash": suite.hash,
        "critical_checks": suite.critical_checks,
        "registered_by": suite.registered_by,
        "registered_at": suite.registered_at,
        "text": suite.text,
    }
