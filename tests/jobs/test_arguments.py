"""What is on a job's command line is taken as it is meant, or refused."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dags.lake_dags.places import job_environment
from tests.understood import understood

Parse = Callable[[Sequence[str]], Any]
_COMMIT = f"--commit={uuid4()}"
_ENOUGH = {
    "append": ["--path=/in", "shop.orders"],
    "sql": ["--into=shop.orders", "--sql=SELECT 1"],
    "compact": ["--all"],
    "discard": [_COMMIT, "--reason=x"],
    "ingest": ["--spec=a.yaml", "--partition=all", "--idempotency-key=a:1"],
    "maintain": ["--all", "--expire"],
    "publish": [_COMMIT],
}
_JOBS: dict[str, tuple[Parse, list[str]]] = {job: (partial(understood, job), words) for job, words in _ENOUGH.items()}
each_job = pytest.mark.parametrize(("parse", "enough"), _JOBS.values(), ids=_JOBS.keys())


@each_job
def test_options_are_written_in_full(parse: Parse, enough: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert parse([*enough, "--result=/tmp/result"]).surroundings.result is not None
    with pytest.raises(SystemExit) as ended:
        parse([*enough, "--resu=/tmp/result"])
    assert ended.value.code == 2
    assert "unknown arguments: --resu\n" in capsys.readouterr().err


@each_job
@pytest.mark.parametrize("option", ["--result", "--warehouse", "--catalog"])
def test_an_option_that_was_slipped_in_is_refused(
    parse: Parse, enough: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([f"{option}=/tmp/a", *enough, f"{option}=/tmp/b"])
    assert f"{option} is given twice" in capsys.readouterr().err


@each_job
def test_a_secret_behind_a_slip_of_the_pen_is_not_told(
    parse: Parse, enough: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in (["--catlog=postgresql://u:hunter2@h/db"], ["--catlog", "postgresql://u:hunter2@h/db"]):
        with pytest.raises(SystemExit):
            parse([*enough, *wrong])
        assert "hunter2" not in "".join(capsys.readouterr())


def test_settings_of_a_session_are_for_a_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PySpark would put them among the arguments of the Spark that it starts, for all to see."""
    parse, enough = _JOBS["compact"]
    settings = tmp_path / "spark.json"
    settings.write_text('{"spark.sql.a": "b"}')
    given = [*enough, f"--spark-conf={settings}"]
    monkeypatch.setenv("SPARK_REMOTE", "sc://usual")
    assert parse(given).surroundings.spark_conf == {"spark.sql.a": "b"}
    with pytest.raises(SystemExit) as ended:
        parse([*given, "--master=local[2]"])
    assert (ended.value.code, "--spark-conf is for a server" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("said", ["--", "--result=/any/file", "-h", "=", "@file", "", "a b\nc"])
def test_a_reason_is_what_stands_behind_its_equals_sign(said: str) -> None:
    told = understood("publish", [_COMMIT, f"--by={said}", f"--reason={said}"])
    assert (told.by, told.reason, told.surroundings.result) == (said, said, None)
    assert understood("discard", [_COMMIT, f"--reason={said}"]).reason == said


def test_a_job_sees_none_of_airflows_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_BANK", "AIRFLOW_VAR_TOKEN", "_AIRFLOW__AS_LIBRARY"):
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("LANDING", "/in")
    environment = job_environment()
    assert environment["LANDING"] == "/in"
    assert "hidden" not in environment.values()
