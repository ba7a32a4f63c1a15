"""What the maintenance DAGs tell their jobs, read as the jobs read it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dags.lake_dags.maintenance import compact_batches, maintain_batches
from lakelib.pipeline.arguments import MaintainArguments
from lakelib.specs.table_spec import TableSpec, parse_spec
from tests.understood import asked_for

FORM = {"dry_run": True, "expire": True, "vacuum": True, "tables": [], "namespace": None, "full": False}


def _spec(table: str, maintenance: str = "{}") -> TableSpec:
    text = f"table: {table}\ncolumns: id BIGINT\nprimary_key: [id]\nsource: {{path: /in}}\nmaintenance: {maintenance}\n"
    return parse_spec(text, Path(f"/specs/{table}.yaml"))


def _maintained(*specs: TableSpec, scheduled: bool = False, **params: Any) -> list[MaintainArguments]:
    existing = {spec.table for spec in specs}
    batches = maintain_batches({**FORM, **params}, specs, existing, scheduled=scheduled)
    return [asked_for(["maintain", *batch["arguments"]]) for batch in batches]


def test_tables_expire_by_their_own_rules_and_those_of_the_same_together() -> None:
    strict = "{expire: {keep_last: 2, older_than: 1d}}"
    specs = (_spec("a.x", strict), _spec("a.y"), _spec("a.z", strict), _spec("a.w", "{expire: null}"))
    expiring = [one for one in _maintained(*specs) if one.expire is not None]
    rules = {
        one.selection.tables: (one.expire["keep_last"], one.expire["older_than"]) for one in expiring if one.expire
    }
    assert rules == {("a.x", "a.z"): (2, timedelta(days=1)), ("a.y",): (30, timedelta(days=7))}


def test_files_are_deleted_after_the_snapshots_have_expired() -> None:
    assert [one.vacuum is not None for one in _maintained(_spec("a.x"), _spec("a.y", "{expire: {keep_last: 1}}"))] == [
        False,
        False,
        True,
    ]


def test_a_form_that_nobody_changed_deletes_nothing() -> None:
    assert {one.dry_run for one in _maintained(_spec("a.x"))} == {True}
    assert {one.dry_run for one in _maintained(_spec("a.x"), dry_run=False)} == {False}


@pytest.mark.parametrize(("said", "dry_run"), [(None, True), ("yes", True), ("apply", False)])
def test_a_scheduled_run_deletes_only_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, said: str | None, dry_run: bool
) -> None:
    if said is None:
        monkeypatch.delenv("LAKE_MAINTENANCE", raising=False)
    else:
        monkeypatch.setenv("LAKE_MAINTENANCE", said)
    assert {one.dry_run for one in _maintained(_spec("a.x"), scheduled=True, dry_run=False)} == {dry_run}


def test_the_form_chooses_tables_and_what_is_done() -> None:
    specs = (_spec("a.x"), _spec("a.y"), _spec("b.z"))
    assert [one.selection.tables for one in _maintained(*specs, vacuum=False, tables=["a.y"])] == [("a.y",)]
    assert [one.selection.tables for one in _maintained(*specs, vacuum=False, namespace="a")] == [("a.x", "a.y")]
    assert [one.expire for one in _maintained(*specs, expire=False)] == [None]


def test_a_table_that_was_never_filled_is_left_alone() -> None:
    assert maintain_batches({**FORM, "vacuum": False}, [_spec("a.x")], set(), scheduled=True) == []
    assert compact_batches(FORM, [_spec("a.x")], set(), scheduled=True) == []


def test_a_scheduled_compaction_goes_by_the_specs() -> None:
    specs = [_spec("a.x"), _spec("a.y", "{compact: {full: true}}"), _spec("a.z", "{compact: null}")]
    batches = compact_batches(FORM, specs, {"a.x", "a.y", "a.z"}, scheduled=True)
    assert [batch["arguments"] for batch in batches] == [["--", "a.x"], ["--full", "--", "a.y"]]


@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        ({}, ["--all"]),
        ({"namespace": "a"}, ["--namespace=a"]),
        ({"tables": ["a.x"], "full": True}, ["--full", "--", "a.x"]),
    ],
)
def test_a_compaction_by_hand_goes_by_its_form(params: dict[str, Any], arguments: list[str]) -> None:
    batches = compact_batches({**FORM, **params}, [], set(), scheduled=False)
    assert [batch["arguments"] for batch in batches] == [arguments]


@pytest.mark.parametrize("name", ["--result=/any/file", "--all", "-h", "--", "@file", "--catalog"])
def test_no_name_in_a_form_is_an_option(name: str) -> None:
    (named,) = compact_batches({**FORM, "tables": [name, "a.x"], "full": True}, [], set(), scheduled=False)
    (spaced,) = compact_batches({**FORM, "namespace": name}, [], set(), scheduled=False)
    told = asked_for(["compact", *named["arguments"]])
    assert (told.selection.tables, told.full, told.surroundings.result) == ((name, "a.x"), True, None)
    assert asked_for(["compact", *spaced["arguments"]]).selection.namespace == name
    (expiring, _) = _maintained(_spec("a.x"), tables=[name, "a.x"])
    assert (expiring.selection.tables, expiring.surroundings.result) == (("a.x",), None)
