"""Looking into a lake: tables for people, JSON of stable names for programs."""

import csv
import json
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lakelib import Lake, LakeError, Table
from lakelib.cli.command import Common, Session
from lakelib.cli.show import Column, say, show_fields, show_table, show_title
from lakelib.cli.values import csv_lines
from tests.cli.conftest import Run


def test_namespaces_are_listed_with_their_tables(run: Run, lake: Lake, orders: Table) -> None:
    lake.create_namespace("nothing")
    found = {each["namespace"]: each["tables"] for each in run("namespaces", "--json").document}
    assert found == {"nothing": 0, "shop": len(lake.tables("shop"))}
    assert ["nothing", "0"] in [line.split() for line in run("namespaces").lines]


def test_tables_are_listed_with_their_definition_and_head(run: Run, lake: Lake, orders: Table) -> None:
    found = run("tables", "shop", "--json").document
    assert [each["table"] for each in found] == sorted(f"shop.{name}" for name in lake.tables("shop"))
    assert [each["table"] for each in run("tables", "--json").document] == lake.tables()
    (entry,) = (each for each in found if each["table"] == orders.name)
    assert orders.head is not None
    assert entry == {
        "table": orders.name,
        "location": orders.location,
        "primary_key": ["order_id"],
        "partition_by": ["dt"],
        "buckets": 2,
        "sequence_by": ["at"],
        "merge": "deduplicate",
        "options": {},
        "snapshot": 2,
        "committed_at": orders.head.committed_at.isoformat().replace("+00:00", "Z"),
    }
    (line,) = (line for line in run("tables").lines if line.startswith(f"{orders.name} "))
    assert line.split() == [
        orders.name,
        "2",
        *orders.head.committed_at.strftime("%Y-%m-%d %H:%M:%S").split(),
        "order_id",
        "dt",
    ]


def test_a_table_without_a_snapshot_is_listed_too(run: Run, lake: Lake) -> None:
    lake.create_namespace("fresh")
    assert run("tables", "fresh", "--json").document == []
    assert "no table in the namespace fresh" in run("tables", "fresh").err
    lake.create_table("fresh.t", "id BIGINT")
    (entry,) = run("tables", "fresh", "--json").document
    assert (entry["snapshot"], entry["committed_at"], entry["primary_key"]) == (None, None, [])
    assert run("history", "fresh.t", "--json").document == []
    assert run("scan", "fresh.t", "--json").out == ""
    for command in ("describe", "history", "partitions", "files", "scan", "explain", "done"):
        assert run(command, "fresh.t").code == 0


def test_a_clock_that_was_ahead_is_told(run: Run, orders: Table) -> None:
    assert run("describe", orders.name, "--json").document["clock_ahead_seconds"] is None
    catalog = orders._runtime.catalog
    for move in ("+ interval '2 hours'", "- interval '2 hours'"):
        catalog.run(lambda db, move=move: db.execute(f"update lake.snapshot set committed_at = committed_at {move}"))
        if move.startswith("+"):
            assert 7000 < run("describe", orders.name, "--json").document["clock_ahead_seconds"] <= 7200
            assert "clock" in run("describe", orders.name).out


def test_a_table_is_described(run: Run, orders: Table) -> None:
    found = run("describe", orders.name, "--json").document
    assert found["columns"][0] == {
        "name": "order_id",
        "type": "bigint",
        "nullable": False,
        "primary_key": True,
        "partition": False,
        "comment": "",
    }
    assert "comment" not in run("describe", orders.name).out
    assert [column["name"] for column in found["columns"] if column["partition"]] == ["dt"]
    contents = found["contents"]
    assert (contents["files"], contents["stored_rows"], contents["partitions"]) == (len(orders.files()), 60, 3)
    assert contents["size_bytes"] == sum(file.size_bytes for file in orders.files())
    told = run("describe", orders.name).out
    for words in (orders.location, "60 stored rows", "in 3 partitions", "primary key", "at, then the order of commits"):
        assert words in told
    assert ["amount", "decimal(10,2)"] in [line.split() for line in told.splitlines()]


def test_comments_are_shown_where_there_are_some(run: Run, orders: Table) -> None:
    orders.evolve(comment={"amount": "gross, in EUR"})
    assert [
        line.split(maxsplit=2)[2].strip()
        for line in run("describe", orders.name).lines
        if line.strip().startswith("amount ")
    ] == ["gross, in EUR"]
    assert "gross, in EUR" in orders._repr_html_()
    assert {column["name"]: column["comment"] for column in run("describe", orders.name, "--json").document["columns"]}[
        "amount"
    ] == "gross, in EUR"


def test_history_lists_the_newest_first(run: Run, orders: Table) -> None:
    newest, oldest = run("history", orders.name, "--json").document
    assert (newest["snapshot"], oldest["snapshot"]) == (2, 1)
    assert orders.head is not None
    assert UUID(newest["commit"]) == orders.head.commit_id
    assert {name: newest[name] for name in ("kind", "rows_in", "rows_written", "files_added", "properties")} == {
        "kind": "upsert",
        "rows_in": 30,
        "rows_written": 30,
        "files_added": orders.head.summary["files_added"],
        "properties": {"run": "r2"},
    }
    assert [line.split()[0] for line in run("history", orders.name).lines] == ["id", "2", "1"]
    limited = run("history", orders.name, "--limit", 1)
    assert len(limited.lines) == 2
    assert "1 of 2 snapshots" in limited.err


def test_partitions_and_files_are_listed(run: Run, orders: Table) -> None:
    partitions = run("partitions", orders.name, "--json").document
    assert [each["partition"] for each in partitions] == [
        {"dt": "2026-11-16"},
        {"dt": "2026-11-17"},
        {"dt": "2026-11-18"},
    ]
    assert {each["stored_rows"] for each in partitions} == {20}
    files = [each["path"] for each in map(json.loads, run("files", orders.name, "--json").lines)]
    assert files == [file.path for file in orders.files()]
    listed = run("files", orders.name)
    assert [line.split()[0] for line in listed.lines[1:]] == files
    assert len(run("files", orders.name, "--json", "--limit", 2).lines) == 2
    assert f"2 of {len(files)} files" in run("files", orders.name, "--limit", 2).err
    at_first = run("files", orders.name, "--json", "--at", 1).lines
    assert 0 < len(at_first) < len(files)


def test_numbers_are_right_aligned_and_readable(run: Run, orders: Table) -> None:
    header, *rows = run("partitions", orders.name).lines
    end = header.index("stored rows") + len("stored rows")
    assert {row[:end].split()[-1] for row in rows} == {"20"}
    assert all(row[end - 2 : end] == "20" for row in rows)
    assert all(" kB" in row or " bytes" in row for row in rows)


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize(
    "command", [["tables"], ["history", "TABLE"], ["files", "TABLE"], ["scan", "TABLE"], ["describe", "TABLE"]]
)
def test_nothing_is_wider_than_the_terminal(
    run_on_terminal: Any, orders: Table, command: list[str], columns: int
) -> None:
    arguments = [orders.name if word == "TABLE" else word for word in command]
    ran = run_on_terminal(columns, *arguments)
    assert ran.code == 0
    shown = [line.rstrip() for line in ran.lines]
    assert max(map(len, shown)) <= columns
    assert "Traceback" not in ran.out
    whole = "".join("".join(line.split()) for line in shown)
    assert orders.name in whole or command[0] in ("history", "files", "scan")


def test_what_has_no_room_is_named(run_on_terminal: Any, orders: Table) -> None:
    narrow, wide = (run_on_terminal(columns, "history", orders.name).out for columns in (60, 160))
    assert orders.head is not None
    assert "left out in 60 columns" in narrow
    assert "commit" in narrow.splitlines()[-1]
    assert str(orders.head.commit_id) in wide
    assert "left out" not in wide


PAINT = "clear\x1b[2J\rscreen"


def test_what_others_have_written_does_nothing_to_the_terminal(run: Run, lake: Lake) -> None:
    table = lake.create_table("shop.painted", "id BIGINT", primary_key=["id"])
    table.upsert(pa.table({"id": [1]}), properties={PAINT: PAINT}, idempotency_key=(PAINT, 1))
    rejected = table.stage_upsert(pa.table({"id": [2]}), idempotency_key=(PAINT, 2))
    rejected.reject(PAINT)
    for arguments in (["history", table.name], ["commits", table.name], ["publish", str(rejected.id)]):
        ran = run(*arguments)
        assert not {"\x1b", "\r"} & set(ran.out + ran.err), arguments
        assert "clear\\x1b" in ran.out + ran.err


def test_what_is_shown_does_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(Common())
    show_table(session, [Column(PAINT), Column("b")], [[PAINT, PAINT]], empty="")
    show_fields(session, [(PAINT, PAINT)])
    show_title(session, PAINT)
    say(session, f"{PAINT}\n{PAINT}")
    session.note(PAINT)
    session.explain_failure(LakeError(PAINT, remedy=PAINT))
    told = "".join(capsys.readouterr())
    assert not {"\x1b", "\r"} & set(told)
    assert told.count("clear\\x1b") == 11


# As CSV


def test_what_is_listed_is_csv_with_the_fields_of_json(run: Run, orders: Table) -> None:
    for words in (["tables"], ["history", orders.name], ["files", orders.name], ["describe", orders.name]):
        document = run(*words, "--json").out if words[0] == "files" else run(*words, "--json").document
        records = list(map(json.loads, document.splitlines())) if isinstance(document, str) else document
        first = records[0] if isinstance(records, list) else records
        read = list(csv.DictReader(run(*words, "--csv").lines))
        assert list(read[0]) == list(first)
        assert len(read) == (len(records) if isinstance(records, list) else 1)
        assert [read[0][name] for name in first if isinstance(first[name], str)] == [
            text for text in first.values() if isinstance(text, str)
        ]
    assert run("scan", orders.name, "--csv").lines[0].startswith('"order_id","dt"')
    assert run("tag", "list", orders.name, "--csv").out == ""
    assert run("tables", "--csv", "--json").code == 2
    assert run("scan", orders.name, "--csv", "--format", "json").code == 2


def test_null_and_the_empty_text_are_apart_in_csv() -> None:
    assert list(csv_lines([{"a": None, "b": "", "c": 'x "y", z', "d": [1, None]}])) == [
        "a,b,c,d",
        ',"","x ""y"", z","[1, null]"',
    ]
