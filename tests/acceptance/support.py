"""What the acceptance tests share: builders, reading as rows, and the check that nothing was changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Scan, Snapshot, Table
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage

Row = dict[str, Any]

NewTable = Callable[..., Table]
"""Makes a table of a name of its own: `new_table(schema, primary_key=[…], …)`."""


class ArrowEngine:
    """Writes and reads in process."""

    def write(self, table: Table, kind: str, data: Any, *args: Any, **options: Any) -> Snapshot:
        snapshot: Snapshot = getattr(table, kind)(data, *args, **options)
        return snapshot

    def read(self, scan: Scan) -> pa.Table:
        return scan.to_arrow()


Engine = ArrowEngine


def data(schema: pa.Schema | Mapping[str, Any], *rows: Sequence[Any]) -> pa.Table:
    """Rows, each a value a column, of a schema or of names with types."""
    if not isinstance(schema, pa.Schema):
        schema = pa.schema(list(schema.items()))
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(list(values), field.type) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))


def rows_of(engine: Engine, scan: Scan) -> list[tuple[Any, ...]]:
    """The rows that a scan gives, sorted."""
    table = engine.read(scan)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert scan.count() == len(rows)
    return sorted(rows, key=repr)


def stored_files(table: Table, storage: StorageSettings) -> set[str]:
    """All files under the table's location, live or not."""
    return {found.path for found in open_storage(table.location, storage).list_files()}


@contextmanager
def refused(table: Table, storage: StorageSettings, *named: str) -> Iterator[None]:
    """The block raises an InvalidInputError whose message has all these words, and a remedy; nothing is changed."""
    head, files = table.head, stored_files(table, storage)
    with pytest.raises(InvalidInputError) as caught:
        yield
    for word in named:
        assert word in str(caught.value)
    assert caught.value.remedy
    assert table.head == head
    assert stored_files(table, storage) == files
