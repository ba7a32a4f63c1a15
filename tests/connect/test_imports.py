"""Tables of other systems are copied over Spark Connect, too: as by this process, batch by batch."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Lake
from tests.delta_tables import DeltaFolder, column
from tests.spark.conftest import lake, new_name  # noqa: F401 - fixtures


def delta_table(path: Path) -> None:
    """Of five files: rows are deleted, a column has another name inside, one key comes twice."""
    folder = DeltaFolder(path)
    folder.commit(
        folder.protocol("columnMapping", "deletionVectors"),
        folder.metadata(
            column("id", "long", inside="a", number=1),
            column("part", "string", inside="p", number=2),
            partition_by=["part"],
            delta__columnMapping__mode="name",
        ),
        *(
            folder.file(f"{number}.parquet", pa.table({"a": range(number, number + 4)}), {"p": part}, deleted=[0])
            for number, part in enumerate("aabbc")
        ),
    )


def parquet_folder(path: Path) -> None:
    for number, part in enumerate("aabbc"):
        (path / f"part={part}").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": range(number, number + 4)}), path / f"part={part}" / f"{number}.parquet")


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_table_is_imported_as_by_this_process(
    spark: Any,
    lake: Lake,  # noqa: F811
    new_name: str,  # noqa: F811
    tmp_path: Path,
    kind: str,
) -> None:
    {"delta": delta_table, "parquet": parquet_folder}[kind](tmp_path / "source")
    bring = getattr(lake, f"import_{kind}")
    how = {"primary_key": ["part", "id"], "duplicates": "last", "batch_bytes": 1}
    names = [new_name, f"{new_name}_there"]

    here, there = (
        bring(str(tmp_path / "source"), name, session=session, **how)
        for name, session in zip(names, (None, spark), strict=True)
    )

    own, other = (lake.table(name) for name in names)
    order = [("part", "ascending"), ("id", "ascending")]
    assert other.scan().to_arrow().sort_by(order).equals(own.scan().to_arrow().sort_by(order))
    assert (there.rows, other.head.id) == (here.rows, own.head.id)
    again = bring(str(tmp_path / "source"), names[1], session=spark, **how)
    assert (again.rows, other.head.id) == (there.rows, own.head.id)
