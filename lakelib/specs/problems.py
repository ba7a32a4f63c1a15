"""Pure. What is wrong in a spec, in the words that its author needs: where, what was found, what is expected."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.specs.yaml_text import YamlText

_WORD = re.compile("'([^']*)'")
_EXPECTED = {
    "bool_type": "true or false",
    "date_type": "a day such as 2026-11-01",
    "dict_type": "a mapping",
    "int_type": "a whole number",
    "model_type": "a mapping",
    "string_too_short": "some text",
    "string_type": "text",
    "too_short": "a list with at least one item",
    "tuple_type": "a list",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    place: tuple[str | int, ...]
    """The keys and positions that lead to it."""
    found: str
    expected: str


def spec_error(yaml: YamlText, problems: Sequence[Problem]) -> InvalidInputError:
    """One error that tells of all problems."""
    return InvalidInputError(
        "\n".join(describe_problems(yaml, problems)),
        kind="invalid_spec",
        remedy="Correct the file; docs/specs.md has the fields.",
    )


def describe_problems(yaml: YamlText, problems: Sequence[Problem]) -> tuple[str, ...]:
    """A line each, in the order of their lines."""
    return tuple(
        f"{yaml.where(problem.place)}, {_named(problem.place)}: found {problem.found}; expected {problem.expected}."
        for problem in sorted(problems, key=lambda problem: yaml.line_of(problem.place))
    )


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """What pydantic found, in plain words."""
    for each in error.errors(include_url=False):
        place = tuple(step for step in each["loc"] if step != "[key]")
        yield Problem(place=place, found=_found(each), expected=_expected(each, model, place))


def shown(value: object) -> str:
    """A value as a message shows it."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else str(value)


def _named(place: Sequence[str | int]) -> str:
    return f"field {'.'.join(map(str, place))}" if place else "the file"


def _found(each: Mapping[str, Any]) -> str:
    match each["type"]:
        case "missing":
            return "nothing"
        case "extra_forbidden":
            return "a field that is not known"
        case _:
            return shown(each["input"])


def _expected(each: Mapping[str, Any], model: type[BaseModel], place: Sequence[str | int]) -> str:
    context = each.get("ctx", {})
    match each["type"]:
        case "missing":
            field = _model_at(model, place[:-1]).model_fields[str(place[-1])]
            return f"a value: {(field.description or '').rstrip('.')}"
        case "extra_forbidden":
            return _known_fields(_model_at(model, place[:-1]), str(place[-1]))
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return _known_words(str(context["expected"]), each["input"])
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case known if known in _EXPECTED:
            return _EXPECTED[known]
        case _:
            return str(each["msg"])


def _known_words(listed: str, word: object) -> str:
    near = get_close_matches(word, _WORD.findall(listed), n=1) if isinstance(word, str) else []
    return listed.replace("'", "") + (f", perhaps {near[0]}" if near else "")


def _known_fields(model: type[BaseModel], name: str) -> str:
    near = get_close_matches(name, model.model_fields, n=1)
    return near[0] if near else f"one of {', '.join(model.model_fields)}"


def _model_at(model: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """The model of the mapping at a place; where there is none of its own, the one around it."""
    for step in place:
        field = model.model_fields.get(str(step))
        model = next(_models_in(field.annotation), model) if field is not None else model
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
