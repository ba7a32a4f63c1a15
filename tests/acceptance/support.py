"""What the acceptance tests share: builders, reading as rows, and the check that nothing was changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakelib import InvalidInputError, Lake, LakeError, Scan, StagedCommit, Table
from lakelib.model.gate import Verdict
from lakelib.model.upkeep import CompactionResult
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.conftest import WHOLE_MATRICES

Row = dict[str, Any]

NewTable = Callable[..., Table]
"""Makes a table of a name of its own: `new_table(schema, primary_key=[…], …)`."""


class Engine(Protocol):
    """One of the ways in which rows get into a table and out of it."""

    def write(self, table: Table, kind: str, data: Any, *args: Any, **options: Any) -> Any:
        """What the table's method of that name answers."""

    def read(self, scan: Scan) -> pa.Table: ...

    def open(self, scan: Scan) -> Callable[[], pa.Table]:
        """What reads the scan, later on."""

    def compact(self, table: Table, **options: Any) -> CompactionResult: ...

    def judge(self, commit: StagedCommit, gate: Any) -> Verdict: ...

    def row(self, number: int) -> str:
        """How an error names a row of the data."""


@dataclass(frozen=True)
class ArrowEngine:
    """Writes and reads in process."""

    def write(self, table: Table, kind: str, data: Any, *args: Any, **options: Any) -> Any:
        return getattr(table, kind)(data, *args, **options)

    def read(self, scan: Scan) -> pa.Table:
        return scan.to_arrow()

    def open(self, scan: Scan) -> Callable[[], pa.Table]:
        return scan.to_arrow

    def compact(self, table: Table, **options: Any) -> CompactionResult:
        return table.compact(**options)

    def judge(self, commit: StagedCommit, gate: Any) -> Verdict:
        return commit.judge(gate)

    def row(self, number: int) -> str:
        return f"row {number}"


@dataclass(frozen=True)
class SparkEngine:
    """Writes data frames and reads scans as data frames, with the distribution given."""

    session: SparkSession
    distribution: str

    def write(self, table: Table, kind: str, data: Any, *args: Any, **options: Any) -> Any:
        return getattr(table, kind)(self._frame(data), *args, distribution=self.distribution, **options)

    def _frame(self, data: Any) -> Any:
        """What Spark cannot hold stays as it is."""
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        if isinstance(data, pa.RecordBatchReader):
            data = data.read_all()
        if not isinstance(data, pa.Table):
            return data
        try:
            schema = from_arrow_schema(data.schema, prefer_timestamp_ntz=True)
            return self.session.createDataFrame(data, schema)
        except (PySparkException, pa.ArrowException):
            return data

    def read(self, scan: Scan) -> pa.Table:
        return self.open(scan)()

    def open(self, scan: Scan) -> Callable[[], pa.Table]:
        """In the types of the scan: Spark gives moments in the session's zone."""
        frame = scan.to_spark(self.session)
        return lambda: frame.toArrow().cast(scan.schema)

    def compact(self, table: Table, **options: Any) -> CompactionResult:
        return table.compact(session=self.session, **options)

    def judge(self, commit: StagedCommit, gate: Any) -> Verdict:
        return commit.judge(gate, self.session)

    def row(self, number: int) -> str:
        """Each task counts its own rows; which of them it is, the error tells by its values."""
        return "The row: "


in_process = pytest.mark.parametrize("engine", ["arrow"], indirect=True)
"""For promises about one writer's files, and about rows that Spark cannot hold."""


def in_places(
    names: tuple[str, ...], values: Sequence[tuple[Any, ...]], *, spark: Sequence[int], s3: Sequence[int]
) -> pytest.MarkDecorator:
    """All values in process on local files; those numbered on Spark and on S3 too."""
    places = (("local", "arrow", range(len(values))), ("local", "spark", spark), ("s3", "arrow", s3))
    chosen = [
        (storage, engine, *value)
        for storage, engine, numbers in places
        for number, value in enumerate(values)
        if WHOLE_MATRICES or number in numbers
    ]
    return pytest.mark.parametrize(("storage_kind", "engine", *names), chosen, indirect=["storage_kind", "engine"])


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
def raised(error: type[LakeError], kind: str) -> Iterator[pytest.ExceptionInfo[LakeError]]:
    """The block raises an error of this kind, which tells what to do."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.kind == kind
    assert caught.value.remedy


def require_by_name(lake: Lake, table: Table, gate: str) -> None:
    """As tables required their gates before suites were registered: by an option."""
    change = "options = options || jsonb_build_object('required_gate', %s::text)"
    text = f'update lake."table" set {change} where location = %s'
    lake.runtime.catalog.run(lambda db: db.execute(text, (gate, table.location)))


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
