"""Commands about who may do what, and what an owner does for others: grant, revoke, roles, provide, migrate."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Listing, Sentence, tell
from lakelib.errors import InvalidInputError, LakeError

if TYPE_CHECKING:
    from lakelib.model.upgrade import Step, Upgrade
    from lakelib.specs.table_spec import SpecFolder

_ROLES_PANEL = "Roles"
RoleName = Annotated[
    str, typer.Argument(metavar="ROLE", help="reader, writer, publisher, maintainer or owner.", show_default=False)
]
UserName = Annotated[
    str, typer.Argument(metavar="USER", help="The name with which it logs in to PostgreSQL.", show_default=False)
]
_SCHEMA_PANEL = "Maintain"
_MEANING = {
    "pre": "clients of the version before go on working",
    "post": "clients of the version before are shut out: `lake migrate --post`, once there are none",
}


def add_to(app: typer.Typer) -> None:
    command(app, "grant", panel=_ROLES_PANEL)(grant)
    command(app, "revoke", panel=_ROLES_PANEL)(revoke)
    command(app, "roles", panel=_ROLES_PANEL)(roles)
    command(app, "provide", panel=_ROLES_PANEL)(provide)
    command(app, "migrate", panel=_SCHEMA_PANEL)(migrate)


def grant(
    session: Session,
    role: RoleName,
    user: UserName,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="Change nothing: print what an administrator runs in the database.")
    ] = False,
) -> Answer:
    """Lets a user of the database do what a role says.

    The user has to be there. With the first role the catalog gets roles; until then one user owns everything."""
    if print_sql:
        text = session.lake.grant_sql(role, user)
        if not (session.json or session.csv):
            print(text, end="")  # as it is: it is run elsewhere
        return Answer({"sql": text}, ())
    session.lake.grant(role, user)
    return Answer({"user": user, "role": role}, Sentence(f"{user} is {role}"))


def revoke(session: Session, role: RoleName, user: UserName) -> Answer:
    """Takes a role from a user."""
    session.lake.revoke(role, user)
    return Answer({"user": user, "revoked": role}, Sentence(f"{user} is not {role} any more"))


def roles(session: Session) -> Answer:
    """Lists who was given which role."""
    found = session.lake.grants()
    rows = [(each.user, each.role.value) for each in found]
    listing = Listing((Column("user", fold=True), Column("role")), rows, "No role was granted.")
    return Answer([{"user": user, "role": role} for user, role in rows], listing)


def provide(
    session: Session,
    specs: Annotated[
        list[Path],
        typer.Argument(metavar="SPEC…", help="Specs of tables, in YAML, or folders of them.", show_default=False),
    ],
) -> None:
    """Makes tables as their specs say, with their gates, as a job does that brings rows.

    Then jobs need not own the catalog. What is there as its spec says stays as it is. One that is wrong costs its
    own table; what is wrong with any of them is said at the end."""
    from lakelib.ops.provide import provide_tables

    found = [_read(path) for path in specs]
    for warning in (warning for read in found for spec in read.specs for warning in spec.warnings):
        session.note(f"warning: {warning}")
    made, errors = provide_tables(session.lake.runtime, [spec for read in found for spec in read.specs])
    document = [{"table": each.full_name, "location": each.location} for each in made]
    tell(session, Answer(document, [Sentence(f"{each.full_name} is there") for each in made]))
    _raise_all({path: error for each in (*(read.errors for read in found), errors) for path, error in each.items()})


def _read(path: Path) -> "SpecFolder":
    from lakelib.specs.table_spec import SpecFolder, load_spec, scan_specs

    if path.is_dir():
        return scan_specs(path)
    try:
        return SpecFolder(specs=(load_spec(path),), errors={})
    except LakeError as error:
        return SpecFolder(specs=(), errors={path: error})


def _raise_all(errors: Mapping[Path, LakeError]) -> None:
    """One error is raised as it is, but for the name of its spec."""
    messages = [_naming(path, error.message) for path, error in errors.items()]
    if len(errors) == 1:
        (error,) = errors.values()
        raise type(error)(messages[0], kind=error.kind, remedy=error.remedy) from error
    if errors:
        raise InvalidInputError(
            "\n".join(messages),
            kind="tables_not_provided",
            remedy="Correct the specs, or bring the tables in line, and run it again.",
        )


def _naming(path: Path, message: str) -> str:
    return message if str(path) in message else f"{path}: {message}"


def migrate(
    session: Session,
    pre: Annotated[
        bool, typer.Option("--pre", help="Only add what this version needs; so it is without options.")
    ] = False,
    post: Annotated[bool, typer.Option("--post", help="And shut clients of the version before out, for good.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is due.")] = False,
) -> Answer:
    """Brings the catalog to the schema of this version.

    Clients of the version before go on working, until it is told --post."""
    if pre and post:
        wrong_usage("--post does what --pre does, too: give one of them.")
    result = session.migrate(post=post, dry_run=dry_run)
    columns = (Column("phase"), Column("migration"), Column("name"), Column(""))
    is_done = "would be done" if dry_run else "done"
    rows = [(*_row(step), is_done) for step in result.done] + [(*_row(step), "due") for step in result.due]
    phases = dict.fromkeys(step.phase.value for step in result.due)
    listing = Listing(columns, rows, "The catalog has the schema of this version.")
    return Answer(_facts(result), [listing, *(Sentence(f"due: {_MEANING[phase]}") for phase in phases)])


def _row(step: "Step") -> tuple[str, str, str]:
    return step.phase.value, "" if step.version is None else str(step.version), step.name


def _facts(result: "Upgrade") -> dict[str, Any]:
    named = {
        name: [{"phase": step.phase.value, "version": step.version, "name": step.name} for step in steps]
        for name, steps in (("done", result.done), ("due", result.due))
    }
    return {"dry_run": result.dry_run, **named}
