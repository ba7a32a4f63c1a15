"""Roles hold for a client that speaks SQL itself: tables are for reading, and functions check what they are told."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from lakelib import Table
from lakelib.catalog.roles import group_name
from lakelib.model.roles import Role
from tests.integration.catalog.town import ROLES, SCHEMA, Town, as_user, rows

WITHOUT_OWNER = [role for role in ROLES if role != "owner"]
EVERYBODY = [*WITHOUT_OWNER, "stranger"]
FUNCTIONS = """
    select p.proname, p.oid::regprocedure::text, p.prosecdef, p.proconfig, p.proowner::regrole::text
    from pg_proc p where p.pronamespace = 'lake'::regnamespace order by 1"""
COLUMNS = """
    select a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'lake' and c.relname = %s"""
_numbers = count()

Db = psycopg.Connection[Any]


@contextmanager
def client(town: Town, role: str) -> Iterator[Db]:
    """Every statement is a transaction."""
    with psycopg.connect(as_user(town.url, town.users[role]), autocommit=True) as db:
        yield db


@pytest.fixture
def gated(town: Town) -> Table:
    table = make_table(town)
    table.require_gate("keys", by="me")
    return table


@pytest.fixture
def open_table(town: Town) -> Table:
    return make_table(town)


def make_table(town: Town) -> Table:
    table = town.root.create_table(f"shop.s{next(_numbers)}", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows(1, 2))
    return table


def proposal(table: Table, **given: Any) -> dict[str, Any]:
    """A commit as the protocol takes it, of nothing."""
    return {
        "id": str(uuid4()),
        "table_id": table._ref.id,
        "kind": "upsert",
        "base_snapshot_id": 1,
        "base_schema_id": 1,
        "schema_id": 1,
        "new_columns": None,
        "reads_whole_table": False,
        "reads_where": None,
        "application": None,
        "version": None,
        "patience_ms": "1000",
        "began_at": datetime.now(UTC).isoformat(),
        "removed_file_ids": [],
        "summary": {},
        "properties": {},
        "has_read": False,
        "read_partition_ids": [],
        "reads_own_partitions": False,
        "partitions": [],
        "files": [],
    } | given


def file(path: str = "day=mon/made-up.parquet", folder: str = "day=mon") -> dict[str, Any]:
    return {
        "partitions": [{"place": 0, "key": ["\\x00"], "path": folder}],
        "files": [
            {"path": path, "partition": 0, "depth": 0, "prefix": 0, "run": 0, "level": 0, "row_count": 1}
            | {"delete_count": 0, "size_bytes": 1, "sequence": None}
            | {"lower_bounds": [], "upper_bounds": [], "null_counts": []}
        ],
    }


PUBLISHING = {
    "epoch": 1,
    "patience_ms": "1000",
    "rebase": False,
    "approved_by": None,
    "approval_reason": None,
    "settled": {},
}


def stage(db: Db, made: dict[str, Any], publishing: dict[str, Any] | None = None) -> dict[str, Any]:
    given = [Jsonb(made), None if publishing is None else Jsonb(publishing)]
    return db.execute("select lake.stage_v1(%s, %s)", given).fetchone()[0]  # type: ignore[index]


def publish(db: Db, commit_id: UUID | str, **given: Any) -> dict[str, Any]:
    parameters = [[str(commit_id)], Jsonb(PUBLISHING | given)]
    return db.execute("select lake.publish_v1(%s::uuid[], %s)", parameters).fetchone()[0]  # type: ignore[index]


# Tables


def tables(town: Town) -> list[str]:
    with psycopg.connect(town.url) as db:
        return [row[0] for row in db.execute("select tablename from pg_tables where schemaname = 'lake' order by 1")]


@pytest.mark.parametrize("role", EVERYBODY)
def test_nobody_but_owners_changes_a_table(town: Town, role: str) -> None:
    before = town.state()
    with client(town, role) as db:
        for name in tables(town):
            columns = ["snapshot_id", "head_id", "state", "table_id", "commit_id", "name", "version", "epoch"]
            known = {row[0] for row in db.execute(COLUMNS, [name])}
            column = next(each for each in columns if each in known)
            for text in (
                "insert into {table} default values",
                "update {table} set {column} = {column}",
                "delete from {table}",
                "truncate {table} cascade",
                "select from {table} for key share",
                "begin; lock table {table} in share mode",
                "alter table {table} disable trigger all",
                "drop table {table}",
            ):
                statement = sql.SQL(text).format(table=sql.Identifier("lake", name), column=sql.Identifier(column))
                with pytest.raises(errors.InsufficientPrivilege):
                    db.execute(statement)
                db.rollback()
    assert town.state() == before


@pytest.mark.parametrize("role", WITHOUT_OWNER)
def test_nobody_makes_himself_an_owner(town: Town, role: str) -> None:
    with psycopg.connect(town.url) as db:
        owner = group_name(Role.OWNER, db.info.dbname)
    own = sql.Identifier(town.users[role])
    with client(town, role) as db:
        for text in (
            "set role {owner}",
            "set role postgres",
            "set session authorization postgres",
            "grant {owner} to {own}",
            "alter schema lake owner to {own}",
            "create table lake.mine (id int)",
            "create function lake.mine() returns int language sql as 'select 1'",
            "alter function lake.publish_v1(uuid[], jsonb) reset all",
            "grant execute on function lake.answer_v1 to {own}",
            "alter role {own} superuser",
        ):
            with pytest.raises((errors.InsufficientPrivilege, errors.InvalidParameterValue)):
                db.execute(sql.SQL(text).format(owner=sql.Identifier(owner), own=own))
        db.execute(sql.SQL("grant all on lake.commit to {}").format(own))  # a warning: it grants what one may pass on
        assert db.execute("select has_table_privilege('lake.commit', 'insert, update, delete')").fetchone() == (False,)


# Functions


def test_functions_run_as_the_owners_with_a_search_path_of_their_own_and_none_is_for_everybody(town: Town) -> None:
    with psycopg.connect(town.url) as db:
        owner = group_name(Role.OWNER, db.info.dbname)
        powers = db.execute("select rolsuper, rolcanlogin from pg_roles where rolname = %s", [owner]).fetchone()
        found = db.execute(FUNCTIONS.encode()).fetchall()

    assert powers == (False, False)
    assert {row[4] for row in found} == {owner}
    assert {row[0] for row in found if row[2] and row[3] != ["search_path=pg_catalog, pg_temp"]} == set()
    with client(town, "reader") as db, psycopg.connect(town.url) as admin:
        free = [
            row[1]
            for row in found
            if admin.execute("select has_function_privilege(%s, %s, 'execute')", [town.stranger, row[1]]).fetchone()
            != (False,)
        ]
        assert free == []
        assert db.execute("select lake.has_right_v1('read'), lake.has_right_v1('write')").fetchone() == (True, False)


def test_what_clients_call_is_for_some_role_and_helpers_are_for_none(town: Town) -> None:
    texts = resources.files("lakelib.catalog") / "sql"
    views = [texts / "functions" / name for name in ("ducklake_types_v1.sql", "ducklake_views.sql")]
    paths = [*(texts / "queries").iterdir(), *views]
    called = {name for path in paths for name in re.findall(r"\blake\.(\w+_v\d+)\(", path.read_text())}
    with psycopg.connect(town.url) as admin:
        found = {row[0]: row[1] for row in admin.execute(FUNCTIONS.encode())}
        users = [town.users[role] for role in WITHOUT_OWNER]
        granted = {
            name
            for name, signature in found.items()
            for user in users
            if admin.execute("select has_function_privilege(%s, %s, 'execute')", [user, signature]).fetchone()
            == (True,)
        }

    assert granted == called


@pytest.mark.parametrize("role", ["reader", "maintainer"])
def test_who_does_not_write_stages_and_publishes_no_rows(town: Town, open_table: Table, role: str) -> None:
    staged = open_table.stage_upsert(rows(5))
    before = town.state()
    with client(town, role) as db:
        for act in (
            lambda: stage(db, proposal(open_table, **file())),
            lambda: publish(db, staged.id),
            lambda: db.execute("select lake.end_v1(%s, 'expired', 'x')", [staged.id]),
            lambda: db.execute("select lake.amend_v1(%s)", [Jsonb({"id": str(staged.id), "files": []})]),
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                act()
    assert town.state() == before


def test_a_turn_is_for_those_who_publish(town: Town, open_table: Table) -> None:
    with client(town, "reader") as db, pytest.raises(errors.InsufficientPrivilege):
        db.execute("select lake.turn_v1(%s, %s, 1000)", [open_table._ref.id, uuid4()])
    with client(town, "reader") as db, pytest.raises(errors.InsufficientPrivilege):
        db.execute("select lake.release_turn_v1(%s)", [uuid4()])
    for role in ("writer", "maintainer"):
        with client(town, role) as db:
            turn = uuid4()
            assert db.execute("select lake.turn_v1(%s, %s, 1000)", [open_table._ref.id, turn]).fetchone() == (0,)
            db.execute("select lake.release_turn_v1(%s)", [turn])


def test_a_writer_publishes_past_no_gate(town: Town, gated: Table) -> None:
    staged = gated.stage_upsert(rows(5))
    compacting = proposal(gated, kind="compact")
    with psycopg.connect(town.url, autocommit=True) as admin:
        stage(admin, compacting)
    change = proposal(gated, number=1, withdrawn_paths=[], withdrawn_file_ids=[], **file()) | {"id": compacting["id"]}
    verdict = {"commit_id": str(staged.id), "gate": "keys", "outcome": "accept"}
    before = town.state()
    with client(town, "writer") as db:
        assert publish(db, staged.id)["outcome"] == "verdict_missing"
        for act in (
            lambda: publish(db, staged.id, approved_by="the boss", approval_reason="trust me"),
            lambda: stage(db, proposal(gated, kind="compact", **file()), PUBLISHING),
            lambda: stage(db, proposal(gated, kind="evolve", **file()), PUBLISHING),
            lambda: publish(db, compacting["id"]),
            lambda: db.execute("select lake.amend_v1(%s)", [Jsonb(change)]),
            lambda: db.execute("select lake.end_v1(%s, 'rejected', 'x')", [staged.id]),
            lambda: db.execute("select lake.judge_v1(%s, '')", [Jsonb(verdict)]),
            lambda: db.execute("select lake.discard_v1(%s, 'me', 'x')", [staged.id]),
            lambda: db.execute("select lake.become_snapshot_v1(%s, 2, now())", [staged.id]),
            lambda: db.execute("select lake.check_verdicts_v1(null, null)"),
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                act()
        with pytest.raises(errors.InvalidParameterValue):
            stage(db, proposal(gated, kind="compact ", **file()), PUBLISHING)
    assert town.state() == before


def test_a_writer_takes_no_file_out_of_another_table(town: Town, gated: Table, open_table: Table) -> None:
    with client(town, "writer") as db:
        ids = [row[0] for row in db.execute("select id from lake.data_file where table_id = %s", [gated._ref.id])]
        with pytest.raises(errors.InvalidParameterValue):
            stage(db, proposal(open_table, kind="delete", removed_file_ids=ids), PUBLISHING)

    assert gated.scan().to_arrow().num_rows == 2


def test_a_writer_forges_no_approval(town: Town, open_table: Table) -> None:
    forged = {"approved_by": "the boss", "approval_reason": "trust me", "source": "x"}
    with client(town, "writer") as db:
        answer = stage(db, proposal(open_table, properties=forged), PUBLISHING)

    assert answer["outcome"] == "published"
    assert open_table.history()[0].properties == {"source": "x"}


OWN = [("id", "bigint"), ("day", "string"), ("value", "bigint")]


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [("id", "bigint"), ("day", "string"), ("worth", "bigint")],
        [("id", "bigint"), ("day", "string"), ("value", "string")],
        [("id", "bigint"), ("day", "string"), ("value", "int")],
        [*OWN, ("more", "nonsense")],
        [*OWN, ("VALUE", "bigint")],
        [*OWN, ("more", "string"), ("yet more", "string")],
        [("id", "bigint"), ("day", "string"), ("value", "bigint", "day"), ("more", "string")],
    ],
    ids=[
        "all dropped",
        "renamed",
        "another type",
        "narrower",
        "no type",
        "two of a name",
        "an id that is not reserved",
        "another name in files",
    ],
)
def test_rows_change_a_schema_only_as_rows_may(town: Town, open_table: Table, columns: list[tuple[str, ...]]) -> None:
    other = [
        dict(zip(("name", "type", "stored_as"), told, strict=False), id=number, nullable=number > 1)
        for number, told in enumerate(columns, start=1)
    ]
    with client(town, "writer") as db:
        db.execute("select lake.reserve_schema_v1(%s, 1)", [open_table._ref.id])
        before = town.state()
        with pytest.raises(errors.InvalidParameterValue):
            stage(db, proposal(open_table, schema_id=2, new_columns=other), PUBLISHING)

    assert town.state() == before


def test_nobody_says_beforehand_what_anothers_schema_version_is(town: Town, open_table: Table) -> None:
    def columns(*given: tuple[str, str]) -> list[dict[str, Any]]:
        return [
            {"id": number, "name": name, "type": type_, "nullable": number > 1}
            for number, (name, type_) in enumerate([*OWN, *given], start=1)
        ]

    with client(town, "writer") as db:
        early = proposal(open_table, schema_id=2, new_columns=columns(("spy", "string")))
        with pytest.raises(errors.InvalidParameterValue):
            stage(db, early)
        db.execute("select lake.reserve_schema_v1(%s, 1)", [open_table._ref.id])  # an owner's, who is about to stage
        stage(db, early)
    with psycopg.connect(town.url) as owner, pytest.raises(errors.InvalidParameterValue):
        stage(owner, proposal(open_table, kind="evolve", schema_id=2, new_columns=columns(("extra", "string"))))


def test_no_row_is_newer_than_those_to_come(town: Town, open_table: Table) -> None:
    made = file()
    made["files"][0]["sequence"] = 2
    with client(town, "writer") as db, pytest.raises(errors.InvalidParameterValue):
        stage(db, proposal(open_table, **made), PUBLISHING)


@pytest.mark.parametrize("path", ["../other/x.parquet", "/etc/passwd", "s3://bucket/x", "day=mon/../../x", "./x"])
def test_a_path_does_not_lead_out_of_its_table(town: Town, open_table: Table, path: str) -> None:
    with client(town, "publisher") as db:
        for made in (file(path=path), file(folder=path)):
            with pytest.raises(errors.InvalidParameterValue):
                stage(db, proposal(open_table, **made))
        with pytest.raises(errors.InvalidParameterValue):
            db.execute("select lake.mark_partition_v1(%s, array['\\x00'::bytea], %s, true)", [open_table._ref.id, path])


def test_nothing_that_a_client_defines_is_taken_for_the_systems(town: Town, gated: Table) -> None:
    staged = gated.stage_upsert(rows(5))
    with psycopg.connect(town.url, autocommit=True) as admin:
        admin.execute("create schema if not exists tricks")
        admin.execute(sql.SQL("grant all on schema tricks to {}").format(sql.Identifier(town.users["writer"])))
    with client(town, "writer") as db:
        for statement in (
            "create function tricks.yes(text, text) returns boolean language sql as 'select true'",
            "create operator tricks.= (leftarg = text, rightarg = text, function = tricks.yes)",
            "create operator tricks.<> (leftarg = text, rightarg = text, function = tricks.yes)",
            "create function tricks.pg_has_role(name, oid, text) returns boolean language sql as 'select true'",
            "create function tricks.has_function_privilege(name, text, text) returns boolean"
            " language sql as 'select true'",
            "create temp table verdict (like lake.verdict)",
            "create temp table gate_requirement (like lake.gate_requirement)",
            "set search_path = tricks, pg_temp, pg_catalog, lake",
            "set transform_null_equals = on",
        ):
            db.execute(statement.encode())
        assert publish(db, staged.id)["outcome"] == "verdict_missing"
        with pytest.raises(errors.InsufficientPrivilege):
            publish(db, staged.id, approved_by="me", approval_reason="x")
        db.execute("begin isolation level repeatable read")
        with pytest.raises(errors.InvalidTransactionState):
            publish(db, staged.id)
    with psycopg.connect(town.url, autocommit=True) as admin:
        admin.execute("drop schema tricks cascade")


def test_a_lease_is_its_users(town: Town, open_table: Table) -> None:
    own = uuid4()
    place = [open_table._ref.id, 1]
    with client(town, "writer") as db:
        db.execute("select lake.take_lease_v1(%s, %s, %s, 'me', '100 years')", [own, *place])
    with client(town, "reader") as db:
        assert db.execute("select lake.renew_lease_v1(%s, '-1 hour')", [own]).fetchall() == []
        assert db.execute("select lake.take_lease_v1(%s, %s, %s, 'me', '-1 hour')", [own, *place]).fetchall() == []
        db.execute("select lake.release_lease_v1(%s)", [own])
        held = db.execute(
            "select taken_by, expires_at < now() + interval '8 days', expires_at > now() from lake.lease where id = %s",
            [own],
        )
        assert held.fetchall() == [(town.users["writer"], True, True)]


def test_a_reader_in_an_open_transaction_keeps_nobody_from_publishing(town: Town, open_table: Table) -> None:
    staged = open_table.stage_upsert(rows(9))
    with client(town, "reader") as db, client(town, "writer") as other:
        db.execute("begin")
        found = db.execute("select id from lake.find_moment_v1(%s, clock_timestamp(), '0')", [open_table._ref.id])
        assert found.fetchall() == [(1,)]
        db.execute("select lake.take_lease_v1(%s, %s, 1, 'me', '1 hour')", [uuid4(), open_table._ref.id])

        assert publish(other, staged.id)["outcome"] == "published"


def test_a_turn_does_not_last(town: Town, open_table: Table) -> None:
    with client(town, "writer") as db:
        db.execute("select lake.turn_v1(%s, %s, 2000000000)", [open_table._ref.id, uuid4()])
        known = db.execute("select until < clock_timestamp() + interval '1 minute' from lake.waiting")
        assert known.fetchone() == (True,)


def test_a_maintainer_retires_no_table_that_is_there_and_bars_no_writer(town: Town, open_table: Table) -> None:
    own = [open_table._ref.id]
    staged = open_table.stage_upsert(rows(9))
    with client(town, "maintainer") as db:
        db.execute("select lake.retire_dropped_v1(%s)", own)
        assert db.execute("select lake.queue_files_of_dropped_v1(%s, 1000)", own).fetchone() == (0,)
        db.execute("select lake.forget_dropped_v1(%s)", own)
        db.execute("select lake.mark_orphans_v1(%s, 'infinity')", own)

    assert staged.publish().id == 2
    open_table.upsert(rows(3))
    assert open_table.scan().to_arrow().num_rows == 4


def test_a_publishers_verdict_is_needed_and_enough(town: Town, gated: Table) -> None:
    commit = gated.stage_upsert(rows(5))
    town.lakes["publisher"].staged(commit.id).judge()
    with client(town, "writer") as db:
        assert publish(db, commit.id)["outcome"] == "published"


def test_the_state_is_told_by_all_that_there_is(town: Town, open_table: Table) -> None:
    """Else "nothing was changed" would be told by a comparison that sees nothing."""
    before = town.state()
    open_table.upsert(rows(3))
    after = town.state()

    changed = {name for name in before if before[name] != after[name]}
    assert changed >= {"commit", "data_file", "snapshot", "table", "files"}
