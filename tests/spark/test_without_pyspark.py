"""Who has no PySpark is told what to install, and needs it for nothing else."""

import subprocess
import sys

import pytest

_HIDE = "import sys; sys.modules['pyspark'] = None; "
_SCAN = "from lakelib import Scan; Scan(None, None).to_spark(None)"


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", _HIDE + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", ["import lakelib.spark", "import lakelib.spark.source", _SCAN])
def test_what_to_install_is_said(code: str) -> None:
    ended = run(code)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("ImportError: ")
    assert 'pip install "lakelib[spark]"' in ended.stderr.splitlines()[-1]


def test_the_rest_needs_no_pyspark() -> None:
    assert run("import lakelib, lakelib.ops.read, lakelib.ops.write; lakelib.connect").returncode == 0
