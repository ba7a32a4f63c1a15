"""Interop. The folder `_delta_log` of a table: what is in it, and how a version and a checkpoint get there.

A version is written once: whoever finds it there has to look whose it is. Nothing here knows the catalog.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.errors import NotFoundError
from lakelib.interop.delta.actions import Action, from_json, to_json, unreadable
from lakelib.interop.delta.checkpoint import from_table, to_tables
from lakelib.interop.delta.note import is_cut
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import read_plain_file
from lakelib.storage.parquet_writer import plain_bytes

LOG_FOLDER = "_delta_log"
_VERSION = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_OTHER_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")
_DRAFT = re.compile(r"[0-9_a-z.]+\.[0-9a-f]{16}")
_LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"
PART_ACTIONS = 100_000
"""A checkpoint of more is cut into parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a log."""

    versions: tuple[int, ...]
    """In rising order."""
    checkpoints: dict[int, tuple[str, ...]]
    """Whole ones, with their parts in order."""
    foreign: tuple[str, ...]
    """Checkpoints of a form that is never written here."""
    drafts: tuple[tuple[str, datetime], ...]
    """What writers who were killed have left, and since when."""

    @property
    def newest_checkpoint(self) -> int | None:
        return max(self.checkpoints, default=None)

    @property
    def is_empty(self) -> bool:
        return not self.versions and not self.checkpoints and not self.foreign


def list_log(storage: Storage) -> Listing:
    """What is in the log of the table at this root."""
    versions: list[int] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    foreign: list[str] = []
    drafts: list[tuple[str, datetime]] = []
    for entry in storage.list_files(LOG_FOLDER):
        name = entry.path.rpartition("/")[2]
        if matched := _VERSION.fullmatch(name):
            versions.append(int(matched[1]))
        elif matched := _CHECKPOINT.fullmatch(name):
            number, count = int(matched[2] or 1), int(matched[3] or 1)
            parts.setdefault((int(matched[1]), count), {})[number] = entry.path
        elif _OTHER_CHECKPOINT.fullmatch(name):
            foreign.append(entry.path)
        elif _DRAFT.fullmatch(name):
            drafts.append((entry.path, entry.modified_at))
    return Listing(
        versions=tuple(sorted(versions)),
        checkpoints={
            version: tuple(path for _, path in sorted(found.items()))
            for (version, count), found in sorted(parts.items())
            if len(found) == count
        },
        foreign=tuple(foreign),
        drafts=tuple(drafts),
    )


def is_of_log(path: str) -> bool:
    """Whether a file, by its path relative to a table, is in the log."""
    return path.startswith(f"{LOG_FOLDER}/")


def version_path(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.json"


def read_version(storage: Storage, version: int) -> tuple[Action, ...] | None:
    """None if there is no such version. Raises CorruptionError for a file that is none, or has lost a part."""
    path = version_path(version)
    try:
        content = storage.read_bytes(path)
    except NotFoundError:
        return None
    actions = from_json(content, storage.uri_of(path))
    if is_cut(actions):
        raise unreadable(storage.uri_of(path), "it was cut, for it has had another number of actions")
    return actions


def create_versions(storage: Storage, versions: Sequence[tuple[int, Sequence[Action]]]) -> int:
    """Writes versions that follow each other, and stops at the first that is there already: how many were written.
    Some stores cannot tell, and would write over it: they are asked before."""
    if versions and not storage.is_local and storage.exists(version_path(versions[0][0])):
        return 0
    return storage.create_in_order([(version_path(number), to_json(actions)) for number, actions in versions])


def write_checkpoint(storage: Storage, version: int, actions: Sequence[Action]) -> tuple[str, ...]:
    """The state of the table at a version, complete, and the note of it that readers look for. Safe to repeat."""
    tables = to_tables(actions, PART_ACTIONS)
    stem = f"{LOG_FOLDER}/{version:020d}.checkpoint"
    paths = (
        (f"{stem}.parquet",)
        if len(tables) == 1
        else tuple(f"{stem}.{number:010d}.{len(tables):010d}.parquet" for number in range(1, len(tables) + 1))
    )
    for path, table in zip(paths, tables, strict=True):
        storage.replace_bytes(path, plain_bytes(table))
    note: dict[str, Any] = {"version": version, "size": len(actions)}
    if len(paths) > 1:
        note["parts"] = len(paths)
    known = read_last_checkpoint(storage)
    if known is None or known <= version:
        storage.replace_bytes(_LAST_CHECKPOINT, json.dumps(note, separators=(",", ":")).encode())
    return paths


def read_last_checkpoint(storage: Storage) -> int | None:
    """The version that the note names; None where there is no note, or none that makes sense: it is but a hint."""
    try:
        return int(json.loads(storage.read_bytes(_LAST_CHECKPOINT))["version"])
    except (NotFoundError, ValueError, KeyError, TypeError):
        return None


def read_checkpoint(storage: Storage, paths: Sequence[str]) -> tuple[Action, ...]:
    """The actions of a checkpoint of one or more parts."""
    found: list[Action] = []
    for path in paths:
        found += from_table(read_plain_file(storage, path), storage.uri_of(path))
    return tuple(found)
