"""Part of every use case that publishes or deletes: is this catalog the one that the warehouse belongs to?

The catalog has the lake's id and epoch and is bound to its server; a note in the warehouse repeats them. Where they
differ, somebody looks at the lake through a copy: it may be read, and nothing else, until a person adopts it. That
begins a new epoch in catalog and note, and shuts out whoever has the old one.
"""

import logging
import time
from dataclasses import field
from itertools import islice
from uuid import uuid4

from lakelib.catalog import identity as catalog_identity
from lakelib.catalog.connect import Catalog
from lakelib.dataclass import dataclass
from lakelib.errors import DeniedError, IdentityDiffersError, InvalidInputError, LakeError, RetryableError
from lakelib.model.identity import Difference, Identity, Marker, Warehouse, WarehouseStanding
from lakelib.model.text import is_storable
from lakelib.plan.identity import (
    DIFFERS,
    find_difference,
    find_warehouse,
    named_warehouse,
    new_warehouse,
)
from lakelib.storage.filesystem import Storage
from lakelib.storage.marker import create_marker, folder_number, make_folder, parse_note, read_note, replace_marker
from lakelib.storage.paths import is_own_file

FRESH_SECONDS = 5.0
"""For how long a remote warehouse's note is taken to be as it was. A local one is read each time."""
_LISTED_AT_MOST = 10_000

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Catalog and note agreed on this epoch."""

    epoch: int
    note: bytes | None
    at: float


@dataclass(slots=True, kw_only=True)
class Ownership:
    """Of one open lake. Threads may share it."""

    catalog: Catalog
    storage: Storage
    embedded: str | None = None
    """The folder of the lake's own catalog, relative to the warehouse, if it has one."""
    _seen: _Seen | None = field(default=None, init=False)

    def confirm(self) -> int:
        """The epoch that a publish names to the catalog. Asks the warehouse, unless it has just been asked. Raises
        InvalidInputError if the lake may only be read here."""
        seen = self._seen
        if seen is not None and self._is_fresh(seen):
            return seen.epoch
        return self.confirm_now()

    def confirm_now(self) -> int:
        """The same, and asks catalog and warehouse: before files are deleted."""
        self._seen = None
        return self._settle(*self._look())

    def _settle(self, note: bytes | None, standing: WarehouseStanding) -> int:
        """Binds what is unbound."""
        _check(standing)
        if _is_unbound(standing, self.storage.uri):
            note, standing = self._bind(standing)
            _check(standing)
        self._seen = _Seen(standing.identity.epoch, note, time.monotonic())
        return standing.identity.epoch

    def look(self) -> WarehouseStanding:
        """How things stand. Changes nothing."""
        return self._look()[1]

    def greet(self) -> str | None:
        """At connecting: what the catalog calls the warehouse, if that has moved. Binds a local warehouse that is still
        free, and says in the log what is wrong; one that is remote, or not there yet, waits until it is written to."""
        identity = catalog_identity.load_identity(self.catalog)
        if not self.storage.is_local and (not identity.warehouses or find_warehouse(identity, None, self.storage.uri)):
            return None
        known = None
        try:
            note, standing = self._look(identity)
            known = find_warehouse(identity, standing.marker, self.storage.uri)
            if folder_number(self.storage) is not None:
                self._settle(note, standing)
        except LakeError as error:
            may_only_read = isinstance(error, RetryableError | DeniedError)
            _LOG.log(logging.DEBUG if may_only_read else logging.WARNING, "%s", error)
        return None if known is None or known.uri == self.storage.uri else known.uri

    def adopt(self, by: str, reason: str) -> Identity:
        """From now on this catalog, on this server, is the one that the warehouse belongs to, and no other one."""
        for text in (by, reason):
            if not isinstance(text, str) or not text.strip() or not is_storable(text):
                raise InvalidInputError(
                    f"by is {by!r} and reason is {reason!r}.",
                    kind="invalid_adoption",
                    remedy="Say who adopts the lake and why, both in text.",
                )
        make_folder(self.storage)
        before = catalog_identity.load_identity(self.catalog)
        marker = self._read_marker()
        known = find_warehouse(before, marker, self.storage.uri) or find_warehouse(before, None, self.storage.uri)
        warehouse_id = uuid4() if known is None else known.id
        above = 0 if marker is None else marker.epoch
        identity = catalog_identity.adopt(
            self.catalog, warehouse_id, self.storage.uri, above=above, by=by, reason=reason
        )
        adopted = next(each for each in identity.warehouses if each.id == warehouse_id)
        replace_marker(self.storage, self._marker(identity, adopted))
        self.confirm_now()
        return identity

    def _is_fresh(self, seen: _Seen) -> bool:
        if self.storage.is_local:
            return read_note(self.storage) == seen.note
        return time.monotonic() - seen.at < FRESH_SECONDS

    def _read_marker(self) -> Marker | None:
        try:
            return parse_note(self.storage, read_note(self.storage))
        except LakeError:
            return None

    def _look(self, identity: Identity | None = None) -> tuple[bytes | None, WarehouseStanding]:
        note = read_note(self.storage)
        marker = parse_note(self.storage, note)
        identity = identity or catalog_identity.load_identity(self.catalog)
        difference = find_difference(identity, marker, self.storage.uri, folder_number(self.storage))
        return note, WarehouseStanding(identity=identity, marker=marker, difference=difference)

    def _bind(self, standing: WarehouseStanding) -> tuple[bytes | None, WarehouseStanding]:
        """Warehouse and catalog belong together from now on. Whoever is first has it; processes with one catalog may do
        it at once, for all of them write the same."""
        if standing.marker is None:
            self._check_strangers()
            warehouse = new_warehouse(standing.identity, self.storage.uri)
            make_folder(self.storage)
            create_marker(self.storage, self._marker(standing.identity, warehouse))
        note, found = self._look()
        if found.marker is not None and found.difference is None:
            catalog_identity.bind_warehouse(self.catalog, named_warehouse(found.marker))
        return note, found

    def _check_strangers(self) -> None:
        """A warehouse with tables of others is nobody's who comes by."""
        if catalog_identity.knows_table_below(self.catalog, self.storage.uri):
            return
        if any(is_own_file(entry.path) for entry in islice(self.storage.list_files(), _LISTED_AT_MOST)):
            detail = f"{self.storage.uri} holds files of tables that this catalog does not know"
            raise _refused(Difference(kind=DIFFERS, detail=detail))

    def _marker(self, identity: Identity, warehouse: Warehouse) -> Marker:
        return Marker(
            lake_id=identity.id,
            warehouse_id=warehouse.id,
            epoch=warehouse.epoch,
            token=warehouse.token,
            uri=self.storage.uri,
            folder=folder_number(self.storage),
            catalog=self.embedded or catalog_identity.describe_server(self.catalog),
            embedded=self.embedded,
        )


def _is_unbound(standing: WarehouseStanding, uri: str) -> bool:
    return standing.marker is None or find_warehouse(standing.identity, standing.marker, uri) is None


def _check(standing: WarehouseStanding) -> None:
    if standing.difference is not None:
        raise _refused(standing.difference)


def _refused(difference: Difference) -> IdentityDiffersError:
    return IdentityDiffersError(
        f"This lake can only be read here: {difference.detail}.",
        kind=difference.kind,
        remedy="Name the catalog and the warehouse that belong together. If this catalog is to own the warehouse from "
        "now on, and the other one is to be shut out: `lake adopt --by NAME --reason WHY`.",
    )
