"""Commands about what people write: init, check."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.command import Session, command, wrong_usage
from lakelib.cli.show import Answer, Sentence, working
from lakelib.errors import EXIT_CODES, InvalidInputError, LakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelib.ops.check import CheckedFile, Tried
    from lakelib.specs.table_spec import TableSpec

_PANEL = "Tables of one's own"
_WHOLE = "all"


def add_to(app: typer.Typer) -> None:
    command(app, "init", panel=_PANEL)(init)
    command(app, "check", panel=_PANEL)(check)


def init(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="One that is not there yet.", show_default=False)],
) -> Answer:
    """Makes a folder for your own tables: an example of a table, its gate and its transform, and tests that pass.

    Airflow takes the tables from there where LAKE_TABLES names the folder "tables" in it."""
    from lakelib.specs.starter import make_folder

    made = make_folder(folder.absolute())
    tables = folder.absolute() / "tables"
    said = [
        *(str(each.relative_to(folder.absolute())) for each in made),
        f"is in {folder.absolute()}. To go on:",
        f"  lake check {shlex.quote(str(tables))}",
        f"  pip install pytest && pytest {shlex.quote(str(folder.absolute() / 'tests'))}",
        f"  LAKE_TABLES={shlex.quote(str(tables))} make up    # in a clone of lakelib's repository, which has it",
    ]
    return Answer({"folder": folder.absolute(), "tables": tables, "files": made}, list(map(Sentence, said)))


def check(
    session: Session,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE…]",
            help="Specs of tables and suites of gates, or folders; the one that LAKE_TABLES names, if none is given.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Look at the source's files, and compile the transforms, too."),
    ] = False,
    partition: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Of which partition, such as 2026-11-18, for a dry run.", show_default=False),
    ] = None,
) -> Answer:
    """Says all that is wrong with specs and suites, in one go; exit code 3 if anything is.

    Needs no lake. With a spec goes the suite of its gate, and how it fits the columns."""
    from lakelib.ops.check import check_files

    if partition is not None and not dry_run:
        wrong_usage("--partition is for --dry-run.")
    checked = check_files(files or _own_tables())
    tried, errors = _try_all(session, checked, partition) if dry_run else ({}, {})
    wrong = any(each.errors for each in checked) or bool(errors)
    about = [(each, tried.get(each.path), errors.get(each.path)) for each in checked]
    parts = [part for each in about for part in _sentences(*each)]
    return Answer([_facts(*each) for each in about], parts, EXIT_CODES[InvalidInputError] if wrong else 0)


def _own_tables() -> list[Path]:
    folder = os.environ.get("LAKE_TABLES")
    if not folder:
        wrong_usage("Name files or folders, or set LAKE_TABLES to the folder of your tables.")
    return [Path(folder)]


def _try_all(
    session: Session, checked: "Sequence[CheckedFile]", partition: str | None
) -> tuple[dict[Path, "Tried"], dict[Path, str]]:
    """What was seen of the specs that are right, and what is wrong all the same."""
    from lakelib.ops.check import columns_of, try_spec
    from lakelib.settings import load_settings
    from lakelib.storage.filesystem import open_storage

    specs = [each.spec for each in checked if each.spec is not None]
    settings = load_settings(warehouse=session.common.warehouse, catalog=session.common.catalog, environ=os.environ)
    storage = open_storage(settings.warehouse, settings.storage)
    tried: dict[Path, Tried] = {}
    errors: dict[Path, str] = {}
    with ExitStack() as stack, working(session, "trying"):
        compiling = cache(lambda: _compiler(stack))
        find = columns_of(specs, lambda table: _columns(session, table))
        for spec in specs:
            try:
                tried[spec.path] = try_spec(spec, _key(spec, partition), os.environ, storage, find, compiling)
            except LakeError as error:
                errors[spec.path] = f"{spec.path}, dry run: {error}"
    return tried, errors


def _key(spec: "TableSpec", partition: str | None) -> str:
    if spec.partition.every == "none":
        return _WHOLE
    if partition is None:
        wrong_usage(f"--partition says which {spec.partition.every} of {spec.table} the dry run looks at.")
    return partition


def _columns(session: Session, table: str) -> "pa.Schema":
    return session.table(table).schema


def _compiler(stack: ExitStack) -> Any:
    try:
        from lakelib.work.spark.query import opened_compiler
    except ImportError as error:
        raise InvalidInputError(
            "A transform is compiled by Spark, which is not installed here.",
            kind="spark_missing",
            remedy='Install it: pip install "lakelib[spark]". Or say `engine: local` in the spec: '
            'pip install "lakelib[local]".',
        ) from error
    return stack.enter_context(opened_compiler())


def _sentences(each: "CheckedFile", tried: "Tried | None", error: str | None) -> Iterator[Sentence]:
    problems = [*each.errors, *([error] if error else [])]
    for line in (*problems, *(f"warning: {line}" for line in each.warnings)):
        yield Sentence(line)
    if not problems:
        yield Sentence(f"{each.path}: {'nothing is wrong' if tried is None else _seen(tried)}")


def _seen(tried: "Tried") -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in tried.columns.items())
    rows = f"rows of {columns}" if columns else f"rows not looked at: {tried.note}"
    return f"partition {tried.partition}, files: {tried.files:,}, {rows}"


def _facts(each: "CheckedFile", tried: "Tried | None", error: str | None) -> dict[str, Any]:
    problems = [*each.errors, *([error] if error else [])]
    table = None if each.spec is None else each.spec.table
    facts = {"file": each.path, "table": table, "errors": problems, "warnings": each.warnings}
    return facts if tried is None else facts | {"dry_run": tried}
