"""Great Expectations takes seconds to import: whoever does not judge neither needs it nor waits for it."""

import subprocess
import sys

_HIDE = "import sys; sys.modules['great_expectations'] = None; "


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", _HIDE + code], capture_output=True, text=True, check=False)


def test_what_to_install_is_said() -> None:
    ended = run("from lakelib.ops.judge import check_suite; check_suite(None)")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("ImportError: ")
    assert 'pip install "lakelib[gates]"' in ended.stderr.splitlines()[-1]


def test_the_rest_needs_neither_great_expectations_nor_pandas() -> None:
    code = "import lakelib.lake, lakelib.table, lakelib.gates.report, lakelib.specs.suite"
    assert run(f"sys.modules['pandas'] = None; {code}").returncode == 0
