"""## Backfill: partitions of one table or of several, made anew

Each partition is staged and judged as in an ingest run; then they are published, all in one transaction or one by one.
In one transaction each is judged on top of those before it, and what is made from them is made anew with them.

### Parameters

- `tables`: which tables, such as `shop.orders`. A table that is not cut by time is made once, whatever the days are.
- `from`, `to`: the first and the last day, both included: the days of a table that is cut by days, all their hours, and
  all months that a day of them lies in.
- `from_key`, `to_key`: in place of the days where these are too coarse or too fine: the first and the last partition
  key, such as `2026-11-18T05` or `2026-11`. All tables have keys of that step then.
- `atomic`: all partitions of all tables become visible in one instant, or none: none is published if one failed or was
  rejected. Without it each is published as soon as all are judged, and those that were rejected stay in quarantine.
- `downstream` (the default): with `atomic`, the tables that come after these (`schedule.after`) and are made by a query
  over tables alone are made anew in the same transaction, from the rows as they would be then, each behind its gate:
  the partitions that have changed, also by late corrections. All others that come after are woken afterwards, as by an
  ingest run; without `atomic` all are. Without `downstream` nothing is made from them and nobody is woken.
- `dry_run` (the default): **plan** says what would be done, and nothing is done.

The task **plan** has the plan as a page (*Plan*, beside its log), dry run or not.

### What follows

Tags and done marks are set as in an ingest run (**follow_up**), and asset events tell of what has changed
(**announce**). **conclude** fails if something was not published. Airflow's own backfill (*Trigger → Backfill* on an
ingest DAG) runs the whole ingest DAG for each partition.

### Recovery

| what you see | what to do |
| --- | --- |
| **plan** failed | it says what cannot be in one transaction; trigger the DAG anew |
| one of **stage_and_judge** failed | its message names the partition: correct the cause, clear it and all after it |
| **decide** failed: a rejection | it says which, and why; correct the source, clear stage_and_judge and all after it |
| **publish** failed | clear it: what is published stays published, nothing is published twice |
| **publish** failed: a conflict | others have changed what is replaced: clear stage_and_judge and all after it |
| **follow_up** or **announce** failed | correct the cause and clear it |

A task that is cleared makes a new commit; the one before stays in quarantine until it expires.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from lake_dags.backfilling import wire
from lake_dags.catalogue import all_specs
from lake_dags.forms import day_param, key_param, tables_param

_TABLES = [spec.table for spec in all_specs()]
_KEYS = "Partition keys in place of days"

with DAG(
    dag_id="backfill",
    description="Stages, judges and publishes a range of partitions of one table or of several.",
    schedule=None,
    params={
        "tables": tables_param(
            _TABLES,
            title="Tables",
            description_md="Whose partitions are made anew. Those of `LAKE_TABLES` are offered.",
        ),
        "from": day_param("First day", "Of a table that is cut by hours all hours of the day, by months its month."),
        "to": day_param("Last day", "It is included. Nothing: the first day alone."),
        "atomic": Param(
            True,
            type="boolean",
            title="All in one transaction",
            description_md="All partitions of all tables become visible in one instant, or none does. Without it, those"
            " that their gates accept are published one by one.",
        ),
        "downstream": Param(
            True,
            type="boolean",
            title="And what is made from them",
            description_md="In the same transaction, where it is one and a query makes it from tables alone; else its"
            " runs are started afterwards. Without it, it stays as it is.",
        ),
        "dry_run": Param(
            True,
            type="boolean",
            title="Only say what would be done",
            description_md="The task *plan* says it, on a page of its own. Untick it to have it done.",
        ),
        "from_key": key_param("First key", "Such as `2026-11-18T05` or `2026-11`.", section=_KEYS),
        "to_key": key_param("Last key", "It is included.", section=_KEYS),
    },
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30), "owner": "lake"},
    max_active_runs=4,
    tags={"lake", "backfill"},
    doc_md=__doc__,
) as dag:
    wire()
