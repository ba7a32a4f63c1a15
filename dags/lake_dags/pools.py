"""The pools that bound what runs at once: which tasks take a slot, and how many slots there are.

A task in a pool that is not there waits for ever, and nobody hears of it: plugins/lake_pools.py makes those that are
missing.
"""

import os
from collections.abc import Mapping

from lakelib.specs.table_spec import TableSpec

MAINTENANCE = "lake_maintenance"
SPARK = "lake_spark"
SLOTS_VARIABLE = "LAKE_SPARK_SLOTS"
"""How many slots the Spark pool gets when it is made."""
DESCRIPTIONS = {
    MAINTENANCE: "Compaction and clean-up: one at a time, which leaves the workers to those who write.",
    SPARK: f"What Spark does at once: jobs whose engine may be Spark. {SLOTS_VARIABLE} says how many, else the cores.",
}
_AIRFLOWS_OWN = "default_pool"


def pool_of(spec: TableSpec) -> str:
    """Of the tasks that may need Spark for a table."""
    return _AIRFLOWS_OWN if spec.engine == "local" else SPARK


def slots_of(pool: str, environ: Mapping[str, str] = os.environ) -> int:
    """Raises ValueError for a number that is none."""
    if pool == MAINTENANCE:
        return 1
    said = environ.get(SLOTS_VARIABLE)
    if not said:
        return os.cpu_count() or 1
    if not said.isdecimal() or int(said) < 1:
        raise ValueError(f"{SLOTS_VARIABLE} is {said!r}: say how many Spark jobs may run at once, 1 or more.")
    return int(said)
