"""A small shop's exports, as its other systems would leave them in a landing folder.

    python -m infra.demo.shop LANDING [--from 2026-11-02] [--days 4] [--bad 2026-11-04] [--correct 2026-11-04]

Orders and payments are JSON lines, `<table>/<day>/*.json`; customers are one copy of all, `customers/all/*.csv`. Each
folder gets the marker `_READY` last. The same day always has the same rows. On a bad day some orders have no customer
or a negative amount. A correction arrives late: a second file in the folder of a day that is long complete, with those
orders put right; or rows of an earlier day among those of a later one: orders that were cancelled. Standard library
only.
"""

import argparse
import csv
import io
import json
import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

FIRST_DAY = date(2026, 11, 2)
DAYS = 4

TABLES = ("customers", "orders", "payments")
MARKER = "_READY"
ORDERS_A_DAY = 400
BAD_ORDERS = 12
LATE_ORDERS = 5
_CUSTOMERS = 120
_SINCE = date(2026, 1, 1)
"""From this day on there is one more customer each day."""
_STATUSES = ("open", "paid", "paid", "paid", "shipped")
_METHODS = ("card", "transfer", "wallet")
_COUNTRIES = ("DE", "FR", "IN", "US", "JP")

Row = dict[str, Any]


def write_day(landing: Path, day: date, *, bad: bool = False, late: date | None = None) -> None:
    """All three tables as they are on a day, complete from the moment their marker is there; `late` is an earlier day,
    of which some orders were cancelled on this one."""
    write_customers(landing, day)
    orders = chain(orders_of(day, bad=bad), cancelled_of(late, on=day) if late else ())
    _write(landing / "orders" / day.isoformat(), "orders.json", _json_lines(orders))
    _write(landing / "payments" / day.isoformat(), "payments.json", _json_lines(payments_of(day)))


def write_customers(landing: Path, day: date) -> None:
    _write(landing / "customers" / "all", "customers.csv", _csv(customers_of(day)))


def write_correction(landing: Path, day: date) -> None:
    """What the shop sends after a bad day: its wrong orders put right, with a later `updated_at`."""
    _write(landing / "orders" / day.isoformat(), "orders-correction.json", _json_lines(corrections_of(day)))


def customers_of(day: date) -> Iterator[Row]:
    """All customers until then."""
    days = max(0, (day - _SINCE).days)
    for customer_id in range(1, _CUSTOMERS + days + 1):
        chance = random.Random(f"customer {customer_id}")
        yield {
            "customer_id": customer_id,
            "name": f"Customer {customer_id}",
            "country": chance.choice(_COUNTRIES),
            "email": f"customer{customer_id}@example.org",
            "since": (_SINCE - timedelta(days=chance.randrange(1, 900))).isoformat(),
        }


def orders_of(day: date, *, bad: bool = False) -> Iterator[Row]:
    for place in range(ORDERS_A_DAY):
        order_id = int(day.strftime("%y%m%d")) * 10_000 + place
        chance = random.Random(f"order {order_id}")
        order: Row = {
            "order_id": order_id,
            "dt": day.isoformat(),
            "customer_id": chance.randint(1, _CUSTOMERS),
            "status": chance.choice(_STATUSES),
            "amount": f"{chance.uniform(5, 400):.2f}",
            "updated_at": _at(day, chance),
        }
        if bad and place < BAD_ORDERS:
            order |= {"customer_id": None} if place % 2 else {"amount": f"-{order['amount']}"}
        yield order


def payments_of(day: date) -> Iterator[Row]:
    """One payment for each order that is not open."""
    for order in orders_of(day):
        if order["status"] != "open":
            chance = random.Random(f"payment {order['order_id']}")
            yield {
                "payment_id": order["order_id"] * 10 + 1,
                "order_id": order["order_id"],
                "dt": order["dt"],
                "amount": order["amount"],
                "method": chance.choice(_METHODS),
                "paid_at": order["updated_at"],
            }


def corrections_of(day: date) -> Iterator[Row]:
    for order in islice(orders_of(day), BAD_ORDERS):
        yield order | {"updated_at": f"{day + timedelta(days=2)} 09:00:00"}


def cancelled_of(day: date, *, on: date) -> Iterator[Row]:
    """Orders of a day as a later one has them."""
    for order in islice(orders_of(day), LATE_ORDERS):
        yield order | {"status": "cancelled", "updated_at": f"{on} 08:00:00"}


def _at(day: date, chance: random.Random) -> str:
    return (datetime.combine(day, time()) + timedelta(seconds=chance.randrange(86_400))).isoformat(sep=" ")


def _json_lines(rows: Iterator[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _csv(rows: Iterator[Row]) -> str:
    found = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / MARKER).touch()


def main() -> None:
    arguments = _parse_arguments()
    for number in range(arguments.days):
        day = arguments.first + timedelta(days=number)
        write_day(arguments.landing, day, bad=day in arguments.bad)
        print(f"{day}: {', '.join(TABLES)} in {arguments.landing}{'; some orders are wrong' * (day in arguments.bad)}")
    for day in arguments.correct:
        write_correction(arguments.landing, day)
        print(f"{day}: a correction of {BAD_ORDERS} orders")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m infra.demo.shop", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("landing", type=Path)
    parser.add_argument("--from", dest="first", type=date.fromisoformat, default=FIRST_DAY, help="the first day")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--bad", type=date.fromisoformat, action="append", default=[], help="a day with wrong orders")
    parser.add_argument("--correct", type=date.fromisoformat, action="append", default=[], help="a day to correct late")
    return parser.parse_args()


if __name__ == "__main__":
    main()
