"""Whatever README and docs show is tried: Python and shell blocks run, YAML is read as what it is, command lines are
parsed by the program that they name. What is not tried is named here, with the reason."""

import os
import re
import shlex
import subprocess
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.main import get_command

import lakelib
from lakelib import Lake
from lakelib.cli.main import make_app
from lakelib.specs.suite import parse_suite
from lakelib.specs.table_spec import parse_spec
from tests.understood import understood

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "infra" / "runbooks").glob("*.md")])

NOT_TRIED = {
    "df -h": "what the system tells",
    "dags/   ": "the map of the code",
    "make demo ": "the demo has tests of its own, and `make test` is what runs them",
    "pip install": "the wheel's tests install it",
    "venv-pack": "takes YARN",
    "python infra/spark/standalone.py": "a program that stays; the Spark tests start it",
    "SPARK_CONNECT_AUTHENTICATE_TOKEN=": "a program that stays; the Connect tests start it",
    "spark = SparkSession.builder.remote(": "takes a server; the Connect tests do this",
    "frame = spark.read.json(": "takes Spark; tests/spark do this",
    "stream = spark.readStream": "takes Spark; tests/spark do this",
    "lakelib.spark.sql(": "takes Spark; tests/spark do this",
    "def save(frame, batch_id):": "takes Spark; tests/spark do this",
    "$ lake ducklake": "what it answers; tests/integration/ducklake ask it",
    "INSTALL ": "DuckDB's own; tests/integration/ducklake attach the lake",
    "wait_for_source →": "a picture",
    "plan →": "a picture",
    "TOKEN=$(": "takes a live Airflow; make e2e does this",
    "$LAKE_RUNS/": "a picture",
    "dags/tables/orders.yaml, line 4": "what is told, not what is typed",
}
"""How blocks begin that are not tried, and why."""
TRIED_ELSEWHERE = {"docs/tutorial.md": "tests/e2e/test_tutorial.py carries out each of its blocks"}
ANSWERS = ("{", "[")
"""What a job tells is JSON; the tests of jobs compare it."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    """As the fence says; "" for none, "indented" for a block without a fence."""
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks_of(page: Path) -> Iterator[Block]:
    name = page.relative_to(ROOT).as_posix()
    lines = page.read_text().splitlines()
    place = 0
    while place < len(lines):
        begin = place
        if lines[place].lstrip().startswith("```"):
            place = next(n for n in range(place + 1, len(lines)) if lines[n].lstrip().startswith("```"))
            text = textwrap.dedent("\n".join(lines[begin + 1 : place])) + "\n"
            yield Block(name, begin + 1, lines[begin].strip().removeprefix("```"), text)
        elif lines[place].startswith("    ") and not lines[place - 1].strip() and not _is_in_list(lines[:place]):
            while place < len(lines) and lines[place].startswith("    "):
                place += 1
            yield Block(name, begin + 1, "indented", textwrap.dedent("\n".join(lines[begin:place])) + "\n")
        place += 1


def _is_in_list(above: Sequence[str]) -> bool:
    """Where what is indented is text."""
    return bool(re.match(r"(\d+\.|-) ", next((line for line in reversed(above) if re.match(r"\S", line)), "")))


BLOCKS = [block for page in PAGES for block in _blocks_of(page) if block.page not in TRIED_ELSEWHERE]


def _is_tried(block: Block) -> bool:
    return not block.text.startswith(tuple(NOT_TRIED))


def _chosen(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages and _is_tried(block)]


def test_there_is_no_block_of_an_unknown_kind() -> None:
    known = {"python", "bash", "sql", "yaml", "text", "", "indented"}
    assert [str(block) for block in BLOCKS if block.language not in known] == []
    stale = [begin for begin in NOT_TRIED if not any(block.text.startswith(begin) for block in BLOCKS)]
    assert stale == [], "these are tried, or gone"


# Python and shell: a page's blocks run one after the other, in one folder


def _named(**values: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda folder: values


def _with_lake(folder: Path) -> dict[str, Any]:
    """What the pages call by a name."""
    import lakelib

    lake = lakelib.connect(folder / "lake")
    lake.create_namespace("shop")
    columns = "order_id BIGINT, dt DATE, amount DOUBLE, customer_id BIGINT, code STRING"
    orders = lake.create_table("shop.orders", columns, primary_key=["order_id"], partition_by=["dt"])
    days = pa.array([date(2026, 11, 18)] * 2)
    rows = pa.table({"order_id": [1, 2], "dt": days, "amount": [9.5, 20.0], "customer_id": [1, 2], "code": ["abc"] * 2})
    (folder / "gates").mkdir()
    suite = next(block for block in BLOCKS if block.page == "docs/gates.md" and block.language == "yaml")
    (folder / "gates" / "orders.yaml").write_text(suite.text)
    return {"lake": lake, "orders": orders, "batch": rows, "rows": rows, "other": orders.stage_upsert(rows)}


def _with_namespace(folder: Path) -> dict[str, Any]:
    lake = lakelib.connect(folder / "lake")
    lake.create_namespace("shop")
    return {"lake": lake}


def _with_history(folder: Path) -> dict[str, Any]:
    names = _with_lake(folder)
    for _ in range(3):
        names["orders"].upsert(names["rows"])
    names["orders"].tag("eod", at=2)
    return names


def _with_invoices(folder: Path) -> dict[str, Any]:
    names = _with_history(folder)
    invoices = names["lake"].create_table("shop.invoices", "order_id BIGINT, amount DOUBLE", primary_key=["order_id"])
    return names | {"invoices": invoices}


def _with_corrections(folder: Path) -> dict[str, Any]:
    names = _with_history(folder)
    corrections = names["rows"].slice(0, 1).set_column(2, "amount", pa.array([1.5]))
    other = names["lake"].create_table("shop.corrections", corrections.schema, primary_key=["order_id"])
    other.upsert(corrections)
    names["lake"].create_table("shop.late", "order_id BIGINT").append(pa.table({"order_id": [2]}))
    return names | {"corrections": corrections}


def _with_sources(folder: Path) -> dict[str, Any]:
    lake = lakelib.connect(folder / "lake")
    lake.create_namespace("shop")
    write_deltalake(folder / "delta" / "orders", pa.table({"order_id": [1, 2], "updated_at": [1, 1]}))
    (folder / "landing" / "events" / "dt=2026-11-18").mkdir(parents=True)
    events = pa.table({"id": [1], "kind": ["seen"]})
    pq.write_table(events, folder / "landing" / "events" / "dt=2026-11-18" / "a.parquet")
    return {"lake": lake}


def _with_suite(folder: Path) -> dict[str, Any]:
    check = "{type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}}"
    (folder / "orders.yaml").write_text(f"name: orders\nexpectations: [{check}]\n")
    return {}


SURROUNDINGS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "README.md": _with_suite,
    "docs/changes.md": _with_history,
    "docs/changing-rows.md": _with_corrections,
    "docs/concepts.md": _with_lake,
    "docs/consumers.md": _with_invoices,
    "docs/delta.md": _with_history,
    "docs/ducklake.md": _with_history,
    "docs/gates.md": _with_lake,
    "docs/importing.md": _with_sources,
    "docs/merge-engines.md": _with_namespace,
    "docs/notebook.md": _named(),
    "docs/sql.md": _with_history,
}
SPARK = re.compile(r"^.*spark\)  #.*\n", re.MULTILINE)
"""Lines that take a Spark session beside others that do not."""


def test_every_page_with_python_has_its_surroundings() -> None:
    assert {block.page for block in _chosen("python", "bash")} == SURROUNDINGS.keys()


@pytest.mark.parametrize("page", SURROUNDINGS)
def test_what_a_page_shows_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LAKE_")]:
        monkeypatch.delenv(name)
    names = SURROUNDINGS[page](tmp_path)
    told = ""
    try:
        for block in _chosen("python", "bash", "sql", "text"):
            if block.page != page:
                continue
            match block.language:
                case "python":
                    told = _run(block, names)
                case "bash":
                    told = _run_shell(block)
                case "sql":
                    _run_sql(block, names["lake"])
                case _:
                    assert told == block.text, block
    finally:
        for value in names.values():
            if isinstance(value, Lake):
                value.close()


def _run(block: Block, names: dict[str, Any]) -> str:
    out = StringIO()
    code = "\n" * block.line + SPARK.sub("", block.text)
    with redirect_stdout(out):
        exec(compile(code, block.page, "exec"), names)
    return out.getvalue()


def _run_sql(block: Block, lake: Lake) -> None:
    """On the catalog."""
    with psycopg.connect(lake.runtime.catalog.url, autocommit=True) as db:
        db.execute(block.text.encode())


def _run_shell(block: Block) -> str:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    ran = subprocess.run(
        ["sh", "-e", "-c", block.text], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, f"{block}: {ran.stderr}"
    return ran.stdout


# YAML is a spec or a suite


@pytest.mark.parametrize("block", _chosen("yaml"), ids=str)
def test_yaml_is_read_as_what_it_is(block: Block, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "gates").mkdir()
    suite = next(each for each in BLOCKS if each.page == "docs/gates.md" and each.language == "yaml")
    (tmp_path / "gates" / "orders.yaml").write_text(suite.text)
    if re.search(r"^table: ", block.text, re.MULTILINE):
        parse_spec(block.text, tmp_path / "tables" / "orders.yaml")
    else:
        parse_suite(block.text)


# Command lines


def _command_lines() -> Iterator[tuple[Block, list[str]]]:
    for block in _chosen("indented", ""):
        if block.text.startswith(ANSWERS):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                yield block, words


COMMAND_LINES = [pytest.param(block, words, id=f"{block} {words}") for block, words in _command_lines()]


@pytest.mark.parametrize(("block", "words"), COMMAND_LINES)
def test_command_lines_are_understood(block: Block, words: Sequence[str]) -> None:
    match words:
        case ["lake" | ".venv/bin/lake", *rest]:
            _parse_command(rest)
        case ["python", "-m", module, *rest] if module.startswith("jobs."):
            _parse_job(module.removeprefix("jobs."), _filled(rest))
        case ["spark-submit", *rest]:
            place = next(place for place, word in enumerate(rest) if word.startswith("jobs/"))
            _parse_job(Path(rest[place]).stem, _filled(rest[place + 1 :]))
        case ["make", target]:
            assert f"\n{target}:" in (ROOT / "Makefile").read_text()
        case ["docker", "compose", "up", *_, service]:
            assert f"\n  {service}:" in (ROOT / "infra" / "compose" / "compose.yaml").read_text()
        case _:
            pytest.fail(f"{block} shows neither `lake` nor a job: {words}")


def _filled(words: Sequence[str]) -> list[str]:
    """With a commit's id where the page leaves it out."""
    return [re.sub(r"\b[0-9a-f]{4}…", "0b1c0000-0000-0000-0000-000000000000", word) for word in words]


def _parse_command(words: list[str]) -> None:
    command: Any = get_command(make_app())
    context = None
    name = "lake"
    while True:
        if words[-1:] == ["--help"]:
            return
        context = command.make_context(name, list(words), parent=context)
        if not hasattr(command, "commands"):
            return
        name, *words = [*context._protected_args, *context.args]
        command = command.commands[name]


def _parse_job(name: str, words: list[str]) -> None:
    assert ROOT.joinpath("jobs", f"{name}.py").exists()
    if name == "sql" and "--into" not in words:  # it is carried out by whoever understands it
        _parse_command(["sql", *words])
    else:
        understood(name, words)


def test_links_lead_somewhere() -> None:
    """Pictures of pages are taken by `make e2e`."""
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert broken == []
