"""A table follows the columns of its spec: what may be NULL from now on, and what they are said to hold."""

from pathlib import Path

import pytest

from lakelib import InvalidInputError, Lake, Table
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec
from tests.jobs.ingest_support import Shop, new_shop

BEFORE = "order_id BIGINT, dt DATE, status STRING NOT NULL, amount DECIMAL(10,2) COMMENT 'net', updated_at TIMESTAMP"
AFTER = (
    "order_id BIGINT COMMENT 'the key', dt DATE, status STRING, amount DECIMAL(14,4) COMMENT 'gross, not net',"
    " updated_at TIMESTAMP, note STRING COMMENT 'said'"
)


@pytest.fixture
def shop(tmp_path: Path, lake: Lake) -> Shop:
    return new_shop(tmp_path)


def _provided(lake: Lake, shop: Shop) -> Table:
    provide_table(lake.runtime, load_spec(shop.spec))
    return lake.table(shop.table)


def _comments(table: Table) -> dict[str, str]:
    return {field.name: field.metadata[b"comment"].decode() for field in table.schema if field.metadata}


def test_a_table_follows_its_spec_where_it_may(lake: Lake, shop: Shop) -> None:
    shop.write_spec(columns=f"'{BEFORE.replace(chr(39), chr(39) * 2)}'", write="{merge_schema: true}")
    table = _provided(lake, shop)
    assert _comments(table) == {"amount": "net"}
    shop.write_spec(columns=f"'{AFTER.replace(chr(39), chr(39) * 2)}'", write="{merge_schema: true}")
    _provided(lake, shop)
    assert _comments(table) == {"order_id": "the key", "amount": "gross, not net", "note": "said"}
    assert table.schema.field("status").nullable
    assert str(table.schema.field("amount").type) == "decimal128(14, 4)"
    _provided(lake, shop)
    assert [each.kind for each in table.history()] == ["evolve"]


def test_without_leave_it_is_told_and_comments_are_no_difference(lake: Lake, shop: Shop) -> None:
    shop.write_spec(columns=f"'{BEFORE.replace(chr(39), chr(39) * 2)}'")
    table = _provided(lake, shop)
    shop.write_spec(columns=f"'{BEFORE.replace('net', 'gross').replace(chr(39), chr(39) * 2)}'")
    _provided(lake, shop)
    assert (_comments(table), table.head) == ({"amount": "net"}, None)
    shop.write_spec(columns=f"'{BEFORE.replace(' NOT NULL', '').replace(chr(39), chr(39) * 2)}'")
    with pytest.raises(InvalidInputError, match="'status' is declared nullable, and the table's is NOT NULL"):
        _provided(lake, shop)
