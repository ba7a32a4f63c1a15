"""What the package says of itself."""

import ast
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import lakelib

_PROJECT = Path(__file__).parents[2]


@pytest.fixture
def metadata() -> ConfigParser:
    found = ConfigParser()
    found.read(_PROJECT / "setup.cfg")
    return found


def test_the_version_is_that_of_the_package(metadata: ConfigParser) -> None:
    assert lakelib.__version__ == metadata["metadata"]["version"]


def test_the_changelog_begins_with_the_version(metadata: ConfigParser) -> None:
    headings = [line for line in (_PROJECT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == metadata["metadata"]["version"]


def test_each_pin_is_within_the_range_of_the_package(metadata: ConfigParser) -> None:
    pins = dict(
        line.partition(";")[0].strip().split("==")
        for line in (_PROJECT / "requirements.txt").read_text().splitlines()
        if "==" in line and not line.lstrip().startswith("#")
    )
    extras = "\n".join(metadata["options.extras_require"].values())
    ranges = [
        Requirement(line)
        for line in (metadata["options"]["install_requires"] + "\n" + extras).splitlines()
        if line and not line.startswith("#")
    ]
    assert len(ranges) > 20
    assert [str(each) for each in ranges if not each.specifier.contains(pins[each.name.lower()])] == []


def test_no_other_name_is_made_up() -> None:
    with pytest.raises(AttributeError, match="no attribute 'versions'"):
        lakelib.versions  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_said_of_a_name_stands_below_it() -> None:
    modules = [path for room in ("lakelib", "jobs", "dags", "infra") for path in (_PROJECT / room).rglob("*.py")]
    assert len(modules) > 400
    torn = [f"{path.relative_to(_PROJECT)}:{line}" for path in modules for line in _torn_texts(path.read_text())]
    assert torn == []


def _torn_texts(source: str) -> Iterator[int]:
    """The lines of texts that say something of no name above them, and open nothing."""
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        for before, node in zip(scope.body, scope.body[1:], strict=False):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ) and (not isinstance(before, ast.Assign | ast.AnnAssign) or node.lineno != (before.end_lineno or 0) + 1):
                yield node.lineno


def test_a_text_apart_from_its_name_is_found() -> None:
    assert list(_torn_texts('"""Opens."""\n\nA = 1\n"""Of A."""\nB = 2\n\n"""Of A, too?"""\n')) == [7]
