"""Use case: has a partition of a source arrived? Asked by who waits for it, and once more by who reads it."""

from collections.abc import Mapping

from lakelib.dataclass import dataclass
from lakelib.errors import MissingFileError, NotFoundError
from lakelib.specs.table_spec import TableSpec
from lakelib.storage.filesystem import Storage
from lakelib.storage.paths import complete_uri
from lakelib.work.source_files import SourceFile, find_source_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    path: str
    """Where the files are to be."""
    files: tuple[SourceFile, ...]
    """Those that are there."""
    marker: str | None
    """What says that they are complete; None if their being there does."""
    has_marker: bool

    @property
    def is_complete(self) -> bool:
        return bool(self.files) if self.marker is None else self.has_marker

    @property
    def is_empty(self) -> bool:
        """Nothing is in the files; there may be rows none in files that are not empty, too."""
        return not any(file.size_bytes for file in self.files)

    @property
    def missing(self) -> str:
        """What is still waited for."""
        return self.path if self.marker is None else self.marker


def find_arrival(storage: Storage, spec: TableSpec, key: str, environ: Mapping[str, str]) -> Arrival:
    """What has arrived of a partition of the spec's source. Raises InvalidInputError for a key that is none of the
    table's, and for a variable that is not set."""
    return look_for(storage, spec.source_path(key, environ), spec.marker_path(key, environ))


def look_for(storage: Storage, path: str, marker: str | None) -> Arrival:
    """What has arrived there, for who knows where to look."""
    # The marker first: what was listed before it came may lack the files that came with it.
    has_marker = marker is not None and _exists(storage, marker)
    files = _find_files(storage, path, may_be_unfinished=marker is not None and not has_marker)
    return Arrival(path=path, files=files, marker=marker, has_marker=has_marker)


def check_arrival(spec: TableSpec, key: str, arrival: Arrival) -> None:
    """Raises NotFoundError unless the partition is complete."""
    if not arrival.is_complete:
        raise NotFoundError(
            f"The source of partition {key} of {spec.table} has not arrived: there is no file at {arrival.missing}.",
            kind="missing_source",
            remedy="Wait for it, or correct source.path and source.arrival.marker of the spec.",
        )


def _find_files(storage: Storage, path: str, *, may_be_unfinished: bool) -> tuple[SourceFile, ...]:
    try:
        return tuple(find_source_files(storage, path))
    except MissingFileError:
        return ()
    except NotFoundError:
        if not may_be_unfinished:
            raise
        return ()


def _exists(storage: Storage, path: str) -> bool:
    folder, _, name = complete_uri(path, storage.settings.default_fs).rpartition("/")
    return storage.at("file:///" if folder == "file://" else folder).exists(name)
