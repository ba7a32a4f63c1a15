"""Run under a released version: does to a lake what it is told through a pipe, and answers in plain values.

It keeps its handles, as a process does that works for long.
"""

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

import lakelib
from lakelib import Lake, LakeError, Scan, StagedCommit, Table


class Served:
    """The lake, with the handles that were used so far."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._tables: dict[int, Table] = {}

    def lake(self, method: str, *args: Any, **options: Any) -> Any:
        return getattr(self._lake, method)(*args, **options)

    def table(self, handle: int, name: str, method: str, *args: Any, **options: Any) -> Any:
        table = self._tables.get(handle)
        if table is None:
            table = self._tables[handle] = self._lake.table(name)
        found = getattr(table, method)
        return found(*args, **options) if callable(found) else found

    def commit(self, commit_id: str, method: str, *args: Any, **options: Any) -> Any:
        found = getattr(self._lake.staged(commit_id), method)
        return found(*args, **options) if callable(found) else found

    def transaction(self, *commit_ids: str) -> Any:
        with self._lake.transaction() as transaction:
            for commit_id in commit_ids:
                transaction.add(self._lake.staged(commit_id))
        return transaction.snapshots

    def code(self) -> str:
        """Where it was imported from."""
        return str(Path(lakelib.__file__).parent)


def plain(value: Any) -> Any:
    """The value in terms that any version understands."""
    match value:
        case Table():
            return value.name
        case StagedCommit():
            return {"staged": str(value.id)}
        case Scan():
            rows = value.to_arrow()
            return {"scan": {"snapshot_id": value.snapshot_id, "schema": value.schema, "rows": rows}}
        case Enum():
            return value.value
        case Mapping():
            return dict(value)
    if is_dataclass(value):
        return {"record": {field.name: plain(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, list | tuple) or type(value).__name__ == "FileListing":
        return [plain(each) for each in value]
    return value


def given(value: Any) -> Any:
    """An argument that went through the pipe: a stream of batches is sent as all of them."""
    if isinstance(value, dict) and value.keys() == {"stream"}:
        return pa.RecordBatchReader.from_batches(value["stream"][0], value["stream"][1])
    return value


def answer(work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": plain(work())}
    except LakeError as error:
        return {"failed": type(error).__name__, "kind": error.kind, "message": error.message}
    except Exception as error:
        return {"broken": f"{type(error).__name__}: {error}"}


def serve(lake: Lake, requests: BinaryIO, answers: BinaryIO) -> None:
    served = Served(lake)
    while True:
        try:
            what, args, options = pickle.load(requests)
        except EOFError:
            return
        arguments = [given(each) for each in args]
        told = answer(lambda: getattr(served, what)(*arguments, **options))  # noqa: B023
        pickle.dump(told, answers)
        answers.flush()


def main(warehouse: str, catalog: str) -> None:
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        lake = lakelib.connect(warehouse=warehouse, catalog=catalog)
    except LakeError as error:
        failed = {"failed": type(error).__name__, "kind": error.kind, "message": error.message}
        pickle.dump(failed, answers)
        return
    with lake:
        pickle.dump({"value": None}, answers)
        answers.flush()
        serve(lake, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
