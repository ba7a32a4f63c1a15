"""## Maintain: forget old snapshots, delete what nobody needs

**Expire** lets go of snapshots as each spec's `maintenance.expire` says; tags, readers and staged commits keep
theirs. Commits that were rejected, or never published, expire with them. **Vacuum** then deletes files that no
snapshot and no commit names, after a time of grace.

A scheduled run only says what it would do, unless the environment of Airflow says `LAKE_MAINTENANCE=apply`.

### Parameters of a manual run

- `dry_run` (the default): only say what would go. Read the log of **maintain**, then trigger it again without.
- `expire`, `vacuum`: either can be left out.
- `tables`, `namespace`: whose snapshots expire; all tables with a spec, if both are empty. A vacuum is of the whole
  lake.

### Recovery

A failed run is cleared, or left to the next one. What was deleted cannot be brought back: what has to stay needs a tag.
If tasks stay scheduled, somebody has taken the pool `lake_maintenance` away: start the scheduler again, which makes it.
"""

from airflow.sdk import DAG, CronTriggerTimetable, Param, get_current_context, task
from pendulum import datetime

from lake_dags.catalogue import all_specs
from lake_dags.forms import namespace_param, tables_param
from lake_dags.maintenance import batch_arguments, existing_tables, maintain_batches
from lake_dags.operator import LakeJobOperator
from lake_dags.pools import MAINTENANCE


@task(task_id="plan")
def plan() -> list[dict[str, list[str]]]:
    """Which tables by which rules."""
    context = get_current_context()
    scheduled = context["dag_run"].run_type == "scheduled"
    return maintain_batches(context["params"], all_specs(), existing_tables(), scheduled=scheduled)


with DAG(
    dag_id="maintain",
    description="Expires snapshots and deletes files that nobody needs.",
    schedule=CronTriggerTimetable("40 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    params={
        "dry_run": Param(True, type="boolean"),
        "expire": Param(True, type="boolean"),
        "vacuum": Param(True, type="boolean"),
        "tables": tables_param([spec.table for spec in all_specs()]),
        "namespace": namespace_param(),
    },
    default_args={"retries": 1, "owner": "lake", "priority_weight": 1, "weight_rule": "absolute"},
    tags={"lake", "maintenance"},
    doc_md=__doc__,
) as dag:
    LakeJobOperator.partial(
        task_id="maintain",
        job="maintain",
        runner="python",
        arguments=batch_arguments,
        pool=MAINTENANCE,
        max_active_tis_per_dagrun=1,
    ).expand(item=plan())
