"""The specs of the example shop bring what the shop delivers to its tables, and its gates find what is wrong."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import lakelib
from infra.demo import shop
from lakelib import Lake
from lakelib.specs.table_spec import load_specs
from tests.jobs.conftest import RunJob, rows_of

SPECS = Path(__file__).resolve().parents[2] / "dags" / "tables"
DAY = date(2026, 11, 2)
BAD_DAY = date(2026, 11, 3)


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Without a table."""
    with lakelib.connect(warehouse=tmp_path_factory.mktemp("lake"), catalog=module_catalog_url) as lake:
        yield lake


def test_the_days_of_the_shop_go_through(
    run_job: RunJob, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDING", str(tmp_path))
    shop.write_day(tmp_path, DAY)
    shop.write_day(tmp_path, BAD_DAY, bad=True)

    def ingest(name: str, key: str, version: int = 1, *more: str) -> dict[str, Any]:
        spec = ("--spec", SPECS / f"{name}.yaml", "--partition", key)
        ran = run_job("ingest", *spec, "--idempotency-key", f"{name} {key}:{version}", *more)
        assert ran.code == 0, ran.err
        return ran.facts

    def publish(*told: dict[str, Any]) -> list[int]:
        ran = run_job("publish", *(argument for each in told for argument in ("--commit", each["commit"])))
        assert ran.code == 0, ran.err
        return [each["snapshot"] for each in ran.facts["published"]]

    good = [ingest("orders", "2026-11-02"), ingest("payments", "2026-11-02"), ingest("customers", "all")]
    assert [told["outcome"] for told in good] == ["accept"] * 3
    woken_by = publish(*good)[0]

    bad = ingest("orders", "2026-11-03")
    assert (bad["outcome"], bad["state"]) == ("reject", "rejected")
    shop.write_correction(tmp_path, BAD_DAY)
    assert ingest("orders", "2026-11-03")["outcome"] == "reject"
    corrected = ingest("orders", "2026-11-03", 2)
    assert corrected["outcome"] == "accept"
    publish(corrected)
    assert lake.table("shop.orders").scan().count() == 2 * shop.ORDERS_A_DAY

    for key, at in (("2026-11-02", woken_by), ("2026-11-03", woken_by + 1)):
        told = ingest("daily_revenue", key, 1, "--at", f"shop.orders={at}")
        assert told["outcome"] == "accept"
        publish(told)
    assert [dt for (dt,) in rows_of(lake.table("shop.daily_revenue"), "dt")] == [DAY, BAD_DAY]

    publish(ingest("order_changes", "2026-11-02", 1, "--at", f"shop.orders={woken_by}"))
    publish(ingest("order_changes", "2026-11-03"))
    assert lake.table("shop.order_changes").scan().count() == 2 * shop.ORDERS_A_DAY


def test_every_spec_is_used() -> None:
    names = {"orders", "payments", "customers", "daily_revenue", "order_changes"}
    assert {spec.path.stem for spec in load_specs(SPECS)} == names
