"""Pure. What a backfill is to do, and how it is said: in a line, and as a page of HTML that needs no network and no
script."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from lakelib.specs.partition_keys import WHOLE, format_partition
from lakelib.specs.table_spec import TableSpec, partition_range

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886; }
"""
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


def plan_html(items: Sequence[Mapping[str, str]], *, atomic: bool, dry_run: bool) -> str:
    """The page. `items` have a table and a partition each, by table."""
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Plan of a backfill</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{'What would be done' if dry_run else 'What is to be done'}</h1>",
            f"<p>{escape(describe_plan(items, atomic=atomic, dry_run=dry_run))}</p>",
            "<table><thead><tr><th>Table</th><th>Partitions</th><th>Which</th></tr></thead><tbody>",
            *_rows(items),
            "</tbody></table></body></html>",
        )
    )


def describe_plan(items: Sequence[Mapping[str, str]], *, atomic: bool, dry_run: bool) -> str:
    many = "1 partition" if len(items) == 1 else f"{len(items):,} partitions"
    how = "in one transaction: all become visible in one instant, or none does" if atomic else "one by one"
    said = f"{many} to be staged, judged and published {how}."
    return f"{said} This is a dry run: nothing is done. Trigger the DAG again without dry_run." if dry_run else said


def _rows(items: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for table in dict.fromkeys(item["table"] for item in items):
        keys = [item["partition"] for item in items if item["table"] == table]
        more = f" … and {len(keys) - _MOST_SHOWN:,} more, up to {keys[-1]}" if len(keys) > _MOST_SHOWN else ""
        listed = escape(", ".join(keys[:_MOST_SHOWN]) + more)
        yield f"<tr><td>{escape(table)}</td><td>{len(keys):,}</td><td>{listed}</td></tr>"
