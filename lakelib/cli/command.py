"""What all commands of `lake` share: the options that each of them takes, the lake it works on, and how it ends.

Nothing here loads Arrow or PostgreSQL's driver before a command needs the lake: help comes at once.
"""

import functools
import inspect
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from lakelib.cli.parser import StrictCommand
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError, NotFoundError, exit_code_of, family_of

if TYPE_CHECKING:
    from rich.console import Console

    from lakelib.cli.show import Answer
    from lakelib.lake import Lake
    from lakelib.model.upgrade import Upgrade
    from lakelib.table import Table

BROKEN_PIPE_EXIT_CODE = 141
"""As of a program that the signal SIGPIPE has ended."""
INTERRUPTED_EXIT_CODE = 130
_PANEL = "Lake and output"
_COMMANDS = {"history": "`lake history`", "tags": "`lake tag list`", "tables": "`lake tables`"}
"""What methods of the API are called here."""
SAID_IN_COMMANDS = {
    "lake.staged(commit_id)": "`lake gate show COMMIT`",
    "Take the id from StagedCommit.id": "`lake commits` lists them",
    "Take it from StagedCommit.id": "`lake commits` lists them",
    "lake.tables() or `lake tables`": "`lake tables`",
    "consumers() lists them; consumer(NAME) makes one": "`lake consumers` lists them",
    'duplicates="last"': "--duplicates last",
    "; diff(a, b) takes both orders": "",
    "; a dropped and re-created table needs a new handle": "",
}
"""What remedies of the API say, and how it is said here."""
_TERMINAL = {"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"}
"""Who sets one of these wants what people would see."""
PIPE_WIDTH = 10_000
"""Nothing is cut or wrapped where a program reads along."""


class MayMake(Enum):
    """Whether a command makes a lake where there is none."""

    NEVER = "never"
    WHERE_NAMED = "where its warehouse is named"
    """What schedulers start works on the first day, too; in the wrong folder nothing is named."""
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Who runs the command, if it is not a person at a shell."""

    job: str | None = None
    """The entry point of `jobs` that does: results and summaries say its name."""
    spark: Any = None
    """A session to use, and to leave running."""
    carry_out: "Callable[[Session, str, Any], int] | None" = None
    """What is done with a job once it is understood, if it is not carried out. Gives the exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The options that may stand before the command's name and after it. None is not given."""

    warehouse: str | None = None
    catalog: str | None = None
    json: bool | None = None
    csv: bool | None = None
    debug: bool | None = None
    start: Start = field(default_factory=Start)

    def completed(self, other: "Common | None") -> "Common":
        """With what is only given in the other place."""
        if other is None:
            return self
        missing = {name: getattr(other, name) for name in _COMMON if getattr(self, name) is None}
        return replace(self, start=other.start, **missing)


Warehouse = Annotated[
    str | None,
    typer.Option(metavar="URI", help="In place of LAKE_WAREHOUSE.", rich_help_panel=_PANEL, show_default=False),
]
CatalogUrl = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="URL",
        help="In place of LAKE_CATALOG; the environment hides passwords, an argument does not.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
AsJson = Annotated[
    bool | None,
    typer.Option("--json", metavar="", help="JSON for programs, in place of tables.", rich_help_panel=_PANEL),
]
AsCsv = Annotated[
    bool | None,
    typer.Option("--csv", metavar="", help="CSV for spreadsheets, with the fields of --json.", rich_help_panel=_PANEL),
]
Debug = Annotated[
    bool | None,
    typer.Option("--debug", metavar="", help="Show where in the program an error arose.", rich_help_panel=_PANEL),
]
_COMMON = {"warehouse": Warehouse, "catalog": CatalogUrl, "json": AsJson, "csv": AsCsv, "debug": Debug}


class Session:
    """One run of a command."""

    def __init__(self, common: Common, options: Collection[str] = ()) -> None:
        """`options` are those that the command takes."""
        self._common = common
        self._options = options
        self._lake: Lake | None = None

    @property
    def common(self) -> Common:
        """The options that stand before the command's name or after it."""
        return self._common

    @property
    def start(self) -> Start:
        return self._common.start

    @property
    def json(self) -> bool:
        """Whether a program reads along."""
        return bool(self._common.json)

    @property
    def csv(self) -> bool:
        """Whether a spreadsheet does."""
        return bool(self._common.csv)

    @property
    def lake(self) -> "Lake":
        """The lake, connected at first use. Raises NotFoundError where none is named and none is in this folder."""
        return self.open()

    def open(self, *, make: MayMake = MayMake.NEVER) -> "Lake":
        """The lake, which is made where there is none if it may be."""
        if self._lake is None:
            self.prepare(make=make)
            self._lake = _connect(self._common)
        return self._lake

    def prepare(self, *, make: MayMake) -> None:
        """What comes before any work on the lake. Raises as `lake` does."""
        if self.json:
            logging.getLogger("lakelib").addHandler(logging.NullHandler())  # stderr is for one line of JSON
        made = _check_there(self._common, make)
        if made is not None:
            self.note(f"There is no lake in {made} yet: a new one is made.")

    def table(self, name: str) -> "Table":
        return self.lake.table(name)

    def migrate(self, *, post: bool, dry_run: bool) -> "Upgrade":
        """Migrates the lake's catalog, to which nobody can connect who finds it too old. Raises NotFoundError as
        `lake` does."""
        import lakelib

        _check_there(self._common, MayMake.NEVER)
        return lakelib.migrate(self._common.warehouse, self._common.catalog, post=post, dry_run=dry_run)

    @property
    def is_piped(self) -> bool:
        """Whether a program reads along, for whom nothing is cut, wrapped or coloured: known without laying out
        anything."""
        return not sys.stdout.isatty() and not _TERMINAL & os.environ.keys()

    @functools.cached_property
    def out(self) -> "Console":
        return _console(sys.stdout)

    @functools.cached_property
    def err(self) -> "Console":
        return _console(sys.stderr)

    def note(self, text: str) -> None:
        """A word to people about what they see; programs are not told."""
        if not self.json:
            self.err.print(_safe(text), style="dim", markup=False, highlight=False)

    def print_json(self, value: Any) -> None:
        """A whole document."""
        from lakelib.cli.values import json_text

        print(json_text(value, indent=2))

    def print_csv(self, value: Any) -> None:
        """The objects of a document, below the names of their fields."""
        from lakelib.cli.values import csv_lines

        for line in csv_lines(value):
            print(line)

    def print_line(self, value: Any) -> None:
        """One of many documents, a line each."""
        from lakelib.cli.values import json_text

        print(json_text(value))

    def close(self) -> None:
        if self._lake is not None:
            self._lake.close()

    def explain_failure(self, error: Exception) -> int:
        """Says on stderr what went wrong and what to do about it. Gives the exit code."""
        if self._common.debug:
            traceback.print_exception(error)
        code = exit_code_of(error)
        kind = error.kind if isinstance(error, LakeError) else "other"
        message = error.message if isinstance(error, LakeError) else f"{type(error).__name__}: {error}"
        message = " ".join((message, *getattr(error, "__notes__", ())))
        remedy = error.remedy if isinstance(error, LakeError) else "Run it again with --debug to see where it arose."
        if self.json:
            family = family_of(error) if isinstance(error, LakeError) else "other"
            print_failure(code, family, kind, message, remedy)
            return code
        self.say_failure(message, remedy)
        return code

    def say_failure(self, message: str, remedy: str) -> None:
        """For people: what went wrong, and what to do about it."""
        self.err.print("error: ", style="bold red", end="", highlight=False)
        self.err.print(_safe(message), markup=False, highlight=False, soft_wrap=True)
        if remedy:
            remedy = self.spoken(remedy)
            self.err.print(_safe(remedy), style="dim", markup=False, highlight=False, soft_wrap=True)

    def spoken(self, remedy: str) -> str:
        """A remedy in words of the command, where it is in those of the API: `merge_schema=True`, `history()`."""
        keywords = {option.removeprefix("--").replace("-", "_"): option for option in self._options}
        text = re.sub(r"\b(\w+)=True\b", lambda found: keywords.get(found[1], found[0]), remedy)
        for said, command in SAID_IN_COMMANDS.items():
            text = text.replace(said, command)
        return re.sub(r"(?<![.\w])(\w+)\(\)", lambda found: _COMMANDS.get(found[1], found[0]), text)


def print_failure(code: int, family: str, kind: str, message: str, remedy: str) -> None:
    """For programs: a line of JSON on stderr."""
    told = {"family": family, "kind": kind, "message": message, "remedy": remedy}
    print(json.dumps({"ok": False, "exit_code": code, "error": told}), file=sys.stderr)


def command(
    app: typer.Typer, name: str, *, panel: str | None = None
) -> Callable[[Callable[..., "Answer | None"]], Any]:
    """Makes a function `(session, …)` the command of that name: it also takes the common options, what it answers is
    laid out, its errors become messages and exit codes, and its lake is closed at the end."""

    def register(work: Callable[..., "Answer | None"]) -> Callable[..., "Answer | None"]:
        @functools.wraps(work)
        def run(context: typer.Context, **given: Any) -> None:
            common = Common(**{option: given.pop(option) for option in _COMMON})
            options = [option for each in context.command.params for option in each.opts]
            common = common.completed(context.obj)
            if common.json and common.csv:
                wrong_usage("--json and --csv are two formats.")
            _run(work, Session(common, options), given)

        _, *own = inspect.signature(work, eval_str=True).parameters.values()
        parameters = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
            *(
                inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for option, kind in _COMMON.items()
            ),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        app.command(name, cls=StrictCommand, rich_help_panel=panel)(run)
        return work

    return register


class WrongUsageError(typer.BadParameter):
    def format_message(self) -> str:
        return self.message


def wrong_usage(message: str) -> NoReturn:
    """Ends the command with exit code 2."""
    raise WrongUsageError(message)


def _tell(session: Session, answer: "Answer") -> None:
    from lakelib.cli.show import tell

    tell(session, answer)
    code = answer.exit_code if answer.failure is None else session.explain_failure(answer.failure)
    if code:
        raise typer.Exit(code)


def _run(work: Callable[..., "Answer | None"], session: Session, given: dict[str, Any]) -> None:
    try:
        try:
            answer = work(session, **given)
            if answer is not None:
                _tell(session, answer)
            sys.stdout.flush()
        finally:
            session.close()
    except BrokenPipeError:
        leave_stdout()  # whoever read along has seen enough
        raise typer.Exit(BROKEN_PIPE_EXIT_CODE) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        session.err.print("interrupted", style="dim")
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    except Exception as error:
        raise typer.Exit(session.explain_failure(error)) from None


def leave_stdout() -> None:
    """What is left in its buffer must go nowhere, or Python complains of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _connect(common: Common) -> "Lake":
    import lakelib

    return lakelib.connect(warehouse=common.warehouse, catalog=common.catalog)


def _check_there(common: Common, make: MayMake) -> str | None:
    """A command looks at a lake that is there: run in the wrong folder, it makes none. The place of a new one."""
    from lakelib.lake import has_own_catalog
    from lakelib.settings import DEFAULT_WAREHOUSE, load_settings

    settings = load_settings(warehouse=common.warehouse, catalog=common.catalog, environ=os.environ)
    if settings.catalog is not None or has_own_catalog(settings):
        return None
    is_named = settings.warehouse != DEFAULT_WAREHOUSE
    place = settings.warehouse if is_named else os.getcwd()
    if make is MayMake.ANYWHERE or (make is MayMake.WHERE_NAMED and is_named):
        return place
    raise NotFoundError(
        f"There is no lake in {place}, and no catalog is named.",
        kind="lake_not_found",
        remedy="Name its warehouse, and its catalog unless that is in the warehouse's folder: LAKE_WAREHOUSE and "
        "LAKE_CATALOG, or --warehouse and --catalog. `lake create`, `sql`, `import`, `ingest` and `backfill` make a "
        "new one with --new-lake.",
    )


def _safe(text: str) -> str:
    from lakelib.cli.values import escaped_lines

    return escaped_lines(text)


def _console(stream: Any) -> "Console":
    from rich.console import Console

    class _Piped(Console):
        """Leaves it to the command to end when nobody reads along any more."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return _Piped(file=stream, width=width)
