"""A table is brought back by the command: a dry run says what would change, --yes does it."""

from lakelib import Table
from tests.cli.conftest import Run


def test_it_says_what_would_change_and_does_so_when_it_is_meant(run: Run, orders: Table) -> None:
    good = orders.head
    assert good is not None
    before = orders.scan().count()
    orders.delete("true")
    told = run("rollback", orders.name, "--to", str(good.id), "--json").document
    assert (told["dry_run"], told["to"], told["snapshot"], told["files_removed"]) == (True, good.id, None, 0)
    assert told["files_restored"] == len(list(orders.files(at=good.id)))
    assert told["rows_restored"] >= before
    assert {"dt"} == {name for each in told["partitions"] for name in each}
    said = run("rollback", orders.name, "--to", str(good.id)).out
    assert f"back from snapshot {good.id + 1} to {good.id}" in said
    assert "3: dt=" in said
    assert orders.scan().count() == 0
    done = run("rollback", orders.name, "--to", good.committed_at.isoformat(), "--yes", "--json").document
    assert (done["dry_run"], done["to"], done["snapshot"], done["replayed"]) == (False, good.id, good.id + 2, False)
    assert (done["files_restored"], done["partitions"]) == (told["files_restored"], None)
    assert orders.scan().count() == before
    assert "0 files came back" in run("rollback", orders.name, "--to", str(good.id), "--yes").out
    key = ("--idempotency-key", "mend:1", "--yes")
    assert run("rollback", orders.name, "--to", str(good.id), *key).code == 0
    assert "was done before" in run("rollback", orders.name, "--to", str(good.id), *key).out


def test_what_is_no_snapshot_is_refused(run: Run, orders: Table) -> None:
    assert run("rollback", orders.name, "--to", "999").code == 4
    assert run("rollback", orders.name, "--to", "tag:none", "--yes").code == 4
    assert run("rollback", orders.name, "--to", "soon").code == 2
    assert run("rollback", orders.name).code == 2
