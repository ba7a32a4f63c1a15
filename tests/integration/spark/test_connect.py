"""Spark Connect: the client has no JVM, and the server's tasks read and write the lake all the same."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lakelib import Lake, Table
from tests.integration.spark.connect_job import ZONE
from tests.integration.spark.program import started_program
from tests.integration.spark.read_files import WAYS
from tests.spark.constant_writer import all_values, raws_by_type

SCRIPT = Path(__file__).with_name("connect_job.py")
SCHEMA = "id BIGINT, day STRING, moment TIMESTAMP, clock TIMESTAMP_NTZ, nested ARRAY<STRUCT<version: INT>>"

Run = Callable[..., pa.Table]


@pytest.fixture(scope="module")
def run(remote: str, lake: Lake, module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Does a job in a client; what it has read."""
    settings = {"remote": remote, "warehouse": lake.warehouse, "catalog": module_catalog_url}
    with started_program(SCRIPT, settings, tmp_path_factory.mktemp("client")) as client:
        yield lambda job, **given: pa.ipc.open_file(client.order(job, **given).read()).read_all()


def new_table(lake: Lake, name: str) -> Table:
    return lake.create_table(name, SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)


@pytest.mark.parametrize("distribution", ["auto", "none", "hash"])
def test_what_a_client_upserts_and_reads_is_what_arrow_reads(run: Run, lake: Lake, distribution: str) -> None:
    table = new_table(lake, f"shop.{distribution}")
    read = run("upsert", table=table.name, distribution=distribution)
    stored = same_rows(read, table)
    assert stored["id"].to_pylist() == list(range(10, 1500))
    check_values(stored, lambda key: 2 if key >= 500 else 1)


def test_a_read_without_a_merge_gives_the_same_rows(run: Run, lake: Lake) -> None:
    table = new_table(lake, "shop.plain")
    read = run("read_plainly", table=table.name)
    stored = same_rows(read, table, where="id >= 500")
    assert stored["id"].to_pylist() == list(range(500, 1000))
    check_values(stored, lambda key: 1)


def test_constants_are_themselves(run: Run) -> None:
    assert raws_by_type(run("give_constants")) == all_values()


def test_the_format_reads_and_writes_in_all_modes(run: Run, lake: Lake) -> None:
    read = run("use_format", table="shop.modes")
    stored = same_rows(read, lake.table("shop.modes"), where="id >= 60")
    assert stored["id"].to_pylist() == list(range(60, 200))
    check_values(stored, lambda key: 2 if key < 150 else 3)


def test_files_of_others_are_taken_or_refused_alike_on_every_way(run: Run, lake: Lake, tmp_path: Path) -> None:
    schema = "id BIGINT, seq BIGINT, name STRING"
    table = lake.create_table("shop.files", schema, primary_key=["id"], sequence_by=["seq"])
    [found] = run("read_others_files", table=table.name, folder=str(tmp_path))["found"].to_pylist()
    rows = [[1, 2, None], [2, 1, None]]
    told = {"good": rows, "lacking": "missing_column", "changed": "source_changed"}
    assert json.loads(found) == dict.fromkeys(WAYS, told)


def same_rows(read: pa.Table, table: Table, where: str | None = None) -> pa.Table:
    """What Arrow reads, by key, which is what Spark has read, in the types of the table."""
    stored = table.scan(where=where).to_arrow().sort_by("id")
    assert read.cast(stored.schema).sort_by("id").equals(stored)
    return stored


def check_values(stored: pa.Table, version: Callable[[int], int]) -> None:
    """Moments are those that were meant, whatever the zones of client and server are; clocks are the client's."""
    for row in stored.to_pylist():
        assert row["moment"].timestamp() == -2_524_608_000 + row["id"] * 3600 * 1009
        assert row["clock"] == row["moment"].astimezone(ZoneInfo(ZONE)).replace(tzinfo=None)
        assert row["nested"] == ([{"version": version(row["id"])}] if row["id"] % 2 == 0 else None)


SUITE = """
name: orders
expectations:
- {type: expect_column_values_to_be_unique, kwargs: {column: id}, name: unique}
- {type: expect_column_values_to_be_unique, kwargs: {column: day}, name: repeated, severity: info}
- {type: expect_column_values_to_match_regex, kwargs: {column: day, regex: "^[01]$"}, name: pattern, severity: info}
- {type: expect_column_values_to_match_regex, kwargs: {column: day, regex: "(?i)x"}, name: apart, severity: info}
- {type: expect_column_median_to_be_between, kwargs: {column: id, min_value: 499, max_value: 500}, name: median}
"""


def test_a_gate_judges_on_the_server_as_it_does_in_the_client(run: Run, lake: Lake) -> None:
    new_table(lake, "shop.judged")
    found = run("judge", table="shop.judged", suite=SUITE).to_pylist()
    assert [(row["engine"], row["name"], row["status"], row["unexpected"]) for row in found] == [
        (engine, *result)
        for engine in ("spark", "arrow")
        for result in (
            ("unique", "passed", 0),
            ("repeated", "failed", 1000),
            ("pattern", "failed", 333),
            ("apart", "failed", 1000),
            ("median", "passed", None),
        )
    ]


def test_rows_of_a_client_are_judged_where_they_are(run: Run, lake: Lake) -> None:
    new_table(lake, "shop.gated")
    found = run("publish_gated", table="shop.gated", suite=SUITE).to_pylist()
    assert found == [{"engine": "spark", "outcome": "accept"}]
