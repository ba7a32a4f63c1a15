"""Pure. Raw values (see `model.sortable`) as Arrow arrays: the way back from `rows.values.raw_values`."""

from collections.abc import Sequence
from decimal import Context, Decimal

import pyarrow as pa

from lakelib.model.predicate import Raw
from lakelib.rows.types import arrow_type

_EXACT = Context(prec=60)


def arrow_values(type_text: str, raws: Sequence[Raw | None]) -> pa.Array:
    """An array of the type with exactly these values."""
    wanted = arrow_type(type_text)
    if pa.types.is_date(wanted):
        return pa.array(raws, pa.int32()).cast(wanted)
    if pa.types.is_timestamp(wanted):
        return pa.array(raws, pa.int64()).cast(wanted)
    if pa.types.is_decimal(wanted):
        return pa.array(
            [None if raw is None else _EXACT.scaleb(Decimal(int(raw)), -wanted.scale) for raw in raws], wanted
        )
    return pa.array(raws, wanted)
