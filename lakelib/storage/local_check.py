"""Storage. Says what is wrong with a local folder before anything is written to it."""

import os

from lakelib.errors import InvalidInputError
from lakelib.storage.paths import split_uri


def check_folder(uri: str) -> None:
    """Raises InvalidInputError unless a location is a readable folder, or can be made one. Says nothing of remote
    stores, which would have to be asked."""
    scheme, _, path = split_uri(uri)
    if scheme != "file":
        return
    nearest = path
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        raise _unusable(uri, f"{nearest} is no folder")
    if nearest == path and not os.access(nearest, os.R_OK | os.X_OK):
        raise _unusable(uri, "this process may not read it")
    if nearest != path and not os.access(nearest, os.W_OK | os.X_OK):
        raise _unusable(uri, f"it is not there, and this process may make nothing in {nearest}")


def _unusable(uri: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"The warehouse {uri} cannot be used: {reason}.",
        kind="invalid_location",
        remedy="Correct the setting warehouse (LAKE_WAREHOUSE, or lake.warehouse in the properties file).",
    )
