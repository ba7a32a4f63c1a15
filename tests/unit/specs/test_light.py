"""Specs are read where nothing heavy may be loaded: in DAG files."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from lakelib.specs.suite import load_suite
from lakelib.specs.table_spec import load_specs
assert [spec.suite() for spec in load_specs("dags/tables")]
heavy = "airflow", "boto3", "great_expectations", "numpy", "pandas", "psycopg", "pyarrow", "pyspark", "sqlglot"
print([name for name in heavy if name in sys.modules])
"""


def test_reading_specs_loads_nothing_heavy() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout == "[]\n"
