"""The operations that are interrupted: what must be there before each, what it changes, the steps that it must have."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.integration.faults.jobs import Rows, beside, read, rows, upserted
from tests.integration.faults.ledger import Ledger

State = dict[str, Rows]


@dataclass(frozen=True, kw_only=True)
class Work:
    tables: tuple[str, ...]
    prepare: Callable[[Ledger, int], None]
    change: Callable[[Rows, int], Rows]
    least_steps: int
    functions: tuple[str, ...]
    """Of the protocol, which it calls."""
    only: str = ""
    """The steps at which it is killed have this in their names: what it does besides others do as well."""
    beside: Callable[[Rows, int], Rows] | None = None
    """What somebody else changes meanwhile, whatever becomes of the work."""


def _earlier_rows(ledger: Ledger, number: int) -> None:
    """Runs pile up, but not so many that reading them takes long."""
    if number % 8 == 0:
        for name in ("shop.a", "shop.b"):
            ledger.lake.table(name).overwrite(rows({1: ("mon", 0), 3: ("tue", 0)}))


def _victims(ledger: Ledger, number: int) -> None:
    content = {1: ("mon", number), 2: ("tue", number), 3: ("tue", 0), 1000 + number: ("mon", 0)}
    ledger.lake.table("shop.a").overwrite(rows(content))


def _logged_victims(ledger: Ledger, number: int) -> None:
    content = {10 * number: ("mon", number), 10 * number + 1: ("mon", 0)}
    ledger.lake.table("shop.log").overwrite(rows(content))


def _mistakes(ledger: Ledger, number: int) -> None:
    """A tagged snapshot; then one of its files goes, one stays, and another comes."""
    table = ledger.lake.table("shop.a")
    table.overwrite(rows(upserted(number) | {3: ("wed", number)}))
    table.tag(f"good-{number}")
    table.delete("day = 'mon'")
    table.upsert(rows({4: ("tue", -number)}))
    table.compact(full=True)


def _without(content: Rows, number: int) -> Rows:
    return {key: (day, value) for key, (day, value) in content.items() if value != number}


WORKS = {
    "upsert": Work(
        tables=("shop.a",),
        prepare=_earlier_rows,
        change=lambda old, number: old | upserted(number),
        least_steps=28,
        functions=("stage_v1",),
    ),
    "overwrite": Work(
        tables=("shop.a",),
        prepare=_earlier_rows,
        change=lambda old, number: upserted(number),
        least_steps=28,
        functions=("stage_v1",),
    ),
    "delete": Work(tables=("shop.a",), prepare=_victims, change=_without, least_steps=28, functions=("stage_v1",)),
    "delete_by_rewriting": Work(
        tables=("shop.log",), prepare=_logged_victims, change=_without, least_steps=28, functions=("stage_v1",)
    ),
    "delete_overtaken": Work(
        tables=("shop.a",),
        prepare=_victims,
        change=lambda old, number: _without(old | beside(number), number),
        least_steps=12,
        functions=("stage_v1", "amend_v1", "publish_v1"),
        only="_v1",
        beside=lambda old, number: old | beside(number),
    ),
    "transact": Work(
        tables=("shop.a", "shop.b"),
        prepare=_earlier_rows,
        change=lambda old, number: old | upserted(number),
        least_steps=50,
        functions=("stage_v1", "publish_v1"),
    ),
    "upsert_gated": Work(
        tables=("shop.a",),
        prepare=_earlier_rows,
        change=lambda old, number: old | upserted(number),
        least_steps=8,
        functions=("stage_v1", "judge_v1", "publish_v1"),
        only="_v1",
    ),
    "rollback": Work(
        tables=("shop.a",),
        prepare=_mistakes,
        change=lambda old, number: upserted(number) | {3: ("wed", number)},
        least_steps=8,
        functions=("stage_v1",),
    ),
    "rollback_gated": Work(
        tables=("shop.a",),
        prepare=_mistakes,
        change=lambda old, number: upserted(number) | {3: ("wed", number)},
        least_steps=8,
        functions=("stage_v1", "judge_v1", "publish_v1"),
        only="_v1",
    ),
    "transact_gated": Work(
        tables=("shop.a", "shop.b"),
        prepare=_earlier_rows,
        change=lambda old, number: old | upserted(number),
        least_steps=13,
        functions=("stage_v1", "judge_v1", "publish_v1"),
        only="_v1",
    ),
}


def state_of(ledger: Ledger, work: Work) -> State:
    """What the tables of the work hold; fails if a catalog and its files disagree."""
    for name in work.tables:
        ledger.check_table(name)
    return {name: read(ledger.lake.table(name)) for name in work.tables}
