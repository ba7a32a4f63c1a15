"""Puts lakelib's own reader and writer in the place of Spark's, which know of no lake."""

from collections.abc import Callable
from typing import Any

from lakelib.spark.options import Notes

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


def noting_writer(spark_type: type, notes: Callable[[], Notes]) -> Any:
    """Spark's writer, which takes note of what it is told. It is made from Spark's object and the frame."""

    class NotingWriter(spark_type):  # type: ignore[misc]
        def __init__(self, plain: Any, frame: Any) -> None:
            self.__dict__.update(plain.__dict__)
            self._frame = frame
            self._notes = notes()

        def option(self, key: str, value: Any) -> Any:
            self._notes.add({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._notes.add(options)
            return super().options(**options)

        def clusterBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
            self._notes.layout = "clusterBy"
            return super().clusterBy(*cols)

        def _note_partition(self, cols: tuple[Any, ...]) -> None:
            named = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
            self._notes.partition_by = tuple(named)

        def _take(self, format: str | None, partition_by: Any, options: dict[str, Any]) -> None:
            """What the method that begins was told besides."""
            self.options(**options)
            if format is not None:
                self.format(format)
            if partition_by is not None:
                self.partitionBy(partition_by)

    return NotingWriter
