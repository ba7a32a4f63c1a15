"""Storage. This machine's own disk: what is wrong with a folder before anything is written to it, files for the caller
himself, beside the lake, and whole files copied, from one store to another or to and from the disk, a piece at a
time."""

import os
import shutil
from os import PathLike
from pathlib import Path

from lakelib.errors import CorruptionError, InvalidInputError
from lakelib.storage.failures import translated
from lakelib.storage.filesystem import Storage
from lakelib.storage.paths import split_uri

_PIECE_BYTES = 4 * 1024 * 1024


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


def copy_file(source: Storage, path: str, target: Storage, target_path: str, size_bytes: int) -> None:
    """A file that the catalog names is in the other store afterwards, durable. Raises CorruptionError if it is not
    there or is not of that size."""
    with (
        translated(source.uri_of(path), named_by_catalog=True),
        source.open_input(path, named_by_catalog=True) as stream,
        target.open_output(target_path) as output,
    ):
        copied = 0
        while piece := stream.read(_PIECE_BYTES):
            output.write(piece)
            copied += len(piece)
    if copied != size_bytes:
        target.delete_files([target_path])
        raise CorruptionError(
            f"The file {source.uri_of(path)} has {copied:,} bytes, and the catalog knows it with {size_bytes:,}.",
            kind="unreadable_file",
            remedy="`lake doctor` tells what else is damaged; restore the file from a backup or a bucket version.",
        )
    target.make_durable(target_path)


def write_from_disk(path: Path, target: Storage, target_path: str) -> None:
    """A local file is in the store afterwards, durable."""
    with (
        translated(target.uri_of(target_path)),
        path.open("rb") as stream,
        target.open_output(target_path) as output,
    ):
        shutil.copyfileobj(stream, output, _PIECE_BYTES)
    target.make_durable(target_path)


def read_to_disk(source: Storage, path: str, local: Path) -> None:
    """A stored file is on this machine's disk afterwards."""
    with translated(source.uri_of(path)), source.open_input(path) as stream, local.open("wb") as output:
        shutil.copyfileobj(stream, output, _PIECE_BYTES)
