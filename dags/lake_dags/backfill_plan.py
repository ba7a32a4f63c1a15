"""Pure. What a backfill is to do, and how it is said: in a line, and as a page of HTML that needs no network and no
script."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.specs.folder import check_count, check_together, find_followers, keys_after, split_followers
from lakelib.specs.partition_keys import WHOLE, format_partition
from lakelib.specs.table_spec import TableSpec, partition_range

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886; }
"""
_MORE = "<p>And those that late corrections among the rows turn out to touch.</p>"
_MOST_SHOWN = 400
"""Keys of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Days, or keys: the first and the last."""

    days: tuple[str, str] | None = None
    keys: tuple[str, str] | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "Range":
        """Raises ValueError unless either days or keys are said."""
        days, keys = (params["from"], params["to"]), (params["from_key"], params["to_key"])
        if any(days) == any(keys):
            said = "both" if any(days) else "neither"
            raise ValueError(
                f"Say which partitions: by days (from, to), or by keys (from_key, to_key); {said} are said."
            )
        first, last = days if any(days) else keys
        if first is None:
            raise ValueError("Say the first of the partitions, too (from, or from_key).")
        both = (first, last or first)
        return cls(days=both) if any(days) else cls(keys=both)

    def of_table(self, spec: TableSpec) -> tuple[str, ...]:
        """The keys of a table's partitions; of one that takes dated full copies the last, which would take the place of
        the others. Raises InvalidInputError for keys that are none of them."""
        every = spec.partition.every
        if every == "none":
            return (WHOLE,)
        if self.keys is not None:
            keys = partition_range(spec, *self.keys)
        else:
            assert self.days is not None
            first, last = (datetime.fromisoformat(day) for day in self.days)
            keys = partition_range(spec, format_partition(every, first), format_partition(every, last.replace(hour=23)))
        return keys[-1:] if spec.is_dated_copy else keys


def plan_items(specs: Iterable[TableSpec], tables: Sequence[str], wanted: Range) -> list[dict[str, str]]:
    """By table, in the order given, then by partition. Raises ValueError for a table without a spec, or for none, and
    InvalidInputError for keys that are not those of a table."""
    if not tables:
        raise ValueError("Name at least one table in the param `tables`.")
    known = {spec.table: spec for spec in specs}
    unknown = [table for table in tables if table not in known]
    if unknown:
        raise ValueError(f"No spec is known of {', '.join(map(repr, unknown))}. Known: {', '.join(sorted(known))}.")
    return [
        {"table": table, "partition": key} for table in dict.fromkeys(tables) for key in wanted.of_table(known[table])
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a backfill is to do."""

    items: Sequence[Mapping[str, str]]
    """A table and a partition each, by table."""
    follows: Sequence[Mapping[str, str]] = ()
    """What is made from them in the same transaction, as far as their own partitions tell."""
    woken: Sequence[str] = ()
    """Tables whose runs are started afterwards."""
    atomic: bool
    dry_run: bool
    downstream: bool

    def batches(self) -> list[dict[str, Any]]:
        """What one job each does, for it is published together."""
        if not self.items:
            return []
        parts = [self.items] if self.atomic else [[item] for item in self.items]
        return [
            {
                "items": [dict(item) for item in part],
                "tables": list(dict.fromkeys(item["table"] for item in (*part, *self.follows))),
                "downstream": self.downstream and self.atomic,
                "name": _name(part),
            }
            for part in parts
        ]


def make_plan(
    specs: Iterable[TableSpec], items: Sequence[Mapping[str, str]], *, atomic: bool, dry_run: bool, downstream: bool
) -> Plan:
    """Raises InvalidInputError for what one transaction cannot hold."""
    known = {spec.table: spec for spec in specs}
    keys: dict[str, list[str]] = {}
    for item in items:
        keys.setdefault(item["table"], []).append(item["partition"])
    how = {"atomic": atomic, "dry_run": dry_run, "downstream": downstream}
    if not downstream:
        made: tuple[TableSpec, ...] = ()
        woken: tuple[TableSpec, ...] = ()
    elif atomic:
        made, woken = split_followers(tuple(known.values()), keys)
    else:
        made, woken = (), find_followers(tuple(known.values()), keys)
    follows = []
    for spec in made:
        keys[spec.table] = sorted(keys_after(spec, keys, known))
        follows += [{"table": spec.table, "partition": key} for key in keys[spec.table]]
    if atomic:
        check_count(len(items) + len(follows), "are to be made")
        for table, each in keys.items():
            check_together(known[table], each)
    return Plan(items=items, follows=follows, woken=[spec.table for spec in woken], **how)


def _name(items: Sequence[Mapping[str, str]]) -> str:
    first, more = items[0], len(items) - 1
    return f"{first['table']} {first['partition']}" + (f" and {more:,} more" if more else "")


def plan_html(plan: Plan) -> str:
    """The page."""
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Plan of a backfill</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{'What would be done' if plan.dry_run else 'What is to be done'}</h1>",
            f"<p>{escape(describe_plan(plan))}</p>",
            *_listing(plan.items),
            *(("<h2>Made from them, in the same transaction</h2>", _MORE) if plan.follows else ()),
            *(_listing(plan.follows) if plan.follows else ()),
            *(_woken(plan.woken) if plan.woken else ()),
            "</body></html>",
        )
    )


def describe_plan(plan: Plan) -> str:
    many = _many(len(plan.items))
    how = "in one transaction: all become visible in one instant, or none does" if plan.atomic else "one by one"
    said = f"{many} to be staged, judged and published {how}."
    if plan.follows:
        said += f" With them {_many(len(plan.follows))} of tables that are made from theirs."
    if plan.woken:
        said += f" Afterwards runs are started of {', '.join(plan.woken)}."
    if not plan.dry_run:
        return said
    return f"{said} This is a dry run: nothing is done. Trigger the DAG again without dry_run."


def _many(count: int) -> str:
    return "1 partition" if count == 1 else f"{count:,} partitions"


def _woken(tables: Sequence[str]) -> Iterator[str]:
    yield "<h2>Started afterwards</h2>"
    yield f"<p>Runs of their own, which the changes wake: {escape(', '.join(tables))}.</p>"


def _listing(items: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield "<table><thead><tr><th>Table</th><th>Partitions</th><th>Which</th></tr></thead><tbody>"
    yield from _rows(items)
    yield "</tbody></table>"


def _rows(items: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for table in dict.fromkeys(item["table"] for item in items):
        keys = [item["partition"] for item in items if item["table"] == table]
        more = f" … and {len(keys) - _MOST_SHOWN:,} more, up to {keys[-1]}" if len(keys) > _MOST_SHOWN else ""
        listed = escape(", ".join(keys[:_MOST_SHOWN]) + more)
        yield f"<tr><td>{escape(table)}</td><td>{len(keys):,}</td><td>{listed}</td></tr>"
