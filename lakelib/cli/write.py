"""Commands that make tables, set their options and change their rows: create, options, load, delete.

What takes rows away is a dry run until it is told --yes.
"""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import (
    Buckets,
    ExplicitCast,
    Key,
    Merge,
    MergeSchema,
    Names,
    NewLake,
    Really,
    ReallyIfAsked,
    TableName,
    read_buckets,
    read_choice,
    read_key,
    read_merge,
    read_names,
    read_pairs,
    read_partition,
)
from lakelib.cli.command import MayMake, Session, command, wrong_usage
from lakelib.cli.show import Answer, Column, Listing, Note, Sentence, working
from lakelib.cli.values import counted
from lakelib.errors import NotFoundError
from lakelib.model.options import TableOptions
from lakelib.model.upkeep import readable_bytes

if TYPE_CHECKING:
    from lakelib.lake import Lake
    from lakelib.model.table import Snapshot
    from lakelib.table import Table

_PANEL = "Write"
_NOTHING = Note("Nothing was changed. --yes does it.")
_MODES = ("append", "upsert", "overwrite")
_WOULD = {"append": "be added", "upsert": "be upserted", "overwrite": "take the place of {}"}
_SUMMED = ("rows_in", "rows_written", "deletes_written", "files_added", "files_removed", "bytes_added", "partitions")

Gate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A suite that has to pass before anybody sees the change.", show_default=False),
]
Paths = Annotated[
    list[str], typer.Argument(metavar="PATH…", help="Files, folders, or patterns of either.", show_default=False)
]
Mode = Annotated[
    str | None, typer.Option(metavar="MODE", help=f"{', '.join(_MODES)}. (upsert, or append without a primary key)")
]
Replaced = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="NAME=VALUE",
        help="What an overwrite replaces, or dynamic: the partitions that the rows are in. (the whole table)",
        show_default=False,
    ),
]
ReplacedWhere = Annotated[
    str | None,
    typer.Option(
        metavar="SQL", help="What an overwrite replaces: the rows for which this is true.", show_default=False
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", "-f", metavar="FORMAT", help="csv, json or parquet. (what the names say)")
]
Header = Annotated[bool, typer.Option(help="Whether a CSV file begins with the names of its columns.")]
TableOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the table; may be repeated.", show_default=False),
]
ReadOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="How CSV is written: sep, quote, escape, nullValue.", show_default=False
    ),
]


def add_to(app: typer.Typer) -> None:
    command(app, "create", panel=_PANEL)(create)
    command(app, "options", panel=_PANEL)(options)
    command(app, "load", panel=_PANEL)(load)
    command(app, "delete", panel=_PANEL)(delete)


def create(
    session: Session,
    table: TableName,
    columns: Annotated[
        str, typer.Option(metavar="DDL", help='Such as "order_id BIGINT, dt DATE, amount DECIMAL(10, 2)".')
    ],
    primary_key: Names = None,
    partition_by: Names = None,
    sequence_by: Names = None,
    buckets: Buckets = None,
    merge: Merge = None,
    cross_partition: Annotated[
        bool, typer.Option("--cross-partition", help="A key is in one partition at most: rows that move leave theirs.")
    ] = False,
    option: TableOption = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="One that is there will do.")] = False,
    or_replace: Annotated[
        bool, typer.Option("--or-replace", help="One that is there loses its rows, and gets these columns: with --yes.")
    ] = False,
    new_lake: NewLake = False,
    yes: Really = False,
) -> Answer:
    """Makes a table, and its namespace if there is none.

    With a primary key rows are upserted by it; without one they are only added."""
    from lakelib.ops.create import split_name

    namespace, _ = split_name(table)
    wanted: dict[str, Any] = {
        "primary_key": read_names(primary_key, "--primary-key"),
        "partition_by": read_names(partition_by, "--partition-by"),
        "sequence_by": read_names(sequence_by, "--sequence-by"),
        "buckets": read_buckets(buckets),
        "merge": read_merge(merge),
        "options": read_pairs(option or (), "--option"),
        "if_not_exists": if_not_exists,
        "cross_partition": cross_partition,
    }
    if or_replace and if_not_exists:
        wrong_usage("One that is there cannot both stay (--if-not-exists) and be replaced (--or-replace).")
    lake = session.open(make=MayMake.ANYWHERE if new_lake else MayMake.NEVER)
    if or_replace and namespace in lake.namespaces() and table.partition(".")[2] in lake.tables(namespace):
        return _replace(lake, table, columns, wanted, yes)
    try:
        made = lake.create_table(table, columns, **wanted)
    except NotFoundError:  # of the namespace: all else was found to be right
        lake.create_namespace(namespace)
        made = lake.create_table(table, columns, **wanted)
    said = Sentence(f"{made.name}: {'is there' if if_not_exists else 'made'}, at {made.location}")
    return Answer({"table": made.name, "location": made.location}, said)


def _replace(lake: "Lake", table: str, columns: str, wanted: dict[str, Any], yes: bool) -> Answer:
    found = lake.table(table)
    rows = counted(found.scan().count(), "row")
    if not yes:
        document = {"table": table, "location": found.location, "dry_run": True}
        return Answer(document, [Sentence(f"{table}: is there; its {rows} would go, and its columns change"), _NOTHING])
    given = {name: value for name, value in wanted.items() if name != "if_not_exists"}
    made = lake.create_or_replace_table(table, columns, **given)
    assert made.head is not None
    said = Sentence(f"{table}: replaced; its {rows} are in older snapshots, the newest is {made.head.id}")
    return Answer({"table": table, "location": made.location, "dry_run": False}, said)


def options(
    session: Session,
    table: TableName,
    setting: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE…", help="Options that are changed.", show_default=False),
    ] = None,
) -> Answer:
    """Shows a table's options, once those that are named have been changed. The others stay."""
    handle = session.table(table)
    changed = read_pairs(setting or (), "The option")
    if changed:
        handle.set_options(changed)
        handle = session.table(table)
    usual = {each.name: each.default for each in fields(TableOptions)}
    values = usual | handle.options
    rows = [(name, str(value), "" if value == usual[name] else str(usual[name])) for name, value in values.items()]
    listing = Listing((Column("option"), Column("value", fold=True), Column("usually")), rows, "There is none.")
    return Answer({"table": handle.name, "options": values}, listing)


def load(
    session: Session,
    table: TableName,
    path: Paths,
    mode: Mode = None,
    partition: Replaced = None,
    replace_where: ReplacedWhere = None,
    format: Format = None,
    header: Header = True,
    option: ReadOptions = None,
    idempotency_key: Key = None,
    gate: Gate = None,
    merge_schema: MergeSchema = False,
    explicit_cast: ExplicitCast = False,
    yes: ReallyIfAsked = None,
) -> Answer:
    """Loads files into a table, all of their rows or none.

    An overwrite is a dry run until it is told --yes. Files without a row are an error."""
    from lakelib.ops.create import find_table
    from lakelib.ops.load import check_has_rows, find_files, open_files
    from lakelib.ops.request import parse_request

    handle = session.table(table)
    chosen = read_choice(mode or ("upsert" if handle.primary_key else "append"), _MODES, "--mode")
    replaced = _read_replaced(chosen, partition, replace_where)
    writing: dict[str, Any] = {
        "idempotency_key": idempotency_key and read_key(idempotency_key),
        "merge_schema": merge_schema,
        "explicit_cast": explicit_cast,
        "gate": gate,
    }
    runtime = session.lake.runtime
    found = find_files(runtime, path, format)
    options = ({"header": str(header).lower()} if found.format == "csv" else {}) | read_pairs(option or (), "--option")
    rows = open_files(runtime, find_table(runtime, table), found, options, parse_request(**writing))
    check_has_rows(table, rows)
    snapshot = None
    if yes or (yes is None and chosen != "overwrite"):
        with working(session, f"loading {counted(len(found.files), 'file')} into {table}"):
            snapshot = _write(handle, chosen, rows, replaced, writing)
    facts = {"mode": chosen, "format": found.format, "files": len(found.files), "size_bytes": found.size_bytes}
    document = {"table": table, "dry_run": snapshot is None} | facts | _outcome(snapshot)
    source = f"{table}: {counted(len(found.files), 'file')} of {found.format}, {readable_bytes(found.size_bytes)}"
    if snapshot is None:
        return Answer(document, [Sentence(f"{source}, would {_WOULD[chosen].format(_described(replaced))}"), _NOTHING])
    return Answer(document, Sentence(f"{source}, {_said(snapshot)}"))


def delete(
    session: Session,
    table: TableName,
    where: Annotated[
        str, typer.Option("--where", "-w", metavar="SQL", help="The rows for which this is true.", show_default=False)
    ],
    idempotency_key: Key = None,
    gate: Gate = None,
    yes: Really = False,
) -> Answer:
    """Deletes rows.

    Older snapshots still have them, until they expire."""
    handle = session.table(table)
    snapshot = rows = None
    with working(session, f"{'deleting' if yes else 'counting'} rows of {table}"):
        if yes:
            key = idempotency_key and read_key(idempotency_key)
            snapshot = handle.delete(where, idempotency_key=key or None, gate=gate)
        else:
            rows = handle.scan(where=where).count()
    document = {"table": table, "dry_run": not yes, "rows": rows} | _outcome(snapshot)
    if snapshot is None:
        return Answer(document, [Sentence(f"{table}: {counted(rows or 0, 'row')} would be deleted"), _NOTHING])
    return Answer(document, Sentence(f"{table}: {_said(snapshot)}"))


def _write(handle: "Table", mode: str, rows: Any, replaced: Any, writing: dict[str, Any]) -> "Snapshot":
    match mode:
        case "append":
            return handle.append(rows, **writing)
        case "upsert":
            return handle.upsert(rows, **writing)
        case _:
            return handle.overwrite(rows, **replaced, **writing)


def _read_replaced(mode: str, texts: list[str] | None, where: str | None) -> dict[str, Any]:
    """What an overwrite puts its rows in place of, as its arguments say it."""
    if (texts or where) and mode != "overwrite":
        given = "--partition" if texts else "--replace-where"
        wrong_usage(f"{given} says what an overwrite replaces: give --mode overwrite, too.")
    if texts and where:
        wrong_usage("Both --partition and --replace-where say what an overwrite replaces: give one of them.")
    if where:
        return {"where": where}
    if not texts:
        return {"partitions": "all"}
    return {"partitions": "dynamic" if texts == ["dynamic"] else read_partition(texts)}


def _described(told: dict[str, Any]) -> str:
    if "where" in told:
        return f"the rows where {told['where']}"
    replaced = told["partitions"]
    if isinstance(replaced, str):
        return "the whole table" if replaced == "all" else "the partitions that their rows are in"
    return "the partition " + ", ".join(f"{name}={value}" for name, value in replaced.items())


def _outcome(snapshot: "Snapshot | None") -> dict[str, Any]:
    """Fields of what was published; all null if nothing was."""
    if snapshot is None:
        return dict.fromkeys(("snapshot", "commit", "committed_at", "replayed", *_SUMMED))
    facts = {"snapshot": snapshot.id, "commit": snapshot.commit_id, "committed_at": snapshot.committed_at}
    return facts | {"replayed": snapshot.replayed} | {name: snapshot.summary.get(name) for name in _SUMMED}


def _said(snapshot: "Snapshot") -> str:
    if snapshot.replayed:
        return f"was done before: snapshot {snapshot.id}"
    counts = [counted(snapshot.summary.get("rows_written", 0), "row"), "written"]
    if snapshot.summary.get("deletes_written"):
        counts += ["and", counted(snapshot.summary["deletes_written"], "delete")]
    return f"{' '.join(counts)}, published as snapshot {snapshot.id}"
