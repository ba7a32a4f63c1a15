"""Pure. The specs of a folder together: what is made from what, the tables in the order of the chain, which partitions
of the later ones follow, and what must hold between specs: whose runs start whose, and what their DAGs are called."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lakelib.errors import InvalidInputError
from lakelib.specs.partition_keys import WHOLE, format_partition, parse_partition
from lakelib.specs.problems import Problem

if TYPE_CHECKING:
    from lakelib.specs.table_spec import TableSpec

MOST_TOGETHER = 400
"""Partitions that are staged for one transaction: a year of days, and what is made from some of them."""
_STEPS = ("hour", "day", "month")
"""A step says which of a coarser one it lies in."""


def in_order(specs: Sequence["TableSpec"]) -> tuple["TableSpec", ...]:
    """Each after those that it is made from; else as they are given."""
    by_table = {spec.table: spec for spec in specs}
    found: dict[str, TableSpec] = {}
    begun: set[str] = set()

    def add(spec: "TableSpec") -> None:
        if spec.table in begun:  # of tables that read each other, and do not start each other, one has to be first
            return
        begun.add(spec.table)
        for table in inputs_of(spec):
            if table in by_table:
                add(by_table[table])
        found[spec.table] = spec

    for spec in specs:
        add(spec)
    return tuple(found.values())


def inputs_of(spec: "TableSpec") -> tuple[str, ...]:
    """The other tables that it comes after, or reads."""
    named = dict.fromkeys((*followed_by(spec), *spec.read_tables))
    return tuple(table for table in named if table != spec.table)


def followed_by(spec: "TableSpec") -> tuple[str, ...]:
    """The tables whose changes start its runs."""
    return (spec.schedule.after or ()) if spec.schedule else ()


def find_followers(specs: Sequence["TableSpec"], tables: Collection[str]) -> tuple["TableSpec", ...]:
    """Those that changes of the tables start, directly or by others of them, in the order of the chain."""
    reached = set(tables)
    found = []
    for spec in in_order(specs):
        if spec.table not in tables and reached & {*followed_by(spec)}:
            reached.add(spec.table)
            found.append(spec)
    return tuple(found)


def is_made_with_inputs(spec: "TableSpec", tables: Collection[str]) -> bool:
    """Whether changes of the tables can be carried on in their own transaction: the rows come from a query over tables
    alone, the changed ones among them, and take the place of those that were made before. What goes on from the
    changes of its inputs goes on once these are published."""
    whole = spec.partition.every == "none"
    return (
        spec.source is None
        and spec.table not in spec.read_tables
        and spec.write.mode != "append"
        and (spec.partition.from_changes or not spec.follows_changes)
        and (whole or spec.write.mode != "overwrite" or spec.write.partitions != "all")
        and {*followed_by(spec)} & {*tables} <= {*spec.read_tables}
    )


def split_followers(
    specs: Sequence["TableSpec"], tables: Collection[str]
) -> tuple[tuple["TableSpec", ...], tuple["TableSpec", ...]]:
    """Of those that changes of the tables start, the ones that are made together with them, and the ones that are left
    to be woken: what follows none but these is among them."""
    made, woken = [], []
    together = set(tables)
    for spec in find_followers(specs, tables):
        if together & {*followed_by(spec)} and is_made_with_inputs(spec, together):
            together.add(spec.table)
            made.append(spec)
        else:
            woken.append(spec)
    return tuple(made), tuple(woken)


def keys_after(spec: "TableSpec", changed: Mapping[str, Iterable[str]], specs: Mapping[str, "TableSpec"]) -> set[str]:
    """The partitions that runs would be started for, by the keys of the tables' partitions that have changed."""
    found: set[str] = set()
    for table in followed_by(spec):
        upstream = specs.get(table)
        keys = [key for key in changed.get(table, ()) if upstream is None or upstream.has_key(key)]
        found |= {_coarser(spec, upstream, key) for key in keys}
    return {key for key in found if spec.has_key(key)}


def _coarser(spec: "TableSpec", upstream: "TableSpec | None", key: str) -> str:
    every = spec.partition.every
    if every == "none":
        return WHOLE
    if upstream is None or upstream.partition.every == every:
        return key
    begin = parse_partition(upstream.partition.every, key)
    return key if begin is None else format_partition(every, begin)


def check_together(spec: "TableSpec", keys: Sequence[str]) -> None:
    """Raises InvalidInputError for a table of which no transaction can hold several partitions."""
    if len(keys) > 1 and spec.table in spec.read_tables:
        raise InvalidInputError(
            f"{spec.table} reads itself: each of its partitions is made from what the one before has published.",
            kind="reads_itself",
            remedy="Make them one by one: by Airflow's own backfill with one active run, or by ingest runs in order.",
        )


def check_count(count: int, what: str) -> None:
    """Raises InvalidInputError for more partitions than a transaction takes."""
    if count > MOST_TOGETHER:
        raise InvalidInputError(
            f"{count:,} partitions {what}, and one transaction takes {MOST_TOGETHER}.",
            kind="too_many_partitions",
            remedy="Take fewer at a time, leave out what comes from them, or publish them one by one.",
        )


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
