"""Looking after tables with the command. What deletes is a dry run until it is told --yes."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from lakelib import Lake, Table
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import FailedDelete
from tests.cli.conftest import Run


def stored(table: Table) -> int:
    return len(list(Path(table.location.removeprefix("file://")).rglob("*.parquet")))


def test_a_table_is_compacted(run: Run, orders: Table) -> None:
    before = len(orders.files())
    told = run("compact", orders.name, "--full", "--where", "dt <= '2026-11-17'", "--json").document
    assert (told["table"], told["snapshots"], told["partitions"]) == (orders.name, [3], 2)
    assert (told["rows_before"], told["rows_after"]) == (40, 20)
    assert told["files_after"] < told["files_before"] <= before
    rest = run("compact", orders.name, "--full").out
    assert rest.startswith(f"{orders.name}: compacted in ")
    assert ["stored", "rows", "20", "10"] in [line.split() for line in rest.splitlines()]
    assert run("compact", orders.name, "--full").out == f"{orders.name}: nothing to compact\n"
    assert run("compact", orders.name, "--full", "--json").document["snapshots"] == []
    assert run("compact", orders.name, "--where", "amount > 1").code == 3


def test_buckets_become_others(run: Run, orders: Table) -> None:
    before = orders.scan().count()
    orders.set_options({"min_bucket_file_bytes": 0})
    told = run("rebucket", orders.name, 16)
    assert (told.code, "buckets are 16 from now on" in told.out) == (0, True)
    assert max(file.depth for file in orders.files()) == 4
    assert run("describe", orders.name, "--json").document["buckets"] == 16
    assert run("rebucket", orders.name, "dynamic", "--json").document["units"] == 0
    assert run("rebucket", orders.name, 3).code == 3
    assert orders.scan().count() == before


def test_snapshots_expire_when_it_is_meant(run: Run, orders: Table) -> None:
    run("compact", orders.name, "--full")
    dry = run("expire", orders.name, "--keep-last", 1, "--json").document
    assert (dry["table"], dry["dry_run"], dry["snapshots"]) == (orders.name, True, [1, 2])
    told = run("expire", orders.name, "--keep-last", 1)
    assert told == run("expire", orders.name, "--keep-last", 1, "--dry-run")
    assert "Nothing was changed" in told.err
    assert "would be forgotten" in told.out
    assert len(orders.history()) == 3
    done = run("expire", orders.name, "--keep-last", 1, "--yes")
    assert "was forgotten" in done.out
    assert "Nothing was changed" not in done.err
    assert [snapshot.id for snapshot in orders.history()] == [3]
    assert run("expire", orders.name, "--older-than", "1d", "--json").document["snapshots"] == []


def test_what_keeps_a_snapshot_is_told(run: Run, orders: Table) -> None:
    tag = orders.tag("eod", at=1)
    told = run("expire", orders.name, "--keep-last", 1, "--json").document
    assert told["snapshots"] == []
    since = tag.created_at.isoformat().replace("+00:00", "Z")
    hold = {"kind": "tag", "name": "eod", "snapshot_id": 1, "since": since, "until": None, "has_end": False}
    assert told["kept_back"] == [{"id": 1, "hold": hold}]
    expected = f"by tag eod (since {tag.created_at:%Y-%m-%d}, for ever): 1 snapshot (1)"
    assert expected in run("expire", orders.name, "--keep-last", 1).out


def test_a_tag_may_have_an_end(run: Run, orders: Table) -> None:
    made = run(
        "tag", "create", orders.name, "night", "--at", 1, "--keep", "90d", "--keep-last", 3, "--family", "nights"
    )
    assert "until 20" in made.out
    assert "among the last 3 of nights" in made.out
    [told] = run("tag", "list", orders.name, "--json").document
    assert (told["keep_last"], told["family"], told["until"] > told["created_at"]) == (3, "nights", True)
    assert run("tag", "create", orders.name, "x", "--keep", "soon").code == 2
    run("tag", "create", orders.name, "gone", "--at", 1, "--keep", "0s")
    done = run("expire", orders.name, "--keep-last", 1, "--yes")
    assert "1 whose time is over" in done.out
    assert [each["tag"] for each in run("tag", "list", orders.name, "--json").document] == ["night"]


def test_files_are_deleted_when_it_is_meant(run: Run, lake: Lake, orders: Table) -> None:
    orphan = Path(orders.location.removeprefix("file://"), "dt=2026-11-16", "upsert-" + "0" * 32 + "-00000.parquet")
    orphan.write_bytes(b"left behind")
    orders.mark_done({"dt": "2026-11-16"})
    dry = run("vacuum", "--grace", "0s", "--json").document
    assert (dry["dry_run"], dry["orphans"], dry["orphan_bytes"]) == (True, 1, 11)
    assert f"file://{orphan}" in dry["sample"]
    named = run("vacuum", "--grace", "0s", "--files")
    assert f"file://{orphan}" in named.lines
    assert "Nothing was changed" in named.err
    assert orphan.exists()
    count = stored(orders)
    assert run("vacuum", "--grace", "0s", "--yes", "--no-orphans").code == 0
    assert orphan.exists()
    assert run("vacuum", "--grace", "0s", "--yes").code == 0
    assert stored(orders) == count - 1
    assert orders.scan().count() == 30
    assert (orphan.parent / "_SUCCESS").exists()


def test_a_vacuum_that_cannot_delete_a_file_ends_with_7_and_says_which(
    run: Run, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan = Path(orders.location.removeprefix("file://"), "dt=2026-11-16", "upsert-" + "1" * 32 + "-00000.parquet")
    orphan.write_bytes(b"left behind")
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete_files", refuse)
        told = run("vacuum", "--orphans-older-than", "0s", "--yes")
        assert told.code == 7
        assert f"could not delete a file, the first of them file://{orphan}: AccessDenied: no." in told.err
        assert "The next vacuum tries again." in told.err
        ran = run("vacuum", "--orphans-older-than", "0s", "--yes", "--json")
        assert (ran.code, ran.document["orphans"], ran.document["failed"][0]["uri"]) == (7, 0, f"file://{orphan}")
        assert json.loads(ran.err)["error"]["kind"] == "files_not_deleted"
        assert run("maintain", "--vacuum", "--orphans-older-than", "0s", "--yes").code == 7
    assert run("vacuum", "--orphans-older-than", "0s", "--yes").code == 0
    assert not orphan.exists()


def refuse(storage: Storage, paths: Iterable[str]) -> tuple[FailedDelete, ...]:
    return tuple(FailedDelete(path=path, reason="AccessDenied: no") for path in paths)


def test_grace_is_what_passes_between_an_expiry_and_the_vacuum(run: Run, orders: Table) -> None:
    """Of orphans it is an earlier name for their age."""
    run("compact", orders.name, "--full")
    assert run("expire", orders.name, "--keep-last", 1, "--grace", "1d", "--yes").code == 0
    assert run("vacuum", "--no-orphans", "--json").document["files"] == 0
    assert "--grace" in run("expire", "--help").out
    for each in ("vacuum", "doctor"):
        told = run(each, "--help").out
        assert "--orphans-older-than" in told
        assert "--grace" not in told
        assert run(each, "--grace", "1d", "--orphans-older-than", "1d").code == 2


def test_lengths_of_time_are_checked(run: Run, orders: Table) -> None:
    assert run("expire", orders.name, "--older-than", "soon").code == 2
    assert run("vacuum", "--grace", "1").code == 2
    assert run("vacuum", "--orphans-older-than", "1").code == 2
    assert run("expire", orders.name, "--keep-last", 0).code == 2


def test_tags_are_made_listed_and_deleted(run: Run, orders: Table) -> None:
    made = run("tag", "create", orders.name, "eod", "--at", 1, "--json").document
    assert (made["tag"], made["snapshot"]) == ("eod", 1)
    assert run("tag", "create", orders.name, "now").out == f"{orders.name}: tag now is on snapshot 2, for ever\n"
    assert run("tag", "list", orders.name, "--json").document[-1] == made
    assert [line.split()[:2] for line in run("tag", "list", orders.name).lines[1:]] == [["now", "2"], ["eod", "1"]]
    assert run("tag", "create", orders.name, "eod", "--at", 2).code == 5
    assert run("tag", "delete", orders.name, "eod", "--json").document == {"table": orders.name, "deleted": "eod"}
    assert run("tag", "delete", orders.name, "eod").code == 4


def test_a_delta_log_is_brought_up_to_date(run: Run, lake: Lake) -> None:
    table = lake.create_table("shop.told", "id bigint")
    table.append([{"id": 1}])
    told = run("delta", table.name, "--json").document
    assert (told["table"], told["mode"], told["version"], told["written"]) == (table.name, "head", 0, 1)
    assert run("delta", table.name).out == f"{table.name}: 0 written, the Delta log is at version 0 of 0\n"
    table.append([{"id": 2}])
    table.set_options({"delta": "head"})
    (told,) = run("maintain", table.name, "--expire", "--yes", "--json").document["delta"]
    assert (told["version"], told["head_version"]) == (1, 1)
    lake.drop_table(table.name)
