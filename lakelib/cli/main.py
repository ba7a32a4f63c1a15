"""The command `lake`: looks into a lake, loads tables, decides about commits, and looks after tables."""

import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from lakelib.cli import check, decide, done, health, look, maintain, migrate, read, roles, status, tags, write
from lakelib.cli.command import AsJson, CatalogUrl, Common, Debug, Warehouse, print_failure

_EPILOG = (
    "The lake is the one that the environment names (LAKE_WAREHOUSE, LAKE_CATALOG, LAKE_HOME), else the one in ./.lake."
    " Exit codes: 0 done, 2 wrong usage, 3 wrong input, 4 not there, 5 conflict, 6 rejected, 7 try again, 8 damaged"
    " data, 1 anything else."
)

_LOGIN = re.compile(r"://\S*@")

app = typer.Typer(
    name="lake",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=_EPILOG,
)
for part in (status, look, read, write, decide, done, maintain, health, migrate, tags, roles, check):
    part.add_to(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    if "--json" in (sys.argv if arguments is None else arguments):
        return _main_for_programs(arguments)
    try:
        app(arguments, prog_name="lake")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _main_for_programs(arguments: Sequence[str] | None) -> int:
    """Wrong usage, too, is told in JSON."""
    try:
        ended = app(arguments, prog_name="lake", standalone_mode=False)
    except TyperException as error:
        message = _LOGIN.sub("://…@", error.format_message())
        print_failure(error.exit_code, "UsageError", "wrong_usage", message, "`lake --help` tells more.")
        return error.exit_code
    return ended if isinstance(ended, int) else 0


def _tell_version(asked: bool) -> None:
    if asked:
        import lakelib

        print(f"lakelib {lakelib.__version__}")
        raise typer.Exit


@app.callback()
def _lake(
    context: typer.Context,
    warehouse: Warehouse = None,
    catalog: CatalogUrl = None,
    json: AsJson = None,
    debug: Debug = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which lakelib this is.")
    ] = False,
) -> None:
    """Looks into a lake of lakelib's, loads tables, decides about commits, and looks after tables."""
    context.obj = Common(warehouse=warehouse, catalog=catalog, json=json, debug=debug)
