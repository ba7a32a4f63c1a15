"""DuckDB inside of this process, as a query's rows and what it reads come and go; and what its errors mean. Its memory
is bounded, and what does not fit is laid down in a folder; it loads no extension, and reaches no network."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lakelib.errors import LakeError
from lakelib.plan.local_types import INTERRUPTED, UNLIKE, WRONG

BATCH_ROWS = 65_536
Known = Callable[[Exception], LakeError | None]
"""What an error of DuckDB's means; None leaves it as it is."""

_UTC = pa.timestamp("us", "UTC")
_NAIVE = pa.timestamp("us")
_OF_VALUES = ("ConversionException", "OutOfRangeException", "InvalidInputException")
_TELLS_OF_VALUES = ("Conversion Error", "Out of Range Error", "Invalid Input Error")
"""The same, where Arrow says it."""
_TOO_LARGE = ("Out of Memory", "failed to offload")


def connect(memory_bytes: int, threads: int, folder: str, *, in_order: bool) -> Any:
    """Raises ImportError where DuckDB is not installed. With `in_order` rows come as they were read."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_bytes}B",
        "temp_directory": folder,
        "threads": threads,
        "preserve_insertion_order": in_order,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(config=settings)


def shut_off(connection: Any) -> None:
    """From now on it reaches what it was allowed to, and nothing else; nobody can say otherwise."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def batches_of(reader: Any, known: Known, failures: Sequence[BaseException] = ()) -> Iterator[pa.RecordBatch]:
    while True:
        with translated(known, failures):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch


@contextmanager
def translated(known: Known, failures: Sequence[BaseException] = ()) -> Iterator[None]:
    """DuckDB's errors as lakelib's. `failures` are what went wrong in what it reads, which it tells as its own."""
    import duckdb

    try:
        yield
    except RuntimeError as error:
        if str(error) == INTERRUPTED:
            raise KeyboardInterrupt from None
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if failures:
            raise failures[0] from None
        meaning = known(error)
        if meaning is None:
            raise
        raise meaning from error


def said_by_query(error: Exception) -> tuple[str, str] | None:
    """What a query says itself of a value, and how it is meant: by `UNLIKE` or `WRONG`."""
    for sign in (UNLIKE, WRONG):
        _, is_marked, what = str(error).partition(sign)
        if is_marked:
            return sign, what.splitlines()[0]
    return None


def is_of_values(error: Exception) -> bool:
    return type(error).__name__ in _OF_VALUES or str(error).startswith(_TELLS_OF_VALUES)


def is_too_large(error: Exception) -> bool:
    return any(sign in str(error) for sign in _TOO_LARGE)


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def without_zone(kind: pa.DataType) -> pa.DataType:
    """A moment has no zone there: it is that of UTC."""
    return _NAIVE if kind == _UTC else kind


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
