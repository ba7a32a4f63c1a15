"""A released version at work in a process of its own, as seen from here: its tables, commits and scans."""

import pickle
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelib import errors
from tests.releases.released import command_of, environment_of

_HANDLES = count()


class Process:
    """Sends requests, one at a time."""

    def __init__(self, code: Path, warehouse: str, catalog: str) -> None:
        """Raises LakeError if it cannot connect."""
        self._process = subprocess.Popen(
            command_of("tests.releases.worker", warehouse, catalog),
            env=environment_of(code),
            cwd=code,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._receive()
        except BaseException:
            self.close()
            raise

    def ask(self, what: str, *args: Any, **options: Any) -> Any:
        """The answer. Raises LakeError as the version there has."""
        assert self._process.stdin is not None
        pickle.dump((what, [_sendable(each) for each in args], options), self._process.stdin)
        self._process.stdin.flush()
        return self._receive()

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        told = pickle.load(self._process.stdout)
        if "failed" in told:
            raise getattr(errors, told["failed"])(told["message"], kind=told["kind"], remedy="")
        assert "broken" not in told, told
        if isinstance(told["value"], dict) and told["value"].keys() == {"staged"}:
            return OldCommit(self, told["value"]["staged"])
        return seen(told["value"])


def seen(value: Any) -> Any:
    """What was made plain, with attributes again: records of the same fields are of one class."""
    match value:
        case {"scan": scan}:
            return OldScan(**scan)
        case {"record": told}:
            return _class_of(tuple(told))(**{name: seen(each) for name, each in told.items()})
        case list():
            return [seen(each) for each in value]
    return value


@cache
def _class_of(names: tuple[str, ...]) -> Any:
    return make_dataclass("Told", names, frozen=True)


class OldLake:
    """What a `Lake` is, at a released version."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def create_table(self, name: str, *args: Any, **options: Any) -> "OldTable":
        self.process.ask("lake", "create_table", name, *args, **options)
        return self.table(name)

    def table(self, name: str) -> "OldTable":
        return OldTable(self.process, name)

    def commit(self, commit_id: str) -> "OldCommit":
        return OldCommit(self.process, commit_id)

    def transact(self, commit_ids: Sequence[str]) -> Any:
        return self.process.ask("transaction", *commit_ids)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **options: self.process.ask("lake", method, *args, **options)


class OldTable:
    """What a `Table` is, at a released version."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._handle = next(_HANDLES)
        self.name = name

    @property
    def location(self) -> str:
        found: str = self.ask("location")
        return found

    @property
    def head(self) -> Any:
        return self.ask("head")

    def ask(self, method: str, *args: Any, **options: Any) -> Any:
        return self._process.ask("table", self._handle, self.name, method, *args, **options)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **options: self.ask(method, *args, **options)


class OldCommit:
    """What a `StagedCommit` is, at a released version."""

    def __init__(self, process: Process, commit_id: str) -> None:
        self._process = process
        self.id = commit_id

    @property
    def state(self) -> str:
        found: str = self._process.ask("commit", self.id, "state")
        return found

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **options: self._process.ask("commit", self.id, method, *args, **options)


class OldScan:
    """What a `Scan` has read there."""

    def __init__(self, *, snapshot_id: int | None, schema: pa.Schema, rows: pa.Table) -> None:
        self.snapshot_id = snapshot_id
        self.schema = schema
        self._rows = rows

    def to_arrow(self) -> pa.Table:
        return self._rows

    def to_batches(self) -> list[pa.RecordBatch]:
        return self._rows.to_batches()  # type: ignore[no-any-return]

    def count(self) -> int:
        return int(self._rows.num_rows)


@contextmanager
def running(code: Path, warehouse: str, catalog: str) -> Iterator[OldLake]:
    """The lake, opened by the version whose code is there. Raises LakeError if it cannot connect."""
    process = Process(code, warehouse, catalog)
    try:
        yield OldLake(process)
    finally:
        process.close()


def _sendable(value: Any) -> Any:
    if isinstance(value, pa.RecordBatchReader):
        return {"stream": [value.schema, list(value)]}
    return value
