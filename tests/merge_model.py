"""What the merge engines mean, told row by row in plain Python: independent of the kernels, and slow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.property.lake_values import rank_or_lowest

Name = Any
"""Of a column; or its id."""
Row = dict[Name, Any]


@dataclass(frozen=True)
class Event:
    """One version of a key, in the order in which they came."""

    row: Row
    is_delete: bool = False
    takes_row: bool = False
    """A delete that takes the row away in any table."""
    commit: Any = None


@dataclass(frozen=True)
class Model:
    """A table's columns and how it merges, in the words of `create_table`."""

    key: tuple[Name, ...]
    columns: tuple[Name, ...]
    merge: Mapping[str, Any]
    sequence: tuple[Name, ...] = ()
    fixed: tuple[Name, ...] = ()

    def rows(self, events: Iterable[Event]) -> list[Row]:
        """What the table shows once these have come."""
        of_key: dict[tuple[Any, ...], list[Event]] = {}
        for event in events:
            of_key.setdefault(tuple(event.row[name] for name in (*self.key, *self.fixed)), []).append(event)
        shown = map(self.merged, of_key.values())
        rows = [{name: row.get(name) for name in self.columns} for row in shown if row is not None]
        return sorted(rows, key=lambda row: [row[name] for name in self.key])

    def merged(self, events: Sequence[Event]) -> Row | None:
        """The row of a key; None if there is none."""
        counted = self.counted(events)
        if not any(not event.is_delete for event in counted):
            return None
        engine = self.merge["engine"]
        if engine in ("deduplicate", "first_row"):
            return self.chosen(counted).row
        merged = {name: counted[0].row[name] for name in (*self.key, *self.fixed)}
        newest = max(enumerate(counted), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1]
        merged |= {name: newest.row.get(name) for name in self.sequence}
        if engine == "partial_update":
            return merged | self._partial(counted, merged)
        return merged | self._aggregated(counted, merged)

    def counted(self, events: Sequence[Event]) -> Sequence[Event]:
        """The versions of a key that no delete has made obsolete."""
        if self.merge["engine"] == "deduplicate":
            newest = max(enumerate(events), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1]
            return [] if newest.is_delete else [newest]
        marks_stay = self.merge.get("on_delete") == "groups" or self.merge.get("retract")
        for place in reversed(range(len(events))):
            if events[place].takes_row or (events[place].is_delete and not marks_stay):
                return events[place + 1 :]
        return events

    def chosen(self, counted: Sequence[Event]) -> Event:
        """The version whose commit the row has."""
        if self.merge["engine"] == "first_row":
            return min(enumerate(counted), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1]
        return counted[-1]

    def _rank(self, row: Row, names: Sequence[Name] | None = None) -> list[tuple[Any, ...]]:
        return [rank_or_lowest(row.get(name)) for name in (self.sequence if names is None else names)]

    def _partial(self, events: Sequence[Event], known: Row) -> Row:
        found: Row = {}
        for group in self.merge.get("groups", ()):
            sequence, columns = group["sequence"], group["columns"]
            newest: Row | None = None
            for event in events:
                if all(event.row.get(name) is None for name in sequence):
                    continue
                if newest is None or self._rank(event.row, sequence) >= self._rank(newest, sequence):
                    newest = dict(event.row)
                    if event.is_delete:
                        newest |= dict.fromkeys(columns)
            found |= {name: None if newest is None else newest.get(name) for name in (*sequence, *columns)}
        for name in self.columns:
            if name not in known and name not in found:
                found[name] = self._newest_value([event for event in events if not event.is_delete], name)
        return found

    def _newest_value(self, events: Sequence[Event], name: Name) -> Any:
        value, best = None, None
        for event in events:
            given = event.row.get(name)
            if given is not None and (best is None or self._rank(event.row) >= best):
                value, best = given, self._rank(event.row)
        return value

    def _aggregated(self, events: Sequence[Event], known: Row) -> Row:
        functions = self.merge.get("functions", {})
        return {
            name: self._function(functions.get(name, "last_non_null"), events, name)
            for name in self.columns
            if name not in known
        }

    def _function(self, function: str, events: Sequence[Event], name: Name) -> Any:
        signed = [(event.row.get(name), -1 if event.is_delete else 1) for event in events]
        values = [value for value, _ in signed if value is not None]
        if function in ("count", "approx_count_distinct") and not any(name in event.row for event in events):
            return None  # all came before the column did
        if function == "approx_count_distinct":
            return len(set(values))
        if function == "count":
            return sum(sign for value, sign in signed if value is not None)
        if function == "sum":
            count = sum(sign for value, sign in signed if value is not None)
            total = sum(sign * value for value, sign in signed if value is not None)
            return total if values and (count or not self.merge.get("retract")) else None
        rows = [event for event in events if not event.is_delete]
        if function in ("first", "last"):
            ordered = sorted(enumerate(rows), key=lambda pair: (self._rank(pair[1].row), pair[0]))
            return ordered[0 if function == "first" else -1][1].row.get(name) if ordered else None
        if function == "last_non_null":
            return self._newest_value(rows, name)
        if not values:
            return None
        if function == "first_non_null":
            ordered = sorted(enumerate(rows), key=lambda pair: (self._rank(pair[1].row), pair[0]))
            return next(event.row[name] for _, event in ordered if event.row.get(name) is not None)
        name, _, delimiter = function.partition("(")
        return delimiter[:-1].join(values) if delimiter else _OF_VALUES[name](values)


def _product(values: Sequence[Any]) -> Any:
    product = 1
    for value in values:
        product *= value
    return product


def _merge_maps(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    merged: dict[Any, Any] = {}
    for value in values:
        merged |= dict(value)
    return sorted(merged.items())


_OF_VALUES: Mapping[str, Any] = {
    "product": _product,
    "min": lambda values: min(values, key=rank_or_lowest),
    "max": lambda values: max(reversed(values), key=rank_or_lowest),
    "bool_and": all,
    "bool_or": any,
    "collect_list": lambda values: [each for value in values for each in value],
    "collect_set": lambda values: list(dict.fromkeys(each for value in values for each in value if each is not None)),
    "merge_map": _merge_maps,
    "listagg": ",".join,
}
