"""What `make up` makes of its embedded PostgreSQL: users that own no lake, and tables that follow their specs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

import lakelib
from infra.airflow import providing
from infra.airflow.instance import Home
from infra.airflow.postgres import (
    airflow_url,
    jobs_url,
    owner_url,
    prepare_databases,
    release_server,
    start_server,
)
from infra.airflow.providing import NOTHING_SEEN, Seen, is_due, provide
from lakelib.catalog.embedded import EmbeddedServer
from lakelib.model.roles import Role
from lakelib.pipeline.ingesting import ingest
from tests.jobs.ingest_support import DAY, Shop, new_shop
from tests.understood import understood

CHECK = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "status"}}
OTHER_CHECK = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "amount"}}


@dataclass(frozen=True)
class Instance:
    home: Home
    server: EmbeddedServer

    def connect(self, url: str) -> lakelib.Lake:
        return lakelib.connect(self.home.warehouse.as_uri(), url)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    home = Home(tmp_path / "lake")
    home.warehouse.mkdir(parents=True)
    server = start_server(home.catalog)
    for _ in range(2):
        prepare_databases(server, home.warehouse.as_uri())
    yield Instance(home, server)
    assert release_server(home.catalog)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = new_shop(tmp_path)
    shop.write_spec(gate=write_gate(shop, CHECK))
    shop.deliver([])
    return shop


def write_gate(shop: Shop, *checks: dict[str, object]) -> str:
    """Not beside the spec, where it would be taken for another one."""
    (shop.folder / "gates").mkdir(exist_ok=True)
    (shop.folder / "gates" / "orders.yaml").write_text(json.dumps({"name": "orders", "expectations": checks}))
    return "gates/orders.yaml"


def provided(instance: Instance, shop: Shop) -> Seen:
    made = provide(instance.home, shop.folder)
    assert made.is_whole
    return made


def ingested(instance: Instance, shop: Shop) -> object:
    """As Airflow's task runs the job. What is delivered has no rows, so that it ends before Spark would be started."""
    lake = ["--warehouse", instance.home.warehouse.as_uri(), "--catalog", jobs_url(instance.server)]
    work = ["--spec", str(shop.spec), "--partition", DAY, "--idempotency-key", "test:1"]
    return ingest(understood("ingest", [*lake, *work]))


def test_tasks_are_publisher_and_maintainer_and_airflow_has_its_own_database_alone(instance: Instance) -> None:
    with instance.connect(owner_url(instance.server)) as lake:
        granted = [(each.role, each.user) for each in lake.grants()]
    assert granted == [(Role.PUBLISHER, "lake_jobs"), (Role.MAINTAINER, "lake_jobs")]
    with psycopg.connect(airflow_url(instance.server).replace("+psycopg", "")) as db:
        db.execute("create table dag (id int)")
        powers = "select bool_or(rolsuper or rolcreaterole or rolcreatedb) from pg_roles where rolname in (%s, %s)"
        assert db.execute(powers.encode(), ["airflow", "lake_jobs"]).fetchone() == (False,)
    with pytest.raises(lakelib.InvalidInputError, match="role reader"):
        instance.connect(owner_url(instance.server).replace("postgres:@", "airflow:@"))


def test_a_plain_connect_in_the_folder_owns_the_lake(instance: Instance) -> None:
    with lakelib.connect(instance.home.warehouse.as_uri()) as lake:
        assert len(lake.grants()) == 2
        lake.create_namespace("mine")
        assert lake.identity.difference is None


def test_a_task_cannot_take_a_requirement_away_or_become_an_owner(instance: Instance, shop: Shop) -> None:
    provided(instance, shop)

    with instance.connect(jobs_url(instance.server)) as lake:
        table = lake.table(shop.table)
        for act in (
            lambda: table.release_gate(by="task", reason="in the way"),
            lambda: lake.grant("owner", "lake_jobs"),
            lambda: lake.drop_table(shop.table),
        ):
            with pytest.raises(lakelib.InvalidInputError) as caught:
                act()
            assert caught.value.kind == "catalog_refused"
        assert table.required_gate is not None
    with psycopg.connect(jobs_url(instance.server), autocommit=True) as db:
        for text in ("set role lake_owner_postgres", "set role postgres", "delete from lake.gate_requirement"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(text.encode())


def test_a_job_whose_table_is_not_made_yet_says_so_and_is_to_be_repeated(instance: Instance, shop: Shop) -> None:
    with pytest.raises(lakelib.RetryableError, match=f"lake provide {shop.spec}") as caught:
        ingested(instance, shop)
    assert caught.value.kind == "table_not_provided"

    provided(instance, shop)

    with pytest.raises(lakelib.InvalidInputError) as empty:
        ingested(instance, shop)
    assert empty.value.kind == "empty_source"


def test_tables_and_gates_follow_their_files(instance: Instance, shop: Shop) -> None:
    assert is_due(NOTHING_SEEN, shop.folder)
    made = provided(instance, shop)
    assert not is_due(made, shop.folder)

    write_gate(shop, CHECK, OTHER_CHECK)
    assert is_due(made, shop.folder)
    made = provided(instance, shop)
    assert not is_due(made, shop.folder)
    (shop.folder / "more.yaml").write_text(shop.spec.read_text().replace(shop.table, "shop.more"))
    assert is_due(made, shop.folder)
    made = provided(instance, shop)
    (shop.folder / "more.yaml").unlink()
    assert is_due(made, shop.folder)

    with instance.connect(owner_url(instance.server)) as lake:
        assert [each.version for each in lake.table(shop.table).gate_history()] == [2, 1]
        assert lake.table("shop.more").required_gate is not None


def test_what_is_wrong_with_a_spec_costs_its_table_and_is_tried_again(
    instance: Instance, shop: Shop, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providing, "AGAIN_SECONDS", 0.0)
    broken = shop.folder / "broken.yaml"
    broken.write_text("table: shop.broken\ngate: not_there.yaml\n")

    made = provide(instance.home, shop.folder)

    assert not made.is_whole
    assert str(broken) in capfd.readouterr().err
    assert is_due(made, shop.folder)
    with instance.connect(owner_url(instance.server)) as lake:
        assert lake.tables("shop") == [shop.table.partition(".")[2]]


def test_a_folder_without_specs_or_none_at_all_needs_nothing(instance: Instance, tmp_path: Path) -> None:
    for folder in (tmp_path / "empty", tmp_path / "not there"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        made = provide(instance.home, folder)
        assert made.is_whole
        assert not is_due(made, folder)
