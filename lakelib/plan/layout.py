"""Pure. Decides how deep a write splits a partition's keys, and into how many files it cuts a run."""

from collections.abc import Iterable

from lakelib.model.files import DataFile
from lakelib.model.options import TableOptions
from lakelib.model.schema import Column
from lakelib.model.table import Buckets

DYNAMIC_DEPTH = 8
"""The deepest split that a write to a table with dynamic buckets makes by itself."""

_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "decimal": 16,
}
_UNKNOWN_WIDTH = 12

_LEAST_RATIO = 2
"""How much more than in a file rows take in memory, at least."""


def deepest_split(buckets: Buckets) -> int:
    """The depth beyond which no write to the table goes."""
    match buckets.mode:
        case "fixed":
            return buckets.fixed_depth or 0
        case "dynamic":
            return DYNAMIC_DEPTH
        case _:
            return 0


def likely_depth(buckets: Buckets) -> int:
    """How deep a load is split, where that is known before its size is. A dynamic load is rarely split."""
    return deepest_split(buckets) if buckets.mode == "fixed" else 0


def choose_depth(size_bytes: int, buckets: Buckets, options: TableOptions) -> int:
    """How deep to split rows of one partition that take `size_bytes` in memory: as deep as files stay large enough.

    A small write makes one file a partition; one that fills the buckets makes one file a bucket. With dynamic buckets
    a load is split until its files are of the target size.
    """
    least_bytes = options.target_file_bytes if buckets.mode == "dynamic" else options.min_bucket_file_bytes
    depth = deepest_split(buckets)
    while depth > 0 and size_bytes >> depth < least_bytes:
        depth -= 1
    return depth


def choose_compacted_depth(size_bytes: int, buckets: Buckets, options: TableOptions) -> int:
    """How deep a compaction splits rows of one partition that take `size_bytes` in memory. It knows the size of all, so
    it splits, by size, also where writers are told not to."""
    return choose_depth(size_bytes, Buckets(mode="dynamic") if buckets.mode == "postpone" else buckets, options)


def estimate_row_bytes(columns: Iterable[Column]) -> int:
    """About what a row takes in memory, at least: its values of fixed width, and a little for each other one."""
    return sum(_WIDTHS.get(column.type.partition("(")[0], _UNKNOWN_WIDTH) for column in columns)


def estimate_bytes(file: DataFile, row_bytes: int) -> int:
    """About what a file's rows take in memory."""
    return max(_LEAST_RATIO * file.size_bytes, row_bytes * file.row_count)


def choose_file_count(size_bytes: int, options: TableOptions) -> int:
    """Into how many files of about the target size a run of `size_bytes` is cut."""
    return max(1, round(size_bytes / options.target_file_bytes))
