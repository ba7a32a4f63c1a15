"""## Backfill: partitions of one table or of several, made anew

Each partition is staged and judged as in an ingest run; then they are published, all in one transaction or one by one.

### Parameters

- `tables`: which tables, such as `shop.orders`; several must have keys of the same step (days, hours, months).
- `from`, `to`: the first and the last partition key, both included, such as `2026-11-01`. A table that is not cut by
  time is made once, whatever they say.
- `atomic`: all partitions of all tables become visible in one instant, or none: none is published if one failed or was
  rejected. Without it each is published as soon as all are judged, and those that were rejected stay in quarantine.
- `dry_run` (the default): **plan** prints what would be done, and nothing is done.

### What follows

Tags and done marks are set as in an ingest run (**follow_up**). Tables that are made from others are **not** woken:
list them too, in a backfill of their own after this one. Airflow's own backfill (*Trigger → Backfill* on an ingest
DAG) runs the whole ingest DAG for each partition and does wake them.

### Recovery

| what you see | what to do |
| --- | --- |
| one of **stage_and_judge** failed | read its log, correct the cause, clear that one and what comes after it |
| **decide** failed: a gate rejected a commit | read the reports; correct the source, clear those tasks and the rest |
| **publish** failed | clear it: what is published stays published, nothing is published twice |

A task that is cleared makes a new commit; the one before stays in quarantine until it expires.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from lake_dags.backfilling import wire
from lake_dags.catalogue import all_specs
from lake_dags.forms import END, tables_param

_TABLES = [spec.table for spec in all_specs()]
_KEY = {"type": "string", "pattern": rf"^(\d{{4}}-\d{{2}}(-\d{{2}}(T\d{{2}})?)?|all){END}"}

with DAG(
    dag_id="backfill",
    description="Stages, judges and publishes a range of partitions of one table or of several.",
    schedule=None,
    params={
        "tables": tables_param(_TABLES, title="Tables"),
        "from": Param("2026-01-01", title="First partition", **_KEY),
        "to": Param("2026-01-01", title="Last partition", **_KEY),
        "atomic": Param(True, type="boolean", title="All in one transaction"),
        "dry_run": Param(True, type="boolean", title="Only say what would be done"),
    },
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30), "owner": "lake"},
    max_active_runs=4,
    tags={"lake", "backfill"},
    doc_md=__doc__,
) as dag:
    wire()
