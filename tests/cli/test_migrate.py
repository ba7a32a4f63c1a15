"""`lake migrate`: what is due is shown and done, and nobody else does it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.releases.released import releases


@pytest.fixture
def environment(catalog_url: str, tmp_path: Path) -> dict[str, str]:
    """Names the lake that the version before has made."""
    releases()[-1].restore_lake(catalog_url, tmp_path / "warehouse")
    return {"LAKE_WAREHOUSE": (tmp_path / "warehouse").as_uri(), "LAKE_CATALOG": catalog_url}


def phases(document: dict[str, list[dict[str, str]]], what: str) -> list[str]:
    return sorted({step["phase"] for step in document[what]})


def test_other_commands_refuse_an_older_catalog_and_name_the_way_out(run: Run) -> None:
    refused = run("tables")

    assert refused.code == 3
    assert "`lake migrate`" in refused.err


def test_a_dry_run_shows_what_is_due_and_does_nothing(run: Run) -> None:
    shown = run("migrate", "--dry-run", "--json").document

    assert (shown["dry_run"], phases(shown, "done"), phases(shown, "due")) == (True, ["pre"], ["post"])
    assert run("tables").code == 3


def test_without_options_it_adds_and_tells_that_the_older_version_may_be_shut_out(run: Run) -> None:
    shown = run("migrate")

    assert "lake migrate --post" in shown.out
    assert run("tables").code == 0
    again = run("migrate", "--json").document
    assert (again["done"], phases(again, "due")) == ([], ["post"])


def test_post_does_all_of_it(run: Run) -> None:
    done = run("migrate", "--post", "--json").document

    assert (phases(done, "done"), done["due"]) == (["post", "pre"], [])
    assert "the schema of this version" in run("migrate").err


def test_one_phase_is_asked_for_at_a_time(run: Run) -> None:
    assert run("migrate", "--pre", "--post").code == 2


def test_where_there_is_no_lake_none_is_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    refused = run("migrate", env={"LAKE_CATALOG": None, "LAKE_WAREHOUSE": None})

    assert refused.code == 4
    assert not (tmp_path / ".lake").exists()
