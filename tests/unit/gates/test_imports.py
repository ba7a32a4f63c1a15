"""A gate is judged at once: nothing that takes seconds to import is needed."""

import subprocess
import sys

_HIDE = "import sys; sys.modules['great_expectations'] = None; "
_JUDGE = """
import numpy as np
import pyarrow as pa
from lakelib.rows.buffers import array_of_bytes, array_of_numbers
from lakelib.gates.run import run_on_arrow
from lakelib.model.schema import Column
from lakelib.ops.judge import check_suite
from lakelib.specs.suite import parse_suite

suite = parse_suite('''
name: orders
expectations:
- {type: expect_column_values_to_not_be_null, kwargs: {column: id}}
- {type: expect_column_values_to_be_unique, kwargs: {column: id}}
- {type: expect_column_values_to_be_between, kwargs: {column: id, min_value: 0, max_value: 5}}
- {type: expect_column_mean_to_be_between, kwargs: {column: id, max_value: 5}}
- {type: expect_column_values_to_be_in_set, kwargs: {column: text, value_set: ["[]", "{}"]}}
- {type: expect_column_values_to_match_regex, kwargs: {column: text, regex: "^a"}}
- {type: expect_column_values_to_match_json_schema, kwargs: {column: text, json_schema: {type: array}}}
''')
columns = [Column(id=1, name="id", type="bigint"), Column(id=2, name="text", type="string")]
check_suite(suite, columns)
rows = pa.table({"id": [1, 2], "text": ["[]", "{}"]})
for result in run_on_arrow(suite.checks, columns, lambda names: rows.select(names).to_batches()):
    print(result.status.value, result.detail)
"""
_PLAIN = """pa.table(
    [array_of_numbers(np.arange(2)), array_of_bytes([b"[]", b"{}"], pa.string())], ["id", "text"]
)"""
"""Rows that are made without it."""
_LOADED = "\nprint('pandas' in sys.modules)"


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", _HIDE + code], capture_output=True, text=True, check=False)


def test_checks_are_carried_out_without_great_expectations() -> None:
    ended = run(_JUDGE)
    assert ended.returncode == 0, ended.stderr
    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["passed"] * 5 + ["failed"] * 2


def test_cheap_checks_do_not_load_pandas() -> None:
    """It takes longer to import than a small commit takes to be judged."""
    cheap = "\n".join(line for line in _JUDGE.splitlines() if "json" not in line)
    ended = run(cheap.replace('pa.table({"id": [1, 2], "text": ["[]", "{}"]})', _PLAIN) + _LOADED)
    assert ended.stdout.splitlines()[-1] == "False", ended.stderr


def test_the_rest_needs_no_gates() -> None:
    assert run("import lakelib.lake, lakelib.table, lakelib.gates.report, lakelib.specs.suite").returncode == 0
