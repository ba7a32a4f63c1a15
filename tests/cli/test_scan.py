"""Reading rows with the command: what is asked for, in the form that is asked for."""

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Lake, Table
from tests.cli.conftest import DAYS, Run


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_is_a_line_a_row(run: Run, orders: Table) -> None:
    found = sorted(rows(run("scan", orders.name, "--json").out), key=lambda row: int(row["order_id"]))
    assert len(found) == 30
    assert found[5] == {
        "order_id": 5,
        "dt": DAYS[2].isoformat(),
        "customer": "customer 5",
        "amount": "0.05",
        "at": "2026-11-18T10:00:02Z",
        "note": "",
    }
    assert found[1]["note"] is None
    assert run("scan", orders.name, "--format", "json").out.count("\n") == 30


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--where", "order_id < 3"], [{"order_id": number} for number in range(3)]),
        (["--where", "dt = '2026-11-17' and order_id <= 4"], [{"order_id": 1}, {"order_id": 4}]),
        (["--where", "order_id = 1", "--at", "1"], [{"order_id": 1}]),
        (["--where", "order_id = 1", "--at", "tag:first"], [{"order_id": 1}]),
        (["--where", "order_id = 99"], []),
    ],
)
def test_columns_conditions_and_moments_choose_the_rows(
    run: Run, orders: Table, arguments: list[str], expected: list[dict[str, Any]]
) -> None:
    orders.tag("first", at=1)
    found = rows(run("scan", orders.name, "-c", "order_id", *arguments, "--json").out)
    assert sorted(found, key=lambda row: int(row["order_id"])) == expected


def test_the_past_is_read_at_a_moment(run: Run, orders: Table) -> None:
    newest, oldest = orders.history()
    for snapshot, second in ((newest, 2), (oldest, 1)):
        moment = snapshot.committed_at.isoformat()
        for at in (moment, moment.removesuffix("+00:00")):
            found = rows(run("scan", orders.name, "-c", "at", "-n", 1, "--at", at, "--json").out)
            assert found == [{"at": f"2026-11-18T10:00:0{second}Z"}]
    before = run("scan", orders.name, "--at", "2001-01-01")
    assert before.code == 4
    assert "no snapshot at 2001-01-01" in before.err


def test_names_of_columns_may_hold_commas(run: Run, lake: Lake) -> None:
    table = lake.create_table("shop.commas", "`a,b` INT, c INT", if_not_exists=True)
    table.append(pa.table({"a,b": pa.array([1], pa.int32()), "c": pa.array([2], pa.int32())}))
    assert rows(run("scan", "shop.commas", "-c", '"a,b", c', "--json").out) == [{"a,b": 1, "c": 2}]
    assert rows(run("scan", "shop.commas", "-c", "c", "-c", '"a,b"', "--json").out) == [{"c": 2, "a,b": 1}]


def test_a_limit_ends_the_read(run: Run, orders: Table) -> None:
    assert len(run("scan", orders.name, "--json", "-n", 4).lines) == 4
    table = run("scan", orders.name, "-n", 4)
    assert len(table.lines) == 5
    assert table.err == ""


def test_a_table_shows_the_first_rows_and_says_so(run: Run, lake: Lake) -> None:
    table = lake.create_table("shop.many", "n BIGINT", if_not_exists=True)
    table.append(pa.table({"n": range(1234)}))
    short = run("scan", "shop.many")
    assert len(short.lines) == 51
    assert "--limit 0 all" in short.err
    whole = run("scan", "shop.many", "--limit", 0)
    numbers = [line.strip() for line in whole.lines if line.strip() != "n"]
    assert numbers == [str(number) for number in range(1234)]
    assert whole.err == ""


def test_rows_are_counted(run: Run, orders: Table) -> None:
    assert run("scan", orders.name, "--count").out == "30\n"
    counted = run("scan", orders.name, "--count", "--json", "-w", "order_id < 7").document
    assert counted == {"table": orders.name, "snapshot": 2, "rows": 7}


def test_rows_of_a_staged_commit_are_read(run: Run, orders: Table) -> None:
    staged = orders.stage_upsert(orders.scan(where="order_id < 3").to_arrow())
    assert len(run("scan", orders.name, "--staged", staged.id, "--json").lines) == 3
    staged.reject("for the test")
    assert len(run("scan", orders.name, "--staged", staged.id, "--json").lines) == 3
    assert run("scan", orders.name, "--staged", staged.id, "--at", 1).code == 2


ODD = pa.schema(
    [
        ("k", pa.string()),
        ("f", pa.float64()),
        ("b", pa.binary()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.date32())),
        ("n", pa.map_(pa.int32(), pa.decimal128(3, 1))),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.timestamp("us", "UTC"))])),
    ]
)

LANDING = datetime(1969, 7, 20, 20, 17, 40, 1, UTC)
HALF = Decimal("2.5")


@pytest.fixture(scope="module")
def odd(lake: Lake) -> Table:
    """Values that are awkward in text."""
    table = lake.create_table("shop.odd", ODD)
    values = (
        ("a", 1.5, b"\x00\xff", date(2026, 1, 2), LANDING, [1, None], [("x", None)], [(1, HALF)], {"x": 1, "y": None}),
        ("NULL", float("nan"), b"", None, None, [], [], [], None),
        ("", float("-inf"), None, date(1, 1, 1), None, None, None, None, {"x": None, "y": None}),
        ("red\x1b[31m [red]\n", float("inf"), *[None] * 7),
    )
    table.append(pa.Table.from_pylist([dict(zip(ODD.names, row, strict=True)) for row in values], ODD))
    far = pa.array([200_000 * 365 * 86_400 * 1_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table.append(pa.table({"k": ["far"], "t": far}))
    return table


def test_every_value_is_safe_in_json(run: Run, odd: Table) -> None:
    found = {row["k"]: row for row in rows(run("scan", odd.name, "--json").out)}
    assert found["a"] == {
        "k": "a",
        "f": 1.5,
        "b": "AP8=",
        "d": "2026-01-02",
        "t": "1969-07-20T20:17:40.000001Z",
        "l": [1, None],
        "m": {"x": None},
        "n": [{"key": 1, "value": "2.5"}],
        "s": {"x": 1, "y": None},
    }
    assert [found[key]["f"] for key in ("NULL", "", "red\x1b[31m [red]\n")] == ["NaN", "-Infinity", "Infinity"]
    assert (found["NULL"]["l"], found["NULL"]["m"], found["NULL"]["s"]) == ([], {}, None)
    assert (found[""]["l"], found[""]["s"], found[""]["d"]) == (None, {"x": None, "y": None}, "0001-01-01")
    assert found["far"]["t"].startswith("201")
    assert found["far"]["t"].endswith("Z")


def test_csv_tells_null_from_empty_text(run: Run, odd: Table, orders: Table) -> None:
    text = run("scan", orders.name, "-f", "csv", "-c", "order_id,note", "-w", "order_id < 2").out
    assert sorted(text.splitlines()) == ['"order_id","note"', '0,""', "1,"]
    found = {row["k"]: row for row in csv.DictReader(io.StringIO(run("scan", odd.name, "-f", "csv").out, newline=""))}
    assert len(found) == 5
    assert found["a"]["f"] == "1.5"
    assert found["a"]["t"] == "1969-07-20T20:17:40.000001Z"
    assert json.loads(found["a"]["n"]) == [{"key": 1, "value": "2.5"}]
    assert found["NULL"]["f"] == "NaN"


def test_a_table_shows_no_control_characters_and_tells_null_from_text(
    run: Run, run_on_terminal: Any, odd: Table
) -> None:
    told = run("scan", odd.name, "-c", "k,f,b")
    assert "\x1b" not in told.out
    assert "red\\x1b[31m [red]\\n" in told.out
    cells = [line.split() for line in told.lines]
    assert ["'NULL'", "NaN", "x"] in cells
    assert ["''", "-Infinity", "NULL"] in cells
    assert "[31m [red]" in run_on_terminal(80, "scan", odd.name, "-c", "k").out


def test_rows_that_are_too_wide_are_shown_field_by_field(run_on_terminal: Any, odd: Table) -> None:
    ran = run_on_terminal(60, "scan", odd.name, "-w", "k = 'a'")
    assert ran.lines[0] == "row 1"
    assert [line.split()[0] for line in ran.lines[1:]] == ODD.names
    assert max(map(len, ran.lines)) <= 60


def test_files_are_whole_and_of_the_format_of_their_name(run: Run, orders: Table, tmp_path: Path) -> None:
    expected = orders.scan().to_arrow().sort_by("order_id")
    for name in ("rows.parquet", "rows.csv", "rows.json", "rows.jsonl"):
        assert run("scan", orders.name, "--output", tmp_path / name).out == f"30 rows written to {tmp_path / name}\n"
    assert pq.read_table(tmp_path / "rows.parquet").sort_by("order_id").equals(expected)
    assert len(rows((tmp_path / "rows.jsonl").read_text())) == 30
    assert len(rows((tmp_path / "rows.json").read_text())) == 30
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 31
    told = run("scan", orders.name, "--json", "-o", tmp_path / "x.json")
    assert told.document == {"rows": 30, "output": str(tmp_path / "x.json")}
    assert len(list(tmp_path.iterdir())) == 5


def test_a_read_that_fails_leaves_the_old_file(run: Run, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("shop.broken", "n BIGINT", if_not_exists=True)
    table.append(pa.table({"n": [1]}))
    (file,) = table.files()
    Path(table.location.removeprefix("file://"), file.path).unlink()
    for name in ("rows.csv", "rows.parquet", "rows.json"):
        (tmp_path / name).write_text("old")
        assert run("scan", "shop.broken", "-o", tmp_path / name).code == 8
        assert (tmp_path / name).read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "xml"],
        ["--format", "parquet"],
        ["--json", "--format", "csv"],
        ["--output", "rows.txt"],
        ["--output", "no/such/folder/rows.csv"],
        ["--at", "yesterday"],
        ["--columns", "a,,b"],
        ["--limit", "-1"],
        ["--staged", "7"],
    ],
)
def test_wrong_usage_is_told(run: Run, orders: Table, arguments: list[str]) -> None:
    ran = run("scan", orders.name, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert arguments[-1].split("=")[0] in ran.err.replace("\n", "") or arguments[0] in ran.err


def test_memory_does_not_grow_with_the_rows(environment: dict[str, str], lake: Lake) -> None:
    """All rows are a quarter of a gigabyte; reading them takes little more than reading a sixtieth of them."""
    table = lake.create_table("shop.large", "n BIGINT, t STRING", if_not_exists=True)
    for start in range(60):
        table.append(pa.table({"n": range(start * 10_000, (start + 1) * 10_000), "t": ["x" * 400] * 10_000}))
    program = (
        "import resource, sys\nfrom lakelib.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\nsys.exit(code)"
    )

    def peak_kilobytes(where: str) -> int:
        command = [sys.executable, "-c", program, "scan", "shop.large", "--json", "-w", where]
        ran = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        return int(ran.stderr)

    assert peak_kilobytes("n >= 0") < peak_kilobytes("n < 10000") + 100_000


def test_explain_tells_what_is_left_out(run: Run, orders: Table) -> None:
    found = run("explain", orders.name, "-w", "dt = '2026-11-16'", "-c", "order_id", "--json").document
    assert (found["table"], found["snapshot"], found["columns"]) == (orders.name, 2, ["order_id"])
    assert (found["partitions"], found["partitions_total"]) == (1, 3)
    assert found["pruned"][0]["rule"] == "partition values"
    assert "by partition values" in run("explain", orders.name, "-w", "dt = '2026-11-16'").out
