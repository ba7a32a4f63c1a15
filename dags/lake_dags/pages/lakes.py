"""The lake that the pages ask, and the specs of its tables."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake_dags.places import tables_folder
from lakelib.dataclass import dataclass
from lakelib.errors import IdentityDiffersError, LakeError, NotFoundError
from lakelib.specs.table_spec import SpecFolder, find_specs, scan_specs

if TYPE_CHECKING:
    from lakelib import Lake
    from lakelib.ops.status_look import Memory

PATIENCE_SECONDS = 5.0
"""A person waits for a page: a catalog that is away is said soon."""


@dataclass
class Lakes:
    """One lake a process, connected when it is first asked for, and what was seen of it and of the specs."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lake: "Lake | None" = None
    _failure: tuple[float, LakeError] | None = None
    _memory: "Memory | None" = None
    _specs: tuple[tuple[Any, ...], SpecFolder] | None = None

    @contextmanager
    def opened(self) -> Iterator["Lake"]:
        """Raises NotFoundError where there is no lake, RetryableError for a catalog that is out of reach. To one that
        turns out to be another one the next page connects anew."""
        lake = self._connected()
        try:
            yield lake
        except IdentityDiffersError:
            self.close()
            raise

    @property
    def memory(self) -> "Memory":
        from lakelib.ops.status_look import Memory

        if self._memory is None:
            self._memory = Memory()
        return self._memory

    def specs(self) -> SpecFolder:
        """Read again when one of the files is another one."""
        folder = tables_folder()
        if not folder.is_dir():
            return SpecFolder(specs=(), errors={})
        stamp = (folder, *(_stamp(file) for file in find_specs(folder)))
        known = self._specs
        if known is None or known[0] != stamp:
            known = self._specs = (stamp, scan_specs(folder))
        return known[1]

    def close(self) -> None:
        with self._lock:
            lake, self._lake, self._memory = self._lake, None, None
        if lake is not None:
            lake.close()

    def _connected(self) -> "Lake":
        """Who has waited for another who connects in vain hears of that, and does not try, too."""
        asked_at = time.monotonic()
        with self._lock:
            if self._lake is None:
                if self._failure is not None and self._failure[0] > asked_at:
                    raise self._failure[1]
                try:
                    self._lake = _connect()
                except LakeError as error:
                    self._failure = (time.monotonic(), error)
                    raise
            return self._lake


def _stamp(file: Path) -> tuple[str, int, int]:
    try:
        found = file.stat()
    except OSError:
        return (file.name, 0, 0)
    return (file.name, found.st_mtime_ns, found.st_size)


def _connect() -> "Lake":
    """A page looks at a lake that is there: it makes none."""
    import lakelib
    from lakelib.lake import has_own_catalog
    from lakelib.settings import load_settings

    settings = load_settings(environ=os.environ)
    if settings.catalog is None and not has_own_catalog(settings):
        raise NotFoundError(
            f"There is no lake in {settings.warehouse}, and no catalog is named.",
            kind="lake_not_found",
            remedy="Set LAKE_WAREHOUSE and LAKE_CATALOG in the environment of Airflow's API server.",
        )
    lake = lakelib.connect()
    lake.runtime.catalog.patience_seconds = PATIENCE_SECONDS
    return lake
