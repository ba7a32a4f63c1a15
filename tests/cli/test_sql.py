"""`lake sql`: a query's rows in each form, its errors, and the prompt."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakelib import Lake, Table
from lakelib.cli.prompt import Completer
from lakelib.plan.sql_script import is_ended
from tests.cli.conftest import Run


def counted(orders: Table, where: str = "") -> str:
    return f"SELECT customer, count(*) AS n FROM {orders.name} {where} GROUP BY customer ORDER BY customer LIMIT 2"


def test_rows_come_in_the_form_that_is_asked_for(run: Run, orders: Table, tmp_path: Path) -> None:
    query = counted(orders)
    rows = [{"customer": "customer 0", "n": 5}, {"customer": "customer 1", "n": 5}]

    assert run("sql", query).out.split() == ["customer", "n", "customer", "0", "5", "customer", "1", "5"]
    assert [json.loads(line) for line in run("sql", query, "--json").lines] == rows
    assert run("sql", query, "--csv").lines == ['"customer","n"', '"customer 0",5', '"customer 1",5']
    assert run("sql", query, "--parquet", tmp_path / "a.parquet").out == f"2 rows written to {tmp_path}/a.parquet\n"
    assert run("sql", query, "--output", tmp_path / "b.parquet").code == 0
    for name in ("a", "b"):
        assert pq.read_table(tmp_path / f"{name}.parquet").to_pylist() == rows


def test_a_query_is_an_argument_a_file_or_standard_input(
    run_process: Any, run: Run, orders: Table, tmp_path: Path
) -> None:
    file = tmp_path / "query.sql"
    file.write_text(f"SELECT count(*) AS n FROM {orders.name};\n")

    assert run("sql", "--sql-file", file, "--json").document == {"n": 30}
    assert run("sql", "--sql", file.read_text(), "--json").document == {"n": 30}
    both = run("sql", "SELECT 1", "--sql-file", file)
    assert (both.code, "give the query once" in both.err) == (2, True)


def test_a_file_that_is_given_as_a_query_is_told(run: Run, orders: Table, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 1")

    ran = run("sql", str(file))

    assert (ran.code, "give it by --sql-file" in ran.err) == (2, True)


@pytest.mark.parametrize("said", [[], ["-"]])
def test_standard_input_is_read(environment: dict[str, str], orders: Table, said: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "lakelib.cli", "sql", *said, "--json"],
        input=f"SELECT count(*) AS n FROM {orders.name}",
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ran.stdout) == {"n": 30}


def test_parameters_are_bound(run: Run, orders: Table) -> None:
    query = f"SELECT count(*) AS n FROM {orders.name} WHERE dt = $day AND customer = $who"
    ran = run("sql", query, "--param", "day=2026-11-16", "--param", "who=customer 0", "--json")
    assert ran.document == {"n": 2}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("x:int=3", 3),
        ("x:bigint=-3", -3),
        ("x:decimal(5,2)=1.50", "1.50"),
        ("x:double=0.5", 0.5),
        ("x:date=2026-11-18", "2026-11-18"),
        ("x:timestamp=2026-11-18T10:00+01:00", "2026-11-18T09:00:00Z"),
        ("x:boolean=true", True),
        ("x:void=", None),
        ("x=3", "3"),
        ("x=a:int=3", "a:int=3"),
    ],
)
def test_parameters_have_types(run: Run, lake: Lake, given: str, value: Any) -> None:
    assert run("sql", "SELECT $x AS x", "--param", given, "--json").document == {"x": value}


@pytest.mark.parametrize("given", ["x:int=a", "x:whole=1", "x:date=2026-13-01", "x:decimal(2,1)=1.55"])
def test_a_parameter_that_is_none_of_its_type_is_told(run: Run, lake: Lake, given: str) -> None:
    ran = run("sql", "SELECT $x", "--param", given)
    assert (ran.code, f"--param {given}" in ran.err) == (2, True)


def test_several_statements_are_carried_out_in_order(run: Run, lake: Lake, orders: Table, tmp_path: Path) -> None:
    name = f"{orders.name}_script"
    file = tmp_path / "script.sql"
    file.write_text(
        f"""CREATE TABLE {name} (id BIGINT NOT NULL, s STRING, PRIMARY KEY (id)); -- a table;
        INSERT INTO {name} VALUES (1, 'a;b'), (2, $who);
        UPDATE {name} SET s = upper(s) WHERE id = 1;
        SELECT count(*) AS n, max(s) AS s FROM {name};
        """
    )

    found = [json.loads(line) for line in run("sql", "--sql-file", file, "--param", "who=x", "--json").lines]

    assert [each.get("statement") for each in found] == ["CREATE TABLE", "INSERT", "UPDATE", None]
    assert (found[2]["rows_updated"], found[3]) == (1, {"n": 2, "s": "x"})
    assert {row["s"] for row in lake.table(name).scan().to_arrow().to_pylist()} == {"A;B", "x"}


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ("SELEC 1", "line 2"),
        ("SELECT idd FROM {o}", "(line 2, column 9)"),
        ("UPDATE {o} SET idd = 1", "(line 2, column"),
        ("INSERT INTO {o}x VALUES (1)", "Do you mean"),
        ("COPY {o} TO '/tmp/x'", "COPY is no statement"),
    ],
)
@pytest.mark.parametrize("how", [[], ["--transaction"]])
def test_a_bad_statement_is_told_before_the_first_one_changes_anything(
    run: Run, orders: Table, later: str, said: str, how: list[str]
) -> None:
    before = orders.head

    text = f"UPDATE {orders.name} SET customer = 'x';\n {later.format(o=orders.name)}"
    ran = run("sql", text, "--yes", *how)

    assert (ran.code in (3, 4), said in ran.err) == (True, True), ran.err
    assert orders.head == before


def test_statements_that_take_something_away_are_a_dry_run_with_all_beside_them(run: Run, orders: Table) -> None:
    before = orders.head
    text = f"UPDATE {orders.name} SET customer = 'x'; SELECT 1; DELETE FROM {orders.name}; DROP TABLE {orders.name}"

    ran = run("sql", text, "--json")

    assert ran.document["dry_run"] is True
    assert [each["change"].split(":")[0] for each in ran.document["statements"]] == [
        f"UPDATE {orders.name}",
        "nothing is changed",
        f"DELETE {orders.name}",
        f"DROP TABLE {orders.name}",
    ]
    assert (orders.head, "--yes" in run("sql", text).err) == (before, True)


def test_statements_are_published_together(run: Run, lake: Lake, orders: Table) -> None:
    log = lake.create_table(f"{orders.name}_log", "id BIGINT, n BIGINT")
    before, count = orders.head, orders.scan().count()
    moved = f"""INSERT INTO {log.name} SELECT 1, count(*) FROM {orders.name};
        DELETE FROM {orders.name} WHERE customer = 'customer 0';
        SELECT count(*) AS n FROM {orders.name}; INSERT INTO {log.name} SELECT 2, count(*) FROM {orders.name}"""

    found = [json.loads(line) for line in run("sql", moved, "--transaction", "--yes", "--json").lines]

    assert before is not None
    assert found[0] == {"n": count - 5}
    assert [each["statement"] for each in found[1:]] == ["INSERT", "DELETE", "INSERT"]
    assert {each["snapshot_id"] for each in found[1:]} == {each.id for each in (*log.history(), orders.history()[0])}
    assert sorted(row["n"] for row in log.scan().to_arrow().to_pylist()) == [count - 5, count]


def test_what_cannot_be_in_a_transaction_changes_nothing(run: Run, orders: Table) -> None:
    before = orders.head
    ran = run("sql", f"UPDATE {orders.name} SET customer = 'x'; CREATE NAMESPACE later", "--transaction")
    assert (ran.code, "In a transaction" in ran.err, orders.head) == (3, True, before)


def test_a_statement_that_fails_tells_what_was_carried_out(run: Run, lake: Lake, orders: Table) -> None:
    text = f"INSERT INTO {orders.name} SELECT * FROM {orders.name} LIMIT 1; SELECT 1 / $none AS x; SELECT 2"

    ran = run("sql", text, "--param", "none:int=0")

    assert (ran.code, "statement 2 of 3: those before it were carried out" in ran.err) == (3, True), ran.err


@pytest.mark.parametrize("more", [["--output", "x.parquet"], ["--idempotency-key", "a:1"]])
def test_what_is_for_one_statement_is_refused_for_several(run: Run, orders: Table, more: list[str]) -> None:
    before = orders.head
    ran = run("sql", f"UPDATE {orders.name} SET customer = 'x';" * 2, *more)
    assert (ran.code, orders.head) == (2, before), ran.err


def test_explain_tells_what_is_read(run: Run, orders: Table) -> None:
    query = f"EXPLAIN SELECT count(*) FROM {orders.name} WHERE dt = DATE '2026-11-16'"

    assert "partitions  1 of 3" in run("sql", query).out
    (scan,) = run("sql", query, "--json").document["scans"]
    assert (scan["table"], scan["partitions"]) == (orders.name, 1)


def test_timing_is_told(run: Run, orders: Table) -> None:
    ran = run("sql", "SELECT 1 AS x", "--timing")
    assert ran.err.strip().endswith(" s")
    assert run("sql", "SELECT 1 AS x").err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["SELECT idd FROM {o}"], 3, "line 1, column 8"),
        (["SELECT 1 FROM {o}x"], 4, "Do you mean"),
        (["COPY {o} TO '/tmp/x'"], 3, "COPY is no statement"),
        ([";;"], 3, "no statement"),
        ([";;", "--transaction"], 3, "no statement"),
        (["SELECT 1", "--mode", "upsert"], 2, "--mode is for --into TABLE"),
        (["SELECT 1", "--gate", "x"], 3, "A query changes nothing"),
        (["SELECT 1", "--merge-schema"], 2, "--merge-schema is for --into TABLE"),
        (["SELECT 1", "--into", "{o}", "--timing"], 2, "--timing is for a query without --into"),
        (["SELECT 1", "--parquet", "x.parquet", "--format", "csv"], 2, "give one of them"),
    ],
)
def test_what_is_wrong_is_said(run: Run, orders: Table, arguments: list[str], code: int, message: str) -> None:
    ran = run("sql", *(each.format(o=orders.name) for each in arguments))
    assert (ran.code, message in ran.err) == (code, True), ran.err


def test_names_are_completed(lake: Lake, orders: Table) -> None:
    completer = Completer(lake)

    assert orders.name in completer.find("shop.ord", "select * from shop.ord")
    assert completer.find("cust", f"select cust from {orders.name}") == ["customer"]
    assert completer.find("o.cust", f"select o.cust from {orders.name} o") == ["o.customer"]
    assert completer.find("sel", "sel") == ["SELECT"]
    assert completer.find("ins", "ins") == ["INSERT"]
    assert completer.find("zzz", "zzz") == []

    made = f"{orders.name}_later"
    lake.sql(f"CREATE TABLE {made} (some_column INT)")
    completer.forget()
    assert made in completer.find(made[:-2], made[:-2])
    assert completer.find("some_c", f"select some_c from {made}") == ["some_column"]


def test_a_table_that_was_made_meanwhile_is_completed(lake: Lake, orders: Table) -> None:
    completer = Completer(lake)
    assert completer.find(f"{orders.name}_n", "") == []

    lake.create_table(f"{orders.name}_new", "sku BIGINT")
    completer.forget()

    assert completer.find(f"{orders.name}_n", "") == [f"{orders.name}_new"]
    assert completer.find("sk", f"SELECT sk FROM {orders.name}_new") == ["sku"]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1; /* done;\n */ ", True),
        ("SELECT 'a;';\n", True),
        ("SELECT `a;b`;", True),
        (";", True),
        ("SELECT 1; SELECT 2;", True),
        ("", False),
        ("SELECT 1", False),
        ("SELECT 1 -- ;", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 'a;", False),
        ("SELECT 'it''s;", False),
        ('SELECT "a;', False),
    ],
)
def test_a_semicolon_in_quotes_or_in_a_comment_ends_nothing(text: str, ends: bool) -> None:
    assert is_ended(text) is ends


def test_a_prompt_asks_again_until_the_person_leaves(
    environment: dict[str, str], orders: Table, tmp_path: Path
) -> None:
    """On a terminal, with statements over several lines, and one that is wrong."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lakelib.cli", "sql"],
        env=os.environ | environment | {"XDG_STATE_HOME": str(tmp_path), "TERM": "dumb", "COLUMNS": "200"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = ""

    def until(text: str) -> None:
        nonlocal shown
        end = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < end, shown
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536).decode()
        shown = shown[shown.index(text) + len(text) :]

    until("lake> ")
    for typed, told in (
        (f"SELECT count(*) + 12 AS n\nFROM {orders.name};\n", "42"),
        ("SELECT nope;\n", "'nope', of which there is none"),
        ("SELECT 'a;\nb' AS t, 6 * 11 AS y; -- done\n", "66"),
        ("SELECT 7 * 11 AS x;\n", "77"),
    ):
        os.write(ours, typed.encode())
        until(told)
        until("lake> ")
    long = ", ".join(f"{orders.name} {alias}" for alias in "abcdef")
    os.write(
        ours,
        f"SELECT sum(a.order_id + b.order_id * c.order_id + d.order_id * e.order_id) FROM {long};\n".encode(),
    )
    time.sleep(1)  # it takes far longer
    process.send_signal(signal.SIGINT)
    until("interrupted\r")
    until("lake> ")
    os.write(ours, b"exit\n")
    assert process.wait(60) == 0
    os.close(ours)
    assert "SELECT 7 * 11 AS x;" in (tmp_path / "lake" / "sql_history").read_text()


def test_a_statement_changes_a_table_and_tells_what_was_done(run: Run, lake: Lake, orders: Table) -> None:
    name = f"{orders.name}_copy"
    lake.create_table(name, orders.schema, primary_key=["order_id"])
    insert = f"INSERT INTO {name} SELECT * FROM {orders.name} WHERE customer = $who"
    options = ("--param", "who=customer 0", "--idempotency-key", "loader:1", "--property", "run=r1", "--json")

    told = [run("sql", insert, *options).document for _ in range(2)]
    assert [(each["statement"], each["snapshot_id"], each["replayed"]) for each in told] == [
        ("INSERT", 1, False),
        ("INSERT", 1, True),
    ]
    head = lake.table(name).head
    assert (head and head.properties) == {"run": "r1"}
    shown = run("sql", f"CREATE NAMESPACE IF NOT EXISTS {name.partition('.')[0]}").out
    assert "CREATE NAMESPACE" in shown
    assert "rows_inserted" not in shown


def test_a_dry_run_tells_how_many_rows_there_are(run: Run, orders: Table) -> None:
    plain = f"DELETE FROM {orders.name} WHERE customer = 'customer 0'"
    asking = f"DELETE FROM {orders.name} WHERE customer = (SELECT min(customer) FROM {orders.name})"
    count = orders.scan(where="customer = 'customer 0'").count()
    head = orders.head
    for text in (plain, asking):
        assert f"Rows: 0 inserted, 0 updated, {count} deleted." in run("sql", text).out
        assert run("sql", text, "--json").document["rows_deleted"] == count
    merge = f"MERGE INTO {orders.name} AS t USING {orders.name} AS s ON t.order_id = s.order_id"
    told = run("sql", f"{merge} WHEN MATCHED AND t.customer = 'customer 0' THEN DELETE", "--json").document
    assert (told["dry_run"], told["rows_deleted"]) == (True, count)
    assert orders.head == head


def test_what_takes_rows_away_is_a_dry_run_until_it_is_told(run: Run, lake: Lake, orders: Table) -> None:
    overwrite = f"INSERT OVERWRITE {orders.name} SELECT * FROM {orders.name} WHERE customer = 'customer 0'"
    head = orders.head

    dry = run("sql", overwrite)
    assert f"INSERT OVERWRITE {orders.name}: rows take the place of all that is there" in dry.out
    assert "Nothing was changed. --yes does it." in dry.err
    assert run("sql", overwrite, "--json").document["dry_run"] is True
    assert orders.head == head
    assert run("sql", overwrite, "--yes", "--json").document["rows_written"] == 5
    assert orders.scan().count() == 5


_NOT_NEEDED = (
    ("boto3", "pandas", "pyarrow.dataset", "pydantic", "rich", "yaml"),
    ("lakelib.interop.delta", "lakelib.ops.compact", "lakelib.ops.delta", "lakelib.ops.doctor", "lakelib.ops.expire"),
    ("lakelib.ops.imports", "lakelib.ops.revise", "lakelib.ops.sql_create", "lakelib.ops.sql_insert"),
)


def test_a_query_through_a_pipe_does_not_wait_for_what_it_does_not_use(environment: dict[str, str]) -> None:
    code = f"""
import sys
from lakelib.cli.main import main
sys.argv = ["lake", "sql", "SELECT 1 AS x"]
assert main() == 0
print(*sorted(sys.modules.keys() & {set(sum(_NOT_NEEDED, ()))}))
"""
    around = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which asks for what people see
    found = subprocess.run(
        [sys.executable, "-c", code], env=around | environment, capture_output=True, text=True, check=False
    )

    assert (found.returncode, found.stdout) == (0, "x\n1\n\n"), found.stderr


def test_rows_are_laid_out_alike_however_much_was_loaded(run: Run) -> None:
    """A word that is not of ASCII takes the long way."""
    query = "SELECT 'a' AS word, 1.50 AS n, true AS b UNION ALL SELECT '{word}', NULL, false ORDER BY n"

    short, long = (run("sql", query.replace("{word}", word)).out for word in ("longer", "längst"))

    assert short.replace("longer", "längst") == long
    assert len(long.splitlines()) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {o}",
        "TRUNCATE TABLE {o}",
        "ALTER TABLE {o} DROP COLUMN note",
        "CREATE OR REPLACE TABLE {o} OPTIONS (primary_key = 'order_id', partition_by = 'dt', sequence_by = 'at')"
        " AS SELECT * FROM {o}",
        "CALL rollback('{o}', 1)",
        "CALL expire('{o}', keep_last => 1)",
    ],
)
def test_what_takes_something_away_says_so_first(run: Run, lake: Lake, orders: Table, statement: str) -> None:
    head, columns = orders.head, orders.schema.names
    ran = run("sql", statement.format(o=orders.name))
    assert (ran.code, "--yes does it" in ran.err) == (0, True)
    assert (orders.head, orders.schema.names, orders.name in lake.tables()) == (head, columns, True)


def test_tables_are_made_and_looked_after(run: Run, lake: Lake, orders: Table) -> None:
    name = f"{orders.name}_made"
    assert (
        run("sql", f"CREATE TABLE {name} AS SELECT order_id FROM {orders.name}", "--json").document["rows_written"]
        == 30
    )
    assert run("sql", f"CALL compact('{name}')", "--json").document["statement"] == "CALL compact"
    assert run("sql", f"DROP TABLE {name}", "--yes").code == 0
    assert name not in lake.tables()
    assert {"namespace": name.split(".")[0]} in [
        json.loads(each) for each in run("sql", "SHOW NAMESPACES", "--json").lines
    ]
