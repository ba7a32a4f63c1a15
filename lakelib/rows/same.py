"""Pure. Whether two tables hold the same rows."""

from collections.abc import Sequence

import pyarrow as pa


def holds_same_rows(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> bool:
    """Whatever their order; rows of one key are one row. A NaN is the same as nothing. Where there are no keys, rows
    that differ in nested values alone are told apart only if they come in one order."""
    if left.schema != right.schema or left.num_rows != right.num_rows:
        return False
    return bool(left.equals(right) or _in_order(left, keys).equals(_in_order(right, keys)))


def _in_order(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    names = keys or [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return rows.sort_by([(name, "ascending") for name in names]) if names else rows
