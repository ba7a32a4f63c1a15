"""Which partition of a table an event of another table is about."""

from typing import Any

from airflow.sdk import FixedKeyMapper, IdentityMapper, StartOfDayMapper, StartOfMonthMapper

from lakelib.specs.partition_keys import KEY_FORMATS, WHOLE
from lakelib.specs.table_spec import TableSpec

_COARSER = {
    ("hour", "day"): StartOfDayMapper,
    ("hour", "month"): StartOfMonthMapper,
    ("day", "month"): StartOfMonthMapper,
}


def choose_map(spec: TableSpec, upstream: TableSpec | None) -> Any:
    """From the keys of a table's events to those of the spec's table: the same step, a coarser one, or the whole.

    A table whose own spec is wrong at the moment is taken to have keys of the same step.
    """
    every = spec.partition.every
    if every == "none":
        return FixedKeyMapper(WHOLE)
    if upstream is None or upstream.partition.every == every:
        return IdentityMapper()
    mapper = _COARSER[upstream.partition.every, every]
    return mapper(input_format=KEY_FORMATS[upstream.partition.every], output_format=KEY_FORMATS[every])
