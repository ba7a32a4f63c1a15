"""The pools that bound what runs at once: which tasks take a slot, and how many slots there are.

A task in a pool that is not there waits for ever, and nobody hears of it: plugins/lake_pools.py makes those that are
missing.
"""

import os
from collections.abc import Mapping

from lake_dags.spark_target import SparkChoice

MAINTENANCE = "lake_maintenance"
SPARK = "lake_spark"
SESSIONS = "lake_sessions"
_VARIABLES = {SPARK: "LAKE_SPARK_SLOTS", SESSIONS: "LAKE_SESSION_SLOTS"}
"""How many slots a pool gets when it is made."""
_SLOTS_A_CORE = {SPARK: 1, SESSIONS: 2}
"""A session on a server that stays waits for half of its time: for its client, and for the server's turn."""
DESCRIPTIONS = {
    MAINTENANCE: "Compaction and clean-up: one at a time, which leaves the workers to those who write.",
    SPARK: f"Spark applications at once: jobs that may start one. {_VARIABLES[SPARK]} says how many, else the cores.",
    SESSIONS: f"Sessions at once on Spark servers that stay. {_VARIABLES[SESSIONS]} says how many, else two a core.",
}
_AIRFLOWS_OWN = "default_pool"


def pool_of(engine: str, spark: SparkChoice) -> str:
    """Of the tasks that may need Spark for a table. Who reads a DAG does not ask what connections say: theirs is taken
    for an application."""
    if engine == "local":
        return _AIRFLOWS_OWN
    return SESSIONS if spark.is_on_server else SPARK


def slots_of(pool: str, environ: Mapping[str, str] = os.environ) -> int:
    """Raises ValueError for a number that is none."""
    if pool == MAINTENANCE:
        return 1
    said = environ.get(_VARIABLES[pool])
    if not said:
        return _SLOTS_A_CORE[pool] * (os.cpu_count() or 1)
    if not said.isdecimal() or int(said) < 1:
        raise ValueError(f"{_VARIABLES[pool]} is {said!r}: say how many Spark jobs may run at once, 1 or more.")
    return int(said)
