"""What an instance is made of: its folder, its secrets, and the environment of its processes. Starts nothing."""

import json
import os
import secrets
import shlex
import socket
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.airflow.processes import Started
from infra.spark.connect import TOKEN, url_of
from lakelib.dataclass import dataclass
from lakelib.storage.paths import OWN_CATALOG

PROJECT = Path(__file__).resolve().parents[2]
DEFAULT_HOME = PROJECT / ".lake"
DEFAULT_TABLES = PROJECT / "dags" / "tables"
HOST = "127.0.0.1"
USUAL_PORT = 8080
USERS = {"admin": "admin", "viewer": "viewer"}
"""Names and their roles."""
_OWN_NAMES = ("LANDING", "PATH", "PYSPARK_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP")


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of an instance. Catalog and warehouse lie where `lakelib.connect()` looks for them by default."""

    folder: Path

    @property
    def catalog(self) -> Path:
        """The files of the embedded PostgreSQL: in the warehouse, unless an earlier instance has them beside it."""
        earlier = self.folder / "catalog"
        return earlier if earlier.is_dir() else self.warehouse / OWN_CATALOG

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def runs(self) -> Path:
        """What the jobs of DAG runs leave behind: logs, results, reports of verdicts."""
        return self.folder / "runs"

    @property
    def airflow(self) -> Path:
        return self.folder / "airflow"

    @property
    def spark(self) -> Path:
        """What the Spark Connect server puts on disk."""
        return self.airflow / "spark"

    @property
    def logs(self) -> Path:
        return self.airflow / "logs"

    @property
    def secrets(self) -> Path:
        return self.airflow / "secrets.json"

    @property
    def passwords(self) -> Path:
        return self.airflow / "passwords.json"

    @property
    def state(self) -> Path:
        return self.airflow / "state.json"

    @property
    def environment(self) -> Path:
        """For a shell: `. FILE`, and its `airflow` is this instance's."""
        return self.airflow / "environment.sh"

    @property
    def lock(self) -> Path:
        return self.airflow / "lock"

    def log_of(self, part: str) -> Path:
        return self.logs / f"{part}.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What was started: the ports, and the processes by name."""

    port: int
    spark_port: int | None = None
    """None where the work is done by a Spark that is not of the instance."""
    parts: Mapping[str, Started]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


def read_state(home: Home) -> State | None:
    if not home.state.exists():
        return None
    found: dict[str, Any] = json.loads(home.state.read_text())
    parts = {part["name"]: Started(**part) for part in found["parts"]}
    return State(port=found["port"], spark_port=found.get("spark_port"), parts=parts)


def write_state(home: Home, state: State) -> None:
    parts = [{"name": part.name, "pid": part.pid, "start": part.start} for part in state.parts.values()]
    found = {"port": state.port, "spark_port": state.spark_port, "parts": parts}
    _write_private(home.state, json.dumps(found))


def ensure_secrets(home: Home) -> dict[str, str]:
    """The keys of this instance and the passwords of its users: made once, readable by their owner only."""
    before: dict[str, str] = json.loads(home.secrets.read_text()) if home.secrets.exists() else {}
    made = {
        "fernet_key": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "jwt_secret": secrets.token_urlsafe(64),
        "secret_key": secrets.token_urlsafe(48),
        "spark_token": secrets.token_urlsafe(48),
        **before,
    }
    if made != before:
        _write_private(home.secrets, json.dumps(made))
    if not home.passwords.exists():
        _write_private(home.passwords, json.dumps({user: secrets.token_urlsafe(12) for user in USERS}))
    return made


def read_passwords(home: Home) -> dict[str, str]:
    found: dict[str, str] = json.loads(home.passwords.read_text())
    return found


def write_environment(home: Home, environment: Mapping[str, str]) -> None:
    """What Airflow's commands need in a shell, with the keys: readable by its owner only."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items()) if _is_own(name)]
    _write_private(home.environment, "\n".join(["# Keys are in here.", *lines, ""]))


def read_environment(home: Home) -> dict[str, str]:
    """What the instance was started with; nothing before its first start."""
    if not home.environment.exists():
        return {}
    words = shlex.split(home.environment.read_text(), comments=True)
    pairs = (word.partition("=") for word in words if word != "export")
    return {name: value for name, _, value in pairs}


def _is_own(name: str) -> bool:
    return name.startswith(("AIRFLOW_", "LAKE_")) or name in _OWN_NAMES


def choose_port(wanted: int) -> int:
    """The wanted port if it is free on the loopback, else any free one."""
    for port in (wanted, 0):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
            except OSError:
                continue
            chosen: int = listener.getsockname()[1]
            return chosen
    raise SystemExit(f"No port is free on {HOST}.")


def airflow_environment(
    home: Home,
    *,
    port: int,
    catalog_url: str,
    airflow_url: str,
    keys: Mapping[str, str],
    inherited: Mapping[str, str],
    spark_port: int | None = None,
) -> dict[str, str]:
    """The environment of Airflow's parts, and through them of every task.

    AIRFLOW__… variables of the caller's adjust what is only a default here.
    """
    url = f"http://{HOST}:{port}"
    server = {} if spark_port is None else {"SPARK_REMOTE": url_of(spark_port), TOKEN: keys["spark_token"]}
    return {
        **_DEFAULTS,
        **inherited,
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": keys["secret_key"],
        "AIRFLOW__API_AUTH__JWT_SECRET": keys["jwt_secret"],
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "dags.lake_dags.executor.WarmExecutor",
        "AIRFLOW__CORE__FERNET_KEY": keys["fernet_key"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": airflow_url,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": airflow_url,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home.logs / "tasks"),
        "LAKE_CATALOG": catalog_url,
        "LAKE_RUNS": str(home.runs),
        "LAKE_TABLES": str(Path(inherited.get("LAKE_TABLES") or DEFAULT_TABLES).absolute()),
        "LAKE_WAREHOUSE": home.warehouse.as_uri(),
        "LANDING": inherited.get("LANDING", str(home.landing)),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", os.defpath))),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in (str(PROJECT), inherited.get("PYTHONPATH", "")) if path),
        "PYTHONUNBUFFERED": "1",
        **server,
    }


_DEFAULTS = {
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    # The fully qualified name costs a question to the name server, and nobody reaches this machine by it.
    "AIRFLOW__CORE__HOSTNAME_CALLABLE": "socket.gethostname",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__PARALLELISM": "8",
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "dags" / "plugins"),
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "15",
    # Else a run waits half a second before each of its tasks, for a scheduler that has nothing to do sleeps a second.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    # Else a task whose process was killed is noticed after five minutes.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    # Else a worker may need five seconds to tell that its task is at an end, or waits.
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    # Else Spark's drivers and their pages listen on this machine's other addresses.
    "SPARK_LOCAL_IP": HOST,
}


def _write_private(path: Path, content: str) -> None:
    """Replaces the file in one step; only its owner can read it, from the first moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
    draft.replace(path)
