"""LakeJobOperator, with real processes and real tasks."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Lab, Place

_DAG = """
import json, os
from datetime import timedelta
from airflow.sdk import DAG
from lake_dags.operator import LakeJobOperator

def arguments(context, item):
    return context["params"]["arguments"]

with DAG("probe", schedule=None, params={"arguments": []}):
    LakeJobOperator(task_id="job", job="probe", runner="python", arguments=arguments, returns=("answer",), report=True,
                    retries=1, retry_delay=timedelta(0), retry_on=(4,))
"""
_JOB = """
import argparse, json, os, pathlib, signal, sys, time

parser = argparse.ArgumentParser()
for name in ("--result", "--report", "--release", "--marks"):
    parser.add_argument(name)
parser.add_argument("--codes", default="0")
given = parser.parse_args()
with open(given.marks, "a") as marks:
    marks.write(f"{os.getpid()} {os.getppid()}\\n")
print("at work as", os.getpid(), flush=True)
deadline = time.monotonic() + 100  # a test that failed releases nothing
while given.release and not os.path.exists(given.release) and time.monotonic() < deadline:
    time.sleep(0.02)
starts = len(open(given.marks).readlines())
codes = given.codes.split(",")
code = int(codes[min(starts, len(codes)) - 1])
pathlib.Path(given.report).write_text("<p>report</p>")
error = {"message": "It broke.", "remedy": "Mend it."} if code else None
secrets = [name for name in os.environ if name.startswith("AIRFLOW__")]
json.dump({"answer": starts, "data": "much", "error": error, "secrets": secrets}, open(given.result, "w"))
print("done", flush=True)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def probes(place: Place) -> dict[str, str]:
    """Settings of a lab with one DAG of one task, and one job."""
    for name, content in {"dags/probe.py": _DAG, "jobs/probe.py": _JOB, "jobs/__init__.py": ""}.items():
        path = place.folder / "probes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    folder = place.folder / "probes"
    own_processes = {"LAKE_TEST_PROGRAMS": ""}  # what becomes of them is what is tested
    return {"AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"), "LAKE_JOBS": str(folder), **own_processes}


@pytest.fixture(scope="module")
def lab(open_lab: Callable[..., Lab], probes: dict[str, str]) -> Lab:
    return _opened(open_lab, probes)


def _opened(open_lab: Callable[..., Lab], probes: dict[str, str]) -> Lab:
    lab = open_lab(**probes)
    lab("parse")
    return lab


class Job:
    """What a probe was told, and what it left behind."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.marks, self.release = folder / "marks", folder / "release"
        self.arguments = ["--marks", str(self.marks), *(f"--{name}={value}" for name, value in options.items())]

    def held(self) -> "Job":
        """It works until it is released."""
        self.arguments += ["--release", str(self.release)]
        return self

    @property
    def conf(self) -> dict[str, Any]:
        return {"arguments": self.arguments}

    @property
    def starts(self) -> list[list[int]]:
        """Process and parent of each start."""
        lines = self.marks.read_text().splitlines() if self.marks.exists() else []
        return [[int(word) for word in line.split()] for line in lines]

    def wait_for_start(self) -> None:
        _wait(lambda: self.starts)


def _wait(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_result_names_what_was_asked_for_and_the_log_is_that_of_the_job(lab: Lab, tmp_path: Path) -> None:
    job = Job(tmp_path)
    ran = lab.run("probe", conf=job.conf)
    assert (ran["state"], ran["xcom"]) == ("success", {"job": {"answer": 1}})
    assert f"at work as {job.starts[0][0]}" in lab.log()


def test_a_job_does_not_see_the_keys_to_airflow(lab: Lab, place: Place, tmp_path: Path) -> None:
    ran = lab.run("probe", conf=Job(tmp_path).conf)
    (result,) = (place.folder / "airflow/lake_runs/probe" / ran["run_id"]).rglob("result.json")
    assert json.loads(result.read_text())["secrets"] == []


def test_the_task_links_the_report_that_its_job_wrote(lab: Lab, tmp_path: Path) -> None:
    ran = lab.run("probe", conf=Job(tmp_path).conf)
    assert ran["links"]["job"] == f"/lake/reports/probe/{ran['run_id'].replace(':', '%3A').replace('+', '%2B')}/job/-1"


def test_a_report_is_shown_to_those_who_are_logged_in_and_runs_no_script(lab: Lab, tmp_path: Path) -> None:
    link = lab.run("probe", conf=Job(tmp_path).conf)["links"]["job"]
    assert lab("get", path=link)[0] == 401
    status, kind, text, headers = lab("get", path=link, user="victor")
    assert (status, kind, text) == (200, "text/html; charset=utf-8", "<p>report</p>")
    assert "sandbox" in headers["content-security-policy"]


def test_a_link_to_another_file_is_no_report(lab: Lab, place: Place, tmp_path: Path) -> None:
    ran = lab.run("probe", conf=Job(tmp_path).conf)
    (report,) = (place.folder / "airflow/lake_runs/probe" / ran["run_id"]).rglob("report.html")
    other = place.folder / "airflow/lake_runs/other.html"
    other.write_text("not for all")
    report.unlink()
    report.symlink_to(other)
    assert lab("get", path=ran["links"]["job"], user="victor")[0] == 404


@pytest.mark.parametrize("path", ["probe/no-run/job/-1", "%2E%2E/%2E%2E/%2E%2E/-1", f"probe/{'x' * 300}/job/-1"])
def test_there_is_no_way_to_other_files(lab: Lab, path: str) -> None:
    assert lab("get", path=f"/lake/reports/{path}", user="victor", role="admin")[0] in (404, 405)


@pytest.mark.parametrize("code", [1, 7, 4, 137])
def test_a_job_that_may_succeed_the_next_time_is_tried_again(lab: Lab, tmp_path: Path, code: int) -> None:
    job = Job(tmp_path, codes=f"{code},0")
    ran = lab.run("probe", conf=job.conf)
    assert (ran["state"], ran["tries"]["job"], len(job.starts)) == ("success", 2, 2)


@pytest.mark.parametrize("code", [2, 3, 5, 6, 8])
def test_a_job_that_would_fail_again_is_not_tried_again(lab: Lab, tmp_path: Path, code: int) -> None:
    job = Job(tmp_path, codes=f"{code},0")
    ran = lab.run("probe", conf=job.conf)
    assert (ran["state"], ran["tries"]["job"], len(job.starts)) == ("failed", 1, 1)
    assert "It broke. Mend it." in lab.log()


def test_the_retry_of_a_killed_task_goes_on_with_its_job(
    lab: Lab, open_lab: Callable[..., Lab], probes: dict[str, str], tmp_path: Path
) -> None:
    job = Job(tmp_path).held()
    run_id = _killed_at_work(open_lab, probes, job)
    before = len(lab.log())
    lab("forget", dag_id="probe", run_id=run_id, task_id="job")
    lab.begin("go", dag_id="probe", run_id=run_id)
    _wait(lambda: f"at work as {job.starts[0][0]}" in lab.log()[before:])
    job.release.touch()
    ran = lab.finish()
    assert (ran["state"], ran["xcom"], len(job.starts)) == ("success", {"job": {"answer": 1}}, 1)
    assert "done" in lab.log()[before:]


def test_the_retry_of_a_task_whose_job_ended_meanwhile_takes_its_result(
    lab: Lab, open_lab: Callable[..., Lab], probes: dict[str, str], tmp_path: Path
) -> None:
    job = Job(tmp_path).held()
    run_id = _killed_at_work(open_lab, probes, job)
    job.release.touch()
    _wait(lambda: not _is_alive(job.starts[0][0]) and not _is_alive(job.starts[0][1]))
    lab("forget", dag_id="probe", run_id=run_id, task_id="job")
    ran = lab("go", dag_id="probe", run_id=run_id)
    assert (ran["state"], ran["xcom"], len(job.starts)) == ("success", {"job": {"answer": 1}}, 1)


def test_a_job_killed_with_all_that_watched_it_is_started_again(lab: Lab, tmp_path: Path) -> None:
    job = Job(tmp_path).held()
    run_id = lab("start", dag_id="probe", conf=job.conf)
    lab.begin("go", dag_id="probe", run_id=run_id)
    job.wait_for_start()
    os.killpg(job.starts[0][1], signal.SIGKILL)
    job.release.touch()
    ran = lab.finish()
    assert (ran["state"], ran["tries"]["job"], len(job.starts)) == ("success", 2, 2)


def test_who_ends_a_task_ends_its_job(open_lab: Callable[..., Lab], probes: dict[str, str], tmp_path: Path) -> None:
    job = Job(tmp_path).held()
    lab = _opened(open_lab, probes)
    run_id = lab("start", dag_id="probe", conf=job.conf)
    lab.begin("go", dag_id="probe", run_id=run_id)
    job.wait_for_start()
    lab.process.terminate()
    _wait(lambda: not any(_is_alive(pid) for pid in job.starts[0]))
    job.release.touch()
    lab.finish()


def test_a_cleared_task_does_its_work_anew(lab: Lab, tmp_path: Path) -> None:
    job = Job(tmp_path)
    run_id = lab.run("probe", conf=job.conf)["run_id"]
    lab("clear", dag_id="probe", run_id=run_id)
    ran = lab("go", dag_id="probe", run_id=run_id)
    assert (ran["state"], ran["xcom"], len(job.starts)) == ("success", {"job": {"answer": 2}}, 2)


def _killed_at_work(open_lab: Callable[..., Lab], probes: dict[str, str], job: Job) -> str:
    """The id of a run whose task process was killed while its job was at work."""
    killed = _opened(open_lab, probes)
    run_id: str = killed("start", dag_id="probe", conf=job.conf)
    killed.begin("go", dag_id="probe", run_id=run_id)
    job.wait_for_start()
    killed.process.kill()
    killed.process.wait()
    return run_id
