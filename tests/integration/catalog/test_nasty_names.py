"""Names and values are data: none of them becomes a part of a statement, a pattern or a path."""

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib

NASTY = (
    """a"b'c; drop table lake.commit; -- %s %(table_id)s {piece} {0} {{""",
    "../../a/b\\c $1 $$ :name ? `a`.`b` *[a-z]?",
    "-- /* x */ --result=/any/file ',) or true --",
)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


@pytest.mark.parametrize("nasty", NASTY)
def test_a_nasty_name_and_value_is_stored_found_and_deleted_like_any_other(
    lake: lakelib.Lake, connection: psycopg.Connection[Any], nasty: str, tmp_path: Path
) -> None:
    part, value = f"p {nasty}", f"v {nasty}"
    schema = pa.schema([(nasty, pa.string()), (part, pa.string()), (value, pa.string())])
    table = lake.create_table("shop.nasty", schema, primary_key=[nasty, part], partition_by=[part])
    rows = [{nasty: nasty, part: nasty, value: nasty}, {nasty: "plain", part: "plain", value: None}]
    key = (nasty, 1)
    table.upsert(pa.Table.from_pylist(rows, schema=schema), idempotency_key=key, properties={nasty: nasty})
    table.upsert(pa.Table.from_pylist(rows[:1], schema=schema))
    table.tag(f"tag {nasty}")
    table.compact(full=True)

    for column in (nasty, part, value):
        found = table.scan(where=f"{_quoted(column)} = {_text(nasty)}", columns=[column]).to_arrow()
        assert found.to_pylist() == [{column: nasty}]
    assert table.scan(at=f"tag:tag {nasty}").count() == 2
    assert table.mark_done({part: nasty}).values == {part: nasty}
    assert table.history()[-1].properties == {nasty: nasty}
    staged = table.stage_delete(f"{_quoted(value)} = {_text(nasty)}")
    staged.reject(nasty)
    table.delete(f"{_quoted(part)} = {_text(nasty)}")
    assert table.scan(columns=[nasty]).to_arrow().to_pylist() == [{nasty: "plain"}]
    table.evolve(rename={value: f"w {nasty}"})
    assert table.schema.names[-1] == f"w {nasty}"
    outside = [path for path in tmp_path.iterdir() if path.name != "warehouse"]
    assert outside == []
    assert connection.execute("select count(*) > 0 from lake.commit").fetchone() == (True,)
