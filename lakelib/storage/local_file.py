"""Files for the caller himself, beside the lake: on this machine, at a path of his choice."""

from os import PathLike
from pathlib import Path

from lakelib.errors import InvalidInputError


def write_local_file(path: str | PathLike[str], text: str) -> Path:
    """Writes the text in UTF-8, in place of what is there; the absolute path. Raises InvalidInputError if the file
    cannot be written."""
    target = Path(path).absolute()
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"The file {target} cannot be written: {error.strerror}.",
            kind="unwritable_file",
            remedy="Give a path in a folder that is there.",
        ) from error
    return target
