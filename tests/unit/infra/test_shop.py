"""The demo's shop: the same rows each time, wrong ones where they are asked for, a correction that is later."""

import json
from datetime import date
from pathlib import Path

from infra.demo.shop import (
    BAD_ORDERS,
    FIRST_DAY,
    ORDERS_A_DAY,
    orders_of,
    payments_of,
    write_correction,
    write_day,
)

DAY = date(2026, 11, 3)


def test_a_day_has_the_same_files_each_time(tmp_path: Path) -> None:
    for name in ("once", "again"):
        write_day(tmp_path / name, DAY, bad=True)
        write_correction(tmp_path / name, DAY)
    once, again = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.*")}
        for root in (tmp_path / "once", tmp_path / "again")
    )
    assert len(once) == 4
    assert once == again


def test_each_folder_has_its_marker(tmp_path: Path) -> None:
    write_day(tmp_path, DAY)
    folders = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("_READY")}
    assert folders == {"customers/all", "orders/2026-11-03", "payments/2026-11-03"}


def test_only_a_bad_day_has_wrong_orders() -> None:
    def wrong(bad: bool) -> int:
        orders = orders_of(DAY, bad=bad)
        return sum(order["customer_id"] is None or order["amount"].startswith("-") for order in orders)

    assert (wrong(bad=False), wrong(bad=True)) == (0, BAD_ORDERS)


def test_days_share_no_order_and_payments_are_for_orders() -> None:
    first, second = ({order["order_id"] for order in orders_of(day)} for day in (FIRST_DAY, DAY))
    assert len(first | second) == 2 * ORDERS_A_DAY
    assert {payment["order_id"] for payment in payments_of(DAY)} <= second


def test_a_correction_puts_the_wrong_orders_right_and_is_later(tmp_path: Path) -> None:
    write_day(tmp_path, DAY, bad=True)
    write_correction(tmp_path, DAY)
    bad, correction = (
        {row["order_id"]: row for row in map(json.loads, (tmp_path / f"orders/{DAY}/{name}").read_text().splitlines())}
        for name in ("orders.json", "orders-correction.json")
    )
    right = {order["order_id"]: order for order in orders_of(DAY)}
    wrong = {order_id for order_id, order in bad.items() if order != right[order_id]}
    assert set(correction) == wrong
    assert all(row["updated_at"] > bad[order_id]["updated_at"] for order_id, row in correction.items())
    assert all(row["amount"] == right[order_id]["amount"] for order_id, row in correction.items())
