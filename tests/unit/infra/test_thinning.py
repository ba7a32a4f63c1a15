"""Which of a test's combinations `make test` takes."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.thinning import choose


def combos(*counts: int) -> list[frozenset[tuple[str, int]]]:
    """All of parameters that have so many values each."""
    each = [[(f"p{place}", value) for value in range(count)] for place, count in enumerate(counts)]
    return [frozenset(values) for values in product(*each)]


def test_as_many_as_there_may_be_are_taken_and_no_more() -> None:
    assert choose(combos(3), 5) == {0, 1, 2}
    assert len(choose(combos(3, 4), 5)) == 5


def test_values_of_one_parameter_are_taken_from_all_over() -> None:
    assert choose(combos(9), 3) == {0, 4, 8}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_with_room_for_each_value_each_is_taken(counts: list[int]) -> None:
    found = combos(*counts)
    taken = choose(found, max(counts))
    assert frozenset().union(*(found[number] for number in taken)) == frozenset().union(*found)
