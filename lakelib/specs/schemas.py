"""JSON schemas of the YAML files, for editors: `python -m lakelib.specs.schemas FOLDER` writes them.

They are made from what reads the files, so that an editor offers just what a run accepts.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from lakelib.model.gate import Scope, Severity
from lakelib.specs.suite import LIMIT_SECONDS, MOST_SAMPLES
from lakelib.specs.table_spec import TableSpec
from lakelib.specs.texts import format_duration

FILES = ("table-spec.schema.json", "gate-suite.schema.json")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Shows defaults as people write them."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def schema_texts() -> dict[str, str]:
    """The schemas as text, by file name."""
    schemas = dict(zip(FILES, (_table_spec(), _gate_suite()), strict=True))
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def write_schemas(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")


def _table_spec() -> dict[str, Any]:
    return {"$schema": _DIALECT, **_without_titles(TableSpec.model_json_schema(schema_generator=_Generator))}


def _without_titles(schema: Any) -> Any:
    """pydantic's titles only repeat the names. A field may be called title; its schema is no text."""
    match schema:
        case dict():
            return {
                name: _without_titles(inner)
                for name, inner in schema.items()
                if name != "title" or not isinstance(inner, str)
            }
        case list():
            return [_without_titles(inner) for inner in schema]
        case _:
            return schema


def _gate_suite() -> dict[str, Any]:
    return {
        "$schema": _DIALECT,
        "title": "Gate suite",
        "description": "What a commit must pass before anybody sees it.",
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "expectations"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "The gate's name, which a table requires."},
            "description": {"type": "string", "description": "What the suite is for."},
            "expectations": {
                "type": "array",
                "minItems": 1,
                "description": "The checks.",
                "items": _check(),
            },
        },
    }


def _check() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["type"],
        "properties": {
            "type": {
                **text,
                "description": "An expectation of Great Expectations', such as expect_column_values_to_not_be_null, or"
                " one of lakelib's own, such as expect_proportion_of_rows_deleted_to_be_between.",
            },
            "kwargs": {
                "type": ["object", "null"],
                "description": "The expectation's arguments, such as column: customer_id.",
            },
            "severity": {
                "enum": [severity.value for severity in Severity],
                "default": Severity.CRITICAL.value,
                "description": "A critical check that fails rejects the commit; one that is a warning flags it; info is"
                " only told.",
            },
            "scope": {
                "enum": [scope.value for scope in Scope],
                "default": Scope.STAGED.value,
                "description": "What is looked at: staged is the commit's own rows, merged the partitions that it"
                " touches and table the whole table, as they would be after publishing.",
            },
            "sample": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_SAMPLES,
                "default": MOST_SAMPLES,
                "description": "How many of the values that were not as expected the verdict keeps; 0 for values that"
                " nobody is to see.",
            },
            "limit_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": LIMIT_SECONDS,
                "description": "How long the check may take, where it may take for ever: patterns that go back, JSON"
                " schemas. Then it has errored.",
            },
            "name": {**text, "description": "What reports call the check; by default made from type and column."},
            "description": {"type": "string", "description": "Why the check is there."},
        },
    }


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/schemas"))
