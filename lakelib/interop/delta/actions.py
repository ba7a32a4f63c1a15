"""Interop. The actions of a Delta log, the one way in which they become JSON and come back, and the state of a table
that they tell, one version after the other.

Fields that this code does not know stay with their action (`others`), and so do whole actions of unknown names. A field
that is null and one that is absent mean the same.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, cast

from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a reader and a writer have to know to do right by the table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    id: str
    name: str | None = None
    description: str | None = None
    format: Format = field(default_factory=Format)
    schema_string: str
    """The schema as Spark writes it in JSON."""
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    """Which rows of a file are none: in a file of its own ("u", "p") or as text ("i")."""

    storage_type: str
    path_or_inline_dv: str
    offset: int | None = None
    size_in_bytes: int
    cardinality: int
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unique_id(self) -> str:
        place = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    path: str
    """Relative to the table, percent-encoded."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    path: str
    deletion_timestamp: int | None = None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """How far an application has come."""

    app_id: str
    version: int
    last_updated: int | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """What a commit says of itself. Each writer says something else: that is in `others`."""

    timestamp: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] | None = None
    operation_metrics: Mapping[str, Any] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    is_blind_append: bool | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    domain: str
    configuration: str
    removed: bool
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata:
    version: int
    tags: Mapping[str, str | None] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str | None] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """An action of a name that this code does not know."""

    name: str
    body: Any


Action = Protocol | Metadata | Add | Remove | Txn | CommitInfo | DomainMetadata | CheckpointMetadata | Sidecar | Unknown

ACTION_NAMES: dict[type, str] = {
    Protocol: "protocol",
    Metadata: "metaData",
    Add: "add",
    Remove: "remove",
    Txn: "txn",
    CommitInfo: "commitInfo",
    DomainMetadata: "domainMetadata",
    CheckpointMetadata: "checkpointMetadata",
    Sidecar: "sidecar",
}
_CLASSES = {name: made for made, name in ACTION_NAMES.items()}
_NESTED: dict[str, type] = {"format": Format, "deletion_vector": DeletionVector}


class Malformed(Exception):  # noqa: N818
    """What stands in a log is no action."""


def to_json(actions: Iterable[Action]) -> bytes:
    """The content of a version: one action a line."""
    return b"".join(
        json.dumps(to_object(each), ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for each in actions
    )


def from_json(content: bytes, where: str) -> tuple[Action, ...]:
    """The actions of a version. Raises CorruptionError, naming `where`, for what is none."""
    try:
        return tuple(from_object(json.loads(line)) for line in content.decode().split("\n") if line.strip())
    except (ValueError, RecursionError, Malformed) as error:
        raise unreadable(where, str(error)) from error


def unreadable(where: str, why: str) -> CorruptionError:
    return CorruptionError(
        f"{where} is not a version of a Delta log: {why}.",
        kind="unreadable_delta_log",
        remedy="Restore the file, or move the folder _delta_log away and export the table again.",
    )


def to_object(action: Action) -> dict[str, Any]:
    """The JSON object of an action: its name and its body."""
    if isinstance(action, Unknown):
        return {action.name: action.body}
    return {ACTION_NAMES[type(action)]: _body(action)}


def from_object(given: Any) -> Action:
    if not isinstance(given, dict) or len(given) != 1:
        raise Malformed("a line is not one action")
    ((name, body),) = given.items()
    made = _CLASSES.get(name)
    return Unknown(name=name, body=body) if made is None else cast(Action, _value(made, body))


def _body(value: Any) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for each in _own_fields(cast(type, type(value))):
        found = getattr(value, each.name)
        if found is None:
            continue
        if each.name in _NESTED:
            found = _body(found)
        elif isinstance(found, tuple):
            found = list(found)
        elif isinstance(found, Mapping):
            found = dict(found)
        body[_json_name(each.name)] = found
    return body | dict(value.others)


def _value(made: type, body: Any) -> Any:
    if not isinstance(body, dict):
        raise Malformed(f"{made.__name__} is {type(body).__name__}")
    given = dict(body)
    values: dict[str, Any] = {}
    for each in _own_fields(made):
        found = given.pop(_json_name(each.name), None)
        if found is None:
            if each.default is MISSING and each.default_factory is MISSING:
                raise Malformed(f"{made.__name__} has no {_json_name(each.name)}")
            continue
        if each.name in _NESTED:
            found = _value(_NESTED[each.name], found)
        elif not _fits(str(each.type), found):
            raise Malformed(f"{_json_name(each.name)} of {made.__name__} is {found!r}"[:200])
        values[each.name] = tuple(found) if isinstance(found, list) else found
    others = {name: found for name, found in given.items() if found is not None}
    return made(**values, others=others)


def _fits(declared: str, found: Any) -> bool:
    first = declared.removeprefix("typing.")
    if first.startswith("<class '"):
        first = first.removeprefix("<class '").removesuffix("'>")
    if "Mapping" in first:
        return isinstance(found, dict)
    if "tuple" in first:
        return isinstance(found, list) and all(isinstance(each, str) for each in found)
    if first.startswith("bool"):
        return isinstance(found, bool)
    if first.startswith("int"):
        return isinstance(found, int) and not isinstance(found, bool)
    return isinstance(found, str)


@cache
def _own_fields(made: type) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(made) if each.name != "others")


@cache
def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclass(slots=True)
class LogState:
    """What is so after the actions that were applied."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, Add] = field(default_factory=dict)
    """By path: of one path one is live at most."""
    applications: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    commit: CommitInfo | None = None
    """Of the last version."""

    def apply(self, actions: Iterable[Action]) -> "LogState":
        """One version, or a checkpoint: what is removed and added again is there."""
        found: Sequence[Action] = tuple(actions)
        self.commit = None
        for action in found:
            match action:
                case Remove():
                    self.files.pop(action.path, None)
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case Txn():
                    self.applications[action.app_id] = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case CommitInfo():
                    self.commit = action
        for action in found:
            if isinstance(action, Add):
                self.files[action.path] = action
        return self
