"""What the package says of itself."""

from configparser import ConfigParser
from pathlib import Path

import pytest

import lakelib


def test_the_version_is_that_of_the_package() -> None:
    metadata = ConfigParser()
    metadata.read(Path(__file__).parents[2] / "setup.cfg")
    assert lakelib.__version__ == metadata["metadata"]["version"]


def test_no_other_name_is_made_up() -> None:
    with pytest.raises(AttributeError, match="no attribute 'versions'"):
        lakelib.versions  # type: ignore[attr-defined]  # noqa: B018
