"""Table options change while the table is in use."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pytest

from lakelib import InvalidInputError, Lake
from tests.acceptance.support import NewTable


def test_options_that_are_not_named_stay(new_table: NewTable, lake: Lake) -> None:
    table = new_table("id BIGINT", options={"target_file_bytes": 1_000_000})
    table.set_options({"row_group_rows": 7})
    assert lake.table(table.name).options == {"target_file_bytes": 1_000_000, "row_group_rows": 7}
    table.set_options({"row_group_rows": 131_072, "read_batch_rows": "10"})
    assert lake.table(table.name).options == {"target_file_bytes": 1_000_000, "read_batch_rows": 10}


def test_a_wrong_option_changes_nothing(new_table: NewTable) -> None:
    table = new_table("id BIGINT")
    with pytest.raises(InvalidInputError, match="read_batch_rows"):
        table.set_options({"row_group_rows": 7, "read_batch_rows": 0})
    assert table.options == {}


@pytest.mark.parametrize(
    "option",
    [
        "row_group_rows",
        "write_buffer_bytes",
        "target_file_bytes",
        "min_bucket_file_bytes",
        "read_batch_rows",
        "compact_runs",
        "compact_delta_percent",
    ],
)
@pytest.mark.parametrize("value", [2**80, 2**63, "9" * 30])
def test_an_absurd_option_is_refused_when_it_is_set(new_table: NewTable, option: str, value: object) -> None:
    table = new_table("id BIGINT")
    with pytest.raises(InvalidInputError, match=rf"{option} is .*at most [0-9]+\.$"):
        table.set_options({option: value})
    with pytest.raises(InvalidInputError, match="at most"):
        new_table("id BIGINT", options={option: value})
    assert table.options == {}


@pytest.mark.parametrize("value", [Decimal("7.5"), np.float32(7.5), np.True_, b"7"])
def test_an_option_that_is_no_whole_number_is_not_cut_to_one(new_table: NewTable, value: object) -> None:
    table = new_table("id BIGINT")
    with pytest.raises(InvalidInputError, match="a whole number"):
        table.set_options({"row_group_rows": value})


def test_a_table_whose_options_are_larger_than_may_be_set_is_read(new_table: NewTable, lake: Lake) -> None:
    table = new_table("id BIGINT")
    lake.runtime.catalog.run(
        lambda db: db.execute("""update lake."table" set options = '{"row_group_rows": 1000000000000}'""")
    )
    assert lake.table(table.name).options == {"row_group_rows": 10**12}
    assert lake.table(table.name).scan().count() == 0


def test_two_who_change_options_at_once_both_do(new_table: NewTable) -> None:
    """Each reads what the other has written, or tries again."""
    table = new_table("id BIGINT")
    changes = [{"row_group_rows": 5}, {"read_batch_rows": 6}, {"target_file_bytes": 700_000}, {"compression_level": 2}]
    with ThreadPoolExecutor(len(changes)) as pool:
        list(pool.map(table.set_options, changes))
    assert table.options == {name: value for change in changes for name, value in change.items()}
