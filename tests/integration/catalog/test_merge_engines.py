"""Merge engines beside others: deletes that are overtaken, and clients that know nothing of engines."""

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib import ConflictError, InvalidInputError
from tests.integration.catalog.test_amended_deletes import once_staged

_SUM = {"engine": "aggregate", "functions": {"amount": "sum"}}


def content(table: lakelib.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["amount"]) for row in table.scan().to_arrow().to_pylist())


def amounts(**of: int) -> pa.Table:
    return pa.table({"id": [int(key[1:]) for key in of], "amount": list(of.values())})


@pytest.fixture
def sums(lake: lakelib.Lake) -> lakelib.Table:
    return lake.create_table("shop.sums", "id BIGINT, amount BIGINT", primary_key=["id"], buckets=1, merge=_SUM)


def test_a_delete_that_is_overtaken_looks_at_what_the_rows_have_become(
    sums: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The added value alone would match, or not match, where the sum does not, or does."""
    sums.upsert(amounts(k1=60, k2=200, k3=10))
    once_staged(monkeypatch, lambda: sums.upsert(amounts(k1=60, k2=-150, k3=10)))
    sums.delete("amount > 100")
    assert content(sums) == [(2, 50), (3, 20)]


def test_a_staged_delete_that_was_overtaken_is_a_conflict(sums: lakelib.Table) -> None:
    sums.upsert(amounts(k1=60))
    staged = sums.stage_delete("amount > 50")
    sums.upsert(amounts(k1=1))
    with pytest.raises(ConflictError):
        staged.publish()
    assert content(sums) == [(1, 61)]


def test_what_comes_after_a_delete_begins_anew_however_runs_are_compacted(sums: lakelib.Table) -> None:
    sums.upsert(amounts(k1=60))
    sums.delete_keys(pa.table({"id": [1]}))
    sums.upsert(amounts(k1=5))
    assert content(sums) == [(1, 5)]
    sums.compact(full=True)
    sums.upsert(amounts(k1=2))
    assert content(sums) == [(1, 7)]


def test_rows_are_replaced_by_whole_partitions_only(sums: lakelib.Table) -> None:
    sums.upsert(amounts(k1=60))
    with pytest.raises(InvalidInputError, match="merges rows that are given"):
        sums.overwrite(amounts(k1=70), where="amount > 50")
    assert content(sums) == [(1, 60)]


def test_such_a_table_is_made_once_clients_are_shut_out_that_know_no_engines(
    lake: lakelib.Lake, catalog_url: str
) -> None:
    with psycopg.connect(catalog_url, autocommit=True) as db:
        db.execute("delete from lake.migration where version = 19")
    with pytest.raises(InvalidInputError) as refused:
        lake.create_table("shop.first", "id BIGINT", primary_key=["id"], merge="first_row")
    assert refused.value.kind == "older_clients"
    assert "shop.first" not in lake.tables()
    lake.create_table("shop.newest", "id BIGINT", primary_key=["id"])


def test_a_table_is_replaced_by_one_that_merges_the_same(lake: lakelib.Lake, sums: lakelib.Table) -> None:
    sums.upsert(amounts(k1=60))
    columns = "id BIGINT, amount BIGINT, note STRING"
    with pytest.raises(InvalidInputError, match="merge is"):
        lake.create_or_replace_table("shop.sums", columns, primary_key=["id"])
    replaced = lake.create_or_replace_table("shop.sums", columns, primary_key=["id"], merge=_SUM)
    for _ in range(2):
        replaced.upsert(amounts(k1=4))
    assert replaced.scan(columns=["id", "amount"]).to_arrow().to_pylist() == [{"id": 1, "amount": 8}]
