"""The JSON schemas that editors use: they are those of the code, and take what the code takes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lakelib.specs.schemas import FILES, schema_texts
from lakelib.specs.table_spec import load_specs, parse_spec
from lakelib.specs.yaml_text import load_yaml

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = [
    *((file, FILES[0]) for file in sorted((ROOT / "dags" / "tables").glob("*.yaml"))),
    *((file, FILES[1]) for file in sorted((ROOT / "dags" / "gates").glob("*.yaml"))),
]


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_current(name: str) -> None:
    """`make schemas` writes them."""
    assert (ROOT / "docs" / "schemas" / name).read_text() == schema_texts()[name]


@pytest.mark.parametrize("name", FILES)
def test_they_are_schemas_with_a_description_of_every_field(name: str) -> None:
    schema = json.loads(schema_texts()[name])
    Draft202012Validator.check_schema(schema)
    assert [path for path, field in _fields(schema, "") if not field.keys() & {"description", "$ref"}] == []


def _fields(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            yield f"{path}.{name}", field
        for name, inner in schema.items():
            yield from _fields(inner, f"{path}.{name}")


@pytest.mark.parametrize(("file", "schema"), EXAMPLES, ids=lambda each: getattr(each, "name", each))
def test_the_examples_fit_and_say_where_their_schema_is(file: Path, schema: str) -> None:
    values = json.loads(json.dumps(load_yaml(file).values, default=str))
    errors = Draft202012Validator(json.loads(schema_texts()[schema])).iter_errors(values)
    assert [error.message for error in errors] == []
    named = file.read_text().splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / named).resolve() == ROOT / "docs" / "schemas" / schema


def test_the_examples_are_right() -> None:
    assert len(load_specs(ROOT / "dags" / "tables")) == 5


@pytest.mark.parametrize(
    "wrong", [{"buckets": "many"}, {"bukets": 4}, {"review": {"timeout": "soon"}}, {"write": {"mode": "replace"}}]
)
def test_what_a_run_refuses_an_editor_marks(wrong: dict[str, Any]) -> None:
    values = {"table": "shop.orders", "columns": "id BIGINT", **wrong}
    schema = Draft202012Validator(json.loads(schema_texts()[FILES[0]]))
    assert schema.is_valid({"table": "shop.orders", "columns": "id BIGINT"})
    assert not schema.is_valid(values)


def test_the_shipped_specs_and_the_readmes_have_nothing_to_be_warned_about(tmp_path: Path) -> None:
    """Else nothing of their tables would ever be freed."""
    assert [spec.warnings for spec in load_specs(ROOT / "dags" / "tables")] == [()] * 5
    [text] = [text for text in (ROOT / "README.md").read_text().split("```yaml\n")[1:] if text.startswith("table: ")]
    shown = text.partition("```")[0].replace("gate: ../gates/orders.yaml\n", "")
    assert parse_spec(shown, tmp_path / "orders.yaml").warnings == ()
