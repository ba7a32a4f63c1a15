"""Pure. Decides how much work a task takes: so many groups, about equally heavy, whatever the parts weigh."""

import heapq
from collections.abc import Sequence

from lakelib.model.options import MIB

_TASK_BYTES = 128 * MIB
"""What a task reads, compressed, if there is enough to read."""

_GROUPS_A_SLOT = 2
"""A few more tasks than run at once: who is done early takes another."""


def choose_group_count(total_bytes: int, part_count: int, parallelism: int) -> int:
    """How many tasks share so much work in so many parts."""
    wanted = max(_GROUPS_A_SLOT * parallelism, -(-total_bytes // _TASK_BYTES))
    return max(1, min(part_count, wanted))


def choose_part_count(size_bytes: int, total_bytes: int, parallelism: int) -> int:
    """Into how many parts one split is cut, so that it does not keep the whole job waiting."""
    share = max(1, min(_TASK_BYTES, total_bytes // (_GROUPS_A_SLOT * parallelism)))
    return max(1, round(size_bytes / share)) if size_bytes > 2 * share else 1


def balance(sizes: Sequence[int], group_count: int) -> list[list[int]]:
    """The places of the sizes in groups of about equal weight: the heaviest first, each to the lightest group."""
    groups: list[list[int]] = [[] for _ in range(group_count)]
    lightest = [(0, number) for number in range(group_count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        weight, number = lightest[0]
        groups[number].append(place)
        heapq.heapreplace(lightest, (weight + max(1, sizes[place]), number))
    return [group for group in groups if group]
