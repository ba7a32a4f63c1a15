"""The command `lake`: looks into a lake, loads tables, decides about commits, and looks after tables."""

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from lakelib.cli import (
    check,
    consumers,
    decide,
    delta,
    done,
    ducklake,
    health,
    hive,
    imports,
    ingest,
    look,
    maintain,
    migrate,
    read,
    roles,
    rollback,
    rows,
    status,
    tags,
    write,
)
from lakelib.cli.command import AsCsv, AsJson, CatalogUrl, Common, Debug, Start, Warehouse, print_failure
from lakelib.errors import EXIT_CODE_MEANINGS, USAGE_EXIT_CODE

_EPILOG = (
    "The lake is the one that the environment names (LAKE_WAREHOUSE, LAKE_CATALOG, LAKE_HOME), else the one in ./.lake."
    f" Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODE_MEANINGS.items())}."
)

_STAYS = "LAKE_SERVER_STAYS"
_USUAL_STAY = "60"
_LOGIN = re.compile(r"://\S*@")

app = typer.Typer(
    name="lake",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=_EPILOG,
)
for part in (
    status,
    look,
    consumers,
    read,
    write,
    imports,
    rollback,
    ingest,
    rows,
    decide,
    done,
    maintain,
    delta,
    ducklake,
    health,
    hive,
    migrate,
    tags,
    roles,
    check,
):
    part.add_to(app)


def main(arguments: Sequence[str] | None = None, start: Start | None = None) -> int:
    """The exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        stay_seconds = _stay_seconds()
        ended = app(words, prog_name="lake", standalone_mode=False, obj=start)
    except TyperException as error:
        return _tell_wrong_usage(error, for_programs="--json" in words)
    except SystemExit as asked:  # what a shell asks for to complete a line
        return asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    if arguments is None:  # the process is this command
        _leave_server_up(stay_seconds)
    return ended if isinstance(ended, int) else 0


def run_job(name: str, command: Sequence[str], arguments: Sequence[str] | None, session: object = None) -> int:
    """As `main`, for an entry point of `jobs`: the command that it is short for, with its arguments, or those of the
    process. A session that is given is used, and left running. Raises SystemExit where the arguments are wrong."""
    own = sys.argv[1:] if arguments is None else arguments
    code = main([*command, *own], Start(job=name, spark=session))
    if code == USAGE_EXIT_CODE:
        raise SystemExit(code)
    return code


def _stay_seconds() -> float:
    """How long a server that the command has started stays up for the next one."""
    text = os.environ.get(_STAYS, _USUAL_STAY)
    if not text.isascii() or not text.isdecimal():
        raise typer.BadParameter(f"{_STAYS} is {text!r}, and no number of seconds")
    return float(text)


def _leave_server_up(seconds: float) -> None:
    """If one was needed: else nothing is loaded that could start it."""
    embedded = sys.modules.get("lakelib.catalog.embedded")
    if embedded is not None:
        embedded.keep_up_after_exit(seconds)


def _tell_wrong_usage(error: TyperException, *, for_programs: bool) -> int:
    """Without what may be a secret."""
    if type(error).__name__ == "NoArgsIsHelpError":  # which has shown the help
        return error.exit_code
    message = _LOGIN.sub("://…@", error.format_message())
    context = getattr(error, "ctx", None)
    remedy = f"`{context.command_path if context else 'lake'} --help` tells more."
    if for_programs:
        print_failure(error.exit_code, "UsageError", "wrong_usage", message, remedy)
    else:
        print(f"error: {message}\n{remedy}", file=sys.stderr)
    return error.exit_code


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
    csv: AsCsv = None,
    debug: Debug = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which lakelib this is.")
    ] = False,
) -> None:
    """Looks into a lake of lakelib's, loads tables, decides about commits, and looks after tables."""
    start = context.obj or Start()
    context.obj = Common(warehouse=warehouse, catalog=catalog, json=json, csv=csv, debug=debug, start=start)
