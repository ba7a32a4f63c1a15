"""Use case: a table's options change. They hold for whoever opens the table from then on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelib.catalog import tables
from lakelib.errors import RetryableError
from lakelib.model.options import parse_options
from lakelib.model.table import TableInfo
from lakelib.ops.gates import require_by_option
from lakelib.ops.runtime import Runtime

_MOST_TRIES = 10


def set_options(runtime: Runtime, handle: TableInfo, given: Mapping[str, Any]) -> TableInfo:
    """The table with these options; those that are not named stay. To name a gate is to require it. Raises
    InvalidInputError for an unknown name or a bad value, and for what would take away the gate that is required."""
    for _ in range(_MOST_TRIES):
        table = tables.load_table(runtime.catalog, handle.id, handle.full_name)
        wanted = parse_options({**table.options.as_mapping(), **given})
        if wanted.required_gate != table.options.required_gate:
            require_by_option(runtime, table, wanted.required_gate)
            continue
        if wanted == table.options or tables.replace_options(runtime.catalog, table, wanted):
            return replace(table, options=wanted)
    raise RetryableError(
        f"The options of {handle.full_name} are being changed by others all the time.",
        kind="options_changed",
        remedy="Try again.",
    )
