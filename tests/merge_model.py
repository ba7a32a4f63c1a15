"""What the merge engines mean, told row by row in plain Python: independent of the kernels, and slow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One version of a key, in the order in which they came."""

    row: Row
    is_delete: bool = False


@dataclass(frozen=True)
class Model:
    """A table's columns and how it merges, in the words of `create_table`."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    merge: Mapping[str, Any]
    sequence: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    def rows(self, events: Iterable[Event]) -> list[Row]:
        """What the table shows once these have come."""
        of_key: dict[tuple[Any, ...], list[Event]] = {}
        for event in events:
            of_key.setdefault(tuple(event.row[name] for name in (*self.key, *self.fixed)), []).append(event)
        shown = (self._merged(own) for own in of_key.values())
        rows = [{name: row.get(name) for name in self.columns} for row in shown if row is not None]
        return sorted(rows, key=lambda row: [row[name] for name in self.key])

    def _merged(self, events: Sequence[Event]) -> Row | None:
        engine = self.merge["engine"]
        if engine == "deduplicate":
            newest = max(enumerate(events), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1]
            return None if newest.is_delete else newest.row
        marks_stay = self.merge.get("on_delete") == "groups" or self.merge.get("retract")
        if not marks_stay:
            for place in reversed(range(len(events))):
                if events[place].is_delete:
                    events = events[place + 1 :]
                    break
        if not any(not event.is_delete for event in events):
            return None
        if engine == "first_row":
            return min(enumerate(events), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1].row
        merged = {name: events[0].row[name] for name in (*self.key, *self.fixed)}
        newest = max(enumerate(events), key=lambda pair: (self._rank(pair[1].row), pair[0]))[1]
        merged |= {name: newest.row.get(name) for name in self.sequence}
        if engine == "partial_update":
            return merged | self._partial(events, merged)
        return merged | self._aggregated(events, merged)

    def _rank(self, row: Row, names: Sequence[str] | None = None) -> list[tuple[bool, Any]]:
        return [rank(row.get(name)) for name in (self.sequence if names is None else names)]

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

    def _newest_value(self, events: Sequence[Event], name: str) -> Any:
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

    def _function(self, function: str, events: Sequence[Event], name: str) -> Any:
        signed = [(event.row.get(name), -1 if event.is_delete else 1) for event in events]
        values = [value for value, _ in signed if value is not None]
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
        return _OF_VALUES[function.partition("(")[0]](values)


def rank(value: Any) -> tuple[bool, Any]:
    """NULL comes before every value."""
    return (value is not None, value if value is not None else 0)


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
    "min": min,
    "max": max,
    "bool_and": all,
    "bool_or": any,
    "collect_list": lambda values: [each for value in values for each in value],
    "collect_set": lambda values: list(dict.fromkeys(each for value in values for each in value if each is not None)),
    "merge_map": _merge_maps,
    "listagg": ",".join,
}
