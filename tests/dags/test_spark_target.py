"""Where Spark applications run, by spec and connection."""

import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dags.lake_dags.spark_target import SparkChoice, SparkTarget, target_of_connection


@pytest.mark.parametrize(
    ("host", "port", "master"),
    [
        ("local[4]", None, "local[4]"),
        ("spark://head", 7077, "spark://head:7077"),
        ("yarn", None, "yarn"),
        ("k8s://https://api", 443, "k8s://https://api:443"),
    ],
)
def test_a_connections_host_and_port_are_the_master(host: str, port: int | None, master: str) -> None:
    assert target_of_connection(host, port, {}).master == master


def test_a_connections_settings_are_sparks() -> None:
    extra = {"conf": {"spark.executor.instances": 4, "spark.ui.enabled": False}, "deploy-mode": "client"}
    assert target_of_connection("yarn", None, extra).conf == {
        "spark.executor.instances": "4",
        "spark.ui.enabled": "false",
    }


@pytest.mark.parametrize(
    ("host", "extra", "said"),
    [("", {}, "host"), ("yarn", {"deploy-mode": "cluster"}, "'cluster'"), ("yarn", {"conf": "a=b"}, "conf")],
)
def test_a_connection_that_cannot_work_says_why(host: str, extra: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        target_of_connection(host, None, extra)


def test_settings_reach_spark_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    target = SparkTarget(master="yarn", conf={"spark.hadoop.token": "secret = #1\\n\n"})
    arguments = target.submit_arguments(tmp_path)
    (file,) = tmp_path.iterdir()
    assert "secret" not in " ".join(arguments) + repr(target) + repr(SparkChoice(conf=target.conf))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "spark.hadoop.token=secret\\ \\=\\ \\#1\\\\n\\n\n"


def test_a_process_that_may_start_spark_by_itself_has_the_settings_too(tmp_path: Path) -> None:
    target = SparkTarget(master="local[2]", conf={"spark.driver.memory": "1g", "spark.hadoop.token": "secret"})
    folder = tmp_path / "a folder"
    folder.mkdir()
    command = [*target.environment(folder), sys.executable, "-c", "import os; print(os.environ['PYSPARK_SUBMIT_ARGS'])"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shlex.split(told) == [
        "--properties-file",
        str(folder / "spark.conf"),
        "--load-spark-defaults",
        "pyspark-shell",
    ]
    assert "secret" not in " ".join(command)
    assert SparkTarget(master="local[2]").environment(tmp_path) == []


@pytest.mark.parametrize("sign", ["\n", "\r", "\f", "\r\n"])
def test_a_setting_is_one_line_of_the_file(sign: str, tmp_path: Path) -> None:
    SparkTarget(conf={"spark.a": f"x{sign}spark.jars=y"}).submit_arguments(tmp_path)
    (file,) = tmp_path.iterdir()
    (line,) = file.read_bytes().removesuffix(b"\n").splitlines()
    assert line.startswith(b"spark.a=x\\")


def test_without_a_choice_the_environment_says_the_master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_MASTER", "local[3]")
    assert SparkTarget().submit_arguments(tmp_path) == ["--master", "local[3]", "--deploy-mode", "client"]
    monkeypatch.delenv("SPARK_MASTER")
    assert SparkTarget().submit_arguments(tmp_path) == ["--deploy-mode", "client"]
