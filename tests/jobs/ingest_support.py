"""A spec, its files and its landing folder, for the tests of the jobs that bring partitions to a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

_NUMBERS = count()
DAY = "2026-11-18"
FIELDS = {
    "columns": "order_id BIGINT, dt DATE, status STRING, amount DECIMAL(10, 2), updated_at TIMESTAMP",
    "primary_key": "[order_id]",
    "partition_by": "[dt]",
    "buckets": "2",
    "sequence_by": "[updated_at]",
    "partition": "{column: dt, every: day}",
}


@dataclass(frozen=True, kw_only=True)
class Shop:
    """Where the test's specs are, and what is delivered."""

    folder: Path
    landing: Path
    table: str

    @property
    def spec(self) -> Path:
        return self.folder / "orders.yaml"

    def write_spec(self, **fields: str | None) -> Path:
        """Writes the spec of orders in JSON lines, with other fields where they are given; None leaves one out."""
        source = f"{{format: json, path: '{self.landing}/{{partition}}/*.json'}}"
        given = {"table": self.table, **FIELDS, "source": source, **fields}
        self.spec.write_text("".join(f"{name}: {value}\n" for name, value in given.items() if value is not None))
        return self.spec

    def write_gate(self, *checks: Mapping[str, Any], name: str = "orders") -> str:
        """The name of a file with a suite, beside the spec."""
        (self.folder / "gate.yaml").write_text(json.dumps({"name": name, "expectations": list(checks)}))
        return "gate.yaml"

    def deliver(self, rows: Sequence[Mapping[str, Any]], key: str = DAY, *, marker: bool = True) -> Path:
        """A partition of the source; the file that holds the rows."""
        folder = self.landing / key
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "part-0.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if marker:
            (folder / "_READY").touch()
        return file


def new_shop(folder: Path) -> Shop:
    shop = Shop(folder=folder / "specs", landing=folder / "landing", table=f"shop.orders{next(_NUMBERS)}")
    shop.folder.mkdir()
    shop.landing.mkdir()
    return shop


def order(number: int, **fields: Any) -> dict[str, Any]:
    return {"order_id": number, "dt": DAY, "status": "open", "amount": 9.5, "updated_at": f"{DAY}T10:00:00Z", **fields}
