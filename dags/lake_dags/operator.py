"""LakeJobOperator: runs a command of `lake` as a process of its own, and never twice at once.

The process is detached. If the task dies, its retry finds the process in the run's folder and goes on with it: the log
from its beginning, the result, the exit code. A try that finds that an earlier one ended badly starts the job again,
under the same idempotency key. Who clears the task asks for new work: it gets a folder, and by `runs.idempotency_key`
a key, of its own. Where two processes should run all the same (a worker that is cut off), the catalog lets one of
them publish.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperator, BaseOperatorLink, Connection, Context, ResumableJobMixin
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from lake_dags.detached import (
    JobState,
    attempts_of,
    end_job,
    exit_code_of,
    find_live,
    follow_log,
    start_job,
    state_of,
)
from lake_dags.places import (
    REPORT_FILE,
    REPORTS_URL,
    clear_folder,
    job_command,
    job_environment,
    job_file,
    jobs_home,
    newest_report,
    spark_submit,
    task_folder,
)
from lake_dags.runs import clear_number_of
from lake_dags.spark_target import SparkChoice, SparkTarget, target_of_connection
from lakelib.errors import EXIT_CODE_MEANINGS, InvalidInputError
from lakelib.specs.texts import fill_variables

MISSING = 4
"""The exit code of a job that did not find something: a table, a file."""
_RESULT_FILE = "result.json"
_FINAL = (2, 3, 4, 5, 6, 8)
"""Exit codes (docs/cli.md) of which the same job again would make nothing better."""

Runner = Literal["spark", "python"]
Arguments = Callable[[Context, Any], Sequence[str]]
_NOTHING_CHOSEN = SparkChoice()


class ReportLink(BaseOperatorLink):
    """To the report of the gate's verdict, if the job has written one."""

    name = "Gate report"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        map_index = -1 if ti_key.map_index is None else ti_key.map_index
        if not newest_report(task_folder(ti_key.dag_id, ti_key.run_id, ti_key.task_id, map_index)):
            return ""
        dag_id, run_id, task_id = (quote(name, safe="") for name in (ti_key.dag_id, ti_key.run_id, ti_key.task_id))
        return report_address(dag_id, run_id, task_id, map_index)


def report_address(dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> str:
    """Of a task's report, for a link in Airflow's pages. The parts have to fit into a URL as they are."""
    prefix = urlsplit(conf.get("api", "base_url", fallback="/")).path.rstrip("/")
    return f"{prefix}{REPORTS_URL}/reports/{dag_id}/{run_id}/{task_id}/{map_index}"


class LakeJobOperator(ResumableJobMixin, BaseOperator):
    """Runs `lake <job> --result …` and returns the fields `returns` of its result.

    :param job: the command's name, such as "ingest".
    :param arguments: called with the context and `item`; gives its arguments. `--result` is put before them.
        What is not the DAG's own text is `--name=value` in one argument, or a name behind `--`: no value is an option.
    :param item: what `arguments` is told besides: the output of an earlier task, or the item of a mapped task.
    :param runner: "spark" for spark-submit of `jobs/<job>.py`, unless a Spark Connect server does the work; "python"
        for jobs that may need no Spark; or a function of `item`.
    :param returns: fields of the job's result: ids and words, not data.
    :param report: puts `--report` before them with a file in the run's folder, to which the task then has a link.
    :param spark: where Spark runs, or a function of `item` that says so. Nothing chosen: as SPARK_REMOTE or
        SPARK_MASTER says.
    :param retry_on: exit codes to retry that are final otherwise, such as 4: what is missing may come.
    """

    template_fields: Sequence[str] = ("item",)
    operator_extra_links = (ReportLink(),)
    ui_color = "#d7ecf3"

    def __init__(
        self,
        *,
        job: str,
        arguments: Arguments,
        item: Any = None,
        runner: Runner | Callable[[Any], Runner] = "spark",
        returns: Sequence[str] = (),
        report: bool = False,
        spark: SparkChoice | Callable[[Any], SparkChoice] = _NOTHING_CHOSEN,
        retry_on: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("execution_timeout", timedelta(hours=2))
        super().__init__(**kwargs)
        self.job = job
        self.arguments = arguments
        self.item = item
        self.runner = runner
        self.returns = tuple(returns)
        self.report = report
        self.spark = spark
        self.retry_on = tuple(retry_on)
        self._attempt: Path | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        # The store keeps what it knows of a task when the task is cleared.
        self.external_id_key = f"job_{clear_number_of(context)}"
        self.execute_resumable(context)
        assert self._attempt is not None
        return self._read_result(self._attempt)

    def on_kill(self) -> None:
        if self._attempt is not None:
            end_job(self._attempt)

    # What ResumableJobMixin asks for. The id of a job is the folder of its attempt.

    def submit_job(self, context: Context) -> str:
        """Starts the job, unless one of this run's already is at work or has done it."""
        task = self._task_folder(context)
        folder = clear_folder(task, clear_number_of(context))
        known = find_live(folder) or next((one for one in attempts_of(folder) if exit_code_of(one) == 0), None)
        if known is not None:
            self.log.info("Found the job in %s", known)
            self._attempt = known
            return str(known)
        self._end_leftovers(task)
        arguments = [str(argument) for argument in self.arguments(context, self.item)]
        target = self._target()
        self._attempt = start_job(
            folder,
            lambda attempt: self._command(attempt, target, arguments),
            target.variables(job_environment()),
            jobs_home(),
        )
        self.log.info("Started %s %s in %s", self.job, " ".join(arguments), self._attempt)
        return str(self._attempt)

    def get_job_status(self, external_id: Any, context: Context) -> str:
        self._attempt = Path(str(external_id))
        return state_of(self._attempt).value

    def is_job_active(self, status: str) -> bool:
        return status == JobState.RUNNING

    def is_job_succeeded(self, status: str) -> bool:
        return status == JobState.SUCCEEDED

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Shows the job's log while it runs. Raises as its exit code says."""
        self._attempt = Path(str(external_id))
        for line in follow_log(self._attempt):
            self.log.info(line)
        if state_of(self._attempt) is not JobState.SUCCEEDED:
            raise self._failure(self._attempt)

    def get_job_result(self, external_id: Any, context: Context) -> None:
        """Read by `execute`, which also has it after a reconnection."""

    # Helpers

    def _task_folder(self, context: Context) -> Path:
        task = context["ti"]
        return task_folder(task.dag_id, task.run_id, task.task_id, -1 if task.map_index is None else task.map_index)

    def _end_leftovers(self, task: Path) -> None:
        """A job that was to be done anew may still be at work; one that was killed may have left processes."""
        for folder in task.glob("clear_*"):
            for attempt in attempts_of(folder):
                end_job(attempt)

    def _target(self) -> SparkTarget:
        choice = self.spark(self.item) if callable(self.spark) else self.spark
        try:
            if choice.connection is None:
                master, remote = self._filled(choice.master), self._filled(choice.remote)
                return SparkTarget(master=master, remote=remote, conf=choice.conf)
            connection = Connection.get(choice.connection)
            told = (connection.host, connection.port, connection.extra_dejson, connection.password)
            found = target_of_connection(*told)
        except InvalidInputError as error:
            raise AirflowFailException(str(error)) from None
        except ValueError as error:
            raise AirflowFailException(f"The connection {choice.connection!r} is wrong. {error}") from None
        return replace(found, conf={**found.conf, **choice.conf})

    def _filled(self, place: str | None) -> str | None:
        return place and fill_variables(place, os.environ, f"The Spark of task {self.task_id}")

    def _command(self, attempt: Path, target: SparkTarget, arguments: Sequence[str]) -> list[str]:
        report = ["--report", str(attempt / REPORT_FILE)] if self.report else []
        # What the job is told ends with names, behind which there are no options.
        own = [*report, "--result", str(attempt / _RESULT_FILE)]
        if target.server is not None:
            return [*job_command(self.job), *own, *target.client_arguments(attempt), *arguments]
        runner = self.runner(self.item) if callable(self.runner) else self.runner
        if runner == "spark":
            return [
                spark_submit(),
                *target.submit_arguments(attempt),
                str(job_file(self.job)),
                *own,
                *arguments,
            ]
        master = [f"--master={target.master}"] if target.master else []
        return [*target.environment(attempt), *job_command(self.job), *own, *master, *arguments]

    def _read_result(self, attempt: Path) -> dict[str, Any]:
        try:
            result = json.loads((attempt / _RESULT_FILE).read_text())
        except (OSError, ValueError) as error:
            raise AirflowException(f"The job said that it succeeded, but its result cannot be read: {error}") from error
        return {name: result[name] for name in self.returns if name in result}

    def _failure(self, attempt: Path) -> AirflowException:
        """The exception that makes Airflow retry, or not."""
        code, told = exit_code_of(attempt), _told(attempt)
        if code is None:
            return AirflowException(f"The job was killed, or runs on another machine. Its folder is {attempt}.")
        what = f"The job ended with exit code {code}" + (f" ({EXIT_CODE_MEANINGS[code]})" if code in _FINAL else "")
        message = f"{what}: {told}" if told else f"{what}. Its log is in {attempt}."
        is_final = code in _FINAL and code not in self.retry_on
        return AirflowFailException(message) if is_final else AirflowException(message)


def _told(attempt: Path) -> str:
    """What the job's result says about its failure."""
    try:
        error = json.loads((attempt / _RESULT_FILE).read_text()).get("error") or {}
    except (OSError, ValueError):
        return ""
    return " ".join(text for text in (error.get("message"), error.get("remedy")) if text)
