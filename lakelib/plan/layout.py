"""Pure. Decides how deep a write splits a partition's keys, and into how many files it cuts a run."""

from lakelib.model.options import TableOptions
from lakelib.model.table import Buckets

DYNAMIC_DEPTH = 8
"""The deepest split that a write to a table with dynamic buckets makes by itself."""


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


def choose_file_count(size_bytes: int, options: TableOptions) -> int:
    """Into how many files of about the target size a run of `size_bytes` is cut."""
    return max(1, round(size_bytes / options.target_file_bytes))
