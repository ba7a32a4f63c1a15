"""Promises of YAML files that know their lines."""

from datetime import date
from pathlib import Path
from time import process_time

import pytest

from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.specs.yaml_text import load_yaml, parse_yaml

TEXT = """\
# A comment.
name: orders
start: 2026-11-01

checks:
  - type: a
    kwargs:
      column: id
  -
    type: b
base: &base {x: 1, y: 2}
more:
  <<: *base
  y: 3
"""


def test_values_are_those_of_yaml() -> None:
    values = parse_yaml(TEXT, "a.yaml").values
    assert values["start"] == date(2026, 11, 1)
    assert values["checks"] == [{"type": "a", "kwargs": {"column": "id"}}, {"type": "b"}]
    assert values["more"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), 2),
        (("name",), 2),
        (("checks",), 5),
        (("checks", 0), 6),
        (("checks", 0, "kwargs"), 7),
        (("checks", 0, "kwargs", "column"), 8),
        (("checks", 1), 10),
        (("checks", 1, "type"), 10),
        (("more", "y"), 14),
        (("more", "x"), 11),
    ],
)
def test_each_value_knows_its_line(place: tuple[str | int, ...], line: int) -> None:
    assert parse_yaml(TEXT, "a.yaml").line_of(place) == line


@pytest.mark.parametrize(
    ("place", "line"), [(("checks", 0, "kwargs", "mostly"), 7), (("checks", 9), 5), (("name", "x"), 2), (("none",), 2)]
)
def test_a_value_that_is_not_there_has_the_line_of_what_should_hold_it(place: tuple[str | int, ...], line: int) -> None:
    assert parse_yaml(TEXT, "a.yaml").line_of(place) == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "a.yaml, line 3: the key 'a' is given twice, first in line 1."),
        ("a:\n  - on: 1\n", "a.yaml, line 2: the key 'on' is not read as text; put it in quotes."),
        ("? [1, 2]\n: 1\n", "a.yaml, line 1: the key a list or mapping is not read as text; put it in quotes."),
        ("a: &a\n  b: *a\n", "a.yaml, line 1: a value contains itself."),
        ("a: 1\nb: [1,\n", "a.yaml, line 3: expected the node content, but found '<stream end>'."),
        ("a: 1\nb: 2026-13-01\n", "a.yaml, line 2: '2026-13-01' is no value: month must be in 1..12"),
        ("a: !!python/object:os.system {}\n", "a.yaml, line 1: could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "a.yaml, line 2: but found another document."),
        (b"a: \xff\n", "a.yaml, line 1: no text in UTF-8"),
        ("a: " + "[" * 2000 + "]" * 2000, "a.yaml, line 1: nested too deeply."),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse_yaml(text, "a.yaml")
    assert raised.value.message.startswith(message)
    assert raised.value.kind == "invalid_yaml"


def test_aliases_and_merge_keys_repeat_what_they_name() -> None:
    shared = ", ".join(f"k{number}: {number}" for number in range(20))
    merged = "\n".join(f"  - {{<<: *base, name: check {number}, again: *base}}" for number in range(500))
    values = parse_yaml(f"base: &base {{{shared}}}\nchecks:\n{merged}\n", "a.yaml").values
    assert [len(check) for check in values["checks"]] == [22] * 500


def layers(opening: str, repeated: str, closing: str, first: str, count: int = 40) -> str:
    """Each line names the one before nine times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {opening}{', '.join([f'{repeated}*a{n - 1}'] * 9)}{closing}" for n in range(1, count)]
    return "\n".join(lines)


BOMBS = {
    "lists": (layers("[", "", "]", "[x]"), "line 6: more than 100,000 values"),
    "merges": (layers("{<<: [", "", "]}", "{k: v}"), "line 6: more than 100,000 values"),
    "merges of merges": (layers("{x: {<<: [", "", "]}}", "{k: v}"), "line 6: more than 100,000 values"),
    "text": (layers("[", "", "]", "x" * 100_000, 4), "line 4: more than 8,388,608 characters"),
    "keys": (layers("[", "", "]", f"{{{'x' * 999}: 1, {'y' * 999}: 1}}", 6), "line 5: more than 8,388,608 characters"),
    "depth": ("\n".join(["a0: &a0 1", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 3000))]), "line 51: nested too"),
    "brackets": ("a: " + "[" * 100 + "]" * 100, "line 1: nested too deeply"),
    "length": ("a: '" + "x" * 2**21 + "'", "line 1: longer than 2,097,152 bytes"),
    "number": (f"a: 0x{'f' * 5000}", "line 1: '0xfff"),
    "minutes": (f"a: {':'.join(['59'] * 5000)}", "line 1: '59:59"),
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_what_would_become_too_much_is_refused_before_it_is_made(name: str) -> None:
    text, message = BOMBS[name]
    used = process_time()
    with pytest.raises(InvalidInputError, match=rf"^a\.yaml, {message}") as raised:
        parse_yaml(text, "a.yaml")
    assert (raised.value.kind, len(str(raised.value)) < 500) == ("invalid_yaml", True)
    assert process_time() - used < 10


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InvalidInputError, match="longer than 2,097,152 bytes"):
        load_yaml(path)


def test_an_empty_file_has_no_value(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    loaded = load_yaml(tmp_path / "a.yaml")
    assert (loaded.values, loaded.where(("a", 1))) == (None, f"{tmp_path}/a.yaml, line 1")


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"There is no file .*a\.yaml"):
        load_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("name", ["a\0.yaml", "x" * 300])
def test_a_file_that_cannot_be_is_not_readable(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_yaml(tmp_path / name)
