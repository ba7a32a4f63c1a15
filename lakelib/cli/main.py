"""The command `lake`: looks into a lake, loads tables, decides about commits, and looks after tables."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer
from typer.exceptions import TyperException

from lakelib.cli.command import (
    BROKEN_PIPE_EXIT_CODE,
    AsCsv,
    AsJson,
    CatalogUrl,
    Common,
    Debug,
    Start,
    Warehouse,
    leave_stdout,
    print_failure,
)
from lakelib.cli.parser import QuickGroup
from lakelib.errors import EXIT_CODE_MEANINGS, USAGE_EXIT_CODE, exit_code_of

_EPILOG = (
    "The lake is the one that the environment names (LAKE_WAREHOUSE, LAKE_CATALOG, LAKE_HOME), else the one in ./.lake."
    f" Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODE_MEANINGS.items())}."
)

_STAYS = "LAKE_SERVER_STAYS"
_USUAL_STAY = "60"
_LOGIN = re.compile(r"://\S*@")

_PARTS: Mapping[str, Sequence[str]] = {
    "status": ("status",),
    "look": ("namespaces", "tables", "describe", "history", "partitions", "files"),
    "consumers": ("consumers", "watch", "consumer"),
    "read": ("scan", "changes", "explain"),
    "write": ("create", "options", "load", "delete"),
    "ingest": ("ingest", "backfill", "import"),
    "rows": ("append", "upsert", "overwrite", "sql"),
    "decide": ("commits", "publish", "reject", "gate"),
    "done": ("mark-done", "done"),
    "maintain": ("compact", "rebucket", "expire", "vacuum", "maintain", "adopt"),
    "health": ("doctor", "backup", "restore"),
    "exports": ("delta", "ducklake", "views", "hive"),
    "snapshots": ("rollback", "tag"),
    "roles": ("grant", "revoke", "roles", "provide", "migrate"),
    "check": ("init", "check"),
}
"""Modules of this package, in the order of the help, and what they add: a command is there without the others."""
_BEFORE_COMMAND = {"--json": 0, "--csv": 0, "--debug": 0, "--warehouse": 1, "--catalog": 1}
"""Options that may stand there, and how many words are theirs."""


def make_app(command: str | None = None) -> typer.Typer:
    """All commands, or what it takes for one."""
    app = typer.Typer(
        name="lake",
        cls=QuickGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["--help", "-h"]},
        epilog=_EPILOG,
    )
    app.callback()(_lake)
    for part, names in _PARTS.items():
        if command is None or command in names:
            import_module(f"lakelib.cli.{part}").add_to(app)
    return app


def _command_in(words: Sequence[str]) -> str | None:
    """The command, if it is one of those that there are, and nothing is asked of all."""
    rest = list(words)
    while rest and (name := rest[0].partition("=")[0]) in _BEFORE_COMMAND:
        rest = rest[1 if "=" in rest[0] else 1 + _BEFORE_COMMAND[name] :]
    known = [name for names in _PARTS.values() for name in names]
    return rest[0] if rest and rest[0] in known else None


def main(arguments: Sequence[str] | None = None, start: Start | None = None) -> int:
    """The exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    code = 0
    try:
        code = _carried_out(words, start, is_process=arguments is None)
        sys.stdout.flush()
    except OSError as error:  # of what no command says: help, the version, what completes a line, the rest of a buffer
        leave_stdout()
        code = code or _tell_unwritten(error, for_programs="--json" in words)
    return code


def _carried_out(words: Sequence[str], start: Start | None, *, is_process: bool) -> int:
    try:
        stay_seconds = _stay_seconds()
        ended = make_app(_command_in(words))(words, prog_name="lake", standalone_mode=False, obj=start)
    except TyperException as error:
        return _tell_wrong_usage(error, for_programs="--json" in words)
    except SystemExit as asked:  # what a shell asks for to complete a line
        if isinstance(asked.__context__, BrokenPipeError):
            raise asked.__context__ from None
        return asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    if is_process:
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


def _tell_unwritten(error: OSError, *, for_programs: bool) -> int:
    """Whoever has seen enough is told nothing."""
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE_EXIT_CODE
    message = f"{type(error).__name__}: {error}"
    code = exit_code_of(error)
    if for_programs:
        print_failure(code, "other", "other", message, "")
    else:
        print(f"error: {message}", file=sys.stderr)
    return code


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
