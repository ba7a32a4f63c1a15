"""Where things are, as the environment of Airflow says. Standard library only."""

import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

PROJECT = Path(__file__).resolve().parents[2]
REPORTS_URL = "/lake"
"""Where the API server serves the reports of verdicts (plugins/lake_reports.py)."""
REPORT_FILE = "report.html"

_JOBS = "LAKE_JOBS"
_SECRET_VARIABLES = re.compile(r"_?AIRFLOW_(_|CONN_|VAR_)")


def tables_folder() -> Path:
    """LAKE_TABLES, else `tables` beside the DAG files: the specs."""
    return Path(os.environ.get("LAKE_TABLES") or PROJECT / "dags" / "tables")


def jobs_home() -> Path:
    """LAKE_JOBS, else this project: the folder that holds the folder `jobs`, where jobs are started."""
    return Path(os.environ.get(_JOBS) or PROJECT)


def job_file(job: str) -> Path:
    """What spark-submit starts."""
    return jobs_home() / "jobs" / f"{job}.py"


def job_command(job: str) -> list[str]:
    """What a process of its own begins with: the command `lake`, unless LAKE_JOBS has programs in its place."""
    return [sys.executable, "-m", *([f"jobs.{job}"] if os.environ.get(_JOBS) else ["lakelib.cli", job])]


def runs_folder() -> Path:
    """LAKE_RUNS, else `lake_runs` in AIRFLOW_HOME: what jobs leave behind. API server and workers have to share it for
    the reports of verdicts to be seen."""
    home = os.environ.get("AIRFLOW_HOME") or Path.home() / "airflow"
    return Path(os.environ.get("LAKE_RUNS") or Path(home) / "lake_runs")


def task_folder(dag_id: str, run_id: str, task_id: str, map_index: int) -> Path:
    """The folder of a task of a DAG run, whatever its tries."""
    names = [_file_name(part) for part in (dag_id, run_id, task_id)]
    return runs_folder().joinpath(*names, *([f"map_{map_index}"] if map_index >= 0 else []))


def clear_folder(task: Path, clear_number: int) -> Path:
    """All tries of a task share a folder until somebody clears it: then the work is to be done anew."""
    return task / f"clear_{clear_number}"


def newest_report(task: Path) -> Path | None:
    """The report that the task wrote last. A link that leads out of the task's folder is none: who may see a DAG's
    reports may not see all files."""
    try:
        reports = [path for path in task.glob(f"clear_*/attempt-*/{REPORT_FILE}") if _is_inside(path, task)]
        return max(reports, key=lambda path: path.stat().st_mtime_ns, default=None)
    except OSError:  # no folder has a name that long
        return None


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def spark_submit() -> str:
    """That of SPARK_HOME, else the one beside this Python, else the one on PATH."""
    if home := os.environ.get("SPARK_HOME"):
        return str(Path(home, "bin", "spark-submit"))
    beside = Path(sysconfig.get_path("scripts"), "spark-submit")
    return str(beside) if beside.exists() else "spark-submit"


def job_environment(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """This process's environment without Airflow's own settings, connections and variables, which hold keys."""
    kept = {name: value for name, value in inherited.items() if not _SECRET_VARIABLES.match(name)}
    return {**kept, "PYSPARK_PYTHON": kept.get("PYSPARK_PYTHON") or sys.executable, "PYTHONUNBUFFERED": "1"}


def _file_name(text: str) -> str:
    """Distinct texts have distinct names, and none is `.` or `..`."""
    return quote(text, safe="+:@ ").replace(".", "%2E") if text.strip(".") == "" else quote(text, safe="+:@ ")
