"""Storage. Copies whole files from one store to another, or to and from this machine's disk, a piece at a time."""

import shutil
from pathlib import Path

from lakelib.errors import CorruptionError
from lakelib.storage.failures import translated
from lakelib.storage.filesystem import Storage

_PIECE_BYTES = 4 * 1024 * 1024


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
