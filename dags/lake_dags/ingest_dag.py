"""Makes the ingest DAG of a table's spec.

wait_for_source → stage_and_judge → review → publish → tag, mark_done → announce

There is no branch, for what a branch has once decided outlives it when tasks are cleared: *review* is skipped unless
the gate rejected the commit, and *publish* fails if a person discarded it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    Context,
    CronTriggerTimetable,
    FixedKeyMapper,
    IdentityMapper,
    Param,
    PartitionedAssetTimetable,
    StartOfDayMapper,
    StartOfMonthMapper,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from pendulum import datetime

from lake_dags import actions, events
from lake_dags.forms import partition_param
from lake_dags.operator import LakeJobOperator, Runner
from lake_dags.pools import pool_of
from lake_dags.review import approval_of, reason_of, review_task, reviewer_of, staged_of
from lake_dags.runs import clear_number_of, idempotency_key, is_made_already, partition_of, snapshots_of_events
from lake_dags.sensor import SourceSensor
from lake_dags.spark_target import SparkChoice
from lake_dags.timetable import CalendarTimetable
from lakelib.errors import InvalidInputError
from lakelib.specs.folder import dag_id_of
from lakelib.specs.partition_keys import KEY_FORMATS, WHOLE
from lakelib.specs.table_fields import Read
from lakelib.specs.table_spec import TableSpec

STAGED_FIELDS = ("table", "partition", "commit", "state", "outcome", "base_snapshot", "snapshot", "report", "failures")
_LONGEST_TAG = 100
_ENDED = ("success", "failed", "skipped", "upstream_failed")
_STAGE_PRIORITY = 2
"""What is staged is published before more is staged: whoever waits for the pool has the higher priority. Maintenance
has the lowest."""
_MAX_ACTIVE_RUNS = 16
"""A run that waits for a person or a file must not keep the others from starting; but where each goes on from what the
one before has published, there is one at a time."""

_COARSER = {
    ("hour", "day"): StartOfDayMapper,
    ("hour", "month"): StartOfMonthMapper,
    ("day", "month"): StartOfMonthMapper,
}
"""From the keys of one step to those of a coarser one."""


def asset_of(table: str) -> Asset:
    """The asset of which an event says: this table has a new snapshot."""
    return Asset(name=table, uri=f"lake://{table.replace('.', '/')}")


def make_ingest_dag(spec: TableSpec, specs: Mapping[str, TableSpec], doc: str) -> DAG:
    """The DAG of a spec. `specs` are all that are right, by table."""
    start = spec.schedule.start if spec.schedule else None
    with DAG(
        dag_id=dag_id_of(spec.table),
        description=spec.description or f"Fills {spec.table}.",
        schedule=_timetable(spec, specs),
        start_date=datetime(start.year, start.month, start.day, tz=_timezone(spec)) if start else None,
        catchup=bool(spec.schedule and spec.schedule.catchup),
        max_active_runs=1 if spec.follows_changes else _MAX_ACTIVE_RUNS,
        params=_params(spec),
        default_args={"retries": spec.retries.count, "retry_delay": spec.retries.delay, "owner": "lake"},
        tags={"lake", "ingest", spec.namespace[:_LONGEST_TAG]},
        doc_md=f"{doc}\n\n{_describe(spec)}",
        auto_register=False,
    ) as dag:
        _wire(spec)
    return dag


def _wire(spec: TableSpec) -> None:
    stage = LakeJobOperator(
        task_id="stage_and_judge",
        job="ingest",
        arguments=lambda context, _: stage_arguments(context, spec),
        report=True,
        returns=STAGED_FIELDS,
        runner=runner_of(spec),
        priority_weight=_STAGE_PRIORITY,
        weight_rule="absolute",
        **job_settings(spec),
    )
    review = review_task(spec.table, spec.review.timeout)
    publish = LakeJobOperator(
        task_id="publish",
        job="publish",
        runner="python",
        arguments=lambda context, _: publish_arguments(context, spec),
        returns=("published",),
        trigger_rule="none_failed_min_one_success",
        **job_settings(spec),
    )
    if spec.source is not None:
        SourceSensor(task_id="wait_for_source", spec=spec) >> stage
    stage >> review >> publish
    stage >> publish
    followers = _follow_ups(spec, publish.output)
    announced = _announce(spec, stage.output, publish.output)
    publish >> [*followers, announced]
    for follower in followers:
        follower >> announced
    if spec.publish.report is not None and spec.publish.report.idle is None:
        [publish, *followers] >> _report(spec, publish.output)


# What jobs are told


def stage_arguments(context: Context, spec: TableSpec) -> list[str]:
    """Of `lake ingest`. The tables that woke the run are read as they were then; others as they are."""
    _check_followed(context)
    is_full = bool(context["params"].get("full"))
    if is_made_already(context, spec.table) and not is_full:
        raise AirflowSkipException("The transaction that has changed its inputs has made this partition, too.")
    try:
        partition = partition_of(context, spec)
    except (InvalidInputError, ValueError) as error:
        raise AirflowFailException(str(error)) from None
    seen = {table: at for table, at in snapshots_of_events(context).items() if table in spec.read_tables}
    return [*ingest_arguments(spec, partition, idempotency_key(context), seen), *(["--full"] if is_full else [])]


def _check_followed(context: Context) -> None:
    """Nobody would publish the new commit of a task that somebody has cleared alone."""
    task = context["ti"]
    if clear_number_of(context):
        states = task.get_task_states(dag_id=task.dag_id, task_ids=["publish"], run_ids=[task.run_id])
        if states.get(task.run_id, {}).get("publish") in _ENDED:
            raise AirflowFailException(
                "This task was cleared alone: nobody would publish its commit. Clear it with all that comes after it."
            )


def ingest_arguments(spec: TableSpec, partition: str, key: str, at: Mapping[str, int] | None = None) -> list[str]:
    pinned = [f"--at={table}={snapshot}" for table, snapshot in sorted((at or {}).items())]
    work = [f"--spec={spec.path}", f"--partition={partition}", f"--idempotency-key={key}"]
    return [*work, "--progress", *pinned]


def publish_arguments(context: Context, spec: TableSpec) -> list[str]:
    """Of `lake publish`: what follows is left to the next tasks. Raises AirflowSkipException where there is nothing to
    publish, AirflowFailException for a commit that a person discarded."""
    staged = staged_of(context)
    if staged["outcome"] == "empty":
        raise AirflowSkipException(
            f"There is nothing to publish of partition {staged['partition']}: no rows, or nothing that has changed."
        )
    answer = approval_of(context, staged)
    approval = [f"--by={reviewer_of(answer)}", f"--reason={reason_of(answer)}"] if answer is not None else []
    return [f"--commit={staged['commit']}", f"--spec={spec.path}", "--no-follow", *approval]


def job_settings(spec: TableSpec) -> dict[str, Any]:
    """Of the operators whose jobs work for a spec."""
    spark = spark_choice(spec)
    return {"spark": spark, "pool": pool_of(spec.engine, spark), "execution_timeout": spec.spark.timeout}


def runner_of(spec: TableSpec) -> Runner:
    """A job that may need no Spark is not started by it."""
    return "spark" if spec.engine == "spark" else "python"


def spark_choice(spec: TableSpec) -> SparkChoice:
    spark = spec.spark
    return SparkChoice(master=spark.master, remote=spark.remote, connection=spark.connection, conf=spark.conf)


# What follows a publish


def _follow_ups(spec: TableSpec, published: Any) -> list[Any]:
    tasks = []
    if spec.publish.tag is not None:
        tasks.append(_tag(spec, published))
    if spec.publish.mark_done:
        tasks.append(_mark_done(spec, published))
    return tasks


def _tag(spec: TableSpec, published: Any) -> Any:
    @task(task_id="tag")
    def tag(published: dict[str, Any]) -> str | None:
        """Tags the new snapshot as the spec's publish.tag says."""
        snapshot = published["published"][0]["snapshot"]
        return actions.tag_snapshot(spec, partition_of(get_current_context(), spec), snapshot)

    return tag(published)


def _mark_done(spec: TableSpec, published: Any) -> Any:
    @task(task_id="mark_done")
    def mark_done(published: dict[str, Any]) -> None:
        """Tells downstream that the partition is complete, in the ways that the spec's publish.mark_done says; and that
        those still are that were done before this run has corrected them."""
        snapshot = published["published"][0]["snapshot"]
        for path in actions.mark_done(spec, partition_of(get_current_context(), spec), snapshot):
            print(f"{path or 'The table'} is done")

    return mark_done(published)


def _report(spec: TableSpec, published: Any) -> Any:
    @task(task_id="report")
    def report(published: dict[str, Any]) -> None:
        """Tells the Hive metastore of the partitions that have changed. Nothing waits for it: the publish stands."""
        snapshot = published["published"][0]["snapshot"]
        print(actions.report(spec, partition_of(get_current_context(), spec), snapshot))

    return report(published)


def _announce(spec: TableSpec, staged: Any, published: Any) -> Any:
    asset = asset_of(spec.table)

    @task(task_id="announce", outlets=[asset], inlets=[asset])
    def announce(staged: dict[str, Any], published: dict[str, Any]) -> str | None:
        """An asset event for each partition that has changed: they wake the DAGs of the tables that come after this.
        Returns what is to be noticed of the run."""
        context = get_current_context()
        (one,) = published["published"]
        own = staged["partition"]
        changed = actions.changed_keys(spec, own, one["snapshot"], lambda: _announced(context, asset))
        event = context["outlet_events"][asset]
        event.add_partitions(events.announced_keys(own, changed))
        event.extra.update(events.event_extra(staged, one, changed))
        said = events.noticed(staged, one, changed)
        print(said or f"Changed: {', '.join(changed)}")
        return said

    return announce(staged, published)


def _announced(context: Context, asset: Asset) -> set[int]:
    """The snapshots of the table that its newest events tell of: at least those of the last announce."""
    newest = context["inlet_events"][asset].ascending(False).limit(2 * events.MOST_EVENTS)
    told: list[Any] = [each.extra["snapshot"] for each in newest if each.extra and "snapshot" in each.extra]
    return set(told)


# When runs start


def _timetable(spec: TableSpec, specs: Mapping[str, TableSpec]) -> Any:
    """A run by the clock is about a partition that is over: at 2 o'clock, about yesterday."""
    schedule = spec.schedule
    every = spec.partition.every
    if schedule is None:
        return None
    if schedule.after is not None:
        return _woken_by(spec, schedule.after, specs)
    assert schedule.cron is not None, "a schedule has either, says lakelib.specs"
    if every == "none":
        return CronTriggerTimetable(schedule.cron, timezone=schedule.timezone)
    return CalendarTimetable(  # type: ignore[abstract]  # of the two next_dagrun_info Airflow wants one
        every=every, cron=schedule.cron, timezone=schedule.timezone
    )


def _woken_by(spec: TableSpec, tables: Sequence[str], specs: Mapping[str, TableSpec]) -> PartitionedAssetTimetable:
    assets = {table: asset_of(table) for table in tables}
    maps: dict[Any, Any] = {asset: _choose_map(spec, specs.get(table)) for table, asset in assets.items()}
    condition: Any = next(iter(assets.values()))
    for asset in list(assets.values())[1:]:
        condition = condition | asset
    return PartitionedAssetTimetable(assets=condition, partition_mapper_config=maps)


def _choose_map(spec: TableSpec, upstream: TableSpec | None) -> Any:
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


def _timezone(spec: TableSpec) -> str:
    return spec.schedule.timezone if spec.schedule else "UTC"


_FULL = "Make the table from scratch: all is read, and what is made takes the place of all that is there."


def _params(spec: TableSpec) -> dict[str, Param]:
    every = spec.partition.every
    full = {"full": Param(False, type="boolean", title="Full", description_md=_FULL)} if spec.follows_changes else {}
    if every == "none":
        return full
    description = f"The {every} to ingest. Runs that are scheduled, backfilled or woken by another table know theirs."
    return {"partition": partition_param(every, "Partition", description), **full}


def _described(read: Read) -> str:
    return f"`{read.table}`" + (f" (what has changed: {read.changes})" if read.changes else "")


def _describe(spec: TableSpec) -> str:
    lines = [f"### {spec.table}", spec.description, "", f"- Spec: `{spec.path.name}`"]
    if spec.source is not None:
        lines.append(f"- Source: `{spec.source.path}` ({spec.source.format})")
    if spec.reads:
        lines.append(f"- Reads: {', '.join(map(_described, spec.reads.values()))}")
    lines.append(f"- Gate: {f'`{spec.gate_path.name}`' if spec.gate_path else 'none'}")
    lines.append(f"- Waits for a person: {spec.review.timeout}; retries: {spec.retries.count}")
    return "\n".join(lines)
