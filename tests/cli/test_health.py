"""The commands doctor, backup and restore."""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from lakelib import Lake, Table
from tests.cli.conftest import Run


def stored(table: Table) -> list[Path]:
    folder = Path(table.location.removeprefix("file://"))
    return [folder / file.path for file in table.files()]


def test_a_sound_lake_is_told(run: Run, orders: Table) -> None:
    told = run("doctor", orders.name)
    assert (told.code, told.lines[-1]) == (0, "nothing was found")
    document = run("doctor", orders.name, "--deep", "--json").document
    assert (document["healthy"], document["severity"], document["deep"]) == (True, None, True)
    assert document["tables"] == [orders.name]
    assert run("doctor", "shop.nothing").code == 4


def test_damage_is_told_with_what_to_do_and_exit_code_8(run: Run, orders: Table) -> None:
    gone = stored(orders)[0]
    gone.unlink()
    told = run("doctor", orders.name)
    assert told.code == 8
    assert "missing_file" in told.out
    assert f"file://{gone}" in told.out
    ran = run("doctor", orders.name, "--json")
    (finding,) = ran.document["findings"]
    assert ran.code == 8
    assert (finding["severity"], finding["kind"], finding["table"]) == ("damaged", "missing_file", orders.name)
    assert finding["remedy"]
    assert ran.document["counts"] == {"missing_file": 1}


def test_an_orphan_is_no_damage(run: Run, orders: Table) -> None:
    stored(orders)[0].with_name("upsert-" + "0" * 32 + "-00000.parquet").write_bytes(b"left behind")
    assert "1 file of no commit" in run("doctor", orders.name).err
    told = run("doctor", orders.name, "--grace", "0s")
    assert told.code == 0
    assert "orphaned_file" in told.out


def test_repairs_are_dry_runs_until_they_are_meant(run: Run, lake: Lake, orders: Table) -> None:
    catalog = lake.runtime.catalog
    catalog.run(lambda db: db.execute("alter table lake.deletion_queue disable trigger named_files_stay"))
    catalog.run(
        lambda db: db.execute(
            "insert into lake.deletion_queue (table_id, path, size_bytes, not_before)"
            " select table_id, path, size_bytes, now() + interval '1 day' from lake.data_file where path = %s",
            (next(iter(orders.files())).path,),
        )
    )
    catalog.run(lambda db: db.execute("alter table lake.deletion_queue enable trigger named_files_stay"))
    dry = run("doctor", orders.name, "--repair", "queue")
    assert dry.code == 8
    assert "to be repaired: queue" in dry.out
    assert "Nothing was changed" in dry.err
    assert run("doctor", orders.name, "--repair", "queue", "--yes", "--json").document["repairs"][0]["kind"] == "queue"
    assert run("doctor", orders.name).code == 0


def test_wrong_usage_is_told(run: Run, orders: Table) -> None:
    assert run("doctor", orders.name, "--repair", "rows").code == 2
    assert run("doctor", orders.name, "--repair", "files").code == 2
    assert run("doctor", orders.name, "--grace", "1").code == 2


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Where other users may go, as an embedded server of root's has to: pytest closes its own folders to them."""
    with tempfile.TemporaryDirectory(prefix="lakelib-restored-", dir="/tmp") as folder:
        yield Path(folder)


def test_a_backup_is_restored_into_an_embedded_lake_of_another_folder(
    run: Run, run_process: Callable[..., CompletedProcess[str]], orders: Table, open_folder: Path
) -> None:
    made = run("backup", open_folder / "backup", "--tables", orders.name, "--with-files", "--json").document
    assert (made["tables"], made["with_files"], made["held_until"]) == ([orders.name], True, None)
    (open_folder / "lake").mkdir()
    here: dict[str, Any] = {
        "cwd": open_folder / "lake",
        "LAKE_CATALOG": "",
        "LAKE_WAREHOUSE": str(open_folder / "lake" / "warehouse"),
    }
    restored = run_process("restore", str(open_folder / "backup"), "--json", **here)
    assert restored.returncode == 0, restored.stderr
    told = json.loads(restored.stdout)
    assert (told["id"], told["tables"], told["healthy"]) == (made["id"], [orders.name], True)
    counted = run_process("scan", orders.name, "--count", "--json", **here)
    assert json.loads(counted.stdout)["rows"] == orders.scan().count()


def test_a_lake_that_is_restored_without_its_files_says_so_in_a_few_lines(
    run: Run, run_process: Callable[..., CompletedProcess[str]], orders: Table, open_folder: Path
) -> None:
    files = len(orders.files())
    assert files > 5
    assert run("backup", open_folder / "backup", "--tables", orders.name).code == 0
    (open_folder / "lake").mkdir()
    here: dict[str, Any] = {"cwd": open_folder / "lake", "LAKE_CATALOG": ""}
    place = ("--warehouse", str(open_folder / "lake" / "warehouse"))
    restored = run_process("restore", str(open_folder / "backup"), *place, **here)
    assert restored.returncode == 8, restored.stderr
    assert restored.stdout.count("damaged") == 5
    assert f"missing_file  {files}" in restored.stdout
    assert "the first 5 of each kind; `lake doctor` lists more" in restored.stderr


def test_a_backup_without_files_tells_how_long_they_are_kept(run: Run, orders: Table, tmp_path: Path) -> None:
    told = run("backup", tmp_path / "backup", "--tables", orders.name, "--hold-for", "2d")
    assert told.code == 0
    assert "kept by the lake until" in told.out
    assert run("backup", tmp_path / "backup").code == 3
    assert run("backup", tmp_path / "other", "--with-files", "--hold-for", "2d").code == 2
    assert run("restore", tmp_path / "nothing").code == 4
