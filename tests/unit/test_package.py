"""What the package says of itself."""

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
