"""Table options change while the table is in use."""

from concurrent.futures import ThreadPoolExecutor

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


def test_two_who_change_options_at_once_both_do(new_table: NewTable) -> None:
    """Each reads what the other has written, or tries again."""
    table = new_table("id BIGINT")
    changes = [{"row_group_rows": 5}, {"read_batch_rows": 6}, {"target_file_bytes": 700_000}, {"compression_level": 2}]
    with ThreadPoolExecutor(len(changes)) as pool:
        list(pool.map(table.set_options, changes))
    assert table.options == {name: value for change in changes for name, value in change.items()}
