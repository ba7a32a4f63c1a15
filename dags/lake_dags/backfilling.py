"""The tasks of the backfill DAG, and what they decide.

plan → stage_and_judge (a job for what is published together) → decide → publish → follow_up → announce → conclude
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.sdk import Context, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from lake_dags import actions, events
from lake_dags.backfill_plan import Plan, Range, describe_plan, make_plan, plan_html, plan_items
from lake_dags.catalogue import all_specs, spec_of
from lake_dags.ingest_dag import asset_of, runner_of, spark_choice
from lake_dags.operator import LakeJobOperator, ReportLink, Runner
from lake_dags.places import REPORT_FILE, clear_folder, task_folder
from lake_dags.pools import SPARK
from lake_dags.review import is_rejected
from lake_dags.runs import clear_number_of, idempotency_key
from lake_dags.spark_target import SparkChoice, shared_choice
from lakelib.errors import LakeError
from lakelib.specs.folder import keys_after
from lakelib.specs.table_spec import TableSpec

STAGED_AT_ONCE = 2
"""Jobs of one backfill that run side by side."""
_LONGEST_STAGING = timedelta(hours=24)

Item = Mapping[str, Any]
_log = logging.getLogger(__name__)


def wire() -> None:
    planned = _plan()
    staged = LakeJobOperator.partial(
        task_id="stage_and_judge",
        job="backfill",
        arguments=stage_arguments,
        runner=batch_runner,
        spark=batch_choice,
        report=True,
        returns=("staged", "left_out"),
        execution_timeout=_LONGEST_STAGING,
        pool=SPARK,
        max_active_tis_per_dagrun=STAGED_AT_ONCE,
        map_index_template="{{ task.item['name'] }}",
    ).expand(item=planned)
    decided = _decide(planned)
    published = LakeJobOperator.partial(
        task_id="publish",
        job="publish",
        runner="python",
        arguments=publish_arguments,
        returns=("published",),
        pool=SPARK,
        max_active_tis_per_dagrun=1,
    ).expand(item=decided)
    staged >> decided
    published >> _follow_up(planned) >> _announce(planned) >> _conclude(planned)


class PlanLink(ReportLink):
    """To what the backfill is to do."""

    name = "Plan"


class PlanOperator(ShortCircuitOperator):
    """Says what is to be made: batches of partitions, each to be published together. A dry run ends here."""

    operator_extra_links = (PlanLink(),)


def _plan() -> Any:
    return PlanOperator(task_id="plan", python_callable=plan_batches, doc_md=PlanOperator.__doc__).output


def plan_batches() -> list[dict[str, Any]]:
    """What is to be made, which the log and a page of the run say; nothing for a dry run."""
    context = get_current_context()
    try:
        plan = _planned(context["params"])
        batches = plan.batches()
        for batch in batches:
            batch_choice(batch)
    except (LakeError, ValueError) as error:
        raise AirflowFailException(str(error)) from None
    for item in (*plan.items, *plan.follows):
        _log.info("  %s %s", item["table"], item["partition"])
    _log.info("%s", describe_plan(plan))
    _write_page(context, plan_html(plan))
    return [] if plan.dry_run else batches


def _planned(params: Mapping[str, Any]) -> Plan:
    specs = all_specs()
    items = plan_items(specs, params["tables"], Range.of(params))
    how = {name: params[name] for name in ("atomic", "dry_run", "downstream")}
    return make_plan(specs, items, **how)


def _write_page(context: Context, page: str) -> None:
    """Where the reports of tasks are, and the link to them looks."""
    ti = context["ti"]
    task_home = task_folder(ti.dag_id, ti.run_id, ti.task_id, -1)
    file = clear_folder(task_home, clear_number_of(context)) / f"attempt-{ti.try_number}" / REPORT_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(page, encoding="utf-8")
    draft.replace(file)


# What jobs are told


def stage_arguments(context: Context, batch: Item) -> list[str]:
    specs = [f"--spec={spec_of(table).path}" for table in batch["tables"]]
    made = [f"--make={item['table']}={item['partition']}" for item in batch["items"]]
    downstream = ["--downstream"] if batch["downstream"] else []
    return [*specs, *made, f"--idempotency-key={idempotency_key(context)}", *downstream, "--progress"]


def batch_runner(batch: Item) -> Runner:
    return "spark" if any(runner_of(spec_of(table)) == "spark" for table in batch["tables"]) else "python"


def batch_choice(batch: Item) -> SparkChoice:
    """One job does the work of all. Raises ValueError for specs that have it done in different places."""
    specs = [spec_of(table) for table in batch["tables"]]
    on_spark = [spec for spec in specs if spec.engine != "local"] or specs[:1]
    return shared_choice({spec.table: spark_choice(spec) for spec in on_spark}, alone=len(specs) == 1)


def publish_arguments(context: Context, batch: Item) -> list[str]:
    commits = [f"--commit={commit}" for commit in batch["commits"]]
    return [*commits, *(f"--spec={spec_of(table).path}" for table in dict.fromkeys(batch["tables"])), "--no-follow"]


# What is published


@task(task_id="decide", trigger_rule="all_done", retries=0)
def _decide(batches: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """What is published together. Raises if a batch cannot be published as a whole."""
    if batches is None:
        raise AirflowSkipException("There is no plan.")
    context = get_current_context()
    return choose_batches(batches, _staged(context, batches), atomic=context["params"]["atomic"])


def choose_batches(batches: Sequence[Item], staged: Sequence[Item | None], *, atomic: bool) -> list[dict[str, Any]]:
    """The batches of commits that are published. Raises AirflowFailException if an atomic one has to leave out a
    commit. None stands for a batch that could not be staged."""
    kept_back = [why for batch, found in zip(batches, staged, strict=True) for why in kept_back_of(batch, found)]
    for why in kept_back:
        _log.warning("%s", why)
    if atomic and kept_back:
        raise AirflowFailException(
            f"Nothing is published, for all or none is to be: {'; '.join(kept_back)}. Correct the source, and clear"
            " stage_and_judge with all that comes after it: every partition is staged and judged anew."
        )
    chosen = []
    for batch, found in zip(batches, staged, strict=True):
        if found is not None and not list(kept_back_of(batch, found)):
            commits = [one for one in found["staged"] if one["commit"]]
            chosen.append({name + "s": [one[name] for one in commits] for name in ("commit", "table")})
    return [each for each in chosen if each["commits"]]


def kept_back_of(batch: Item, found: Item | None) -> Iterator[str]:
    """Why a batch cannot be published, a line a reason."""
    if found is None:
        yield f"{batch['name']} {'were' if len(batch['items']) > 1 else 'was'} not staged"
        return
    for one in found["staged"]:
        if is_rejected(one):
            failures = "".join(f"; {line}" for line in one["failures"])
            yield f"{one['table']} {one['partition']} was rejected by its gate (commit {one['commit']}){failures}"
    for table in found["left_out"]:
        yield f"{table} was not made, for what it comes from was rejected"


def _staged(context: Context, batches: Sequence[Item]) -> Sequence[Item | None]:
    found: Sequence[Item | None] = context["ti"].xcom_pull(
        task_ids="stage_and_judge", map_indexes=list(range(len(batches)))
    )
    return found


# What follows


@task(task_id="follow_up", trigger_rule="all_done")
def _follow_up(batches: list[dict[str, Any]] | None) -> None:
    """Tags and done marks of what was published."""
    for one, published in _done(get_current_context(), batches or ()):
        spec, snapshot = spec_of(one["table"]), published["snapshot"]
        actions.tag_snapshot(spec, one["partition"], snapshot)
        if spec.publish.mark_done:
            actions.mark_done(spec, one["partition"], snapshot)


@task(task_id="announce")
def _announce(batches: list[dict[str, Any]] | None) -> None:
    """Asset events of the tables that have changed, as an ingest run makes them. They say which tables were made in the
    same transaction: their runs have nothing left to do."""
    context = get_current_context()
    if not context["params"]["downstream"]:
        raise AirflowSkipException("The param downstream is false: nobody is woken.")
    done: dict[str, list[tuple[Item, Item]]] = {}
    for one, published in _done(context, batches or ()):
        done.setdefault(one["table"], []).append((one, published))
    changed = {table: _changed(spec_of(table), pairs) for table, pairs in done.items()}
    made = made_up_to_date({table: {one["partition"] for one, _ in pairs} for table, pairs in done.items()}, changed)
    assets = {table: asset_of(table) for table in done}
    # Those that a task names beforehand have an event each time, whether they have changed or not.
    context["task"].outlets = list(assets.values())
    for table, keys in changed.items():
        last, published = done[table][-1]
        event = context["outlet_events"][assets[table]]
        event.add_partitions(events.announced_keys(last["partition"], keys))
        event.extra.update({**events.event_extra(last, published, keys), "made": [*made]})
        _log.info("%s: %s", table, ", ".join(keys))


def _changed(spec: TableSpec, pairs: Sequence[tuple[Item, Item]]) -> list[str]:
    found = (actions.changed_keys(spec, one["partition"], done["snapshot"], lambda: ()) for one, done in pairs)
    return sorted({key for keys in found for key in keys})


def made_up_to_date(made: Mapping[str, set[str]], changed: Mapping[str, Sequence[str]]) -> list[str]:
    """Of the tables whose partitions were made those that have nothing left to follow: all that the changes reach is
    made, and nobody has changed what it was made from while that was under way."""
    specs = {spec.table: spec for spec in all_specs()}
    found = []
    for table, keys in made.items():
        spec = specs[table]
        wanted = keys_after(spec, {other: changed[other] for other in changed if other != table}, specs)
        if spec.reads and wanted <= keys and not wanted & actions.stale_keys(spec):
            found.append(table)
    return found


@task(task_id="conclude")
def _conclude(batches: list[dict[str, Any]] | None) -> None:
    """Fails if something was not published, so that the run shows it."""
    context = get_current_context()
    if batches is None:
        raise AirflowFailException("There is no plan.")  # else the run would be taken for a success
    done = {one["commit"] for one, _ in _done(context, batches)}
    missing = []
    for batch, found in zip(batches, _staged(context, batches), strict=True):
        why = list(kept_back_of(batch, found))
        staged = () if found is None else found["staged"]
        others = [one for one in staged if one["commit"] not in done and one["outcome"] != "empty"]
        missing += why or [f"{one['table']} {one['partition']}" for one in others]
    if missing:
        raise AirflowException(f"Not published: {'; '.join(missing)}.")


def _done(context: Context, batches: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    """What was staged and is published, with its snapshot."""
    results = context["ti"].xcom_pull(task_ids="publish")
    published = {
        one["commit"]: one
        for result in (results if isinstance(results, list) else [results])
        if result
        for one in result["published"]
    }
    for found in _staged(context, batches):
        for one in () if found is None else found["staged"]:
            if one["commit"] in published:
                yield one, published[one["commit"]]
