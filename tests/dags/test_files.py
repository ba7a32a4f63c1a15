"""What holds of the DAG files themselves."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from .conftest import PROJECT, Lab, Place

FILES = sorted((PROJECT / "dags").glob("*.py"))
INGEST = ["customers", "daily_revenue", "order_changes", "orders", "payments"]
_MEASURE = """
import importlib.util, json, sys, time
import airflow.providers.standard.operators.hitl, airflow.sdk, airflow.sdk.definitions.asset, airflow.settings, pendulum
start = time.process_time()
spec = importlib.util.spec_from_file_location("probe", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(json.dumps({"seconds": time.process_time() - start, "modules": sorted(sys.modules)}))
"""
HEAVY = {"pyspark", "great_expectations", "pyarrow", "numpy", "pandas", "psycopg", "boto3", "sqlglot"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dag_file_is_read_within_a_second_and_loads_nothing_heavy(place: Place, file: Path) -> None:
    command = [sys.executable, "-c", _MEASURE, str(file)]
    told = subprocess.run(command, env=place.environment, check=True, capture_output=True, text=True).stdout
    measured = json.loads(told.splitlines()[-1])
    assert not HEAVY & set(measured["modules"])
    assert measured["seconds"] < 1


def test_each_spec_has_a_dag_and_nothing_is_wrong(lab: Lab) -> None:
    dags = [f"ingest__shop__{name}" for name in INGEST]
    assert lab("parse") == {"dags": sorted([*dags, "backfill", "compact", "maintain"]), "errors": {}}


@pytest.mark.parametrize("name", INGEST)
def test_nothing_is_published_before_it_was_judged_and_nobody_hears_of_it_before_it_is_published(
    lab: Lab, name: str
) -> None:
    graph = lab("graph", dag_id=f"ingest__shop__{name}")
    assert _all_before(graph, "publish") >= {"stage_and_judge", "review"}
    follows = set() if name == "order_changes" else {"tag", "mark_done"}  # its spec asks for neither
    assert follows == graph.keys() & {"tag", "mark_done"}
    assert all(_all_before(graph, task) >= {"publish"} for task in follows)
    assert _all_before(graph, "announce") >= {"publish", *follows}
    assert graph["announce"] == []


def test_nobody_waits_for_a_metastore_that_is_told(lab: Lab, tmp_path: Path) -> None:
    """After each publish; or, of partitions at rest, after each compaction."""
    spec = "columns: id BIGINT\nprimary_key: [id]\nsource: {path: /in/*.parquet}\n"
    publish = "publish: {{mark_done: [done_partition], report: {}}}\n"
    (tmp_path / "told.yaml").write_text(f"table: a.told\n{spec}{publish.format('hive')}")
    (tmp_path / "later.yaml").write_text(f"table: a.later\n{spec}{publish.format('{hive: {idle: 1h}}')}")
    told = lab("graph", dag_id="ingest__a__told", tables=str(tmp_path))
    assert told["report"] == []
    assert _all_before(told, "report") >= {"publish", "mark_done"}
    assert "report" not in _all_before(told, "announce")
    assert "report" not in lab("graph", dag_id="ingest__a__later", tables=str(tmp_path))
    assert _all_before(lab("graph", dag_id="compact", tables=str(tmp_path)), "report") == {"plan", "compact"}


@pytest.mark.parametrize("name", ["customers", "orders", "payments"])
def test_no_rows_are_read_before_the_source_has_arrived(lab: Lab, name: str) -> None:
    graph = lab("graph", dag_id=f"ingest__shop__{name}")
    assert _all_before(graph, "stage_and_judge") == {"wait_for_source"}


def test_a_broken_spec_costs_its_own_dag_only_and_is_an_import_error_with_file_and_field(
    lab: Lab, tmp_path: Path
) -> None:
    good = "table: a.good\ncolumns: id BIGINT\nprimary_key: [id]\nsource: {path: /in/*.parquet}\n"
    (tmp_path / "good.yaml").write_text(good)
    (tmp_path / "broken.yaml").write_text(good.replace("good", "broken") + "write: {mode: upsrt}\n")
    hourly = "partition_by: [id]\npartition: {column: id, every: hour}\n"
    late = good.replace("good", "late").replace("BIGINT", "TIMESTAMP") + hourly
    late = late.replace("/in/*.parquet", "'/in/{partition}/*.parquet'")
    (tmp_path / "late.yaml").write_text(late + 'schedule: {cron: "@hourly", timezone: Europe/Berlin}\n')
    found = lab("parse", tables=str(tmp_path))
    assert [dag for dag in found["dags"] if dag.startswith("ingest")] == ["ingest__a__good"]
    assert list(found["errors"]) == ["table_specs.py"]
    error = found["errors"]["table_specs.py"]
    assert "broken.yaml" in error
    assert "write.mode" in error
    assert "late.yaml, line 7, field schedule.timezone" in error


def test_specs_that_do_not_go_together_cost_their_own_dags_only(lab: Lab, tmp_path: Path) -> None:
    spec = "table: {}\ncolumns: id BIGINT\nprimary_key: [id]\nsource: {{path: /in/*.parquet}}\n"
    after = {"a.one": "a.two", "a.two": "a.one", "a.lost": "a.nowhere", "a.last": "a.one"}
    for number, table in enumerate([*after, "a.good", "x.y__z", "x__y.z"]):
        follows = f"schedule: {{after: [{after[table]}]}}\n" if table in after else ""
        (tmp_path / f"{number}.yaml").write_text(spec.format(table) + follows)
    found = lab("parse", tables=str(tmp_path))
    assert [dag for dag in found["dags"] if dag.startswith("ingest")] == ["ingest__a__good", "ingest__a__last"]
    (error,) = found["errors"].values()
    assert "0.yaml, line 5, field schedule.after.0: found a.one after a.two after a.one" in error
    assert "1.yaml, line 5, field schedule.after.0: found a.two after a.one after a.two" in error
    assert "2.yaml, line 5, field schedule.after.0: found 'a.nowhere'" in error
    assert "5.yaml, line 1, field table: found 'x.y__z'; expected a name whose DAG id is free; 6.yaml has" in error
    assert "6.yaml, line 1, field table: found 'x__y.z'; expected a name whose DAG id is free; 5.yaml has" in error


def test_a_name_that_airflow_cannot_take_costs_its_own_dag_only(lab: Lab, tmp_path: Path) -> None:
    spec = "columns: id BIGINT\nprimary_key: [id]\nsource: {path: /in/*.parquet}\n"
    names = {"good": "a.good", "tag": f"{'n' * 128}.t", "long": f"{'n' * 128}.{'t' * 128}"}
    for file, name in names.items():
        (tmp_path / f"{file}.yaml").write_text(f"table: {name}\n{spec}")
    found = lab("parse", tables=str(tmp_path))
    assert {"ingest__a__good", f"ingest__{'n' * 128}__t"} < set(found["dags"])
    (error,) = found["errors"].values()
    assert "long.yaml, field table" in error
    assert "at most 241 characters" in error


_NO_NAMES = [
    "--result=/any/file",
    "-h",
    "a.b\n",
    "a.b\nx",
    "a",
    "a.b.c",
    "a.b/../c",
    "../a.b",
    "{{ x }}.b",
    "a.$(id)",
    "",
]
_NO_KEYS = ["--result=/any/file", "2026-11-18\n", "2026-11-18 --all", "../all", "{{ ds }}", ""]


@pytest.mark.parametrize("dag_id", ["compact", "maintain", "backfill"])
def test_a_form_takes_names_of_tables_and_nothing_else(lab: Lab, dag_id: str) -> None:
    form = lab("form", dag_id=dag_id)
    assert _takes(form["tables"], ["shop.orders", "_a-b.1-_"])
    assert not any(_takes(form["tables"], [name]) for name in _NO_NAMES)
    if "namespace" in form:
        assert _takes(form["namespace"], "shop")
        assert _takes(form["namespace"], None)
        assert not any(_takes(form["namespace"], name) for name in [*_NO_NAMES[:4], "a b", "a/b"])


@pytest.mark.parametrize(
    ("dag_id", "param"), [("backfill", "from"), ("backfill", "to"), ("ingest__shop__orders", "partition")]
)
def test_a_form_takes_keys_of_partitions_and_nothing_else(lab: Lab, dag_id: str, param: str) -> None:
    schema = lab("form", dag_id=dag_id)[param]
    assert _takes(schema, "2026-11-18")
    assert not any(_takes(schema, key) for key in _NO_KEYS)


@pytest.mark.parametrize(
    ("dag_id", "specs", "dags"),
    [
        ("ingest__a__first", ["a.first"], ["ingest__a__first"]),
        ("ingest__a__after", ["a.after", "a.first"], ["ingest__a__after"]),
        ("ingest__a__with__bars", ["a.with__bars"], ["ingest__a__with__bars"]),
        ("ingest__a__hidden", None, ["ingest__a__hidden"]),
        ("ingest__a__twice", None, []),
        ("ingest__a__none", None, []),
    ],
)
def test_a_task_reads_the_spec_of_its_dag_and_what_that_comes_after(
    lab: Lab, tmp_path: Path, dag_id: str, specs: list[str] | None, dags: list[str]
) -> None:
    spec = "table: {}\ncolumns: id BIGINT\nprimary_key: [id]\nsource: {{path: /in/*.parquet}}\n"
    tables = ["a.first", "a.after", "a.with__bars", '"a.\\u0068idden"', "a.twice", "a.twice", "a.firstly"]
    for number, table in enumerate(tables):
        follows = "schedule: {after: [a.first]}\n" if table == "a.after" else ""
        (tmp_path / f"{number}.yaml").write_text(spec.format(table) + follows)
    assert lab("read", tables=str(tmp_path), dag_id=dag_id) == {"specs": specs, "dags": dags}


def _takes(schema: dict[str, Any], value: Any) -> bool:
    """As Airflow judges the params of a run."""
    return not list(Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(value))


def _all_before(graph: dict[str, list[str]], task: str) -> set[str]:
    direct = {one for one, followers in graph.items() if task in followers}
    return direct.union(*(_all_before(graph, one) for one in direct))
