"""Pure. Which rows of two tables, side by side, have the same values: NULL is like NULL, NaN like NaN, and -0.0 is not
like 0.0."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.rows.buffers import whole_array
from lakelib.rows.digest import float_bits, row_digests

Mask = npt.NDArray[np.bool_]


def are_alike(left: pa.Table, right: pa.Table) -> Mask:
    """Tables of the same columns and as many rows."""
    alike = np.ones(left.num_rows, np.bool_)
    for one, other in zip(left.columns, right.columns, strict=True):
        if alike.any():
            alike &= _alike_values(whole_array(one), whole_array(other))
    return alike


def _alike_values(left: pa.Array, right: pa.Array) -> Mask:
    if pa.types.is_nested(left.type):
        same: Mask = row_digests([left]) == row_digests([right])
        return same
    if pa.types.is_floating(left.type):
        left, right = float_bits(left), float_bits(right)
    equal = pc.fill_null(pc.equal(left, right), False)
    if left.null_count and right.null_count:
        equal = pc.or_(equal, pc.and_(left.is_null(), right.is_null()))
    found: Mask = equal.to_numpy(zero_copy_only=False)
    return found
