"""The compose set-up's own script makes users that are no more than they need to be, however often it is run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from psycopg import conninfo

import lakelib
from infra.compose.make_roles import make_roles
from lakelib.model.roles import Role
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec
from tests.conftest import drop_database
from tests.integration.catalog.town import as_user, forget

SPEC = """
table: shop.orders
columns: id BIGINT, day STRING
source: {format: csv, path: /landing}
write: {mode: append}
gate: gate.yaml
"""
GATE = """
name: orders
expectations:
  - {type: expect_column_values_to_not_be_null, kwargs: {column: id}}
"""


@dataclass(frozen=True)
class Setup:
    owner: str
    airflow: str
    jobs: str
    folder: Path

    def connect(self, url: str) -> lakelib.Lake:
        return lakelib.connect(warehouse=self.folder / "warehouse", catalog=url)


@pytest.fixture
def setup(make_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setup]:
    mark = uuid4().hex[:12]
    owner, airflow = make_database(), make_database()
    with psycopg.connect(airflow) as admin:
        admin.execute("create type mood as enum ('well'); create table dag (id serial primary key, mood mood)")
    monkeypatch.setenv("LAKE_WAREHOUSE", str(tmp_path / "warehouse"))
    made = Setup(owner, as_user(airflow, f"airflow_{mark}"), as_user(owner, f"jobs_{mark}"), tmp_path)
    for _ in range(2):
        make_roles(made.owner, made.airflow, made.jobs)
    yield made
    drop_database(airflow)
    forget(owner, [f"airflow_{mark}", f"jobs_{mark}"])


def test_jobs_are_publisher_and_maintainer_and_airflow_has_its_own_database_alone(setup: Setup) -> None:
    with setup.connect(setup.owner) as lake:
        assert [each.role for each in lake.grants()] == [Role.PUBLISHER, Role.MAINTAINER]
    with psycopg.connect(setup.jobs) as db:
        powers = "select rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname ~ '^(jobs|airflow)_'"
        assert set(db.execute(powers.encode()).fetchall()) == {(False, False, False)}
    with psycopg.connect(setup.airflow) as db:
        db.execute("alter table dag add column note text; alter type mood add value 'ill'; create table more (id int)")
    with pytest.raises(lakelib.InvalidInputError) as caught:
        setup.connect(as_user(setup.owner, conninfo.conninfo_to_dict(setup.airflow)["user"]))  # type: ignore[arg-type]
    assert caught.value.kind == "catalog_refused"


def test_jobs_bring_rows_by_the_spec_of_a_table_that_the_owner_has_made(setup: Setup) -> None:
    (setup.folder / "gate.yaml").write_text(GATE)
    path = setup.folder / "orders.yaml"
    path.write_text(SPEC)
    spec = load_spec(path)
    with setup.connect(setup.jobs) as lake, pytest.raises(lakelib.InvalidInputError, match="role owner"):
        provide_table(lake.runtime, spec)
    with setup.connect(setup.owner) as lake:
        provide_table(lake.runtime, spec)

    with setup.connect(setup.jobs) as lake:
        assert provide_table(lake.runtime, spec).suite is not None
        table = lake.table("shop.orders")
        table.append(pa.table({"id": [1], "day": ["mon"]}))
        table.mark_done({})
        table.compact(full=True)
        table.expire(keep_last=1)
        lake.vacuum()
        with pytest.raises(lakelib.InvalidInputError, match="role owner"):
            table.release_gate(by="me", reason="x")
