"""The files of two feeds, after the orders and line items of TPC-H, and what tables have to hold because of them:
computed in plain Python from the raw files, by nothing that lakelib has.

A day's files bring the day, and new states of rows of the day before; among these some that are older than what the
day before has brought. The same day always has the same rows.
"""

import csv
import io
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

ORDERS_A_DAY = 200
BAD_ROWS = 8
CORRECTED, OLDER = range(20), range(20, 25)
"""Which orders of the day before come in another state, and which in one that is older."""
LATE = range(30, 45)

Row = tuple[Any, ...]
Rows = dict[Any, Row]
"""By the table's key."""


# What the shop delivers


def deliver_orders(landing: Path, day: date, *, correcting: bool, bad: bool = False) -> None:
    """Bad: some orders have no customer."""
    found = [_order(day, place) for place in range(ORDERS_A_DAY)]
    for order in found[:BAD_ROWS] if bad else ():
        order["customer"] = None
    _write_json(landing, day, "orders.json", [*found, *(_later_orders(day) if correcting else ())])


def deliver_lines(landing: Path, day: date, *, correcting: bool, bad: bool = False, odd: bool = False) -> None:
    """Bad: some lines have a negative quantity. Odd: some are nearly for free."""
    found = [line for place in range(ORDERS_A_DAY) for line in _lines(day, place)]
    for line in found[:BAD_ROWS]:
        line["quantity"] = -line["quantity"] if bad else line["quantity"]
        line["discount"] = "0.90" if odd else line["discount"]
    _write_csv(landing, day, "line_items.csv", [*found, *(_later_lines(day) if correcting else ())])


def deliver_late(landing: Path, day: date, *, orders: bool = False, lines: bool = False) -> None:
    """Days later a second file: rows that were wrong are put right, and others have changed."""
    at = _at(day + timedelta(days=5), 0)
    places = [*range(BAD_ROWS), *LATE]
    if orders:
        _write_json(
            landing, day, "late.json", [_order(day, place) | {"status": "paid", "updated_at": at} for place in places]
        )
    if lines:
        changed = (line for place in places for line in _lines(day, place))
        _write_csv(landing, day, "late.csv", [line | {"quantity": 7, "updated_at": at} for line in changed])


def _order(day: date, place: int) -> dict[str, Any]:
    chance = random.Random(f"order {day} {place}")
    return {
        "order_key": _key(day, place),
        "dt": day.isoformat(),
        "customer": chance.randint(1, 150),
        "status": chance.choice(("open", " Paid", "SHIPPED", "cancelled")),
        "total": f"{chance.uniform(20, 900):.2f}",
        "updated_at": _at(day, place),
    }


def _lines(day: date, place: int) -> Iterator[dict[str, Any]]:
    for number in range(1, 2 + place % 3):
        chance = random.Random(f"line {day} {place} {number}")
        yield {
            "order_key": _key(day, place),
            "line_number": number,
            "dt": day.isoformat(),
            "quantity": chance.randint(1, 50),
            "price": f"{chance.uniform(1, 200):.2f}",
            "discount": f"0.{chance.randint(0, 40):02}",
            "updated_at": _at(day, place),
        }


def _later_orders(day: date) -> Iterator[dict[str, Any]]:
    before = day - timedelta(days=1)
    for place in CORRECTED:
        yield _order(before, place) | {"status": "shipped", "total": "77.70", "updated_at": _at(day, place)}
    for place in OLDER:
        yield _order(before, place) | {"status": "open", "updated_at": _at(before - timedelta(days=1), place)}


def _later_lines(day: date) -> Iterator[dict[str, Any]]:
    before = day - timedelta(days=1)
    for place in CORRECTED:
        yield from (line | {"quantity": 3, "updated_at": _at(day, place)} for line in _lines(before, place))
    for place in OLDER:
        older = _at(before - timedelta(days=1), place)
        yield from (line | {"quantity": 50, "updated_at": older} for line in _lines(before, place))


def _key(day: date, place: int) -> int:
    return int(day.strftime("%y%m%d")) * 1000 + place


def _at(day: date, place: int) -> str:
    return (datetime.combine(day, time(8)) + timedelta(seconds=place)).isoformat(sep=" ")


def _write_json(landing: Path, day: date, name: str, rows: Iterable[dict[str, Any]]) -> None:
    _write(landing / "orders" / day.isoformat(), name, "".join(f"{json.dumps(row)}\n" for row in rows))


def _write_csv(landing: Path, day: date, name: str, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(landing / "line_items" / day.isoformat(), name, text.getvalue())


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "_READY").touch()


# What tables hold because of it


def orders_of(landing: Path, days: Collection[date]) -> Rows:
    """Those of the files of these days: of each order its newest state."""
    read = (json.loads(line) for line in _texts(landing / "orders", days, "*.json", str.splitlines))
    rows = (
        (
            each["order_key"],
            date.fromisoformat(each["dt"]),
            each["customer"],
            each["status"].strip().upper(),
            Decimal(each["total"]),
            _moment(each["updated_at"]),
        )
        for each in read
    )
    return _newest(rows, lambda row: row[0])


def lines_of(landing: Path, days: Collection[date]) -> Rows:
    read = _texts(landing / "line_items", days, "*.csv", lambda text: csv.DictReader(io.StringIO(text)))
    rows = (
        (
            int(each["order_key"]),
            int(each["line_number"]),
            date.fromisoformat(each["dt"]),
            int(each["quantity"]),
            Decimal(each["price"]),
            Decimal(each["discount"]),
            _moment(each["updated_at"]),
        )
        for each in read
    )
    return _newest(rows, lambda row: row[:2])


def revenue_of(orders: Rows, lines: Rows, day: date) -> Row:
    """What a day's row has to be."""
    sold = [
        line for line in lines.values() if line[2] == day and line[0] in orders and orders[line[0]][3] != "CANCELLED"
    ]
    revenue = sum((quantity * price * (1 - discount) for _, _, _, quantity, price, discount, _ in sold), Decimal(0))
    return (day, len({line[0] for line in sold}), len(sold), revenue)


def days_delivered(landing: Path, feed: str, day: date) -> set[date]:
    """The days of which a day's files have rows."""
    rows = orders_of(landing, [day]) if feed == "orders" else lines_of(landing, [day])
    place = 1 if feed == "orders" else 2
    return {row[place] for row in rows.values()}


def _newest(rows: Iterable[Row], key_of: Callable[[Row], Any]) -> Rows:
    """The last column says when a row was that way."""
    found: Rows = {}
    for row in rows:
        known = found.get(key_of(row))
        if known is None or row[-1] >= known[-1]:
            found[key_of(row)] = row
    return found


def _texts(folder: Path, days: Collection[date], pattern: str, parts: Callable[[str], Iterable[Any]]) -> Iterator[Any]:
    for day in sorted(days):
        for path in sorted((folder / day.isoformat()).glob(pattern)):
            yield from parts(path.read_text())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
