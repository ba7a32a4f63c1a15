"""Column ids are never given twice, so those of refused writes are lost: refusals come before ids are taken."""

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib

ROWS = pa.table({"id": [1], "p": [1], "extra": ["x"]})


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (ROWS, {"aux_order": ["absent"]}),
        (ROWS.append_column("nested", [[[1]]]), {"aux_order": ["nested"]}),
        (ROWS, {"partitions": {"p": 2}}),
    ],
)
def test_a_write_that_is_refused_as_a_whole_takes_no_ids(
    catalog_url: str, tmp_path: Path, data: pa.Table, how: dict[str, Any]
) -> None:
    with lakelib.connect(str(tmp_path), catalog_url) as lake:
        lake.create_namespace("n")
        table = lake.create_table("n.t", "id bigint, p bigint", primary_key=["id"], partition_by=["p"])
        write = table.overwrite if "partitions" in how else table.upsert
        with pytest.raises(lakelib.InvalidInputError):
            write(data, merge_schema=True, **how)
        assert _last_ids(catalog_url) == (1, 2)
        table.upsert(ROWS, merge_schema=True)
        assert _last_ids(catalog_url) == (2, 3)
        assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": 1, "extra": "x"}]


def _last_ids(catalog_url: str) -> tuple[Any, ...] | None:
    with psycopg.connect(catalog_url) as db:
        return db.execute('select last_schema_id, last_column_id from lake."table"').fetchone()
