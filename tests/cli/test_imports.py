"""Tables of other systems are imported by the command; a Hive metastore that is away is an error of its own."""

import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakelib import Lake, Table
from tests.cli.conftest import Run


def test_a_folder_is_looked_at_and_then_imported_once(run: Run, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "dt=2026-11-18").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "dt=2026-11-18" / "a.parquet")
    words = ("import", "brought.orders", str(tmp_path), "--from", "parquet", "--primary-key", "id")
    looked = run(*words, "--columns", "id BIGINT, dt DATE", "--dry-run", "--json")
    assert (looked.document["dry_run"], looked.document["files"], looked.document["rows"]) == (True, 1, None)
    assert "brought" not in lake.namespaces()
    done = run(*words, "--columns", "id BIGINT, dt DATE", "--json").document
    assert (done["rows"], done["batches"], done["batches_before"], done["snapshot"]) == (2, 1, 0, 1)
    said = run(*words)
    assert (said.code, "batches     1, 1 of them before" in said.out) == (0, True)
    assert lake.table("brought.orders").scan().count() == 2
    assert run("import", "brought.more", str(tmp_path), "--from", "delta").code == 4
    assert run("import", "brought.more", str(tmp_path), "--from", "iceberg").code == 2
    assert run(*words, "--version", "3").code == 2


def test_a_metastore_that_is_away_is_worth_another_try(run: Run, orders: Table) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"thrift://127.0.0.1:{closed.getsockname()[1]}"
        failed = run("hive", orders.name, "--metastore", address)
    assert (failed.code, address in failed.err) == (7, True)
    assert run("hive", orders.name, "--metastore", "http://host").code == 3
    assert run("hive", orders.name).code == 2
