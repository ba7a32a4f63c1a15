"""A tour of a lake in this process: create a table, upsert twice, read, look back in time.

Run it with `make demo`. The lake is ./.lake of the current folder, and stays for a closer look; the tour's own table,
`demo.orders`, is made anew each time.
"""

import textwrap
from datetime import date

import pyarrow as pa

import lakelib

TABLE = "demo.orders"
SCHEMA = "order_id BIGINT NOT NULL, dt DATE, customer STRING, amount DECIMAL(10,2), status STRING"


def main() -> None:
    with lakelib.connect() as lake:
        _say(f"A lake at {lake.warehouse}", "Its catalog is an embedded PostgreSQL: nothing was installed for it.")
        orders = _create(lake)
        first = orders.upsert(_monday(), idempotency_key=("demo", 1))
        _say(f"Monday's orders are in: snapshot {first.id}", _rows(orders.scan()))
        second = orders.upsert(_tuesday(), idempotency_key=("demo", 2))
        _say(
            f"Tuesday: one order was paid, one is new: snapshot {second.id}",
            _rows(orders.scan(columns=["order_id", "dt", "customer", "amount", "status", "_commit"])),
            "_commit is the snapshot that made the row.",
        )
        replayed = orders.upsert(_tuesday(), idempotency_key=("demo", 2))
        _say(f"The same batch again is recognised: still snapshot {replayed.id}, nothing was written.")
        _reject(orders)
        orders.delete("status = 'cancelled'")
        _say("Cancelled orders were deleted", _rows(orders.scan()))
        scan = orders.scan(columns=["customer", "amount"], where="dt = '2026-11-16' and amount > 20")
        _say("A scan with a predicate, and how it is read", _rows(scan), str(scan.explain()))
        _say(f"The table as it was at snapshot {first.id}", _rows(orders.scan(at=first.id)))
        _say("Its history, newest first", *(_snapshot_line(snapshot) for snapshot in orders.history()))
        _say(
            "To look further",
            ".venv/bin/python",
            ">>> import lakelib",
            f'>>> lakelib.connect().table("{TABLE}").scan().to_arrow()',
        )


def _create(lake: lakelib.Lake) -> lakelib.Table:
    lake.create_namespace("demo")
    if TABLE.partition(".")[2] in lake.tables("demo"):
        lake.drop_table(TABLE)
    orders = lake.create_table(TABLE, SCHEMA, primary_key=["order_id"], partition_by=["dt"], buckets=4)
    _say(f"Table {orders.name}, one row an order_id in each dt, 4 buckets", str(orders.schema))
    return orders


def _reject(orders: lakelib.Table) -> None:
    """A staged commit is judged on what its readers would see, before anybody sees it."""
    staged = orders.stage_upsert(_batch([(4, date(2026, 11, 17), "Dan", "-30.00", "open")]))
    wrong = staged.scan(where="amount < 0")
    _say("A staged commit, seen by nobody yet, would bring", _rows(wrong), f"Readers see {orders.scan().count()} rows.")
    staged.reject("a negative amount")
    _say(f"It was rejected: {staged.state}. Readers still see {orders.scan().count()} rows.")


def _monday() -> pa.Table:
    day = date(2026, 11, 16)
    return _batch(
        [(1, day, "Ann", "19.90", "open"), (2, day, "Ben", "5.00", "cancelled"), (3, day, "Cem", "42.00", "open")]
    )


def _tuesday() -> pa.Table:
    return _batch(
        [(3, date(2026, 11, 16), "Cem", "42.00", "paid"), (4, date(2026, 11, 17), "Dan", "30.00", "open")],
    )


def _batch(rows: list[tuple[int, date, str, str, str]]) -> pa.Table:
    order_ids, days, customers, amounts, statuses = zip(*rows, strict=True)
    return pa.table(
        {
            "order_id": order_ids,
            "dt": days,
            "customer": customers,
            "amount": pa.array(amounts).cast(pa.decimal128(10, 2)),
            "status": statuses,
        }
    )


def _rows(scan: lakelib.Scan) -> str:
    """The rows as text, by order_id where it is there."""
    table = scan.to_arrow()
    names = table.column_names
    if "order_id" in names:
        table = table.sort_by("order_id")
    cells = [names, *([str(row[name]) for name in names] for row in table.to_pylist())]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _snapshot_line(snapshot: lakelib.Snapshot) -> str:
    what = snapshot.summary
    return (
        f"{snapshot.id}  {snapshot.committed_at:%H:%M:%S.%f}  {snapshot.kind:<9}  {what['rows_written']} rows,"
        f" {what['deletes_written']} deletes, {what['files_added']} files, {what['bytes_added']:,} bytes"
    )


def _say(title: str, *paragraphs: str) -> None:
    print(f"\n● {title}")
    for paragraph in paragraphs:
        print(textwrap.indent(paragraph, "    "))


if __name__ == "__main__":
    main()
