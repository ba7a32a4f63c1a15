"""Part of the export to Delta: whose a log is, whether it is whole, and what of it has had its time."""

from datetime import timedelta

from lakelib.catalog import exports, retention
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, CorruptionError, InvalidInputError
from lakelib.interop.delta.log import LOG_FOLDER, Listing, read_version, version_path
from lakelib.interop.delta.note import Note, find_note
from lakelib.model.table import TableInfo
from lakelib.ops.delta_content import HEAD
from lakelib.ops.runtime import Runtime
from lakelib.storage.filesystem import Storage

_DRAFT_AGE = timedelta(days=1)


def known_mode(log: Storage, listing: Listing) -> str:
    """Of a log that is there; that of the head for a new one."""
    note = find_note(read_version(log, listing.versions[-1]) or ()) if listing.versions else None
    return HEAD if note is None else note.mode


@dataclass(frozen=True, slots=True)
class OwnLog:
    """The log that a table's location has, as the catalog knows whose it is."""

    runtime: Runtime
    table: TableInfo
    mode: str
    log: Storage

    def check(self, listing: Listing) -> Note | None:
        """What the newest version says of itself; None for no log. Raises ConflictError for a log of somebody else's,
        CorruptionError for one that lacks versions."""
        if listing.is_empty:
            return None
        if listing.foreign:
            raise self._foreign_log(listing.foreign[0])
        for version, paths in listing.checkpoints.items():
            # Readers would take it for the newest version, unless its snapshot was published meanwhile.
            if version >= self.table.head_id > 0 and self._commit_of(version + 1) is None:
                raise self._foreign_log(paths[0])
        if not listing.versions:
            paths = next(iter(listing.checkpoints.values()))
            if not self._begins_here(listing):
                raise self._foreign_log(paths[0])
            return None
        last = listing.versions[-1]
        first = find_note(read_version(self.log, listing.versions[0]) or ())
        if first is None:
            raise self._foreign_log(version_path(listing.versions[0]))
        note = self.check_note(last, find_note(read_version(self.log, last) or ()))
        self._check_whole(listing, note)
        return note

    def _begins_here(self, listing: Listing) -> bool:
        """Whether an exporter was killed between the first checkpoint of a log and its first version."""
        found = [version for version in listing.checkpoints if version < self.table.head_id]
        return len(found) == len(listing.checkpoints) == 1

    def _check_whole(self, listing: Listing, note: Note) -> None:
        own = [version for version in listing.versions if version >= note.began]
        last = own[-1]
        missing = sorted(set(range(own[0], last + 1)) - set(own))
        starts = own[0] == 0 or any(own[0] <= each + 1 and each <= last for each in listing.checkpoints)
        if missing or not starts:
            lacks = f"version {missing[0]}" if missing else f"what was before version {own[0]}"
            raise CorruptionError(
                f"The Delta log {self.log.uri_of(LOG_FOLDER)} of {self.table.full_name} lacks {lacks}.",
                kind="broken_delta_log",
                remedy="Restore its files, or move the folder away and export again: the log begins anew then.",
            )

    def check_note(self, version: int, note: Note | None) -> Note:
        """Raises ConflictError for a version that somebody else has written, InvalidInputError for another mode's."""
        if note is None or note.commit != self._commit_of(version + 1):
            raise self.foreign(version)
        self._check_mode(note)
        return note

    def _commit_of(self, snapshot_id: int) -> str | None:
        facts = exports.list_facts(self.runtime.catalog, self.table.id, snapshot_id, snapshot_id)
        return str(facts[snapshot_id].snapshot.commit_id) if snapshot_id in facts else None

    def _check_mode(self, note: Note) -> None:
        if note.mode != self.mode:
            raise InvalidInputError(
                f"The Delta log of {self.table.full_name} tells of {note.mode!r}, and {self.mode!r} is asked for.",
                kind="delta_mode",
                remedy=f"Leave the option delta as it was, or move {self.log.uri_of(LOG_FOLDER)} away first.",
            )

    def foreign(self, version: int) -> ConflictError:
        return ConflictError(
            f"Version {version} of the Delta log of {self.table.full_name}, {self.log.uri_of(version_path(version))},"
            " was written by somebody else. Nothing was written over it, and the log does not go on.",
            kind="foreign_delta_version",
            remedy="Have nobody write to the log but lakelib; take back what was written by moving the folder"
            f" {LOG_FOLDER} away and exporting again.",
        )

    def _foreign_log(self, path: str) -> ConflictError:
        return ConflictError(
            f"There is a Delta log at {self.log.uri_of(LOG_FOLDER)} that is not the one of {self.table.full_name}:"
            f" {path} was written by somebody else.",
            kind="foreign_delta_log",
            remedy="Move the folder away, or leave the option delta out.",
        )


def clean_up(runtime: Runtime, table: TableInfo, log: Storage, listing: Listing) -> int:
    """Deletes what the newest checkpoint that is old enough makes superfluous, and what killed writers have left."""
    spent = []
    if table.options.delta_log_days and listing.versions:
        spent = _spent_files(runtime, table, listing)
    now = retention.load_now(runtime.catalog)
    spent += [path for path, since in listing.drafts if now - since > _DRAFT_AGE]
    if not spent:
        return 0
    runtime.ownership.confirm_now()
    return len(spent) - len(log.delete_files(spent))


def _spent_files(runtime: Runtime, table: TableInfo, listing: Listing) -> list[str]:
    before = retention.load_now(runtime.catalog) - timedelta(days=table.options.delta_log_days)
    moments = exports.list_moments(runtime.catalog, table.id, [version + 1 for version in listing.checkpoints])
    old = [version for version in listing.checkpoints if version + 1 in moments and moments[version + 1] < before]
    if not old:
        return []
    kept = max(old)
    versions = [version_path(version) for version in listing.versions if version < kept]
    return versions + [path for version, paths in listing.checkpoints.items() if version < kept for path in paths]
