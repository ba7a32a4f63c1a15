"""Why files are for Spark to read, in words that anybody may see."""

from lakelib.model.schema import Column
from lakelib.work.source_reader import find_obstacle

COLUMNS = (Column(id=1, name="id", type="bigint"),)


def test_an_option_is_named_with_its_value_only_where_that_is_no_secret() -> None:
    assert find_obstacle("csv", {"header": "true"}, COLUMNS) is None
    assert find_obstacle("csv", {"encoding": "latin-1"}, COLUMNS) == "the option encoding=latin-1"
    assert find_obstacle("csv", {"password": "hunter2"}, COLUMNS) == "the option password"
