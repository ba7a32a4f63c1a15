"""In which line of a text file a row is."""

import io
from typing import Any

import pyarrow as pa
import pytest

from lakelib.work.source_lines import lines_of_csv_rows, lines_of_json_rows


@pytest.mark.parametrize(
    ("text", "header", "lines"),
    [
        ("a,b\n1,2\n3,4\n", True, [2, 3]),
        ("1,2\n3,4", False, [1, 2]),
        ('a,b\r\n"1\r\nx",2\r\n\r\n3,4\r\n', True, [2, 5]),
        ('"1""\n",2\n"\n\n",4\n5,6\n', False, [1, 3, 6]),
        ("", False, []),
    ],
)
def test_rows_of_csv(text: str, header: bool, lines: list[int]) -> None:
    form: dict[str, Any] = {"delimiter": ",", "quotechar": '"', "doublequote": True}
    stream = pa.PythonFile(io.BytesIO(text.encode()), "r")
    assert lines_of_csv_rows(stream, range(10), header=header, **form) == dict(enumerate(lines))


def test_rows_of_json_lines() -> None:
    stream = pa.PythonFile(io.BytesIO(b'{"a": 1}\n\n  \n{"a": 2}\n{"a": 3}'), "r")
    assert lines_of_json_rows(stream, [1, 2]) == {1: 4, 2: 5}
