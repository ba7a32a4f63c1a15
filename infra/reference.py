"""Writes docs/api.md from the docstrings: what is public, with its signatures. `make reference` calls it."""

import ast
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import lakelib
import lakelib.spark
from lakelib.ops.request import WriteOptions

_HEAD = """# The API

Made from the docstrings by `make reference`; a test holds it current, so a change of what is public shows here.
Names that are not listed are not public. Moments are of UTC, or have a zone.
"""
_FUNCTIONS: tuple[Callable[..., Any], ...] = (lakelib.connect, lakelib.restore, lakelib.migrate)
_CLASSES = (
    lakelib.Lake,
    lakelib.Table,
    lakelib.MergeInto,
    lakelib.Scan,
    lakelib.Result,
    lakelib.StagedCommit,
    lakelib.Transaction,
)


def reference_text() -> str:
    """The whole page."""
    parts = [_HEAD, "## lakelib\n", *map(_function, _FUNCTIONS)]
    for known in _CLASSES:
        parts += [f"## {known.__name__}\n", _doc(known), *_members(known)]
    parts += ["## Options of writes\n", "The keywords that every write takes.\n", _fields(WriteOptions)]
    parts += [
        "## lakelib.spark\n",
        _doc(lakelib.spark),
        *(_function(getattr(lakelib.spark, name)) for name in _spark()),
    ]
    parts.append("## Values\n")
    for value in sorted(_values(), key=lambda each: (each.__name__, each.__module__)):
        parts += [f"### {value.__name__}\n", _doc(value), _fields(value), *_members(value)]
    parts += ["## Errors\n", *(f"### {each.__name__}\n\n{_doc(each)}" for each in _errors())]
    return "\n".join(part for part in parts if part)


def _spark() -> list[str]:
    return sorted(lakelib.spark.__all__)


def _function(function: Callable[..., Any], level: str = "###") -> str:
    signature = _short(str(inspect.signature(function)))
    return f"{level} `{function.__name__}{signature}`\n\n{_doc(function)}"


def _short(text: str) -> str:
    """Without the modules in which names live, and without `self`."""
    text = re.sub(r"<class '([\w.]+)'>", r"\1", text)
    text = re.sub(r"\b(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text)
    return re.sub(r"\(self(?:, )?", "(", text).replace("'", '"')


def _doc(documented: type | Callable[..., Any] | ModuleType) -> str:
    own = documented.__doc__ if isinstance(documented, type) else inspect.getdoc(documented)
    text = inspect.cleandoc(own or "")
    return "" if text.startswith(f"{getattr(documented, '__name__', '')}(") else text + "\n" if text else ""


def _members(known: type) -> Iterator[str]:
    """Public methods and properties, in the order of the source."""
    for name, member in vars(known).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property) and member.fget is not None:
            told = _short(inspect.formatannotation(inspect.signature(member.fget).return_annotation))
            yield f"### `{known.__name__}.{name}`: `{told}`\n\n{_doc(member.fget)}"
        elif inspect.isfunction(member):
            yield _function(member).replace(f"### `{name}(", f"### `{known.__name__}.{name}(", 1)


def _fields(known: type) -> str:
    """The fields of a dataclass, a dict's names or an enum's values, with the text that stands below each."""
    if not (is_dataclass(known) or issubclass(known, Enum) or typing.is_typeddict(known)):
        return ""
    body = ast.parse(textwrap.dedent(inspect.getsource(known))).body[0]
    assert isinstance(body, ast.ClassDef)
    lines = []
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                told = f"`{name}`: `{_short(ast.unparse(annotation))}`"
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                told = f"`{name}` = `{ast.unparse(value)}`"
            case _:
                continue
        match following:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                told += f": {' '.join(text.split())}"
        lines.append(f"- {told}")
    return "\n".join(lines) + "\n"


def _values() -> set[type]:
    """What the public methods give and take, and what is in that: dataclasses and enums of lakelib."""
    found: set[type] = set()
    waiting = [part for known in _CLASSES for member in vars(known).values() for part in _annotations(member)]
    waiting += [lakelib.Upgrade, lakelib.Snapshot, lakelib.Verdict, *_parts_of(lakelib.restore)]
    while waiting:
        each = waiting.pop()
        is_value = isinstance(each, type) and each.__module__.startswith("lakelib.")
        if not is_value or each in found or not (is_dataclass(each) or issubclass(each, Enum)):
            continue
        if each in _CLASSES or each.__name__ in ("Runtime", "Settings", "StorageSettings", "TableInfo"):
            continue
        found.add(each)
        if is_dataclass(each):
            waiting += [part for hint in typing.get_type_hints(each).values() for part in _flat(hint)]
    return found


def _annotations(member: Any) -> list[Any]:
    if isinstance(member, property) and member.fget is not None:
        return _parts_of(member.fget)
    return _parts_of(member) if inspect.isfunction(member) and not member.__name__.startswith("_") else []


def _parts_of(function: Callable[..., Any]) -> list[Any]:
    return [part for hint in typing.get_type_hints(function).values() for part in _flat(hint)]


def _flat(hint: Any) -> Iterator[Any]:
    yield hint
    for part in typing.get_args(hint):
        yield from _flat(part)


def _errors() -> list[type]:
    named = [getattr(lakelib, name) for name in lakelib.__all__]
    return [each for each in named if isinstance(each, type) and issubclass(each, Exception)]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text())
