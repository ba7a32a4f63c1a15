"""How the command ends: what went wrong, what to do about it, and an exit code that says who has to act."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.catalog.failures import CatalogBusyError
from lakelib.cli import look
from lakelib.cli.command import SAID_IN_COMMANDS
from lakelib.cli.main import main
from lakelib.errors import (
    EXIT_CODES,
    DecidedError,
    ExpiredError,
    LakeError,
    OnlySparkError,
    OutcomeUnknownError,
    family_of,
)
from lakelib.ops.patience import GaveUpError
from lakelib.pipeline.outcome import explain_failure
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["scan", "shop.nope"], 4, "There is no table shop.nope."),
        (["tables", "nope"], 4, "There is no namespace 'nope'."),
        (["describe", "orders"], 3, "'orders' is not a table's name."),
        (["scan", "TABLE", "--at", "99"], 4, "no snapshot 99"),
        (["scan", "TABLE", "--at", "tag:nope"], 4, "no tag 'nope'"),
        (["scan", "TABLE", "--where", "amout > 3"], 3, "amout"),
        (["scan", "TABLE", "--where", "amount >"], 3, "amount >"),
        (["scan", "TABLE", "--columns", "nope"], 3, "There is no column 'nope'."),
        (["mark-done", "TABLE"], 3, "lacks 'dt'"),
        (["tag", "create", "TABLE", "tag:x"], 3, "tag:x"),
        (["reject", "00000000-0000-0000-0000-000000000000", "--reason", "x"], 4, "00000000-0000"),
    ],
)
def test_an_error_is_a_sentence_a_remedy_and_an_exit_code(
    run: Run, orders: Table, arguments: list[str], code: int, named: str
) -> None:
    given = [orders.name if word == "TABLE" else word for word in arguments]
    ran = run(*given)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("error: ")
    assert named in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) == 2

    told = run("--json", *given)
    error = json.loads(told.err)
    assert (told.code, told.out, error["ok"], error["exit_code"]) == (code, "", False, code)
    assert named in error["error"]["message"]
    assert error["error"]["remedy"]
    assert error["error"]["kind"]


@pytest.mark.parametrize("answers", [False, True])
def test_a_catalog_that_is_away_is_said_soon_and_nothing_is_made(
    run_process: Any, tmp_path: Path, answers: bool
) -> None:
    """Nobody listens at its port; or somebody does, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not answers:
            server.close()
        away = {"LAKE_CATALOG": f"postgresql://nobody@127.0.0.1:{port}/none", "LAKE_WAREHOUSE": str(tmp_path / "none")}
        began = time.monotonic()
        ran = run_process("status", "--json", **away)
        assert time.monotonic() - began < 30
    error = json.loads(ran.stderr)
    assert (ran.returncode, ran.stdout, error["exit_code"], error["error"]["kind"]) == (7, "", 7, "catalog_unreachable")
    assert f"127.0.0.1:{port}" in error["error"]["message"]
    assert not (tmp_path / "none").exists()


def test_wrong_usage_tells_programs_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "tables", "a", "postgresql://ann:hunter2@h/db"]) == 2
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err


@pytest.mark.parametrize("family", [*EXIT_CODES, LakeError, ValueError])
def test_every_family_has_its_exit_code(
    run: Run, orders: Table, monkeypatch: pytest.MonkeyPatch, family: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise family("It broke.")

    monkeypatch.setattr(look, "_definition", fail)
    ran = run("describe", orders.name, "--json")
    assert ran.code == EXIT_CODES.get(family, 1)  # type: ignore[call-overload]
    assert "It broke." in ran.err
    assert "Traceback" not in ran.err
    assert "Traceback" in run("describe", orders.name, "--json", "--debug").err


def test_the_common_options_stand_before_the_command_or_after_it(run: Run, lake: Lake, orders: Table) -> None:
    catalog = str(lake.settings.catalog)
    named = {"LAKE_CATALOG": "postgresql://127.0.0.1:9/nowhere", "LAKE_WAREHOUSE": "/nowhere"}
    before = run("--catalog", catalog, "--warehouse", lake.warehouse, "--json", "history", orders.name, env=named)
    after = run("history", orders.name, "--json", "--catalog", catalog, f"--warehouse={lake.warehouse}", env=named)
    mixed = run("--json", "history", orders.name, "--catalog", catalog, "--warehouse", lake.warehouse, env=named)
    assert before.document == after.document == mixed.document
    assert run("history", orders.name, env=named).code == 7


def test_a_password_is_not_told(run: Run) -> None:
    ran = run("tables", "--catalog", "postgresql://me:secret@127.0.0.1:9/nowhere")
    assert ran.code == 7
    assert "secret" not in ran.err + ran.out


def test_in_a_folder_without_a_lake_none_is_made(run_process: Any, tmp_path: Path) -> None:
    ran = run_process("tables", cwd=tmp_path, LAKE_CATALOG="", LAKE_WAREHOUSE="")
    assert ran.returncode == 4
    assert ran.stderr.startswith(f"error: There is no lake in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_the_lake_of_this_folder_is_found(run_process: Any, tmp_path: Path) -> None:
    program = (
        "import lakelib, pyarrow as pa\nwith lakelib.connect() as lake:\n    lake.create_namespace('here')\n"
        "    lake.create_table('here.t', 'n BIGINT').append(pa.table({'n': [1, 2]}))"
    )
    unnamed = {"LAKE_CATALOG": "", "LAKE_WAREHOUSE": "", "LAKE_HOME": ""}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ | unnamed, check=True, timeout=60)
    ran = run_process("scan", "here.t", "--count", cwd=tmp_path, **unnamed)
    assert (ran.stdout, ran.stderr) == ("2\n", "")


@pytest.mark.parametrize("format", ["json", "csv", "table"])
def test_a_reader_that_has_seen_enough_is_no_error(environment: dict[str, str], lake: Lake, format: str) -> None:
    table = lake.create_table("shop.long", "n BIGINT, t STRING", if_not_exists=True)
    if table.head is None:
        table.append(pa.table({"n": range(200_000), "t": ["x" * 50] * 200_000}))
    command = [sys.executable, "-m", "lakelib.cli", "scan", "shop.long", "--format", format, "--limit", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), told) == (141, b"")


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: lake" in "".join(capsys.readouterr())
    assert main(["no-such-command"]) == 2
    assert "No such command" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lakelib {lakelib.__version__}\n"


@pytest.mark.parametrize("arguments", [["no-such-command"], ["expire", "shop.orders", "--nosuch"], ["scan"]])
def test_wrong_usage_is_told_to_programs_in_json(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["--json", *arguments]) == 2
    told = capsys.readouterr()
    error = json.loads(told.err)
    assert (told.out, error["exit_code"], error["error"]["kind"]) == ("", 2, "wrong_usage")
    assert error["error"]["message"]


def test_every_command_has_help(run: Run) -> None:
    commands = run("--help").out
    for name in ("namespaces", "tables", "describe", "history", "partitions", "files", "scan", "explain", "commits"):
        assert f" {name} " in commands
    for words in (["scan"], ["tag", "create"], ["gate", "show"], ["mark-done"], ["expire"], ["vacuum"], ["compact"]):
        told = run(*words, "--help")
        assert told.code == 0
        for option in ("--warehouse", "--catalog", "--json"):
            assert option in told.out


def test_help_loads_neither_arrow_nor_postgresql_nor_spark() -> None:
    """It comes at once: what takes long to load is not loaded."""
    program = (
        "import sys\nfrom lakelib.cli.main import main\nmain(['scan', '--help'])\n"
        "heavy = {'pyarrow', 'numpy', 'psycopg', 'boto3', 'sqlglot', 'pyspark', 'great_expectations', 'pandas'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_shell_is_told_how_to_complete(run_process: Any) -> None:
    told = run_process(_LAKE_COMPLETE="source_bash")  # what --install-completion puts into the shell's settings
    assert told.returncode == 0
    assert "complete" in told.stdout
    words = run_process(_LAKE_COMPLETE="complete_bash", COMP_WORDS="lake hist", COMP_CWORD="1")
    assert "history" in words.stdout


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (ExpiredError, "NotFoundError"),
        (DecidedError, "ConflictError"),
        (OnlySparkError, "InvalidInputError"),
        (GaveUpError, "RetryableError"),
        (CatalogBusyError, "RetryableError"),
        (OutcomeUnknownError, "OutcomeUnknownError"),
        (LakeError, "LakeError"),
    ],
)
def test_programs_are_told_a_family_that_is_public(error: type[LakeError], family: str) -> None:
    assert family_of(error("It broke.")) == family
    assert hasattr(lakelib, family)
    assert explain_failure(error("It broke.")).family == family


@pytest.mark.parametrize("said", SAID_IN_COMMANDS)
def test_what_is_said_in_words_of_the_command_is_what_the_library_says(said: str) -> None:
    library = Path(lakelib.__file__).parent
    sources = (file.read_text() for room in ("catalog", "ops") for file in (library / room).glob("*.py"))
    assert any(said in source for source in sources)


def test_a_commit_that_is_not_there_is_answered_by_the_command_that_lists_them(run: Run) -> None:
    assert run("publish", uuid4()).err.endswith("`lake commits` lists them.\n")
