"""YAML files as values that know their lines: what every spec is read with.

Stricter than YAML: a key given twice, a key that is no text (`on`, `no`, `2026-11-18`) and a value that contains itself
are errors, for none of them means what its author meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lakelib.errors import InvalidInputError, NotFoundError

Place = Sequence[str | int]
"""The way to a value: keys of mappings and positions in lists, from the top."""

_TEXT_TAG = "tag:yaml.org,2002:str"
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlText:
    """What a file says. `values` is made of dict, list, str, int, float, bool, date, datetime, bytes and None."""

    path: str
    values: Any
    root: Node | None

    def line_of(self, place: Place = ()) -> int:
        """The line of the value, from 1: that of its key, where it has one. If there is no such value, the line of what
        should have held it."""
        line, node = 1 if self.root is None else self.root.start_mark.line + 1, self.root
        for step in place:
            line, node = _enter(node, step, line)
            if node is None:
                break
        return line

    def where(self, place: Place = ()) -> str:
        """ "gates/orders.yaml, line 7": how a message names the value."""
        return f"{self.path}, line {self.line_of(place)}"


def load_yaml(path: str | PathLike[str]) -> YamlText:
    """Raises NotFoundError if there is no such file, InvalidInputError naming file and line if it is not right."""
    try:
        content = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"There is no file {path}.", kind="file_not_found", remedy="Check its path.") from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}.", kind="unreadable_file") from error
    return parse_yaml(content, str(path))


def parse_yaml(content: str | bytes, path: str) -> YamlText:
    """As `load_yaml`, for text that is at hand; `path` is what messages call it."""
    try:
        loader = _Loader(content)
        root = loader.get_single_node()
        if root is not None:
            _check(root, path, (), set())
        return YamlText(path=path, values=None if root is None else loader.construct_document(root), root=root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _wrong(path, mark.line + 1 if mark else 1, f"{error.problem or error.context}.") from None
    except yaml.reader.ReaderError as error:
        raise _wrong(path, 1, f"no text in UTF-8: {error.reason} at position {error.position}.") from None
    except RecursionError:
        raise _wrong(path, 1, "nested too deeply.") from None


def dump_yaml(values: Any) -> str:
    """Text that says the values; what `parse_yaml` makes of it are they again. Raises InvalidInputError for values that
    YAML has no words for."""
    try:
        return str(yaml.safe_dump(values, allow_unicode=True, sort_keys=False))
    except yaml.YAMLError as error:
        raise InvalidInputError(
            f"The values cannot be said in YAML: {error}.", kind="invalid_yaml", remedy="Use texts, numbers and dates."
        ) from error


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """SafeLoader, which tells the line of a value that looks like a date and is none."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise ConstructorError(None, None, f"{node.value!r} is no value: {error}", node.start_mark) from None


def _check(node: Node, path: str, above: tuple[Node, ...], seen: set[int]) -> None:
    """Each value once, however many aliases it has."""
    if any(node is each for each in above):
        raise _wrong(path, node.start_mark.line + 1, "a value contains itself.")
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, MappingNode):
        _check_keys(node, path)
    for child in _children(node):
        _check(child, path, (*above, node), seen)


def _check_keys(node: MappingNode, path: str) -> None:
    first_lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.tag == _MERGE_TAG:
            continue
        if not isinstance(key, ScalarNode) or key.tag != _TEXT_TAG:
            shown = repr(key.value) if isinstance(key, ScalarNode) else "a list or mapping"
            raise _wrong(path, line, f"the key {shown} is not read as text; put it in quotes.")
        if key.value in first_lines:
            raise _wrong(path, line, f"the key {key.value!r} is given twice, first in line {first_lines[key.value]}.")
        first_lines[key.value] = line


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, SequenceNode) else []


def _enter(node: Node | None, step: str | int, line: int) -> tuple[int, Node | None]:
    """The line and the node of what is inside; no node if it is not there. What was merged in comes first in a mapping,
    and counts less than its own."""
    if isinstance(node, MappingNode):
        for key, value in reversed(node.value):
            if key.value == step:
                return key.start_mark.line + 1, value
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        child = node.value[step]
        return child.start_mark.line + 1, child
    return line, None


def _wrong(path: str, line: int, what: str) -> InvalidInputError:
    return InvalidInputError(f"{path}, line {line}: {what}", kind="invalid_yaml", remedy="Correct the file.")
