"""What an instance is made of."""

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
    write_environment,
)
from infra.airflow.lifecycle import StartError, up


def test_an_instance_is_one_lake_and_an_earlier_one_stays_where_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.catalog == home.warehouse / ".catalog"

    (tmp_path / "catalog").mkdir()

    assert home.catalog == tmp_path / "catalog"


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
