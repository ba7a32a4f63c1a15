"""Pure. Decides how much work a task takes: so many parts, all tasks about equally heavy, whatever the parts weigh."""

import heapq
from collections.abc import Sequence

from lakelib.model.options import MIB

_TASK_BYTES = 128 * MIB
"""What a task reads, compressed, if there is enough to read."""

_TASKS_A_SLOT = 2
"""A few more tasks than run at once: who is done early takes another."""


def choose_task_count(total_bytes: int, part_count: int, parallelism: int) -> int:
    """How many tasks share so much work in so many parts."""
    wanted = max(_TASKS_A_SLOT * parallelism, -(-total_bytes // _TASK_BYTES))
    return max(1, min(part_count, wanted))


def choose_part_count(size_bytes: int, total_bytes: int, parallelism: int) -> int:
    """Into how many parts one split is cut, so that it does not keep the whole job waiting."""
    task_bytes = max(1, min(_TASK_BYTES, total_bytes // (_TASKS_A_SLOT * parallelism)))
    return max(1, round(size_bytes / task_bytes)) if size_bytes > 2 * task_bytes else 1


def balance(sizes: Sequence[int], task_count: int) -> list[list[int]]:
    """The places of the sizes, by task, of about equal weight: the heaviest first, each to the lightest task."""
    dealt: list[list[int]] = [[] for _ in range(task_count)]
    lightest = [(0, number) for number in range(task_count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        weight, number = lightest[0]
        dealt[number].append(place)
        heapq.heapreplace(lightest, (weight + max(1, sizes[place]), number))
    return [places for places in dealt if places]
