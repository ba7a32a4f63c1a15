"""Where a Spark application runs: the master and its settings, from a spec or from an Airflow connection."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CONF_FILE = "spark.conf"
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkChoice:
    """What somebody chose: a master, in which `${NAME}` is filled in, or an Airflow connection that says it."""

    master: str | None = None
    connection: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Prevails over the connection's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTarget:
    """`conf` may hold tokens: it is in no repr, and reaches Spark in a file rather than as arguments."""

    master: str | None = None
    """None: as SPARK_MASTER or Spark's own defaults say."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

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

    def _conf_arguments(self, folder: Path) -> list[str]:
        """Writes the settings into the folder."""
        if not self.conf:
            return []
        path = folder / _CONF_FILE
        path.touch(mode=0o600)
        path.write_text("".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in self.conf.items()))
        return ["--properties-file", str(path), "--load-spark-defaults"]


def target_of_connection(host: str | None, port: int | None, extra: Mapping[str, Any]) -> SparkTarget:
    """What a connection says: its host and port are the master, such as `spark://host` and 7077, `yarn`, `local[4]` or
    `k8s://https://host` and 443; its extra may have `conf`, Spark's settings by name, and `deploy-mode`.

    Raises ValueError for a deploy mode other than client: a driver elsewhere leaves no result on this machine.
    """
    if not host:
        raise ValueError("It names no host: Spark's master, such as local[2], yarn or spark://host.")
    mode = extra.get("deploy-mode", "client")
    if mode != "client":
        raise ValueError(f"Its deploy-mode is {mode!r}: jobs run in client mode, for their result is read here.")
    conf = extra.get("conf", {})
    if not isinstance(conf, Mapping):
        raise ValueError('The conf in its extra is no object: write {"conf": {"spark.executor.memory": "4g"}}.')
    return SparkTarget(
        master=f"{host}:{port}" if port else host, conf={str(name): _text(value) for name, value in conf.items()}
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """As Java's properties files want it."""
    return re.sub(r"([\\=:#! ])", r"\\\1", text).translate(_ESCAPES)
