"""Where a Spark application runs, or the Spark Connect server that does the work of one: with its settings, from a spec
or from an Airflow connection."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from lakelib.dataclass import dataclass

_CONF_FILE = "spark.conf"
_CLIENT_CONF_FILE = "spark.json"
_REMOTE, _TOKEN = "SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_REMOTE_SCHEME = "sc://"
_OF_A_SESSION = "spark.sql."
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkChoice:
    """What somebody chose: a master or a server, in which `${NAME}` is filled in, or an Airflow connection that says
    it."""

    master: str | None = None
    remote: str | None = None
    connection: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Prevails over the connection's."""

    @property
    def is_on_server(self) -> bool:
        """Whether a Spark Connect server does the work, as far as it can be told without the connection."""
        if self.connection is not None:
            return False
        return SparkTarget(master=self.master, remote=self.remote, conf=self.conf).server is not None


def shared_choice(choices: Mapping[str, SparkChoice], *, alone: bool) -> SparkChoice:
    """For one job that works for several tables: where those say that say something. Each table's settings of a session
    are the job's to make, unless it works for one `alone`. Raises ValueError where two want different things."""
    if alone:
        return next(iter(choices.values()))
    place: dict[str, tuple[str, SparkChoice]] = {}
    conf: dict[str, tuple[str, str]] = {}
    for table, choice in choices.items():
        if choice.master or choice.remote or choice.connection:
            other, chosen = place.setdefault("place", (table, choice))
            if (chosen.master, chosen.remote, chosen.connection) != (choice.master, choice.remote, choice.connection):
                raise _apart(other, table, "where Spark runs")
        for name, value in choice.conf.items():
            if not name.startswith(_OF_A_SESSION) and conf.setdefault(name, (table, value))[1] != value:
                raise _apart(conf[name][0], table, f"conf, {name}")
    found = place["place"][1] if place else SparkChoice()
    return replace(found, conf={name: value for name, (_, value) in conf.items()})


def _apart(first: str, second: str, what: str) -> ValueError:
    return ValueError(
        f"{first} and {second} cannot be made in one transaction: their specs differ in spark ({what}), and one job"
        " makes both. Make the specs alike, leave one of the tables out, or do without `atomic`, or `downstream`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTarget:
    """`remote`, `token` and `conf` may hold secrets: they are in no repr, and reach the job by files and its
    environment rather than as arguments."""

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    """The address of a Spark Connect server. Neither: as SPARK_REMOTE, SPARK_MASTER or Spark's own defaults say."""
    token: str | None = field(default=None, repr=False)
    """Of the server. None: as the environment says, unless that is another server's; empty: none."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def server(self) -> str | None:
        """The Spark Connect server that does the work, if one does. Settings of an application take one of its own,
        where the spec does not name a server itself."""
        if self.remote or self.master or any(not name.startswith(_OF_A_SESSION) for name in self.conf):
            return self.remote
        return os.environ.get(_REMOTE) or None

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Of the job's environment: it knows of a server only if that is where its work is done."""
        token = self.token
        if token is None and self.remote and inherited.get(_REMOTE) not in (None, "", self.remote):
            token = ""  # one server's token is no other's business
        said = {_REMOTE: self.server, **({} if token is None else {_TOKEN: token})}
        others = {name: value for name, value in inherited.items() if name not in said}
        return others | {name: value for name, value in said.items() if value}

    def submit_arguments(self, folder: Path) -> list[str]:
        """The options of spark-submit. Writes the settings into the folder, for the job's owner only."""
        master = self.master or os.environ.get("SPARK_MASTER")
        arguments = ["--master", master] if master else []
        return [*arguments, "--deploy-mode", "client", *self._conf_arguments(folder)]

    def environment(self, folder: Path) -> list[str]:
        """What a command begins with that may start Spark by itself: so it has the settings, too."""
        if not self.conf:
            return []
        return ["env", f"PYSPARK_SUBMIT_ARGS={shlex.join([*self._conf_arguments(folder), 'pyspark-shell'])}"]

    def client_arguments(self, folder: Path) -> list[str]:
        """The options of a job that is a server's client: no application is submitted that could have settings."""
        if not self.conf:
            return []
        return [f"--spark-conf={_private(folder / _CLIENT_CONF_FILE, json.dumps(dict(self.conf)))}"]

    def _conf_arguments(self, folder: Path) -> list[str]:
        """Writes the settings into the folder."""
        if not self.conf:
            return []
        lines = [f"{_escaped(name)}={_escaped(value)}\n" for name, value in self.conf.items()]
        path = _private(folder / _CONF_FILE, "".join(lines))
        return ["--properties-file", str(path), "--load-spark-defaults"]


def target_of_connection(
    host: str | None, port: int | None, extra: Mapping[str, Any], password: str | None = None
) -> SparkTarget:
    """What a connection says: its host and port are the master, such as `spark://host` and 7077, `yarn`, `local[4]` or
    `k8s://https://host` and 443, or a Spark Connect server, `sc://host` and 15002, whose token is the password; its
    extra may have `conf`, Spark's settings by name, and `deploy-mode`.

    Raises ValueError for a deploy mode other than client: a driver elsewhere leaves no result on this machine.
    """
    if not host:
        raise ValueError("It names no host: Spark's master, such as local[2], yarn or spark://host, or sc://host.")
    mode = extra.get("deploy-mode", "client")
    if mode != "client":
        raise ValueError(f"Its deploy-mode is {mode!r}: jobs run in client mode, for their result is read here.")
    conf = extra.get("conf", {})
    if not isinstance(conf, Mapping):
        raise ValueError('The conf in its extra is no object: write {"conf": {"spark.executor.memory": "4g"}}.')
    settings = {str(name): _text(value) for name, value in conf.items()}
    if not host.startswith(_REMOTE_SCHEME):
        return SparkTarget(master=f"{host}:{port}" if port else host, conf=settings)
    name, _, parameters = host.partition("/;")
    address = f"{name.removesuffix('/')}:{port}" if port else name
    remote = f"{address}/;{parameters}" if parameters else address
    return SparkTarget(remote=remote, token=password or "", conf=settings)


def _private(path: Path, text: str) -> Path:
    """A file that only its owner reads."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """As Java's properties files want it."""
    return re.sub(r"([\\=:#! ])", r"\\\1", text).translate(_ESCAPES)
