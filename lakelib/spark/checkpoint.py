"""What the checkpoint of a streaming query says of a batch, and whether a snapshot is of that batch.

Spark gives a query an id, which is in its checkpoint and stays what it is whoever starts the query again, and numbers
its batches; what a batch reads is written down before it runs.
"""

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError
from lakelib.model.table import Snapshot

_QUERY, _BATCH, _OFFSETS = "stream.query", "stream.batch", "stream.offsets"
_HEAD_LINES = 2
"""Of a batch's note: its version, and what Spark was set to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMark:
    """Which batch it is, and what it reads."""

    query_id: str
    batch_id: int
    offsets: str
    """Up to where each source is read, as a digest."""
    is_exact: bool
    """Whether that says which rows these are, whoever reads them: so it is with tables of a lake."""

    @property
    def properties(self) -> dict[str, str]:
        """Of the snapshot that the batch becomes."""
        return {_QUERY: self.query_id, _BATCH: str(self.batch_id), _OFFSETS: self.offsets}

    def check_replayed(self, found: Snapshot, application: str, table_name: str) -> None:
        """Raises ConflictError unless the snapshot, which has done the work of this key, is of the same batch: what the
        batch reads would be left out, or come twice."""
        noted = found.properties
        is_same = noted.get(_BATCH) == str(self.batch_id) and noted.get(_OFFSETS) == self.offsets
        if is_same and (self.is_exact or noted.get(_QUERY) == self.query_id):
            return
        raise ConflictError(
            f"Batch {self.batch_id} of query {self.query_id} is to be written to {table_name} for {application!r}, and"
            f" snapshot {found.id} has done that work with other rows (batch {noted.get(_BATCH, 'none')} of query"
            f" {noted.get(_QUERY, 'none')}).",
            kind="batch_differs",
            remedy="The checkpoint is not the one that wrote that snapshot, or it has gone back. Start the sources"
            " after what the table has, with a new checkpoint and another application.",
        )


def batch_key(frame: Any, checkpoint: str, batch_id: int) -> tuple[str, int]:
    """The idempotency key of a batch that `foreachBatch` was given: the id of the query whose checkpoint that is, which
    stays what it is whoever starts the query again, and the batch's number."""
    return _query_id(frame.sparkSession, checkpoint), batch_id


def read_mark(session: Any, location: str, batch_id: int) -> BatchMark:
    """Of the batch that is being run."""
    offsets = [_plain(line) for line in _read(session, location, f"offsets/{batch_id}").splitlines()[_HEAD_LINES:]]
    return BatchMark(
        query_id=_query_id(session, location),
        batch_id=batch_id,
        offsets=hashlib.sha256(json.dumps([text for text, _ in offsets]).encode()).hexdigest(),
        is_exact=all(is_ours for _, is_ours in offsets),
    )


def _query_id(session: Any, location: str) -> str:
    return str(json.loads(_read(session, location, "metadata"))["id"])


def _plain(line: str) -> tuple[str, bool]:
    """A source's offset, and whether it is a lake's: then without the name of who keeps its history."""
    try:
        found = json.loads(line)
    except ValueError:
        return line, False
    if not isinstance(found, dict) or not {"table_id", "snapshot_id", "asked"} <= found.keys():
        return line, False
    return json.dumps({name: value for name, value in found.items() if name != "consumer"}, sort_keys=True), True


def _read(session: Any, location: str, name: str) -> str:
    """Read here if it is here: a job of Spark's takes longer."""
    path = f"{location.rstrip('/')}/{name}"
    parts = urlsplit(path)
    local = Path(unquote(parts.path) if parts.scheme == "file" else path)
    if parts.scheme in ("", "file") and local.is_file():
        return local.read_text()
    return str(session.read.format("text").option("wholetext", "true").load(path).collect()[0][0])
