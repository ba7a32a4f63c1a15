"""Commands about who may do what, and what an owner makes for others: grant, revoke, roles, provide."""

from pathlib import Path
from typing import Annotated

import typer

from lakelib.cli.command import Session, command
from lakelib.cli.show import Column, say, show_table
from lakelib.cli.values import escaped

_PANEL = "Roles"
RoleName = Annotated[
    str, typer.Argument(metavar="ROLE", help="reader, writer, publisher, maintainer or owner.", show_default=False)
]
UserName = Annotated[
    str, typer.Argument(metavar="USER", help="The name with which it logs in to PostgreSQL.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    command(app, "grant", panel=_PANEL)(grant)
    command(app, "revoke", panel=_PANEL)(revoke)
    command(app, "roles", panel=_PANEL)(roles)
    command(app, "provide", panel=_PANEL)(provide)


def grant(
    session: Session,
    role: RoleName,
    user: UserName,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="Change nothing: print what an administrator runs in the database.")
    ] = False,
) -> None:
    """Lets a user of the database do what a role says.

    The user has to be there. With the first role the catalog gets roles; until then one user owns everything."""
    if print_sql:
        text = session.lake.grant_sql(role, user)
        return session.print_json({"sql": text}) if session.json else print(text, end="")
    session.lake.grant(role, user)
    if session.json:
        return session.print_json({"user": user, "role": role})
    return say(session, f"{escaped(user)} is {role}")


def revoke(session: Session, role: RoleName, user: UserName) -> None:
    """Takes a role from a user."""
    session.lake.revoke(role, user)
    if session.json:
        return session.print_json({"user": user, "revoked": role})
    return say(session, f"{escaped(user)} is not {role} any more")


def roles(session: Session) -> None:
    """Lists who was given which role."""
    found = session.lake.grants()
    if session.json:
        return session.print_json([{"user": each.user, "role": each.role.value} for each in found])
    rows = [(escaped(each.user), each.role.value) for each in found]
    return show_table(session, (Column("user", fold=True), Column("role")), rows, empty="No role was granted.")


def provide(
    session: Session,
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC…", help="Specs of tables, in YAML.", show_default=False)],
) -> None:
    """Makes tables as their specs say, with their gates, as a job does that brings rows.

    Then jobs need not own the catalog. What is there as its spec says stays as it is."""
    from lakelib.ops.provide import provide_table
    from lakelib.specs.table_spec import load_spec

    made = [provide_table(session.lake.runtime, spec).table for spec in [load_spec(path) for path in specs]]
    if session.json:
        return session.print_json([{"table": each.full_name, "location": each.location} for each in made])
    for each in made:
        say(session, f"{each.full_name} is there")
    return None
