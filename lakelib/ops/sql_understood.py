"""Part of SQL: what was understood of the last texts. Programs ask the same again and again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from datetime import date, datetime
from decimal import Decimal
from threading import Lock
from types import NoneType
from typing import Any, Generic, TypeVar

from lakelib.plan.asked import AskedQuery, TableColumns
from lakelib.plan.sql_statement import Statement, parse_statement, translate_statement

_MOST = 128
_LONGEST = 20_000
"""Longer ones are made by programs, each for once."""
_PLAIN = (NoneType, bool, int, float, str, bytes, Decimal, date, datetime)

Value = TypeVar("Value")


class _Last(Generic[Value]):
    """The last values, by what they were made of. Safe to use from many threads."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, what: Hashable, make: Callable[[], Value]) -> Value:
        with self._lock:
            if what in self._values:
                self._values.move_to_end(what)
                return self._values[what]
        made = make()
        with self._lock:
            self._values[what] = made
            while len(self._values) > _MOST:
                self._values.popitem(last=False)
        return made


_statements: _Last[Statement] = _Last()
_queries: _Last[AskedQuery] = _Last()


def understand(text: str, values: Mapping[str, Any]) -> Statement:
    """As `parse_statement`."""
    what = _what(text, values)
    if what is None:
        return parse_statement(text, values)
    return _statements.get(what, lambda: parse_statement(text, values))


def say_anew(statement: Statement, tables: Mapping[str, TableColumns]) -> AskedQuery:
    """As `translate_statement`."""
    what = _what(statement.text, statement.values)
    if what is None:
        return translate_statement(statement, tables)
    seen = tuple((key, tuple(each.columns), tuple(each.hidden)) for key, each in tables.items())
    return _queries.get((what, seen), lambda: translate_statement(statement, tables))


def _what(text: Any, values: Mapping[str, Any]) -> Hashable | None:
    """Two that are equal mean the same. None where that is not known."""
    if not isinstance(text, str) or not all(type(value) in _PLAIN for value in values.values()):
        return None
    told = tuple((name, type(value), _told(value)) for name, value in values.items())
    return (text, told) if len(text) + sum(len(each) for _, _, each in told) <= _LONGEST else None


def _told(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)
