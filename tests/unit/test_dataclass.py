"""Values are the standard library's dataclasses in all that they do."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from lakelib.dataclass import dataclass
from lakelib.model.options import TableOptions

_FLAGS = ("frozen", "slots", "kw_only", "repr")


@pytest.mark.parametrize("flags", list(product((False, True), repeat=len(_FLAGS))))
def test_values_are_those_of_the_standard_library(flags: tuple[bool, ...]) -> None:
    how = dict(zip(_FLAGS, flags, strict=True))

    light, other = _made(dataclass(**how)), _made(dataclasses.dataclass(**how))

    assert _told(light, shown=how["repr"]) == _told(other, shown=how["repr"])


def test_values_are_pickled() -> None:
    options = TableOptions(compression_level=3)

    assert pickle.loads(pickle.dumps(options)) == options


def test_a_class_that_inherits_is_frozen_like_the_one_above() -> None:
    @dataclass(frozen=True, slots=True)
    class Above:
        x: int

    @dataclass(frozen=True, slots=True)
    class Below(Above):
        y: int = 2

    assert (Below(1), Below(1) == Above(1), repr(Below(x=1)).split(".")[-1]) == (Below(1, 2), False, "Below(x=1, y=2)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Below(1).x = 3  # type: ignore[misc]


def test_methods_that_a_class_has_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Loud:
        x: int

        def __repr__(self) -> str:
            return "loud"

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Loud(1)), Loud(1) == 5, hash(Loud(1))) == ("loud", True, hash((1,)))


def _made(decorate: Callable[[type], Any]) -> Any:
    class Value:
        a: int
        b: str = dataclasses.field(repr=False)
        c: Any = dataclasses.field(default=3.0, compare=False)
        d: Any = dataclasses.field(default_factory=list)
        e: int = dataclasses.field(default=7, init=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below zero")

    return decorate(Value)


def _told(kind: Any, *, shown: bool) -> list[Any]:
    one, same, other = kind(a=1, b="b"), kind(a=1, b="b", c=4.0), kind(a=0, b="b", d=(1,))
    copied = (copy.copy(one), copy.deepcopy(one), dataclasses.replace(one, c=5))
    return [
        (
            one == same,
            one == other,
            one != same,
            one == (1, "b"),
            one.d is same.d,
            hasattr(one, "__dict__"),
            *(one == each for each in copied),
        ),
        dataclasses.astuple(other),
        kind.__match_args__,
        [each.name for each in dataclasses.fields(kind)],
        [_outcome(work) for work in (lambda: kind(a=-1, b="b"), lambda: kind(b="b"), lambda: kind(1, "b").a)],
        [_outcome(work) for work in (lambda: kind(a=1, b="b", e=1), lambda: kind(a=1, b="b", z=1))],
        [_outcome(work) for work in (lambda: hash(other), lambda: hash(one))],
        [_outcome(work) for work in (lambda: setattr(one, "a", 9), lambda: delattr(one, "a"))],
        repr(other) if shown else "object at" in repr(other),
    ]


def _outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return type(error), str(error)
