"""Which lake a Spark session reads from and writes to."""

from typing import Any
from uuid import uuid4

from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.settings import Settings

_SETTING = "spark.lakelib.lake"
"""The session's setting that says which lake is its own. A session that Spark clones, as it does for the batches of a
stream, has it too."""

_LAKES: dict[str, Lake] = {}
"""The lakes of this process's sessions, by the setting's value."""


def set_lake(session: Any, lake: Lake) -> None:
    """The session's lake is this one from now on."""
    number = session.conf.get(_SETTING, None) or uuid4().hex
    _LAKES[number] = lake
    session.conf.set(_SETTING, number)


def lake_of(session: Any) -> Lake:
    """Raises InvalidInputError for a session that was not registered in this process."""
    lake = find_lake(session)
    if lake is None:
        raise InvalidInputError(
            "This Spark session knows no lake.",
            kind="not_registered",
            remedy="Call lakelib.spark.register(spark) with it in this Python process.",
        )
    return lake


def find_lake(session: Any) -> Lake | None:
    return _LAKES.get(session.conf.get(_SETTING, None))


def opened(settings: Settings | None) -> Lake:
    """The lake, in a process of Spark's that plans."""
    if settings is None:
        raise RuntimeError("Spark asked for a plan where it reads.")
    return Lake(settings)
