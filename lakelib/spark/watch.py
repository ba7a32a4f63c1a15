"""Puts lakelib's own reader and writer in the place of Spark's, which know of no lake."""

from collections.abc import Callable
from typing import Any

_WATCHED: set[tuple[type, str]] = set()
"""The classes and properties that are replaced already."""


def watch(holder: Any, name: str, derive: Callable[[type], Any], spark_type: type | None = None) -> None:
    """All objects of the holder's class (classic, or Spark Connect's) give as their property `name` an object of the
    class that `derive` makes of Spark's. It is made from Spark's object and the holder. Spark's class is told where the
    holder has no such object to show."""
    holder_type = type(holder)
    if (holder_type, name) in _WATCHED:
        return
    plain = getattr(holder_type, name)
    derived = derive(spark_type or type(getattr(holder, name)))
    setattr(holder_type, name, property(lambda each: derived(plain.fget(each), each), doc=plain.__doc__))
    _WATCHED.add((holder_type, name))
