"""Consumers and commits as they come, with the command."""

import json

import pytest

from lakelib import Table
from tests.cli.conftest import Run, order_rows


def test_a_consumer_is_made_listed_moved_and_removed(run: Run, orders: Table) -> None:
    made = run("consumer", "create", orders.name, "billing", "--keep-for", "2d")
    assert made.out == f"{orders.name}: consumer billing stands at snapshot 0 of 2\n"
    [told] = run("consumers", orders.name, "--json").document
    assert (told["consumer"], told["position"], told["head"], told["snapshots"]) == ("billing", 0, 2, 2)
    assert (told["rows"], told["keep_for_seconds"], told["holds"]) == (60, 2 * 86_400, 1)
    listed = run("consumers", "--json").document
    assert (orders.name, "billing") in [(each["table"], each["consumer"]) for each in listed]

    assert "would move from snapshot 0 to 2" in run("consumer", "advance", orders.name, "billing").out
    assert orders.consumer("billing").position == 0
    moved = run("consumer", "advance", orders.name, "billing", "--to", 1, "--yes", "--json").document
    assert (moved["position"], moved["to"], moved["dry_run"], orders.consumer("billing").position) == (0, 1, False, 1)

    would = run("consumer", "remove", orders.name, "billing")
    assert "would be removed, and lets go of 1 snapshot" in would.out
    assert "Nothing was changed" in would.err
    assert run("consumer", "remove", orders.name, "billing", "--yes").code == 0
    assert "has no consumer" in run("consumers", orders.name).err


def test_a_step_back_is_asked_for(run: Run, orders: Table) -> None:
    run("consumer", "create", orders.name, "billing", "--after", 2)
    for really in ("--yes", "--dry-run"):
        told = run("consumer", "advance", orders.name, "billing", "--to", 1, really, "--json")
        assert (told.code, json.loads(told.err)["error"]["kind"]) == (3, "consumer_backwards")
    assert run("consumer", "advance", orders.name, "billing", "--to", "0", "--backwards", "--yes").code == 0
    assert orders.consumer("billing").position == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("consumer", "advance", "none", "--to", "1"), 4),
        (("consumer", "remove", "none"), 4),
        (("consumer", "create", "new", "--after", "99"), 4),
        (("consumer", "create", "new", "--after", "soon"), 2),
        (("consumer", "create", "new", "--after", "consumer:none"), 4),
        (("consumer", "create", "new", "--keep-for", "-1d"), 2),
        (("consumer", "create", "consumer:new"), 3),
    ],
)
def test_what_is_wrong_is_told(run: Run, orders: Table, words: tuple[str, ...], code: int) -> None:
    group, verb, *rest = words
    assert run(group, verb, orders.name, *rest).code == code
    assert list(orders.consumers()) == []


def test_an_expiry_names_the_consumer(run: Run, orders: Table) -> None:
    run("consumer", "create", orders.name, "billing")
    assert "by consumer billing (since " in run("expire", orders.name, "--keep-last", 1).out


def test_commits_are_watched(run: Run, orders: Table) -> None:
    orders.upsert(order_rows(1, 3))
    lines = run("watch", orders.name, "--after", 1, "--for", 0).lines
    assert [line.split()[2:] for line in lines] == [["2", "upsert", "30", "rows"], ["3", "upsert", "1", "row"]]
    told = [json.loads(line) for line in run("watch", orders.name, "--after", 0, "--for", 0, "--json").lines]
    assert [each["snapshot"] for each in told] == [1, 2, 3]
    assert told == run("history", orders.name, "--json").document[::-1]
    assert run("watch", orders.name, "--after", 0, "--for", 0, "--csv").lines[0].startswith("snapshot,kind,")
    assert run("watch", orders.name, "--for", 0).out == ""
    assert run("watch", orders.name, "--for", -1).code == 2
    assert run("watch", "shop.none").code == 4
