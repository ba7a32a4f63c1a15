"""## Compact: few large files in place of many small ones

Readers get the same rows, sooner. Writers go on meanwhile: where one of them was faster, what this run has made is
thrown away, and the next run does it. It waits in a pool of one slot, with the lowest priority.

A scheduled run takes the tables whose specs do not say `maintenance: {compact: null}`, and of these what is due;
tables with `full: true` wholly.

**report**, where a spec says `publish.report`, then tells its Hive metastore what that does not know of partitions
that are at rest: what a publish could not tell is made up for here.

### Parameters of a manual run

- `tables`: these tables. Empty: those of `namespace`; all tables, if that is empty too.
- `namespace`: all tables of a namespace.
- `full`: everything, rather than what is due. Rewrites whole tables.

### Recovery

Nothing is lost by a failed run, and nothing is left half done: clear it, or leave it to the next one. If tasks stay
scheduled, somebody has taken the pool `lake_maintenance` away: start the scheduler again, which makes it.
"""

from airflow.sdk import DAG, CronTriggerTimetable, Param, get_current_context, task
from pendulum import datetime

from lake_dags.actions import report_at_rest
from lake_dags.catalogue import all_specs
from lake_dags.forms import namespace_param, tables_param
from lake_dags.maintenance import batch_arguments, compact_batches, existing_tables
from lake_dags.operator import LakeJobOperator
from lake_dags.pools import MAINTENANCE


@task(task_id="plan")
def plan() -> list[dict[str, list[str]]]:
    """Which tables, and how."""
    context = get_current_context()
    scheduled = context["dag_run"].run_type == "scheduled"
    return compact_batches(context["params"], all_specs(), existing_tables(), scheduled=scheduled)


@task(task_id="report", pool=MAINTENANCE, trigger_rule="all_done")
def report() -> None:
    """Tells Hive metastores what they do not know of the tables whose specs say `publish.report`."""
    there = existing_tables()
    wanted = [spec for spec in all_specs() if spec.publish.report is not None and spec.table in there]
    for told in report_at_rest(wanted):
        print(told)


with DAG(
    dag_id="compact",
    description="Puts the files of tables together.",
    schedule=CronTriggerTimetable("15 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    params={
        "tables": tables_param([spec.table for spec in all_specs()]),
        "namespace": namespace_param(),
        "full": Param(False, type="boolean"),
    },
    default_args={"retries": 1, "owner": "lake", "priority_weight": 1, "weight_rule": "absolute"},
    tags={"lake", "maintenance"},
    doc_md=__doc__,
) as dag:
    compacted = LakeJobOperator.partial(
        task_id="compact",
        job="compact",
        runner="python",
        arguments=batch_arguments,
        pool=MAINTENANCE,
    ).expand(item=plan())
    if any(spec.publish.report is not None for spec in all_specs()):
        compacted >> report()
