"""Part of SQL: what was understood of the last texts. Programs ask the same again and again."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from datetime import date, datetime
from decimal import Decimal
from threading import Lock
from types import NoneType
from typing import Any, Generic, TypeVar

from lakelib.plan import sql_kinds
from lakelib.plan.asked import AskedQuery, TableColumns
from lakelib.plan.sql_kinds import Change, Show
from lakelib.plan.sql_statement import Statement, translate_statement

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

    def get(self, what: Hashable) -> Value | None:
        with self._lock:
            if what in self._values:
                self._values.move_to_end(what)
            return self._values.get(what)

    def keep(self, what: Hashable, value: Value) -> None:
        with self._lock:
            self._values[what] = value
            while len(self._values) > _MOST:
                self._values.popitem(last=False)


_statements: _Last[Statement] = _Last()
_queries: _Last[AskedQuery] = _Last()


def understand(text: str, values: Mapping[str, Any]) -> Statement | Change | Show:
    """As `sql_kinds.understand`. Of a query that was understood before it is the same object."""
    what = _what(text, values)
    known = None if what is None else _statements.get(what)
    if known is not None:
        return known
    found = sql_kinds.understand(text, values)
    if what is not None and isinstance(found, Statement):
        _statements.keep(what, found)
    return found


def say_anew(statement: Statement, tables: Mapping[str, TableColumns]) -> AskedQuery:
    """As `translate_statement`."""
    what = _what(statement.text, statement.values)
    if what is None or _statements.get(what) is not statement:  # it may be a part of what the text says
        return translate_statement(statement, tables)
    seen = (what, tuple((key, tuple(each.columns), tuple(each.hidden)) for key, each in tables.items()))
    known = _queries.get(seen)
    if known is None:
        known = translate_statement(statement, tables)
        _queries.keep(seen, known)
    return known


def _what(text: Any, values: Mapping[str, Any]) -> Hashable | None:
    """Two that are equal mean the same. None where that is not known."""
    if not isinstance(text, str) or not all(type(value) in _PLAIN for value in values.values()):
        return None
    told = tuple((name, type(value), _told(value)) for name, value in values.items())
    return (text, told) if len(text) + sum(len(each) for _, _, each in told) <= _LONGEST else None


def _told(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)
