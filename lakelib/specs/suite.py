"""Gate suites: the checks that a commit must pass, as a YAML file says them.

    name: orders
    expectations:
      - type: expect_column_values_to_not_be_null
        kwargs: {column: customer_id}
        severity: critical    # critical | warning | info
        scope: staged         # staged | merged | table

A suite's form is checked here, without Great Expectations; `lakelib.gates.lint` checks types and arguments.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from itertools import count
from os import PathLike
from typing import TYPE_CHECKING, Any

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.gate import Scope, Severity
from lakelib.model.text import LONGEST_INDEXED_BYTES, is_indexable, is_storable, meant

if TYPE_CHECKING:
    from lakelib.specs.yaml_text import YamlText

_SUITE_KEYS = ("name", "description", "expectations")
_CHECK_KEYS = ("type", "kwargs", "severity", "scope", "sample", "limit_seconds", "name", "description")
MOST_SAMPLES = 20
"""Of the values that were not as expected a verdict keeps so many."""
LIMIT_SECONDS = 60
"""A check may take so long, where nothing else is said."""
_MOST_SECONDS = 86_400
_COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
_COLUMN_LISTS = ("column_list", "column_set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation, what of the table it looks at, and how much it matters."""

    name: str
    expectation: str
    """The type of Great Expectations' expectation."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = Severity.CRITICAL
    scope: Scope = Scope.STAGED
    sample: int = MOST_SAMPLES
    """How many of the values that were not as expected the verdict keeps."""
    limit_seconds: float = LIMIT_SECONDS
    """How long it may take, where it may take for ever: patterns that go back, JSON schemas."""
    line: int = 0
    argument_lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each argument in the suite's file."""


_USUAL = {"sample": MOST_SAMPLES, "limit_seconds": LIMIT_SECONDS}

_WRONG_NAME = (
    f"its name must be text in one line, of at most {LONGEST_INDEXED_BYTES:,} bytes, without a space at either end"
)


def _is_name(text: str) -> bool:
    return bool(text) and text == text.strip() and "\n" not in text and is_indexable(text)


Lint = Callable[[Check], Iterator[tuple[str | None, str]]]
"""What is wrong with a check, each with the argument that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Checks under the name of a gate. Two suites of one `hash` check the same."""

    name: str
    checks: tuple[Check, ...]
    description: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _is_name(self.name):
            raise suite_error([f"{self.path or 'the suite'}: {_WRONG_NAME}."])

    @property
    def hash(self) -> str:
        """Of what is checked: neither comments, form, names of checks nor their order count."""
        said = sorted(_said(check) for check in self.checks)
        return hashlib.sha256("\n".join(said).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def critical_checks(self) -> int:
        """How many checks reject a commit; without one everything passes."""
        return sum(check.severity is Severity.CRITICAL for check in self.checks)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Those that its checks look at."""
        return tuple(scope for scope in Scope if any(check.scope is scope for check in self.checks))

    def where(self, check: Check, argument: str | None = None) -> str:
        """How a message names a check, or one of its arguments."""
        line = check.line if argument is None else check.argument_lines.get(argument, check.line)
        return f"{self.path}, line {line}" if self.path else f"suite {self.name!r}, check {check.name!r}"


def load_suite(path: str | PathLike[str], lint: Lint | None = None) -> Suite:
    """Raises InvalidInputError that names all that is wrong, each with file and line, also what `lint` has against the
    checks; NotFoundError if there is no such file."""
    from lakelib.specs.yaml_text import load_yaml  # what writes rows knows suites, and reads few

    return _parse(load_yaml(path), lint)


def parse_suite(content: str, path: str = "the suite", lint: Lint | None = None) -> Suite:
    """As `load_suite`, for text that is at hand."""
    from lakelib.specs.yaml_text import parse_yaml

    return _parse(parse_yaml(content, path), lint)


def suite_text(suite: Suite) -> str:
    """The suite in YAML, of which `parse_suite` makes a suite of the same hash. Raises InvalidInputError for arguments
    that YAML cannot say, as suites made by hand may have them."""
    from lakelib.specs.yaml_text import dump_yaml

    described = {"description": suite.description} if suite.description.strip() else {}
    text = dump_yaml({"name": suite.name, **described, "expectations": [_as_entry(check) for check in suite.checks]})
    again = parse_suite(text, f"suite {suite.name!r}")
    if (again.name, again.hash) != (suite.name, suite.hash) or not is_storable(text):
        raise suite_error([f"suite {suite.name!r} has arguments that YAML does not keep as they are."])
    return text


def suite_error(problems: Sequence[str]) -> InvalidInputError:
    return InvalidInputError(
        "\n".join(problems), kind="invalid_suite", remedy="Correct the suite; docs/gates.md tells what one is made of."
    )


def _parse(yaml: "YamlText", lint: Lint | None) -> Suite:
    problems = [*_problems(yaml), *(_linted(yaml, lint) if lint else ())]
    if problems:
        ordered = sorted(problems, key=lambda problem: problem[0])
        raise suite_error([f"{yaml.path}, line {line}: {text}" for line, text in ordered])
    entries = yaml.values["expectations"]
    names = _names(entries)
    return Suite(
        name=yaml.values["name"],
        description=yaml.values.get("description") or "",
        checks=tuple(_check(yaml, place, name) for place, name in enumerate(names)),
        path=yaml.path,
    )


def _check(yaml: "YamlText", place: int, name: str) -> Check:
    entry = yaml.values["expectations"][place]
    arguments = entry.get("kwargs") or {}
    here = ("expectations", place)
    return Check(
        name=name,
        expectation=entry["type"],
        arguments=arguments,
        severity=Severity(entry.get("severity", Severity.CRITICAL.value)),
        scope=Scope(entry.get("scope", Scope.STAGED.value)),
        sample=entry.get("sample", MOST_SAMPLES),
        limit_seconds=entry.get("limit_seconds", LIMIT_SECONDS),
        line=yaml.line_of(here),
        argument_lines={each: yaml.line_of((*here, "kwargs", each)) for each in arguments},
    )


def _as_entry(check: Check) -> dict[str, Any]:
    entry = {"type": check.expectation, "severity": check.severity.value, "scope": check.scope.value}
    return entry | _limits(check) | {"name": check.name, "kwargs": dict(check.arguments)}


def _limits(check: Check) -> dict[str, Any]:
    """What differs from what is meant where nothing is said: suites that say nothing keep their hash."""
    said = {"sample": check.sample, "limit_seconds": check.limit_seconds}
    return {name: value for name, value in said.items() if value != _USUAL[name]}


def _names(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the checks: their own, or what they look at, numbered where that would be the same."""
    described = Counter(_described(entry) for entry in entries)
    seen: Counter[str] = Counter(entry["name"] for entry in entries if "name" in entry)
    names = []
    for entry in entries:
        name = entry.get("name")
        if name is None:
            name = _free_name(_described(entry), seen, several=described[_described(entry)] > 1)
            seen[name] += 1
        names.append(name)
    return names


def _free_name(what: str, taken: Mapping[str, int], *, several: bool) -> str:
    if not several and what not in taken:
        return what
    return next(name for number in count(1) if (name := f"{what} #{number}") not in taken)


def _described(entry: Mapping[str, Any]) -> str:
    """ "column_values_to_not_be_null (customer_id)"."""
    arguments = entry.get("kwargs") or {}
    columns = [str(arguments[name]) for name in _COLUMN_ARGUMENTS if name in arguments]
    for name in _COLUMN_LISTS:
        given = arguments.get(name)
        columns += [str(each) for each in given] if isinstance(given, list) else []
    what = entry["type"].removeprefix("expect_")
    return f"{what} ({', '.join(columns)})" if columns else what


# What may be wrong: (line, text)


def _problems(yaml: "YamlText") -> Iterator[tuple[int, str]]:
    values = yaml.values
    if not isinstance(values, Mapping):
        yield yaml.line_of(), "a suite is a mapping with name and expectations."
        return
    yield from _unknown_keys(yaml, (), values, _SUITE_KEYS, "a suite")
    yield from _text_problems(yaml, (), values, "name", required=True)
    name = values.get("name")
    if isinstance(name, str) and name.strip() and is_storable(name) and not _is_name(name):
        yield yaml.line_of(("name",)), f"{_WRONG_NAME}."
    yield from _text_problems(yaml, (), values, "description")
    entries = values.get("expectations")
    if not isinstance(entries, list) or not entries:
        yield yaml.line_of(("expectations",)), "expectations must be a list of at least one check."
        return
    for place, entry in enumerate(entries):
        yield from _check_problems(yaml, ("expectations", place), entry)
    yield from _duplicate_names(yaml, entries)


def _linted(yaml: "YamlText", lint: Lint) -> Iterator[tuple[int, str]]:
    """What is wrong with checks whose form tells what they are."""
    entries = yaml.values.get("expectations") if isinstance(yaml.values, Mapping) else None
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping) and isinstance(entry.get("type"), str):
            arguments = entry.get("kwargs") or {}
            if isinstance(arguments, Mapping):
                here = ("expectations", place)
                check = Check(name="", expectation=entry["type"], arguments=arguments, scope=_scope_of(entry))
                for argument, text in lint(check):
                    yield yaml.line_of(here if argument is None else (*here, "kwargs", argument)), text


def _scope_of(entry: Mapping[str, Any]) -> Scope:
    """A word that is no scope is another problem."""
    said = entry.get("scope", Scope.STAGED.value)
    return next((scope for scope in Scope if scope.value == said), Scope.TABLE)


def _check_problems(yaml: "YamlText", place: tuple[str | int, ...], entry: Any) -> Iterator[tuple[int, str]]:
    if not isinstance(entry, Mapping):
        yield yaml.line_of(place), f"a check is a mapping with type and kwargs, not {entry!r}."
        return
    yield from _unknown_keys(yaml, place, entry, _CHECK_KEYS, "a check")
    yield from _text_problems(yaml, place, entry, "type", required=True)
    yield from _text_problems(yaml, place, entry, "name")
    yield from _text_problems(yaml, place, entry, "description")
    yield from _word_problems(yaml, place, entry, "severity", Severity)
    yield from _word_problems(yaml, place, entry, "scope", Scope)
    yield from _number_problems(yaml, place, entry, "sample", MOST_SAMPLES, whole=True)
    yield from _number_problems(yaml, place, entry, "limit_seconds", _MOST_SECONDS)
    if not isinstance(entry.get("kwargs") or {}, Mapping):
        yield yaml.line_of((*place, "kwargs")), f"kwargs must be a mapping of arguments, not {entry['kwargs']!r}."


def _unknown_keys(
    yaml: "YamlText", place: tuple[str | int, ...], values: Mapping[str, Any], known: Sequence[str], what: str
) -> Iterator[tuple[int, str]]:
    for name in values:
        if name not in known:
            yield yaml.line_of((*place, name)), f"{what} has no key {name!r}{did_you_mean(name, known)}"


def _text_problems(
    yaml: "YamlText", place: tuple[str | int, ...], values: Mapping[str, Any], name: str, *, required: bool = False
) -> Iterator[tuple[int, str]]:
    if name not in values:
        if required:
            yield yaml.line_of(place), f"{name} is missing."
        return
    value = values[name]
    if not isinstance(value, str) or not value.strip() or not is_storable(value):
        yield yaml.line_of((*place, name)), f"{name} must be text, not {value!r}."


def _word_problems(
    yaml: "YamlText", place: tuple[str | int, ...], values: Mapping[str, Any], name: str, words: type[Enum]
) -> Iterator[tuple[int, str]]:
    known = [str(word.value) for word in words]
    value = values.get(name, known[0])
    if value not in known:
        near = did_you_mean(value, known) if isinstance(value, str) else "."
        yield yaml.line_of((*place, name)), f"{name} must be one of {', '.join(known)}, not {value!r}{near}"


def _number_problems(
    yaml: "YamlText",
    place: tuple[str | int, ...],
    values: Mapping[str, Any],
    name: str,
    most: int,
    *,
    whole: bool = False,
) -> Iterator[tuple[int, str]]:
    value = values.get(name, most)
    right = isinstance(value, int) or (isinstance(value, float) and not whole)
    if isinstance(value, bool) or not right or not (0 <= value <= most if whole else 0 < value <= most):
        least = "0" if whole else "above 0"
        yield yaml.line_of((*place, name)), f"{name} must be a number from {least} to {most:,}, not {value!r}."


def _duplicate_names(yaml: "YamlText", entries: Sequence[Any]) -> Iterator[tuple[int, str]]:
    first_lines: dict[str, int] = {}
    for place, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if isinstance(name, str):
            line = yaml.line_of(("expectations", place, "name"))
            if name in first_lines:
                yield line, f"the name {name!r} is given twice, first in line {first_lines[name]}."
            first_lines.setdefault(name, line)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence that names what is not known."""
    near = meant(name, known)
    return f". {near}" if near else "."


# What a suite means


def _said(check: Check) -> str:
    what = [check.expectation, check.severity.value, check.scope.value, _plain(check.arguments)]
    limits = _limits(check)
    return json.dumps([*what, _plain(limits)] if limits else what, sort_keys=True)


def _plain(value: Any) -> Any:
    """As JSON has it, without taking one value for another."""
    match value:
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case None | bool() | int() | str():
            return value
        case float() if value.is_integer():
            return int(value)
        case _:
            return [type(value).__name__, str(value)]
