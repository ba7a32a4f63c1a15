"""What an instance is made of."""

import json
import stat
import subprocess
from pathlib import Path

import pytest

from infra.airflow.__main__ import how_to_use
from infra.airflow.instance import (
    DEFAULT_TABLES,
    Home,
    State,
    airflow_environment,
    ensure_secrets,
    read_environment,
    read_state,
    write_environment,
    write_state,
)
from infra.airflow.lifecycle import PARTS, StartError, choose_spark_port, missing_parts, up
from infra.airflow.processes import Started
from infra.spark.connect import free_port, server_command, server_environment, url_of

PART = Started(name="scheduler", pid=1, start="x")


def test_an_instance_is_one_lake_and_an_earlier_one_stays_where_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.catalog == home.warehouse / ".catalog"

    (tmp_path / "catalog").mkdir()

    assert home.catalog == tmp_path / "catalog"


def test_what_was_started_before_there_was_a_spark_server_is_known(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for port in (None, 15002):
        state = State(port=8080, spark_port=port, parts={"scheduler": PART})
        write_state(home, state)
        assert read_state(home) == state
    earlier = json.loads(home.state.read_text())
    del earlier["spark_port"]
    home.state.write_text(json.dumps(earlier))
    assert read_state(home) == State(port=8080, parts={"scheduler": PART})


def test_an_earlier_instance_gets_a_token_and_keeps_its_keys(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = ensure_secrets(home)
    earlier = {name: key for name, key in made.items() if name != "spark_token"}
    home.secrets.write_text(json.dumps(earlier))
    now = ensure_secrets(home)
    assert ({name: now[name] for name in earlier}, now["spark_token"] != made["spark_token"]) == (earlier, True)
    assert ensure_secrets(home) == now


@pytest.mark.parametrize(
    ("environment", "has_server"),
    [
        ({}, True),
        ({"SPARK_REMOTE": "", "SPARK_MASTER": ""}, True),
        ({"SPARK_REMOTE": "sc://of.the.team:15002"}, False),
        ({"SPARK_MASTER": "spark://of.the.team:7077"}, False),
    ],
)
def test_where_the_environment_names_a_spark_there_is_no_server(environment: dict[str, str], has_server: bool) -> None:
    port = choose_spark_port(None, environment)
    state = State(port=8080, spark_port=port, parts={})
    assert (port is not None) == has_server
    assert ("spark" in missing_parts(state, ())) == has_server
    assert set(missing_parts(state, PARTS)) == set()


def test_an_instances_own_server_keeps_its_port() -> None:
    """Also where the caller has the environment of its parts."""
    port = free_port()
    assert choose_spark_port(port, {"SPARK_REMOTE": url_of(port)}) == port


def test_parts_know_the_server_and_the_server_has_bounds_and_none_of_airflows_keys(tmp_path: Path) -> None:
    home = Home(tmp_path)
    keys = ensure_secrets(home)
    told = airflow_environment(
        home,
        port=8080,
        spark_port=15002,
        catalog_url="postgresql://catalog",
        airflow_url="postgresql://airflow",
        keys=keys,
        inherited={"SPARK_REMOTE": "sc://localhost:15002"},
    )
    assert (told["SPARK_REMOTE"], told["SPARK_CONNECT_AUTHENTICATE_TOKEN"]) == (url_of(15002), keys["spark_token"])
    command = server_command(port=15002, cores=2, memory="1g", folder=tmp_path)
    assert {"spark.driver.memory=1g", "spark.connect.grpc.binding.address=127.0.0.1"} <= set(command)
    assert keys["spark_token"] not in " ".join(command)
    assert "SPARK_REMOTE" not in server_environment("token", told)


def environment(home: Home, **inherited: str) -> dict[str, str]:
    return airflow_environment(
        home, port=8080, catalog_url="c", airflow_url="a", keys=ensure_secrets(home), inherited=inherited
    )


def test_a_shell_that_reads_the_environment_has_airflows_own(tmp_path: Path) -> None:
    home = Home(tmp_path / "it's a lake")
    given = environment(home, LANDING="/in $HOME `x`", SECRET="mine", LAKE_TABLES="mine", LAKE_VAR_A="a\n'b'")
    write_environment(home, given)
    assert stat.S_IMODE(home.environment.stat().st_mode) == 0o600
    script = '. "$0" && printf "%s|" "$AIRFLOW_HOME" "$LANDING" "$LAKE_TABLES" "$LAKE_VAR_A" "$SECRET"'
    told = subprocess.run(["sh", "-c", script, home.environment], capture_output=True, text=True, check=True).stdout
    assert told.split("|") == [
        str(home.airflow),
        "/in $HOME `x`",
        str(Path.cwd() / "mine"),
        "a\n'b'",
        "",
        "",
    ]
    found = read_environment(home)
    assert {name: given[name] for name in found} == found


def test_what_is_printed_are_the_folders_that_it_was_started_with(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_environment(home, environment(home, LANDING="/elsewhere", LAKE_TABLES="/mine/tables"))
    told = how_to_use(home, State(port=8080, parts={}))
    for said in ("tables      /mine/tables\n", "landing     /elsewhere\n", f"  . {home.environment}\n"):
        assert said in told
    assert "lake init" not in told
    write_environment(home, environment(home))
    told = how_to_use(home, State(port=8080, parts={}))
    assert f"tables      {DEFAULT_TABLES}\n" in told
    assert "lake init" in told


def test_a_folder_of_tables_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    home = Home(tmp_path / "lake")
    with pytest.raises(StartError, match="LAKE_TABLES names /nowhere/tables"):
        up(home, {"LAKE_TABLES": "/nowhere/tables"})
    assert not home.warehouse.exists()
