"""YAML files as values that know their lines: what every spec is read with.

Stricter than YAML: a key given twice, a key that is no text (`on`, `no`, `2026-11-18`) and a value that contains itself
are errors, for none of them means what its author meant. Of values, text and levels there is a most, and they count as
often as aliases and merge keys (`<<`) repeat them: a short file cannot become more than its readers can hold.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError

Place = Sequence[str | int]
"""The way to a value: keys of mappings and positions in lists, from the top."""

MOST_BYTES = 2 * 2**20
"""Of a file."""
MOST_VALUES = 100_000
MOST_CHARACTERS = 8 * 2**20
MOST_LEVELS = 50
_MOST_SHOWN = 100
_MOST_BITS = 4096
"""Of a whole number: what is longer Python does not write out."""

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
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"There is no file {path}.", kind="file_not_found", remedy="Check its path.") from None
    except (OSError, ValueError) as error:  # no file can be named with a NUL character, or at any length
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInputError(f"{str(path)!r} cannot be read: {reason}.", kind="unreadable_file") from error
    return parse_yaml(content, str(path))


def parse_yaml(content: str | bytes, path: str) -> YamlText:
    """As `load_yaml`, for text that is at hand; `path` is what messages call it."""
    if len(content) > MOST_BYTES:
        raise _wrong(path, 1, f"longer than {MOST_BYTES:,} bytes.")
    try:
        loader = _Loader(content)
        root = loader.get_single_node()
        if root is not None:
            _measured(root, path, {})
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
    """SafeLoader, which tells the line of a value that looks like a date or a number and is none."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise ValueError("the number is too long")
            return value
        except (ValueError, OverflowError) as error:
            shown = repr(node.value)
            shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
            raise ConstructorError(None, None, f"{shown} is no value: {error}", node.start_mark) from None


@dataclass(frozen=True, slots=True)
class _Size:
    """What a value is made of, aliases followed."""

    values: int
    characters: int
    levels: int


def _measured(node: Node, path: str, known: dict[int, _Size | None]) -> _Size:
    """Checks each value once, however many aliases it has. `known` has those that were measured, and None for those
    that are being measured."""
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise _wrong(path, node.start_mark.line + 1, "a value contains itself.")
        return size
    known[id(node)] = None
    if isinstance(node, MappingNode):
        _check_keys(node, path)
    size = _joined(node, [_measured(child, path, known) for child in _children(node)])
    _check_size(size, path, node.start_mark.line + 1)
    known[id(node)] = size
    return size


def _joined(node: Node, inside: Sequence[_Size]) -> _Size:
    keys = [len(key.value) for key, _ in node.value] if isinstance(node, MappingNode) else []
    own = len(node.value) if isinstance(node, ScalarNode) else sum(keys)
    return _Size(
        1 + len(keys) + sum(each.values for each in inside),
        own + sum(each.characters for each in inside),
        1 + max((each.levels for each in inside), default=0),
    )


def _check_size(size: _Size, path: str, line: int) -> None:
    repeated = "with what aliases and merge keys repeat"
    if size.levels > MOST_LEVELS:
        raise _wrong(path, line, f"nested too deeply: more than {MOST_LEVELS} levels, {repeated}.")
    if size.values > MOST_VALUES:
        raise _wrong(path, line, f"more than {MOST_VALUES:,} values, {repeated}.")
    if size.characters > MOST_CHARACTERS:
        raise _wrong(path, line, f"more than {MOST_CHARACTERS:,} characters of text, {repeated}.")


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
