"""What `make test` does without and `make soak` has: most combinations of a test's parameters where each takes a Spark
session, a server or processes of its own, and the same at length that other tests say in short.

Of combinations those are taken that bring most values, and most pairs of values, that the others do not have.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

_MOST = {
    "acceptance": 3,
    "cli": 3,
    "connect": 1,
    "dags": 2,
    "integration": 2,
    "integration/catalog": 3,
    "integration/catalog/test_roles.py": 20,
    "jobs": 2,
    "spark": 2,
    "spark/test_constants.py": 1,
}
"""By the folder or the file: so many combinations of a test are taken. Of tests elsewhere all are."""
_AT_LENGTH = (
    "connect/test_merge_engines.py::",
    "connect/test_streams.py::test_a_batch_that_runs_again_is_known",
    "connect/test_streams.py::test_a_complete_result_takes_the_place_of_the_one_before",
    "integration/faults/test_crowds.py::",
    "integration/spark/test_event_log.py::",
    "integration/spark/test_killed_streams.py::",
    "spark/test_stream_write.py::test_a_batch_that_runs_again_is_not_added_again",
)
"""Each takes a dozen seconds or more of processor time."""

Combination = frozenset[tuple[str, int]]
"""Names of parameters, each with the number of its value."""


def left_out(items: Iterable[pytest.Item], root: Path) -> list[pytest.Item]:
    """The tests that `make test` does without."""
    groups: dict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    found: list[pytest.Item] = []
    for item in items:
        if f"{_name(item.path, root)}::{item.name}".startswith(_AT_LENGTH):
            found.append(item)
        elif (callspec := getattr(item, "callspec", None)) is not None:
            engine, place = (callspec.params.get(name) for name in ("engine", "storage_kind"))
            groups[item.path, item.originalname, engine, place].append(item)
    for (path, _, engine, place), group in groups.items():
        named = (path, *path.parents)
        most = next((_MOST[name] for each in named if (name := _name(each, root)) in _MOST), len(group))
        if engine == "spark" or place == "s3":
            most = 1
        if most >= len(group):
            continue
        taken = choose([frozenset(item.callspec.indices.items()) for item in group], most)
        found += [item for number, item in enumerate(group) if number not in taken]
    return found


@cache
def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else ""


def choose(combos: Sequence[Combination], most: int) -> set[int]:
    """The numbers of those that are taken: of equal ones those that are far from each other."""
    left, taken, had = set(range(len(combos))), set[int](), set[object]()

    def gain(number: int) -> tuple[int, int, int, int]:
        distance = min((abs(number - other) for other in taken), default=0)
        return len(combos[number] - had), len(_pairs(combos[number]) - had), distance, -number

    while left and len(taken) < most:
        best = max(left, key=gain)
        left.remove(best)
        taken.add(best)
        had |= combos[best] | _pairs(combos[best])
    return taken


def _pairs(combo: Combination) -> set[frozenset[tuple[str, int]]]:
    return {frozenset(pair) for pair in combinations(combo, 2)}
