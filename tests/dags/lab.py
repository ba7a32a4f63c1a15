"""A process with Airflow in it, for tests: it runs DAG runs task by task, as `DAG.test()` does.

Airflow changes the process that imports it; so it never enters the tests' process, and lab_starter.py makes these.
Requests and answers are lines of JSON: `{"do": "go", …}` calls the function `go` below. Requests come from stdin,
answers go to a file descriptor, what tasks log goes to stdout and stderr.

Beyond `DAG.test()` it starts runs that have a partition key, answers review tasks, clears tasks, makes backfills, and
does the scheduler's part when asset events wake other DAGs.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path

from airflow import settings
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.asset import AssetEvent
from airflow.models.backfill import ReprocessBehavior, _create_backfill
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.pool import Pool
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.sdk import timezone
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.definitions.dag import _run_task
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from airflow.timetables.base import TimeRestriction
from airflow.utils import db
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi.testclient import TestClient
from sqlalchemy import delete, select, update

from lake_dags import detached

_BUNDLE = "dags-folder"
_ACTIVE = (DagRunState.QUEUED, DagRunState.RUNNING)
_ENDED = (TaskInstanceState.SUCCESS, TaskInstanceState.FAILED)
_parsed = {}
_triggerer = {"runs": True, "knows lakelib": True}


def migrate() -> None:
    """Makes Airflow's database."""
    db.upgradedb()
    settings.dispose_orm()


def parse(tables: str | None = None) -> dict:
    """Reads the DAG files anew, and stores what they say. DAGs that are new are not paused. Of another folder of tables
    it is only told what becomes of it: calls that follow know the DAGs as before."""
    with _tables(tables):
        bag = _read_files()
    with _session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    sync_bag_to_db(bag, _BUNDLE, None)
    with _session() as session:
        session.execute(update(DagModel).values(is_paused=False))
    if tables is not None:
        _read_files()
    return {"dags": sorted(bag.dags), "errors": bag.import_errors}


def read(tables: str, dag_id: str) -> dict:
    """What a task reads that is one of this DAG: specs of tables, and the DAGs that are made."""
    from lake_dags.catalogue import make_dags, read_for

    with _tables(tables):
        found = read_for(dag_id)
        return {"specs": found and [spec.table for spec in found.specs], "dags": list(make_dags("", dag_id).dags)}


def graph(dag_id: str, tables: str | None = None) -> dict:
    """The tasks that follow each task; perhaps of another folder of tables, of which calls that follow know nothing."""
    if tables is None:
        return {task.task_id: sorted(task.downstream_task_ids) for task in _parsed[dag_id].tasks}
    with _tables(tables):
        _read_files()
        found = graph(dag_id)
    _read_files()
    return found


def form(dag_id: str) -> dict:
    """What may be written into the form of a manual run, as JSON schemas."""
    params = _parsed[dag_id].params
    return {name: params.get_param(name).schema for name in params}


def start(dag_id: str, conf: dict | None = None, partition_key: str | None = None) -> str:
    """Makes a manual run and returns its id."""
    run_id = f"manual__{timezone.utcnow().isoformat()}"
    with _session() as session:
        _stored_dag(dag_id, session).create_dagrun(
            run_id=run_id,
            logical_date=None,
            run_after=timezone.utcnow(),
            conf=conf or {},
            partition_key=partition_key,
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            triggering_user_name="lab",
            state=DagRunState.QUEUED,
            start_date=timezone.utcnow(),
            session=session,
        )
    return run_id


def go(dag_id: str, run_id: str, answer: dict | None = None, until: str | None = None) -> dict:
    """Runs what can run. Returns when the run has ended, or the task `until`, or the run waits for a person and there
    is no answer."""
    starter = os.getppid()
    _read_again(dag_id)
    while os.getppid() == starter:
        with _session() as session:
            run = _load_run(dag_id, run_id, session)
            tasks = run.get_task_instances(session=session)
            if run.state not in _ACTIVE or any(task.task_id == until and task.state in _ENDED for task in tasks):
                break
            run.state = DagRunState.RUNNING
            for task in tasks:
                if task.state == TaskInstanceState.UP_FOR_RETRY:
                    task.state = None  # nobody here has the time to wait for retry_delay
            ready, _ = run.update_state(session=session)
            for task in ready:
                task.try_number += 1
                task.state = TaskInstanceState.SCHEDULED
        if not _run_scheduled(dag_id, run_id):
            waiting = _tasks_in(dag_id, run_id, TaskInstanceState.AWAITING_INPUT)
            if waiting and answer is None:
                break
            if waiting:
                _answer(waiting[0], answer)
            elif _run_triggers(dag_id, run_id):
                pass
            elif not ready:
                time.sleep(0.05)
    return show(dag_id, run_id)


def show(dag_id: str, run_id: str) -> dict:
    with _session() as session:
        run = _load_run(dag_id, run_id, session)
        tasks = run.get_task_instances(session=session)
        pulled = session.scalars(select(XComModel).where(XComModel.dag_id == dag_id, XComModel.run_id == run_id)).all()
        return {
            "state": str(run.state),
            "partition_key": run.partition_key,
            "clear_number": run.clear_number,
            "note": run.note,
            "tasks": {_name(task): str(task.state) for task in tasks},
            "tries": {_name(task): task.try_number for task in tasks},
            "xcom": {_name(one): XComModel.deserialize_value(one) for one in pulled if one.key == "return_value"},
            "links": {_name(one): XComModel.deserialize_value(one) for one in pulled if one.key == "_link_ReportLink"},
        }


def clear(dag_id: str, run_id: str, task_ids: list | None = None, alone: bool = False) -> None:
    """As a person does it: these tasks, with all that come after them unless alone; None is the whole run."""
    with _session() as session:
        dag = _stored_dag(dag_id, session)
        chosen = dag.partial_subset(task_ids, include_upstream=False, include_downstream=not alone) if task_ids else dag
        chosen.clear(run_id=run_id, task_ids=None, dag_run_state=DagRunState.QUEUED, session=session)


def forget(dag_id: str, run_id: str, task_id: str) -> None:
    """What the scheduler does about a task that no longer shows signs of life: it may be tried again at once."""
    with _session() as session:
        (task,) = [
            one
            for one in _load_run(dag_id, run_id, session).get_task_instances(session=session)
            if one.task_id == task_id
        ]
        task.state = None
        task.prepare_db_for_next_try(session)


def wake() -> list:
    """Makes the runs that asset events ask for: their DAG, id and partition key."""
    with _session() as session:
        before = set(session.scalars(select(DagRun.id)))
        SchedulerJobRunner(job=Job())._create_dagruns_for_partitioned_asset_dags(session)
        runs = session.scalars(select(DagRun).where(DagRun.id.not_in(before))).all()
        return [[run.dag_id, run.run_id, run.partition_key] for run in runs]


def backfill(dag_id: str, first: str, last: str) -> list:
    """Airflow's own: the ids and partition keys of its runs."""
    made = _create_backfill(
        dag_id=dag_id,
        from_date=timezone.parse(first),
        to_date=timezone.parse(last),
        max_active_runs=1,
        reverse=False,
        dag_run_conf={},
        reprocess_behavior=ReprocessBehavior.COMPLETED,
        triggering_user_name="lab",
    )
    with _session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.backfill_id == made.id).order_by(DagRun.partition_key)).all()
        return [[run.run_id, run.partition_key] for run in runs]


def calendar(dag_id: str, first: str, last: str) -> dict:
    """Partition keys, each with its moment: those of the runs that the scheduler makes one after another, due between
    first and last, with what a key that is typed by hand stands for; and those of a backfill from first to last."""
    with _session() as session:
        timetable = _stored_dag(dag_id, session).timetable
    earliest, latest = timezone.parse(first), timezone.parse(last)
    restriction = TimeRestriction(earliest=earliest, latest=latest, catchup=True)
    info, scheduled = None, []
    while info := timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=restriction):
        typed = timetable.resolve_partition_date(info.partition_key)
        scheduled.append([info.partition_key, info.run_after, info.partition_date, typed])
    filled = timetable.iter_partition_dagrun_infos(earliest=earliest, latest=latest)
    return {"scheduled": scheduled, "backfilled": [[one.partition_key, one.partition_date] for one in filled]}


def events(asset: str) -> list:
    with _session() as session:
        found = session.scalars(select(AssetEvent).order_by(AssetEvent.id)).all()
        return [{"partition_key": one.partition_key, **one.extra} for one in found if one.asset.name == asset]


def pools() -> dict:
    """Those that are there once a scheduler has started."""
    Job()
    with _session() as session:
        return {pool.pool: pool.slots for pool in session.scalars(select(Pool))}


def set_pool(name: str, slots: int | None) -> None:
    """As a person does it; None takes it away."""
    with _session() as session:
        session.execute(delete(Pool).where(Pool.pool == name))
        if slots is not None:
            session.add(Pool(pool=name, slots=slots, include_deferred=False))


def pools_of(dag_id: str) -> dict:
    """The pool that each task takes a slot of."""
    return {task.task_id: task.pool for task in _parsed[dag_id].tasks}


def triggerer(**how: bool) -> None:
    """From now on it runs or does not, knows lakelib or does not."""
    _triggerer.update(how)


def put(module: str, name: str, value: object) -> None:
    """Gives a constant of the DAGs' modules another value."""
    setattr(sys.modules[module], name, value)


def get(path: str, user: str | None = None, role: str = "viewer") -> list:
    """What the API server answers to a person of that role, or to nobody in particular: status, type, text, headers."""
    with TestClient(app()) as client:
        token = user and get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role=role))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        told = client.get(path, headers=headers)
        return [told.status_code, told.headers.get("content-type"), told.text, dict(told.headers)]


def visit(path: str, user: str, role: str = "admin", form: dict | None = None, headers: dict | None = None) -> list:
    """As a browser of a person who has logged in: a page, or what a form of it leads to. Status, text, headers."""
    server = app()  # with it there is an auth manager
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role=role))
    client = TestClient(server, follow_redirects=False, raise_server_exceptions=False, cookies={"_token": token})
    told = client.get(path, headers=headers) if form is None else client.post(path, data=form, headers=headers)
    return [told.status_code, told.text, dict(told.headers)]


@cache
def app():
    return create_app()


def question(dag_id: str, run_id: str) -> str:
    """What the person who is to decide about a run reads."""
    waiting = [str(task.id) for task in _tasks_in(dag_id, run_id, TaskInstanceState.AWAITING_INPUT)]
    with _session() as session:
        found = session.scalars(select(HITLDetail)).all()
        return next(one.body for one in found if str(one.ti_id) in waiting)


def give_up_waiting() -> None:
    """Lets the time that people have to answer run out, and the scheduler look at it."""
    with _session() as session:
        waits = TaskInstance.state == TaskInstanceState.AWAITING_INPUT
        session.execute(
            update(TaskInstance).where(waits).values(trigger_timeout=timezone.utcnow() - timedelta(minutes=1))
        )
    SchedulerJobRunner(job=Job()).check_awaiting_input_timeouts()


def _read_files() -> BundleDagBag:
    bag = _read(settings.DAGS_FOLDER)
    _parsed.clear()
    _parsed.update(bag.dags)
    return bag


def _read_again(dag_id: str) -> None:
    """Done for each run: the tasks of a run leave its params in their DAG, which in Airflow ends with their process. Of
    the files only the DAG's own is read, as a task does."""
    if (known := _parsed.get(dag_id)) is None:
        _read_files()
    else:
        _parsed.update(_read(known.fileloc).dags)


def _read(files: str) -> BundleDagBag:
    return BundleDagBag(dag_folder=files, bundle_path=Path(settings.DAGS_FOLDER), bundle_name=_BUNDLE)


def _run_scheduled(dag_id: str, run_id: str) -> bool:
    scheduled = _tasks_in(dag_id, run_id, TaskInstanceState.SCHEDULED)
    for task in scheduled:
        try:
            _run_task(ti=task, task=_parsed[dag_id].task_dict[task.task_id])
        except Exception:
            traceback.print_exc()
    return bool(scheduled)


def _run_triggers(dag_id: str, run_id: str) -> bool:
    """What the triggerer does, and where the time of a wait is over the scheduler."""
    deferred = _tasks_in(dag_id, run_id, TaskInstanceState.DEFERRED)
    for task in deferred if _triggerer["runs"] else []:
        with _session() as session:
            row = session.get(Trigger, task.trigger_id)
            classpath, told = row.classpath, smart_decode_trigger_kwargs(row.kwargs)
        try:
            left = (task.trigger_timeout - timezone.utcnow()).total_seconds()
            if classpath.startswith("lake_dags.") and not _triggerer["knows lakelib"]:
                raise ImportError(classpath)
            event = asyncio.run(asyncio.wait_for(anext(import_string(classpath)(**told).run()), left))
            Trigger.submit_event(task.trigger_id, event)
        except TimeoutError:
            pass
        except Exception as error:
            Trigger.submit_failure(task.trigger_id, error)
    if deferred:
        SchedulerJobRunner(job=Job()).check_trigger_timeouts()
    return bool(deferred)


def _tasks_in(dag_id: str, run_id: str, state: TaskInstanceState) -> list:
    with _session() as session:
        tasks = _load_run(dag_id, run_id, session).get_task_instances(session=session)
        found = sorted((task for task in tasks if task.state == state), key=lambda task: task.map_index)
        session.expunge_all()
        return found


def _answer(task: TaskInstance, answer: dict) -> None:
    with _session() as session:
        update_hitl_detail(
            dag_id=task.dag_id,
            dag_run_id=task.run_id,
            task_id=task.task_id,
            update_hitl_detail_payload=UpdateHITLDetailPayload(
                chosen_options=[answer["option"]], params_input={"reason": answer["reason"]}
            ),
            user=SimpleAuthManagerUser(username=answer["user"], role="admin"),
            session=session,
        )


def _load_run(dag_id: str, run_id: str, session) -> DagRun:
    run = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)).one()
    run.dag = _stored_dag(dag_id, session)
    return run


def _stored_dag(dag_id: str, session):
    return DBDagBag().get_latest_version_of_dag(dag_id, session=session)


def _name(one) -> str:
    return one.task_id if one.map_index < 0 else f"{one.task_id}[{one.map_index}]"


@contextmanager
def _tables(folder: str | None):
    before = os.environ.get("LAKE_TABLES")
    if folder is not None:
        os.environ["LAKE_TABLES"] = folder
    try:
        yield
    finally:
        os.environ.pop("LAKE_TABLES", None)
        if before is not None:
            os.environ["LAKE_TABLES"] = before


@contextmanager
def _session():
    session = settings.Session()
    try:
        yield session
        session.commit()
    finally:
        session.close()


def main(answers_to: int) -> None:
    detached.POLL_SECONDS = 0.05  # jobs of tests are short
    with os.fdopen(answers_to, "w", buffering=1) as answers:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                told = {"value": globals()[request.pop("do")](**request)}
            except Exception:
                told = {"error": traceback.format_exc()}
            answers.write(json.dumps(told, default=str) + "\n")
