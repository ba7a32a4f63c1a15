"""A folder for a team's own tables: specs, gates, transforms, and tests that pass."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from lakelib.errors import InvalidInputError

_FOLDER = "starter_files"
_AS_TEXT = ".txt"
"""The end of the names of programs here: they are text to whoever looks for lakelib's own."""


def make_folder(folder: Path) -> tuple[Path, ...]:
    """Writes the files; which they are. Raises InvalidInputError for a place where there is something already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(
            f"{folder} is there already, and is not empty.",
            kind="folder_not_empty",
            remedy="Name a folder that is not there yet: nothing of yours is to be overwritten.",
        )
    made = []
    try:
        for name, content in _files(resources.files("lakelib.specs") / _FOLDER, Path()):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            made.append(path)
    except OSError as error:
        raise InvalidInputError(
            f"{folder} cannot be made: {error.strerror}.",
            kind="unwritable_folder",
            remedy="Name a place that you may write to.",
        ) from error
    return tuple(sorted(made))


def _files(folder: Traversable, below: Path) -> Iterator[tuple[Path, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, below / entry.name)
        else:
            yield below / entry.name.removesuffix(_AS_TEXT), entry.read_bytes()
