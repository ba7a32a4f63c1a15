"""The connection dies around a transaction's end. Whether it took effect is found out, and nothing is done twice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakelib
from lakelib.catalog.connections import Session
from tests.integration.faults.jobs import APPLICATION, OPERATIONS, SCHEMA, read, rows
from tests.integration.faults.ledger import Ledger
from tests.integration.faults.works import WORKS, state_of

_MOST_COMMITS = 30


class Losses:
    """How many transaction ends there were, and whether the one in question was among them."""

    def __init__(self) -> None:
        self.commits = 0
        self.happened = False


@contextmanager
def losing(number: int, *, takes_effect: bool) -> Iterator[Losses]:
    """The connection dies at the `number`-th transaction end, or statement that is a transaction of its own: after the
    server did it, or before it heard of it."""
    losses = Losses()
    end, execute = Session.commit, Session.execute

    def ending(self: Session, act: Callable[[], Any]) -> Any:
        losses.commits += 1
        if losses.commits != number:
            return act()
        losses.happened = True
        if takes_effect:
            act()
        self.close()
        raise psycopg.OperationalError("the connection is lost")

    def execute_alone(self: Session, *given: Any, **options: Any) -> Any:
        act = partial(execute, self, *given, **options)
        return ending(self, act) if self.autocommit else act()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "commit", lambda self: ending(self, partial(end, self)))
        patch.setattr(Session, "execute", execute_alone)
        yield losses


def each_loss(act: Callable[[int], None], *, takes_effect: bool) -> int:
    """Does the work again and again, losing the connection at its first transaction end, then its second …"""
    for number in range(1, _MOST_COMMITS):
        with losing(number, takes_effect=takes_effect) as losses:
            act(number)
        if not losses.happened:
            return number - 1
    raise AssertionError("the work has no end")


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
@pytest.mark.parametrize("operation", WORKS)
def test_a_lost_connection_is_no_error_and_the_work_is_done_once(
    operation: str, takes_effect: bool, ledger: Ledger
) -> None:
    work = WORKS[operation]
    for number in range(1, _MOST_COMMITS):
        work.prepare(ledger, number)
        before = state_of(ledger, work)
        with losing(number, takes_effect=takes_effect) as losses:
            OPERATIONS[operation](ledger.lake, number)
        assert state_of(ledger, work) == {name: work.change(content, number) for name, content in before.items()}
        assert ledger.commits("published", number) == [name.partition(".")[2] for name in work.tables]
        assert ledger.commits("staged") == ledger.commits("expired") == []
        if not losses.happened:
            break
    assert number > 2


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
def test_a_table_is_created_and_dropped_without_an_error_when_the_connection_dies(
    takes_effect: bool, ledger: Ledger
) -> None:
    lake = ledger.lake

    assert each_loss(lambda n: lake.create_namespace(f"space_{n}"), takes_effect=takes_effect) >= 1
    created = each_loss(
        lambda n: lake.create_table(f"shop.new_{n}", SCHEMA, primary_key=["id"]) and None, takes_effect=takes_effect
    )
    assert {f"new_{n}" for n in range(1, created + 1)} <= set(lake.tables("shop"))
    assert each_loss(lambda n: lake.drop_table(f"shop.new_{n}"), takes_effect=takes_effect) >= 1


def test_creating_a_table_that_is_there_is_an_error_though_replies_get_lost(ledger: Ledger) -> None:
    with losing(1, takes_effect=True), pytest.raises(lakelib.InvalidInputError, match=r"shop\.a already"):
        ledger.lake.create_table("shop.a", SCHEMA, primary_key=["id"])


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
def test_a_schema_changes_once_when_the_connection_dies(takes_effect: bool, ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")

    commits = each_loss(
        lambda n: table.evolve(add=[(f"extra_{n}", "string")], idempotency_key=(APPLICATION, n)) and None,
        takes_effect=takes_effect,
    )

    assert table.schema.names == ["id", "day", "value", *(f"extra_{n}" for n in range(1, commits + 2))]
    assert len(table.history()) == commits + 1
    ledger.check_table("shop.a")


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
def test_a_commit_is_rejected_and_a_scan_reads_when_the_connection_dies(takes_effect: bool, ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    table.upsert(rows({1: ("mon", 1)}))

    def reject(number: int) -> None:
        staged = table.stage_upsert(rows({number: ("tue", 2)}))
        staged.reject("no")
        assert staged.state == "rejected"

    def scan(number: int) -> None:
        assert read(table) == {1: ("mon", 1)}
        assert len(list(table.files())) == 1

    assert each_loss(reject, takes_effect=takes_effect) >= 3
    assert each_loss(scan, takes_effect=takes_effect) >= 3
    assert ledger.query("select count(*) from lake.lease") == [(0,)]


@pytest.mark.parametrize("takes_effect", [True, False], ids=["reply lost", "request lost"])
def test_a_consumer_moves_once_with_its_commit_when_the_connection_dies(takes_effect: bool, ledger: Ledger) -> None:
    source, log = ledger.lake.table("shop.a"), ledger.lake.table("shop.log")

    def consume(number: int) -> None:
        source.upsert(rows({number: ("mon", number)}), idempotency_key=(APPLICATION, number))
        consumer = source.consumer("derive")
        changes = consumer.read()
        staged = log.stage_append(changes.to_arrow().select(["id", "day", "value"]))
        with ledger.lake.transaction() as transaction:
            transaction.add(staged)
            transaction.advance(consumer, changes)
        assert (consumer.position, consumer.advance(changes.until_id)) == (number, number)

    losses = each_loss(consume, takes_effect=takes_effect)

    assert losses >= 8
    assert read(log) == read(source)


def test_backends_that_an_administrator_ends_are_replaced_at_once(ledger: Ledger) -> None:
    table = ledger.lake.table("shop.a")
    for number in range(1, 6):
        ledger.query(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )

        table.upsert(rows({number: ("mon", number)}), idempotency_key=(APPLICATION, number))

    assert read(table) == {number: ("mon", number) for number in range(1, 6)}
    ledger.check_table("shop.a")


def test_what_an_earlier_try_may_have_done_is_not_said_to_have_changed_nothing(ledger: Ledger) -> None:
    """The second try finds what the first has left."""
    statement = sql.SQL("insert into lake.namespace (name) values ('twice')")

    with losing(1, takes_effect=True), pytest.raises(lakelib.OutcomeUnknownError, match="duplicate key"):
        ledger.lake._runtime.catalog.do(statement)
