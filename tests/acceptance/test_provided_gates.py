"""Promises of specs with a gate: the table requires the suite as its file is, whoever runs at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakelib import InvalidInputError, Lake, Table
from lakelib.ops import provide
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec
from tests.acceptance.support import raised, require_by_name
from tests.jobs.ingest_support import Shop, new_shop

STATUS = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}}
AMOUNT = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "amount"}}
COLOUR = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "colour"}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = new_shop(tmp_path)
    shop.write_spec(gate=write_gate(shop, STATUS))
    return shop


def write_gate(shop: Shop, *checks: dict[str, Any], name: str | None = None) -> str:
    return shop.write_gate(*checks, name=name or f"gate of {shop.table}")


def provided(lake: Lake, shop: Shop) -> Table:
    provide_table(lake.runtime, load_spec(shop.spec))
    return lake.table(shop.table)


def versions(table: Table) -> list[int | None]:
    return [each.version for each in table.gate_history()]


def test_a_table_requires_the_gate_of_its_spec_from_its_making(lake: Lake, shop: Shop) -> None:
    table = provided(lake, shop)
    required = table.required_gate
    assert required is not None
    assert (required.version, required.required_by) == (1, f"spec {shop.spec}")
    assert provided(lake, shop).gate_history() == [required]


def test_what_is_required_follows_the_file(lake: Lake, shop: Shop) -> None:
    table = provided(lake, shop)
    write_gate(shop, STATUS, AMOUNT)
    provided(lake, shop)
    assert versions(table) == [2, 1]
    write_gate(shop, STATUS)
    provided(lake, shop)
    assert versions(table) == [1, 2, 1]
    assert {each.released_by for each in table.gate_history()} == {None, f"spec {shop.spec}"}


def test_a_suite_that_does_not_fit_is_neither_registered_nor_required(lake: Lake, shop: Shop) -> None:
    table = provided(lake, shop)
    write_gate(shop, COLOUR)
    with raised(InvalidInputError, "invalid_suite") as caught:
        provided(lake, shop)
    assert "gate.yaml, line 1" in caught.value.message
    write_gate(shop, {**STATUS, "severity": "warning"})
    with raised(InvalidInputError, "gate_without_critical"):
        provided(lake, shop)
    assert versions(table) == [1]
    assert [each.version for each in lake.gates() if each.name == f"gate of {shop.table}"] == [1]


def test_columns_that_rows_may_bring_are_no_obstacle(lake: Lake, shop: Shop) -> None:
    shop.write_spec(gate=write_gate(shop, COLOUR), write="{merge_schema: true}")
    assert versions(provided(lake, shop)) == [1]


def test_who_has_read_an_older_file_does_not_put_it_back(
    lake: Lake, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = provided(lake, shop)
    write_gate(shop, STATUS, AMOUNT)
    register = provide.register

    def register_behind_another(*given: Any) -> Any:
        monkeypatch.setattr(provide, "register", register)
        write_gate(shop, AMOUNT)
        provided(lake, shop)
        return register(*given)

    monkeypatch.setattr(provide, "register", register_behind_another)
    found = provide_table(lake.runtime, load_spec(shop.spec))
    required = table.required_gate
    assert required is not None
    assert found.suite is not None
    assert required.hash == found.suite.hash == found.table.required_suite.hash  # type: ignore[union-attr]
    assert [check.arguments for check in found.suite.checks] == [{"column": "amount"}]
    assert len(versions(table)) == 2


def test_runs_at_once_make_one_table_that_requires_one_suite(lake: Lake, shop: Shop) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(provided, lake, shop) for _ in range(4)]
    assert [versions(each.result()) for each in done] == [[1]] * 4


def test_a_table_that_requires_the_gate_by_its_name_requires_the_suite_from_then_on(lake: Lake, shop: Shop) -> None:
    table = lake.create_table(
        shop.table,
        "order_id BIGINT, dt DATE, status STRING, amount DECIMAL(10, 2), updated_at TIMESTAMP",
        primary_key=["order_id"],
        partition_by=["dt"],
        sequence_by=["updated_at"],
        buckets=2,
    )
    require_by_name(lake, table, f"gate of {shop.table}")
    assert versions(provided(lake, shop)) == [1]


def test_another_gate_or_none_takes_a_person(lake: Lake, shop: Shop) -> None:
    table = provided(lake, shop)
    shop.write_spec(gate=write_gate(shop, STATUS, name="another"))
    with raised(InvalidInputError, "table_differs"):
        provided(lake, shop)
    shop.write_spec()
    with raised(InvalidInputError, "table_differs") as caught:
        provided(lake, shop)
    assert "release_gate" in caught.value.remedy
    table.release_gate(by="ann", reason="it is checked elsewhere")
    assert provided(lake, shop).required_gate is None
