"""The tasks of the backfill DAG, and what they decide.

plan → stage_and_judge (one a partition, few at a time) → decide → publish → follow_up
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.sdk import Context, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from lake_dags import actions
from lake_dags.backfill_plan import Range, describe_plan, plan_html, plan_items
from lake_dags.catalogue import all_specs, spec_of
from lake_dags.ingest_dag import STAGED_FIELDS, ingest_arguments, runner_of, spark_choice
from lake_dags.operator import LakeJobOperator, ReportLink
from lake_dags.places import REPORT_FILE, clear_folder, task_folder
from lake_dags.pools import SPARK
from lake_dags.review import is_rejected
from lake_dags.runs import clear_number_of, idempotency_key
from lakelib.errors import LakeError

STAGED_AT_ONCE = 2
"""Spark applications of one backfill that run side by side."""

Item = Mapping[str, Any]
_log = logging.getLogger(__name__)


def wire() -> None:
    planned = _plan()
    staged = LakeJobOperator.partial(
        task_id="stage_and_judge",
        job="ingest",
        arguments=stage_arguments,
        runner=lambda item: runner_of(spec_of(item["table"])),
        spark=lambda item: spark_choice(spec_of(item["table"])),
        report=True,
        returns=STAGED_FIELDS,
        pool=SPARK,
        max_active_tis_per_dagrun=STAGED_AT_ONCE,
        map_index_template="{{ task.item['table'] }} {{ task.item['partition'] }}",
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
    published >> _follow_up(planned)


class PlanLink(ReportLink):
    """To what the backfill is to do."""

    name = "Plan"


class PlanOperator(ShortCircuitOperator):
    """Says what is to be made: a table and a partition each. A dry run ends here."""

    operator_extra_links = (PlanLink(),)


def _plan() -> Any:
    return PlanOperator(task_id="plan", python_callable=make_plan, doc_md=PlanOperator.__doc__).output


def make_plan() -> list[dict[str, str]]:
    """What is to be made, which the log and a page of the run say; nothing for a dry run."""
    context = get_current_context()
    params = context["params"]
    try:
        items = plan_items(all_specs(), params["tables"], Range.of(params))
    except (LakeError, ValueError) as error:
        raise AirflowFailException(str(error)) from None
    how = {"atomic": params["atomic"], "dry_run": params["dry_run"]}
    for item in items:
        _log.info("  %s %s", item["table"], item["partition"])
    _log.info("%s", describe_plan(items, **how))
    _write_page(context, plan_html(items, **how))
    return [] if params["dry_run"] else items


def _write_page(context: Context, page: str) -> None:
    """Where the reports of tasks are, and the link to them looks."""
    ti = context["ti"]
    task_home = task_folder(ti.dag_id, ti.run_id, ti.task_id, -1)
    file = clear_folder(task_home, clear_number_of(context)) / f"attempt-{ti.try_number}" / REPORT_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(page, encoding="utf-8")
    draft.replace(file)


def stage_arguments(context: Context, item: Item) -> list[str]:
    spec = spec_of(item["table"])
    return ingest_arguments(spec, item["partition"], idempotency_key(context, item["partition"]))


@task(task_id="decide", trigger_rule="all_done", retries=0)
def _decide(items: list[dict[str, str]] | None) -> list[dict[str, Any]]:
    """What is published together. Raises if an atomic backfill cannot be published as a whole."""
    if items is None:
        raise AirflowSkipException("There is no plan.")
    context = get_current_context()
    found = context["ti"].xcom_pull(task_ids="stage_and_judge", map_indexes=list(range(len(items))))
    return choose_batches(items, found, atomic=context["params"]["atomic"])


def choose_batches(items: Sequence[Item], staged: Sequence[Item | None], *, atomic: bool) -> list[dict[str, Any]]:
    """Batches of commits: one of all, or one for each. Raises AirflowFailException if an atomic one has to leave out a
    commit. None stands for a partition that could not be staged."""
    kept_back = [_why(item, one) for item, one in zip(items, staged, strict=True) if not _is_publishable(one)]
    for why in kept_back:
        _log.warning("%s", why)
    if atomic and kept_back:
        raise AirflowFailException(f"Nothing is published, for all or none is to be: {'; '.join(kept_back)}.")
    commits = [one for one in staged if one is not None and _is_publishable(one) and one["commit"]]
    batches = [commits] if atomic and commits else [[one] for one in commits]
    return [
        {"commits": [each["commit"] for each in batch], "tables": [each["table"] for each in batch]}
        for batch in batches
    ]


def _is_publishable(staged: Item | None) -> bool:
    return staged is not None and not is_rejected(staged)


def _why(item: Item, staged: Item | None) -> str:
    what = f"{item['table']} {item['partition']}"
    return (
        f"{what} was not staged" if staged is None else f"{what} was rejected by its gate (commit {staged['commit']})"
    )


def publish_arguments(context: Context, batch: Item) -> list[str]:
    commits = [f"--commit={commit}" for commit in batch["commits"]]
    return commits + [f"--spec={spec_of(table).path}" for table in dict.fromkeys(batch["tables"])]


@task(task_id="follow_up", trigger_rule="all_done")
def _follow_up(items: list[dict[str, str]] | None) -> None:
    """Tags and done marks of what was published. Fails if something was not, so that the run shows it."""
    if items is None:
        raise AirflowFailException("There is no plan.")  # else the run would be taken for a success
    pull = get_current_context()["ti"].xcom_pull
    staged = pull(task_ids="stage_and_judge", map_indexes=list(range(len(items))))
    published = {one["commit"]: one["snapshot"] for one in _published(pull(task_ids="publish"))}
    missing = []
    for item, one in zip(items, staged, strict=True):
        snapshot = published.get(one["commit"]) if one else None
        if snapshot is not None:
            spec = spec_of(item["table"])
            actions.tag_snapshot(spec, item["partition"], snapshot)
            if spec.publish.mark_done:
                actions.mark_done(spec, item["partition"], snapshot)
        elif one is None or one["outcome"] != "empty":
            missing.append(_why(item, one) if not _is_publishable(one) else f"{item['table']} {item['partition']}")
    if missing:
        raise AirflowException(f"Not published: {'; '.join(missing)}.")


def _published(results: Any) -> list[Item]:
    batches = results if isinstance(results, list) else [results]
    return [one for batch in batches if batch for one in batch["published"]]
