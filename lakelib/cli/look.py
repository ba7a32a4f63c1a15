"""Commands that tell what there is: namespaces, tables, describe, history, files, partitions."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelib.cli.arguments import At, TableName, read_at
from lakelib.cli.command import Session, command
from lakelib.cli.gates import described, requirement_facts
from lakelib.cli.show import GAP, Answer, Column, Fields, Listing, Note, Part, Title
from lakelib.cli.values import counted, escaped, readable_count, readable_time, readable_values
from lakelib.model.upkeep import readable_bytes

if TYPE_CHECKING:
    from lakelib.model.files import FileSummary, PartitionSummary
    from lakelib.model.gate import GateRequirement
    from lakelib.model.table import Snapshot, TableInfo

_PANEL = "Look"
_MOST_FILES = 100
_MOST_SNAPSHOTS = 30
_SUMMED = ("rows_in", "rows_written", "deletes_written", "files_added", "files_removed", "bytes_added", "partitions")

_COUNTED = ("rows_inserted", "rows_updated", "rows_deleted")


def add_to(app: typer.Typer) -> None:
    for name, work in (
        ("namespaces", namespaces),
        ("tables", tables),
        ("describe", describe),
        ("history", history),
        ("partitions", partitions),
        ("files", files),
    ):
        command(app, name, panel=_PANEL)(work)


def _limit(most: int, what: str) -> Any:
    return typer.Option(
        "--limit", "-n", min=0, help=f"So many {what}; 0 is all. ({most}; with --json all)", show_default=False
    )


def namespaces(session: Session) -> Answer:
    """Lists the namespaces."""
    from lakelib.ops.inspect import list_tables

    counts = dict.fromkeys(session.lake.namespaces(), 0)
    for each in list_tables(session.lake.runtime, None):
        counts[each.table.namespace] = counts.get(each.table.namespace, 0) + 1
    rows = [(name, readable_count(count)) for name, count in counts.items()]
    listing = Listing((Column("namespace"), Column("tables", right=True)), rows, "There is no namespace yet.")
    return Answer([{"namespace": name, "tables": count} for name, count in counts.items()], listing)


def tables(
    session: Session,
    namespace: Annotated[
        str | None, typer.Argument(metavar="[NAMESPACE]", help="Only its tables.", show_default=False)
    ] = None,
) -> Answer:
    """Lists the tables, each with its newest snapshot."""
    from lakelib.ops.inspect import list_tables

    found = list_tables(session.lake.runtime, namespace)
    columns = (
        Column("table", fold=True),
        Column("snapshot", right=True),
        Column("committed (UTC)"),
        Column("primary key", optional=2, fold=True),
        Column("partitioned by", optional=1, fold=True),
    )
    rows = [
        (
            each.table.full_name,
            str(each.table.head_id or ""),
            readable_time(each.committed_at),
            ", ".join(column.name for column in each.table.primary_key),
            ", ".join(column.name for column in each.table.partition_by),
        )
        for each in found
    ]
    where = f"the namespace {namespace}" if namespace else "the lake"
    documents = [_definition(session, each.table) | _head(each.table.head_id, each.committed_at) for each in found]
    return Answer(documents, Listing(columns, rows, f"There is no table in {where} yet."))


def describe(session: Session, table: TableName) -> Answer:
    """Tells what a table is and holds."""
    from lakelib.ops.create import find_table
    from lakelib.ops.inspect import find_lead, sum_contents

    info = find_table(session.lake.runtime, table)
    contents, lead = sum_contents(session.lake.runtime, info), find_lead(session.lake.runtime, info)
    found = session.table(table)
    head, gate, gate_history = found.head, found.required_gate, found.gate_history()
    document = (
        _definition(session, info)
        | _head(info.head_id, head and head.committed_at)
        | {"columns": [_column(info, column) for column in info.schema.columns]}
        | {"contents": contents, "clock_ahead_seconds": lead and lead.total_seconds()}
        | {"required_gate": gate and requirement_facts(info.full_name, gate)}
        | {"gate_history": [requirement_facts(info.full_name, each) for each in gate_history]}
    )
    rows = f"{counted(contents.stored_rows, 'stored row')}, {readable_bytes(contents.size_bytes)}"
    places = f"{counted(contents.files, 'file')} in {counted(contents.partitions, 'partition')}"
    described_by = Fields(
        [
            ("location", session.lake.runtime.storage.place_of(info.location)),
            ("snapshot", f"{head.id}, {head.kind}, {readable_time(head.committed_at)} UTC" if head else "none yet"),
            ("holds", f"{rows}; {places}"),
            *([("clock", f"was ahead: a snapshot lies {lead} in the future")] if lead else []),
            ("primary key", _names(info.primary_key) or "none: rows are only appended"),
            ("partitioned by", _names(info.partition_by) or "nothing"),
            *([("buckets", _buckets(info))] if info.primary_key else []),
            *_merged_by(info),
            *([("newest by", f"{_names(info.sequence_by)}, then the order of commits")] if info.sequence_by else []),
            *([("requires gate", described(gate))] if gate else []),
            *([("released from", _release(each)) for each in gate_history[:1] if each.released_at]),
            *(
                (f"option {name}", str(value))
                for name, value in info.options.as_mapping().items()
                if name != "required_gate"
            ),
        ],
    )
    columns = [Column("column", fold=True), Column("type", fold=True), Column("role", optional=1)]
    if any(column.comment for column in info.schema.columns):
        columns.append(Column("comment", fold=True, optional=2))
    facts = ((each["name"], each["type"], _role(each), escaped(each["comment"])) for each in document["columns"])
    shown = [each[: len(columns)] for each in facts]
    parts: list[Part] = [Title(info.full_name), described_by, GAP, Listing(columns, shown, "It has no columns.")]
    return Answer(document, parts)


def history(
    session: Session,
    table: TableName,
    limit: Annotated[int | None, _limit(_MOST_SNAPSHOTS, "snapshots")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count the rows of every snapshot: reads its changes where nobody has.")
    ] = False,
) -> Answer:
    """Lists a table's snapshots, the newest first."""
    found = session.table(table).history(exact=exact)
    most = _most(session, limit, _MOST_SNAPSHOTS)
    shown = found[:most]
    columns = (
        Column("id", right=True),
        Column("kind"),
        Column("committed (UTC)"),
        Column("rows", right=True),
        Column("deletes", right=True, optional=1),
        *(Column(name, right=True, optional=0 if exact else 1) for name in ("inserted", "updated", "deleted")),
        Column("files", right=True),
        Column("added", right=True),
        Column("properties", optional=2),
        Column("commit", optional=3),
    )
    rows = [
        (
            str(each.id),
            each.kind,
            readable_time(each.committed_at),
            readable_count(each.summary.get("rows_written", 0)),
            readable_count(each.summary.get("deletes_written") or None),
            *(readable_count(each.summary.get(name)) for name in _COUNTED),
            _change(each.summary),
            readable_bytes(each.summary.get("bytes_added", 0)),
            readable_values(each.properties),
            str(each.commit_id),
        )
        for each in shown
    ]
    listing = Listing(columns, rows, f"{table} has no snapshot yet.")
    return Answer([snapshot_facts(each) for each in shown], [listing, *_more(len(shown), len(found), "snapshots")])


def partitions(session: Session, table: TableName, at: At = None) -> Answer:
    """Lists the partitions that hold files."""
    found = session.table(table).partitions(at=read_at(at))
    columns = (
        Column("partition", fold=True),
        Column("files", right=True),
        Column("stored rows", right=True),
        Column("size", right=True),
        Column("newest snapshot", right=True, optional=1),
    )
    rows = [
        (
            readable_values(each.values) or "(the whole table)",
            readable_count(each.files),
            readable_count(each.stored_rows),
            readable_bytes(each.size_bytes),
            str(each.newest_snapshot),
        )
        for each in found
    ]
    listing = Listing(columns, rows, f"{table} holds no files there.")
    return Answer([_partition(each) for each in found], listing)


def files(
    session: Session,
    table: TableName,
    at: At = None,
    limit: Annotated[int | None, _limit(_MOST_FILES, "files")] = None,
) -> Answer | None:
    """Lists the live files.

    With --json there is a line for each file, as they come."""
    listing = session.table(table).files(at=read_at(at))
    most = _most(session, limit, _MOST_FILES)
    if session.json:
        for each in islice(listing, most):
            session.print_line(each)
        return None
    columns = (
        Column("path", fold=True),
        Column("rows", right=True),
        Column("deletes", right=True, optional=2),
        Column("size", right=True),
        Column("bucket", right=True, optional=3),
        Column("level", right=True, optional=4),
        Column("since", right=True, optional=1),
    )
    shown = list(islice(listing, most))
    rows = [
        (
            each.path,
            readable_count(each.row_count),
            readable_count(each.delete_count or None),
            readable_bytes(each.size_bytes),
            _bucket(each),
            str(each.level),
            str(each.added_snapshot),
        )
        for each in shown
    ]
    total = len(listing) if len(shown) == most else len(shown)
    parts: list[Part] = [Listing(columns, rows, f"{table} holds no files there."), *_more(len(shown), total, "files")]
    return Answer(shown, parts)


def _most(session: Session, limit: int | None, most: int) -> int | None:
    """None is all."""
    if limit is None:
        return None if session.json or session.csv else most
    return limit or None


def _more(shown: int, total: int, what: str) -> list[Note]:
    return [Note(f"{shown:,} of {total:,} {what}; --limit 0 lists all")] if shown < total else []


def _definition(session: Session, table: "TableInfo") -> dict[str, Any]:
    return {
        "table": table.full_name,
        "location": session.lake.runtime.storage.place_of(table.location),
        "primary_key": [column.name for column in table.primary_key],
        "partition_by": [column.name for column in table.partition_by],
        "buckets": table.buckets.mode if table.buckets.fixed_depth is None else 1 << table.buckets.fixed_depth,
        "sequence_by": [column.name for column in table.sequence_by],
        "merge": table.merge.in_names(table.schema),
        "options": table.options.as_mapping(),
    }


def _merged_by(table: "TableInfo") -> list[tuple[str, str]]:
    """What the table does with versions, unless it is what nearly all do."""
    told = table.merge.in_names(table.schema)
    if isinstance(told, str):
        return [] if table.merge.is_newest else [("merge", told)]
    groups = [
        ("group", f"{', '.join(group['columns'])} by {', '.join(group['sequence'])}")
        for group in told.get("groups", ())
    ]
    functions = [("function", f"{name}: {function}") for name, function in told.get("functions", {}).items()]
    rest = [(word.replace("_", " "), str(told[word])) for word in ("on_delete", "retract") if word in told]
    return [("merge", told["engine"]), *groups, *functions, *rest]


def _head(snapshot_id: int, committed_at: Any) -> dict[str, Any]:
    return {"snapshot": snapshot_id or None, "committed_at": committed_at}


def _column(table: "TableInfo", column: Any) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "nullable": column.nullable,
        "primary_key": column.id in table.primary_key_ids,
        "partition": column.id in table.partition_ids,
        "comment": column.comment,
    }


def _role(column: Mapping[str, Any]) -> str:
    parts = [
        "primary key" if column["primary_key"] else "",
        "partition" if column["partition"] else "",
        "" if column["nullable"] or column["primary_key"] else "not null",
    ]
    return ", ".join(part for part in parts if part)


def _names(columns: Any) -> str:
    return ", ".join(column.name for column in columns)


def _buckets(table: "TableInfo") -> str:
    depth = table.buckets.fixed_depth
    return table.buckets.mode if depth is None else f"{1 << depth:,}"


def _release(requirement: "GateRequirement") -> str:
    by, reason = escaped(requirement.released_by or ""), escaped(requirement.release_reason or "")
    return f"gate {described(requirement)} by {by}, {readable_time(requirement.released_at)} UTC: {reason}"


def snapshot_facts(snapshot: "Snapshot") -> dict[str, Any]:
    return {
        "snapshot": snapshot.id,
        "kind": snapshot.kind,
        "committed_at": snapshot.committed_at,
        "commit": snapshot.commit_id,
        "schema_id": snapshot.schema_id,
        **{name: snapshot.summary.get(name, 0) for name in _SUMMED},
        **{name: snapshot.summary.get(name) for name in _COUNTED},
        "properties": snapshot.properties,
    }


def _change(summary: Mapping[str, Any]) -> str:
    """Files added and removed: `+4 −2`."""
    return " ".join(_signed(summary))


def _partition(partition: "PartitionSummary") -> dict[str, Any]:
    return {
        "partition": partition.values,
        "path": partition.path,
        "files": partition.files,
        "stored_rows": partition.stored_rows,
        "size_bytes": partition.size_bytes,
        "newest_snapshot": partition.newest_snapshot,
    }


def _signed(summary: Mapping[str, Any]) -> Iterator[str]:
    for sign, name in (("+", "files_added"), ("−", "files_removed")):
        if summary.get(name):
            yield f"{sign}{summary[name]:,}"


def _bucket(file: "FileSummary") -> str:
    """The one of all that the file holds; nothing if it holds all keys."""
    return f"{file.prefix:,} of {1 << file.depth:,}" if file.depth else ""
