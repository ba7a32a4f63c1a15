"""What PostgreSQL cannot keep, or cannot find again, is refused before it is asked: by the library's own errors."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib import InvalidInputError, Lake, NotFoundError, Table

SURROGATE, NUL = "a\ud800", "a\0"
LONG = secrets.token_urlsafe(4000)
"""Text that does not shrink when it is packed."""
ROWS = pa.table({"id": [1], "p": ["x"]})


class SparkType:
    """As Spark's own: a struct of one struct, whose field has the name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def jsonValue(self) -> Any:  # noqa: N802 - Spark's name
        inner = {"type": "struct", "fields": [{"name": self._name, "type": "integer", "nullable": True}]}
        return {"type": "struct", "fields": [{"name": "c", "type": inner, "nullable": True}]}


def suite(folder: Path, name: str) -> Path:
    path = folder / "suite.yaml"
    check = "- {type: expect_column_values_to_not_be_null, kwargs: {column: id}}"
    path.write_text(f'name: "{name}"\nexpectations:\n{check}\n')
    return path


REFUSED: dict[str, Callable[[Lake, Table, str], Any]] = {
    "namespace": lambda lake, _, text: lake.create_namespace(text),
    "tables of": lambda lake, _, text: lake.tables(text),
    "table": lambda lake, _, text: lake.create_table(f"shop.{text}", "id int"),
    "table of no namespace": lambda lake, _, text: lake.table(f"{text}.t"),
    "tag": lambda _, table, text: table.tag(text),
    "required gate": lambda _, table, text: table.set_options({"required_gate": text}),
}
NAMES: dict[str, Callable[[Lake, Table, str], Any]] = {
    "column": lambda lake, _, text: lake.create_table("shop.a", f"id int, `{text}` int"),
    "field in DDL": lambda lake, _, text: lake.create_table("shop.b", f"id int, c array<struct<`{text}`: int>>"),
    "field of Spark": lambda lake, _, text: lake.create_table("shop.c", SparkType(text)),
    "added column": lambda _, table, text: table.evolve(add=[(text, "int")]),
    "added field": lambda _, table, text: table.evolve(add=[("c", f"struct<`{text}`: int>")]),
    "renamed column": lambda _, table, text: table.evolve(rename={"p": text}),
    "property": lambda _, table, text: table.append(ROWS, properties={text: "x"}),
    "property's value": lambda _, table, text: table.append(ROWS, properties={"x": text}),
}


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=tmp_path_factory.mktemp("lake"), catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    return lake.create_table("shop.t", "id bigint, p string", primary_key=["id"], partition_by=["p"])


@pytest.mark.parametrize("text", [SURROGATE, NUL, LONG, "a\n"], ids=["surrogate", "NUL", "long", "line"])
@pytest.mark.parametrize("what", list(REFUSED))
def test_names_that_no_index_can_hold_are_refused(lake: Lake, table: Table, what: str, text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        REFUSED[what](lake, table, text)
    assert len(str(refused.value)) < len(LONG) + 1000


@pytest.mark.parametrize("text", [SURROGATE, NUL], ids=["surrogate", "NUL"])
@pytest.mark.parametrize("what", list(NAMES))
def test_names_that_are_no_text_are_refused(lake: Lake, table: Table, what: str, text: str) -> None:
    with pytest.raises(InvalidInputError):
        NAMES[what](lake, table, text)


@pytest.mark.parametrize("text", [SURROGATE, NUL, LONG], ids=["surrogate", "NUL", "long"])
def test_applications_that_no_index_can_hold_are_refused(table: Table, text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        table.append(ROWS, idempotency_key=(text, 1))
    assert refused.value.kind == "invalid_idempotency_key"


@pytest.mark.parametrize("name", [NUL, LONG, "a\\n", " a"], ids=["NUL", "long", "line", "space"])
def test_a_gate_that_no_index_can_hold_is_refused(table: Table, tmp_path: Path, name: str) -> None:
    staged = table.stage_append(ROWS)
    with pytest.raises(InvalidInputError) as refused:
        staged.judge(suite(tmp_path, name.replace("\0", "\\0")))
    assert refused.value.kind == "invalid_suite"


def test_a_field_of_the_data_with_a_wrong_name_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInputError) as refused:
        table.append(pa.table({"id": [2], "p": ["x"], "c": pa.array([{NUL: 1}])}), merge_schema=True)
    assert refused.value.kind == "invalid_name"


@pytest.mark.parametrize("value", [SURROGATE, LONG], ids=["surrogate", "long"])
def test_partition_values_that_no_index_can_hold_are_refused(table: Table, value: str) -> None:
    rows = pa.table({"id": [1]})
    for act in (
        lambda: table.overwrite(rows, {"p": value}),
        lambda: table.mark_done({"p": value}),
        lambda: table.is_done({"p": value}),
    ):
        with pytest.raises(InvalidInputError):
            act()
    with pytest.raises(InvalidInputError):
        table.append(pa.table({"id": [1], "p": [LONG]}))


def test_partition_values_and_literals_may_hold_what_postgresql_cannot(table: Table) -> None:
    table.append(pa.table({"id": [5], "p": [NUL]}))
    table.delete(f"p = '{NUL}' and id = 4")
    assert table.scan(where=f"p = '{NUL}'").to_arrow().num_rows == 1
    table.overwrite(pa.table({"id": [6]}), {"p": NUL})
    assert table.mark_done({"p": NUL}).values == {"p": NUL}


@pytest.mark.parametrize("at", [f"tag:{SURROGATE}", f"tag:{NUL}", f"tag:{LONG}", 2**70, -1])
def test_snapshots_that_cannot_be_are_not_found(table: Table, at: Any) -> None:
    with pytest.raises(NotFoundError):
        table.scan(at=at)


def test_an_application_may_be_as_long_as_an_index_holds(table: Table) -> None:
    name = LONG[:1998] + "ü"
    first = table.append(ROWS, idempotency_key=(name, 1))
    assert table.append(ROWS, idempotency_key=(name, 1)).id == first.id
