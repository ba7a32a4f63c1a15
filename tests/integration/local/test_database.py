"""The database of a query: bounded, shut off, and no teller of its own errors."""

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelib import InvalidInputError, RetryableError
from lakelib.errors import OnlySparkError
from lakelib.local.database import opened_database
from lakelib.model.options import MIB
from lakelib.plan.declare import declare_schema
from lakelib.plan.local_query import LocalQuery, translate_query

COLUMNS = declare_schema("id BIGINT, text STRING")
NAMED = {"source": [(column.name, column.type) for column in COLUMNS]}


def _query(text: str) -> LocalQuery:
    return translate_query(text, NAMED, "all")


def _raw(sql: str) -> LocalQuery:
    return LocalQuery(sql=sql, columns=(("x", "bigint"),), uses={}, where={})


def _batches(count: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        ids = np.arange(number * 50_000, (number + 1) * 50_000)
        texts = [f"{each * 7919 % 1_000_003}, a text that is long enough to be laid down by itself" for each in ids]
        yield pa.record_batch([pa.array(ids), pa.array(texts)], names=["id", "text"])


def test_what_does_not_fit_into_memory_is_laid_down_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with opened_database(96 * MIB, 2) as database:
        database.load("source", COLUMNS, _batches(40))
        rows = database.rows(_query("SELECT id, text FROM source ORDER BY text, id DESC"))
        found = [(batch.num_rows, batch.column(1)[0].as_py()) for batch in rows.batches()]
        assert list(tmp_path.glob("lakelib-local-*/*"))
    assert sum(count for count, _ in found) == 2_000_000
    assert [first for _, first in found] == sorted(first for _, first in found)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 600 * MIB
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_source_is_told_as_it_is() -> None:
    def changed() -> Iterator[pa.RecordBatch]:
        yield from _batches(1)
        raise RetryableError("The file is another one.", kind="source_changed")

    with opened_database(128 * MIB, 1) as database, pytest.raises(RetryableError) as refused:
        database.load("source", COLUMNS, changed())
    assert refused.value.kind == "source_changed"


def test_rows_come_in_their_order_whatever_the_threads() -> None:
    with opened_database(256 * MIB, 4) as database:
        database.load("source", COLUMNS, _batches(10))
        rows = database.rows(_query("SELECT id FROM source WHERE id % 3 = 1"))
        joined = database.rows(_query("SELECT s.id FROM source s LEFT JOIN source o ON s.id = o.id AND o.id % 7 = 0"))
        found = [value for batch in joined.batches() for value in batch.column(0).to_pylist()]
        assert found == list(range(500_000))
        for _ in range(2):  # and again, where a write is done again
            found = [value for batch in rows.batches() for value in batch.column(0).to_pylist()]
            assert found == [number for number in range(500_000) if number % 3 == 1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1 FROM (COPY (SELECT 1) TO '/tmp/lakelib')",
    ],
)
def test_it_reaches_no_file(sql: str) -> None:
    """No query can ask for one; if one did, there would be none to be had."""
    with opened_database(128 * MIB, 1) as database, pytest.raises(Exception, match=r"disabled|syntax error|refuses"):
        list(database.rows(_raw(sql)).batches())


def test_a_value_that_cannot_be_is_told_in_the_midst_of_the_rows() -> None:
    with opened_database(256 * MIB, 2) as database:
        database.load("source", COLUMNS, _batches(4))
        rows = database.rows(_query("SELECT 1 / (id - 199999) AS x FROM source"))
        with pytest.raises(InvalidInputError) as refused:
            list(rows.batches())
    assert (refused.value.kind, "division by zero" in str(refused.value)) == ("transform_failed", True)


def test_a_type_that_is_not_the_one_that_was_meant_is_refused() -> None:
    with opened_database(128 * MIB, 1) as database, pytest.raises(OnlySparkError, match="a column of bigint"):
        database.rows(_raw("SELECT 'a' AS x"))


def test_who_has_no_duckdb_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(OnlySparkError, match=r"lakelib\[local\]"), opened_database(128 * MIB, 1):
        pass
