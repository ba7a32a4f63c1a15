"""Commands that write rows of files, or of a query, with Spark: append, upsert, overwrite, sql; without a table to
write to, sql asks.

What takes rows away is a dry run until it is told --yes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import (
    NULL_VALUE,
    Columns,
    ExplicitCast,
    Key,
    MergeSchema,
    NewLake,
    Properties,
    Really,
    TableName,
    option,
    read_choice,
    read_columns,
    read_key,
    read_names,
    read_pairs,
    read_parameters,
    read_partition,
)
from lakelib.cli.command import MayMake, Session, wrong_usage
from lakelib.cli.job import Job, Options, job_command
from lakelib.cli.query import ask, query_text, refuse
from lakelib.cli.read import Format as RowFormat
from lakelib.cli.read import Limit, Output
from lakelib.cli.show import Answer
from lakelib.errors import InvalidInputError
from lakelib.pipeline.arguments import Files, FileView, LakeView, Query, Surroundings, WriteArguments
from lakelib.plan.meant import parse_at

if TYPE_CHECKING:
    from lakelib.pipeline.outcome import Outcome

_PANEL = "Write on Spark"
_MODES = ("append", "upsert", "overwrite")
_DISTRIBUTIONS = ("auto", "none", "hash")
_OF_FILES = "Rows of files"
_OF_A_QUERY = "Rows of a query"


Format = Annotated[
    str, option(metavar="FORMAT", help="parquet, csv, json, or another one of Spark's. (parquet)", panel=_OF_FILES)
]
Paths = Annotated[
    list[str] | None, option("--path", metavar="PATH…", help="Files, folders, or patterns of them.", panel=_OF_FILES)
]
Schema = Annotated[
    str | None,
    option(
        metavar="DDL",
        help="The files' columns, such as 'id BIGINT, dt DATE': these are read, and no other.",
        panel=_OF_FILES,
    ),
]
Condition = Annotated[
    str | None, option(metavar="SQL", help="Only rows for which this is true, in Spark SQL.", panel=_OF_FILES)
]
Sql = Annotated[str | None, option(metavar="QUERY", help="One query in Spark SQL, over views.", panel=_OF_A_QUERY)]
SqlFile = Annotated[Path | None, option(metavar="FILE", help="A file that holds the query.", panel=_OF_A_QUERY)]
Views = Annotated[
    list[str] | None,
    option("--view", metavar="NAME=FORMAT:PATH", help="Files as a view; may be repeated.", panel=_OF_A_QUERY),
]
LakeViews = Annotated[
    list[str] | None,
    option(
        "--lake-view",
        metavar="NAME=TABLE@AT",
        help="A table as a view: at a snapshot id, a tag:NAME, a moment; without @AT as it is. May be repeated.",
        panel=_OF_A_QUERY,
    ),
]
ReadOptions = Annotated[
    list[str] | None,
    option(
        "--option",
        metavar="NAME=VALUE",
        help="Of Spark's reader, such as header=true; may be repeated.",
        panel=_OF_FILES,
    ),
]
Partitions = Annotated[
    list[str] | None,
    option(
        "--partitions",
        metavar="WHICH…",
        help="What an overwrite replaces: all, dynamic (the partitions that the rows are in), or values such as"
        f" dt=2026-11-18; NULL is {NULL_VALUE}. (all)",
    ),
]
ReplaceWhere = Annotated[
    str | None,
    option(
        metavar="SQL",
        help="What an overwrite replaces: the rows for which this is true. Each row has to be such a one.",
    ),
]
Gate = Annotated[
    str | None,
    option(metavar="FILE", help="A suite that has to pass before anybody sees the rows."),
]
Distribution = Annotated[str, option(metavar="HOW", help=f"Shuffle or not: {', '.join(_DISTRIBUTIONS)}. (auto)")]
AuxOrder = Annotated[
    list[str] | None,
    option(metavar="NAMES", help="Columns that decide which duplicate is newest, and are not stored."),
]


_FILES: Options = {
    "format": (Format, "parquet"),
    "path": (Paths, None),
    "schema": (Schema, None),
    "columns": (Columns, None),
    "where": (Condition, None),
}
_QUERY: Options = {
    "sql": (Sql, None),
    "sql_file": (SqlFile, None),
    "view": (Views, None),
    "lake_view": (LakeViews, None),
    "option": (ReadOptions, None),
}
_WRITE: Options = {
    "idempotency_key": (Key, None),
    "gate": (Gate, None),
    "properties": (Properties, None),
    "merge_schema": (MergeSchema, False),
    "explicit_cast": (ExplicitCast, False),
    "distribution": (Distribution, "auto"),
    "aux_order": (AuxOrder, None),
}
_OF_STATEMENTS = ("idempotency_key", "properties", "gate")
"""What a statement that changes something takes of it, too."""
_OVERWRITE: Options = {
    "partitions": (Partitions, None),
    "replace_where": (ReplaceWhere, None),
    "yes": (Really, False),
}


def add_to(app: typer.Typer) -> None:
    job_command(app, "append", panel=_PANEL, options=_FILES | _QUERY | _WRITE)(append)
    job_command(app, "upsert", panel=_PANEL, options=_FILES | _QUERY | _WRITE)(upsert)
    job_command(app, "overwrite", panel=_PANEL, options=_FILES | _QUERY | _OVERWRITE | _WRITE)(overwrite)
    job_command(app, "sql", panel="Read", options=_QUERY | _OVERWRITE | _WRITE)(sql)


def append(session: Session, around: Surroundings, table: TableName, **given: Any) -> Job:
    """Adds rows to a table, all in one instant or none.

    They come from files (--path) or from a query (--sql). On a table with a primary key a row takes the place of the
    one of its key, as in an upsert."""
    return _job(session, around, "append", table, given)


def upsert(session: Session, around: Surroundings, table: TableName, **given: Any) -> Job:
    """Puts each row in place of the one of its primary key, or adds it; all in one instant or none.

    They come from files (--path) or from a query (--sql)."""
    return _job(session, around, "upsert", table, given)


def overwrite(session: Session, around: Surroundings, table: TableName, **given: Any) -> Job:
    """Puts rows in place of all that is in a table, or in some of its partitions (--partitions),
    or in place of some rows (--replace-where).

    They come from files (--path) or from a query (--sql). Readers see the old rows until they see the new ones. A dry
    run until it is told --yes."""
    return _job(session, around, "overwrite", table, given)


def sql(
    session: Session,
    around: Surroundings,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="The query; - or none is from standard input.", show_default=False),
    ] = None,
    into: Annotated[str | None, option(metavar="TABLE", help="namespace.table to write to, with Spark.")] = None,
    mode: Annotated[str, option(metavar="MODE", help=f"With --into: {', '.join(_MODES)}. (append)")] = "append",
    param: Annotated[
        list[str] | None,
        option(
            metavar="NAME[:TYPE]=VALUE",
            help="What $NAME stands for: a text, or of a type such as int, date, decimal(10,2). May be given again.",
        ),
    ] = None,
    limit: Limit = None,
    format: RowFormat = None,
    output: Output = None,
    parquet: Annotated[
        Path | None, option(metavar="FILE", help="Into a Parquet file: --format parquet --output FILE.")
    ] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Say how long it took; on a terminal that is so.")] = False,
    transaction: Annotated[
        bool, typer.Option("--transaction", help="What several statements change is published in one instant, or none.")
    ] = False,
    new_lake: NewLake = False,
    **given: Any,
) -> Job | Answer | None:
    """Asks and changes tables of the lake in SQL: docs/sql.md says what a statement may be.

    It is carried out in this process, unless a master or a server is named, which gives the same rows.

    EXPLAIN before it tells how it is carried out. Without a statement, on a terminal, there is a prompt. Several
    statements, with semicolons between, are checked, and then carried out one after the other. A statement that takes
    away rows, columns, tables or snapshots is a dry run, with all that stand beside it, until it is told --yes.

    With --into TABLE it runs one query in Spark SQL, and writes its rows to a table; all in one instant or none. It is
    then over views of files (--view) and of tables (--lake-view), which are seen as they are when the work begins, or
    as they were. An overwrite is a dry run until it is told --yes."""
    own = {"param": (param, None), "limit": (limit, None), "format": (format, None), "output": (output, None)}
    if into is not None:
        not_into = {
            "parquet": (parquet, None),
            "timing": (timing, False),
            "transaction": (transaction, False),
            "new_lake": (new_lake, False),
        }
        refuse(own | not_into, "a query without --into")
        given["sql"] = query_text(text, given["sql"], None) if text is not None else given["sql"]
        return _job(session, around, read_choice(mode, _MODES, "--mode"), into, given)
    query = query_text(text, given.pop("sql"), given.pop("sql_file"))
    options = _QUERY | _OVERWRITE | _WRITE
    yes, asked = given.pop("yes"), {name: given.pop(name) for name in _OF_STATEMENTS}
    of_writes = {name: (value, options[name][1]) for name, value in given.items()}
    refuse(of_writes | {"mode": (mode, "append")}, "--into TABLE")
    if parquet is not None and (format, output) != (None, None):
        wrong_usage("--parquet FILE is --format parquet --output FILE: give one of them")
    session.open(make=MayMake.ANYWHERE if new_lake else MayMake.NEVER)
    return ask(
        session,
        around,
        query,
        format=format if parquet is None else "parquet",
        output=output if parquet is None else parquet,
        limit=limit,
        timing=timing,
        values=read_parameters(param or ()),
        yes=yes,
        together=transaction,
        options={
            "idempotency_key": asked["idempotency_key"] and read_key(asked["idempotency_key"]),
            "properties": read_pairs(asked["properties"] or (), "--property"),
            "gate": asked["gate"],
        },
    )


def _job(session: Session, around: Surroundings, mode: str, table: str, given: Mapping[str, Any]) -> Job:
    job = WriteArguments(
        table=table,
        mode=mode,
        source=_source(given),
        partitions=_partitions(mode, given.get("partitions")),
        where=_where(mode, given),
        write=_write(given),
        surroundings=around,
    )
    is_dry = mode == "overwrite" and not given["yes"]

    def work() -> "Outcome":
        from lakelib.pipeline.writing import plan, write

        return plan(job) if is_dry else write(job, session.start.spark)

    return Job(arguments=job, work=work, table=table)


def _source(given: Mapping[str, Any]) -> Files | Query:
    query = _query_text(given["sql"], given["sql_file"])
    takes_files = "path" in given
    paths = given.get("path")
    if (paths is None) == (query is None):
        wrong_usage(f"give one of {'--path, --sql or --sql-file' if takes_files else '--sql or --sql-file'}")
    options = read_pairs(given["option"] or (), "--option")
    if query is None:
        return _files(paths or (), options, given)
    for name in ("schema", "columns", "where"):
        if given.get(name):
            wrong_usage(f"--{name} is for --path: a query says it itself")
    return Query(
        text=query,
        file_views=tuple(map(_file_view, given["view"] or ())),
        lake_views=tuple(map(_lake_view, given["lake_view"] or ())),
        options=options,
    )


def _files(paths: Sequence[str], options: Mapping[str, str], given: Mapping[str, Any]) -> Files:
    if given["view"] or given["lake_view"]:
        wrong_usage("--view and --lake-view are for --sql")
    columns = read_columns(given["columns"])
    return Files(
        format=given["format"].lower(),
        paths=tuple(paths),
        options=options,
        schema=given["schema"],
        columns=None if columns is None else tuple(columns),
        where=given["where"],
    )


def _query_text(sql: str | None, file: Path | None) -> str | None:
    if sql is not None and file is not None:
        wrong_usage("give --sql or --sql-file, not both")
    if file is None:
        return sql
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        wrong_usage(f"--sql-file {file} cannot be read: {error}")


def _file_view(text: str) -> FileView:
    name, _, rest = text.partition("=")
    format, _, path = rest.partition(":")
    if not (name and format and path):
        wrong_usage(f"--view {text!r} is not NAME=FORMAT:PATH")
    return FileView(name=name, format=format.lower(), path=path)


def _lake_view(text: str) -> LakeView:
    name, _, rest = text.partition("=")
    table, has_at, at = rest.partition("@")
    if not (name and table) or (has_at and not at):
        wrong_usage(f"--lake-view {text!r} is not NAME=TABLE or NAME=TABLE@AT")
    try:
        return LakeView(name=name, table=table, at=parse_at(at) if has_at else None)
    except InvalidInputError as error:
        wrong_usage(f"--lake-view {text!r}: {error}")


def _partitions(mode: str, which: list[str] | None) -> str | Mapping[str, str | None]:
    if which is None:
        return "all"
    if mode != "overwrite":
        wrong_usage(f"--partitions is for an overwrite, and this is an {mode}")
    return which[0] if which in (["all"], ["dynamic"]) else read_partition(which)


def _where(mode: str, given: Mapping[str, Any]) -> str | None:
    where: str | None = given.get("replace_where")
    if where is not None and mode != "overwrite":
        wrong_usage(f"--replace-where is for an overwrite, and this is an {mode}")
    if where is not None and given["partitions"] is not None:
        wrong_usage("--partitions and --replace-where both say what is replaced: give one of them")
    return where


def _write(given: Mapping[str, Any]) -> dict[str, Any]:
    key = given["idempotency_key"]
    return {
        "idempotency_key": None if key is None else read_key(key),
        "properties": read_pairs(given["properties"] or (), "--property"),
        "merge_schema": given["merge_schema"],
        "explicit_cast": given["explicit_cast"],
        "distribution": read_choice(given["distribution"], _DISTRIBUTIONS, "--distribution"),
        "aux_order": tuple(read_names(given["aux_order"], "--aux-order")),
        "gate": given["gate"],
    }
