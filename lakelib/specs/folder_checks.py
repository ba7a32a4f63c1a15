"""Pure. What must hold between the specs of a folder: whose runs start whose, and what their DAGs are called."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from lakelib.specs.problems import Problem

if TYPE_CHECKING:
    from lakelib.specs.table_spec import TableSpec

_STEPS = ("hour", "day", "month")
"""A step says which of a coarser one it lies in."""


def dag_id_of(table: str) -> str:
    """`shop.orders` is filled by Airflow's DAG `ingest__shop__orders`."""
    return "ingest__" + table.replace(".", "__")


def find_problems_between(
    spec: "TableSpec", specs: Sequence["TableSpec"], known: Collection[str] | None
) -> list[Problem]:
    """What is wrong with a spec beside the others of its folder, which are right by themselves. `known` are the tables
    that any file of the folder is about; None if some file does not say."""
    checks: tuple[Callable[[], Iterator[Problem]], ...] = (
        lambda: _table(spec, specs),
        lambda: _dag(spec, specs),
        lambda: _unknown(spec, known),
        lambda: _steps(spec, specs),
        lambda: _cycle(spec, specs),
    )
    return [problem for check in checks for problem in check()]


def _table(spec: "TableSpec", specs: Sequence["TableSpec"]) -> Iterator[Problem]:
    others = [other.path.name for other in specs if other.table == spec.table and other.path != spec.path]
    if others:
        yield Problem(place=("table",), found=repr(spec.table), expected=f"a table of its own; {others[0]} has it")


def _dag(spec: "TableSpec", specs: Sequence["TableSpec"]) -> Iterator[Problem]:
    own = dag_id_of(spec.table)
    others = [other for other in specs if dag_id_of(other.table) == own and other.table != spec.table]
    if others:
        expected = f"a name whose DAG id is free; {others[0].path.name} has {own}, too, for {others[0].table}"
        yield Problem(place=("table",), found=repr(spec.table), expected=expected)


def _unknown(spec: "TableSpec", known: Collection[str] | None) -> Iterator[Problem]:
    for place, table in enumerate(_after(spec)):
        if known is not None and table not in known:
            expected = f"a table of which there is a spec: {', '.join(sorted(known))}"
            yield Problem(place=("schedule", "after", place), found=repr(table), expected=expected)


def _steps(spec: "TableSpec", specs: Sequence["TableSpec"]) -> Iterator[Problem]:
    """The key of a run says which partition of a table that comes after is meant."""
    every = spec.partition.every
    for place, table in enumerate(_after(spec)):
        for other in specs:
            step = other.partition.every
            if other.table != table or every in ("none", step):
                continue
            if step not in _STEPS or _STEPS.index(step) > _STEPS.index(every):
                found = f"{table!r}, whose partition.every is {step}"
                expected = f"tables whose runs say which {every} they are about"
                yield Problem(place=("schedule", "after", place), found=found, expected=expected)


def _cycle(spec: "TableSpec", specs: Sequence["TableSpec"]) -> Iterator[Problem]:
    after = {other.table: _after(other) for other in specs}
    for place, table in enumerate(_after(spec)):
        way = _way(after, table, spec.table)
        if way:
            found = " after ".join([spec.table, *way])
            expected = "tables that do not come after this one; their runs would start each other for ever"
            yield Problem(place=("schedule", "after", place), found=found, expected=expected)


def _way(after: dict[str, tuple[str, ...]], begin: str, end: str) -> list[str]:
    """The shortest one, both ends included; empty if there is none."""
    ways, seen = [[begin]], {begin}
    for way in ways:
        if way[-1] == end:
            return way
        for table in after.get(way[-1], ()):
            if table not in seen:
                seen.add(table)
                ways.append([*way, table])
    return []


def _after(spec: "TableSpec") -> tuple[str, ...]:
    return (spec.schedule.after or ()) if spec.schedule else ()
