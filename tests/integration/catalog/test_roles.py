"""Roles: every public operation as every role does what docs/operating.md says, or is refused and changes nothing."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelib
from lakelib import Consumer, InvalidInputError, Lake
from lakelib.catalog.roles import group_name
from lakelib.model.roles import Role
from lakelib.ops.changes import ChangesPlan, count_rows
from lakelib.ops.create import find_table
from lakelib.ops.stream import StreamRequest, keep_unread, next_position, plan_batch
from lakelib.staged import StagedCommit
from lakelib.table import Table
from tests.integration.catalog.town import ROLES, SCHEMA, Town, as_user, rows, suite

DOCS = Path(__file__).parents[3] / "docs" / "operating.md"
NOW = timedelta(0)
_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What an operation works on: a table of its own, made by the superuser, as one role sees it."""

    town: Town
    lake: Lake
    table: Table
    made: Table
    """The same as its maker sees it."""

    def staged(self, **options: Any) -> StagedCommit:
        return self.lake.staged(self.made.stage_upsert(rows(7), **options).id)

    @property
    def gated(self) -> "Place":
        self.made.require_gate("keys", by="me", reason="why")
        return self

    @property
    def consumer(self) -> Consumer:
        self.made.consumer("mine")
        return self.table.consumer("mine")

    @property
    def tagged(self) -> "Place":
        self.made.tag("kept", at=1)
        return self


def place(town: Town, role: str) -> Place:
    name = f"shop.t{next(_numbers)}"
    made = town.root.create_table(name, SCHEMA, primary_key=["id"], partition_by=["day"])
    made.upsert(rows(1, 2))
    made.upsert(rows(2, 3))
    return Place(town=town, lake=town.lakes[role], table=town.lakes[role].table(name), made=made)


def in_transaction(lake: Lake, staged: StagedCommit) -> None:
    with lake.transaction() as together:
        together.add(staged)


def wider(*ids: int) -> pa.Table:
    return rows(*ids).append_column("more", pa.array([str(each) for each in ids]))


Prepare = Callable[[Place], Callable[[], object]]
"""What the maker does before; gives what the role does."""

OPERATIONS: dict[str, Prepare] = {
    "lake.watch": lambda p: lambda: list(p.lake.watch(p.made.name, after=0, timeout=0)),
    "lake.commits": lambda p: p.lake.commits,
    "lake.ducklake": lambda p: p.lake.ducklake,
    "lake.write_views": lambda p: lambda: p.lake.write_views(views_path(p), replace=True),
    "lake.status": lambda p: p.lake.status,
    "table.commits": lambda p: p.table.commits,
    "table.status": lambda p: p.table.status,
    "table.changes": lambda p: lambda: p.table.changes(after=0).to_arrow(),
    "table.diff": lambda p: lambda: p.table.diff(1, 2).to_arrow(),
    "consumer.read": lambda p: (lambda consumer: lambda: consumer.read().to_arrow())(p.consumer),
    "lake.consumers": lambda p: p.lake.consumers,
    "table.consumers": lambda p: p.table.consumers,
    "table.consumer": lambda p: lambda: p.table.consumer("billing"),
    "consumer.advance": lambda p: (lambda consumer: lambda: consumer.advance(1))(p.consumer),
    "consumer.remove": lambda p: (lambda consumer: consumer.remove)(p.consumer),
    "lake.namespaces": lambda p: p.lake.namespaces,
    "lake.tables": lambda p: p.lake.tables,
    "lake.sql": lambda p: lambda: p.lake.sql(f"SELECT count(*) FROM {p.made.name}").to_arrow(),
    "lake.table": lambda p: lambda: p.lake.table(p.made.name),
    "lake.staged": lambda p: (lambda id: lambda: p.lake.staged(id))(p.staged().id),
    "lake.gates": lambda p: p.lake.gates,
    "lake.grants": lambda p: p.lake.grants,
    "lake.grant_sql": lambda p: lambda: p.lake.grant_sql("reader", "ann"),
    "lake.doctor": lambda p: p.lake.doctor,
    "lake.vacuum(dry_run=True)": lambda p: lambda: p.lake.vacuum(dry_run=True),
    "table.scan": lambda p: lambda: (p.table.scan().to_arrow(), p.table.scan(at=p.made.head.committed_at).to_arrow()),  # type: ignore[union-attr]
    "table.history": lambda p: p.table.history,
    "table.files": lambda p: lambda: list(p.table.files()),
    "table.partitions": lambda p: p.table.partitions,
    "table.touched_partitions": lambda p: p.table.touched_partitions,
    "table.tags": lambda p: p.table.tags,
    "table.done_partitions": lambda p: p.table.done_partitions,
    "table.is_done": lambda p: lambda: p.table.is_done({"day": "mon"}),
    "table.gate_history": lambda p: p.table.gate_history,
    "table.expire(dry_run=True)": lambda p: lambda: p.table.expire(keep_last=1, dry_run=True),
    "staged.scan": lambda p: (lambda staged: lambda: staged.scan().to_arrow())(p.staged()),
    "staged.report": lambda p: (lambda staged: lambda: staged.report(p.town.warehouse.parent / "report.html"))(
        p.staged(gate=suite())
    ),
    "table.append": lambda p: lambda: p.table.append(rows(9)),
    "table.upsert": lambda p: lambda: p.table.upsert(rows(9)),
    "table.upsert(merge_schema=True)": lambda p: lambda: p.table.upsert(wider(9), merge_schema=True),
    "table.overwrite": lambda p: lambda: p.table.overwrite(rows(9)),
    "table.delete": lambda p: lambda: p.table.delete("value = 1"),
    "table.delete_keys": lambda p: lambda: p.table.delete_keys(rows(1).select(["id", "day"])),
    "table.update": lambda p: lambda: p.table.update({"value": "value + 1"}),
    "table.merge": lambda p: p.table.merge(rows(9)).when_not_matched_insert().execute,
    "table.settle_keys": lambda p: strayed(p).table.settle_keys,
    "table.stage_append": lambda p: lambda: p.table.stage_append(rows(9)),
    "table.stage_upsert": lambda p: lambda: p.table.stage_upsert(rows(9)),
    "table.stage_overwrite": lambda p: lambda: p.table.stage_overwrite(rows(9)),
    "table.stage_delete": lambda p: lambda: p.table.stage_delete("value = 1"),
    "table.rollback": lambda p: lambda: p.table.rollback(p.table.head.id),
    "table.stage_rollback": lambda p: lambda: p.table.stage_rollback(p.table.head.id),
    "table.preview_rollback": lambda p: lambda: p.table.preview_rollback(p.table.head.id),
    "table.stage_update": lambda p: lambda: p.table.stage_update({"value": "value + 1"}),
    "table.stage_delete_keys": lambda p: lambda: p.table.stage_delete_keys(rows(1).select(["id", "day"])),
    "staged.publish": lambda p: p.staged().publish,
    "lake.transaction": lambda p: (lambda staged: lambda: in_transaction(p.lake, staged))(p.staged()),
    "table.upsert` of a table that requires a gate": lambda p: (
        (lambda: p.gated.table.upsert(rows(9))) if p.gated else p.table.upsert
    ),
    "table.upsert(gate=…)": lambda p: lambda: p.table.upsert(rows(9), gate=suite()),
    "staged.judge": lambda p: (lambda staged: lambda: staged.judge(suite()))(p.staged()),
    "staged.publish(by=…, reason=…)": lambda p: (lambda staged: lambda: staged.publish(by="me", reason="why"))(
        p.gated.staged()
    ),
    "staged.reject": lambda p: (lambda staged: lambda: staged.reject("odd"))(p.staged()),
    "staged.discard": lambda p: (lambda staged: lambda: staged.discard("me", "odd"))(p.staged()),
    "table.export_delta": lambda p: p.table.export_delta,
    "table.show_in_ducklake": lambda p: in_ducklake(p).table.show_in_ducklake,
    "table.tag": lambda p: lambda: p.table.tag("mine", at=1),
    "table.delete_tag": lambda p: (lambda table: lambda: table.delete_tag("kept"))(p.tagged.table),
    "table.mark_done": lambda p: lambda: p.table.mark_done({"day": "tue"}),
    "table.mark_done_again": lambda p: (lambda snapshot: lambda: p.table.mark_done_again(snapshot))(taken_back(p)),
    "table.compact": lambda p: lambda: p.table.compact(full=True),
    "table.expire": lambda p: lambda: p.table.expire(keep_last=1, grace=NOW),
    "lake.vacuum": lambda p: p.lake.vacuum,
    "lake.create_namespace": lambda p: lambda: p.lake.create_namespace(f"n{next(_numbers)}"),
    "lake.create_table": lambda p: lambda: p.lake.create_table(f"shop.t{next(_numbers)}", SCHEMA),
    "lake.create_or_replace_table": lambda p: (
        lambda: p.lake.create_or_replace_table(p.made.name, SCHEMA, primary_key=["id"], partition_by=["day"])
    ),
    "table.overwrite(overwrite_schema=True)": lambda p: lambda: p.table.overwrite(wider(9), overwrite_schema=True),
    "lake.import_parquet": lambda p: lambda: p.lake.import_parquet(parquet_file(), f"shop.t{next(_numbers)}"),
    "lake.import_delta": lambda p: lambda: p.lake.import_delta(delta_table(), f"shop.t{next(_numbers)}"),
    "lake.drop_table": lambda p: lambda: p.lake.drop_table(p.made.name),
    "table.evolve": lambda p: lambda: p.table.evolve(add=[("extra", "string")]),
    "table.rebucket": lambda p: lambda: p.table.rebucket(8),
    "table.set_options": lambda p: lambda: p.table.set_options({"compact_runs": 7}),
    "lake.register_gate": lambda p: lambda: p.lake.register_gate(suite(f"gate{next(_numbers)}")),
    "table.require_gate": lambda p: lambda: p.table.require_gate("keys", by="me"),
    "table.release_gate": lambda p: (lambda table: lambda: table.release_gate(by="me", reason="why"))(p.gated.table),
    "lake.grant": lambda p: lambda: p.lake.grant("reader", p.town.users["extra"]),
    "lake.adopt": lambda p: lambda: p.lake.adopt("me", "why"),
    "lake.backup": lambda p: lambda: p.lake.backup(tempfile.mkdtemp(prefix="lakelib-backup-")),
    "lake.release_backup": lambda p: lambda: p.lake.release_backup("b" * 32),
    "lake.revoke": lambda p: granted(p, lambda user: p.lake.revoke("writer", user)),
}


def parquet_file() -> str:
    path = f"{tempfile.mkdtemp(prefix='lakelib-import-')}/rows.parquet"
    pq.write_table(rows(1), path)
    return path


def delta_table() -> str:
    folder = tempfile.mkdtemp(prefix="lakelib-import-")
    deltalake.write_deltalake(folder, rows(1))
    return folder


def strayed(p: Place) -> Place:
    """A key stands in two partitions."""
    p.made.upsert(rows(1, day="sun"))
    return p


def in_ducklake(p: Place) -> Place:
    p.made.set_options({"ducklake": "head"})
    return p


def views_path(p: Place) -> Path:
    p.made.set_options({"delta": "head"})
    return Path(tempfile.gettempdir()) / f"{p.made.name}.duckdb"


def taken_back(p: Place) -> int:
    """The snapshot that has reset a mark."""
    p.made.mark_done({"day": "mon"}, ["done_partition"])
    return p.made.upsert(rows(1)).id


def granted(p: Place, then: Callable[[str], None]) -> Callable[[], object]:
    user = p.town.users["extra"]
    p.town.root.grant("writer", user)
    return lambda: then(user)


def documented() -> dict[str, set[str]]:
    """Of each operation the roles that may, as the table in the docs has it."""
    text = DOCS.read_text()
    table = text[text.index("| operation | reader |") :].split("\n\n")[0]
    found: dict[str, set[str]] = {}
    for line in table.splitlines()[2:]:
        _, names, *told, _ = (cell.strip() for cell in line.split("|"))
        may = {role for role, word in zip(ROLES, told, strict=True) if word == "yes"}
        for name in re.findall(r"`([^`]+(?:` of a table[a-z ]+)?)`?", names):
            found[name.strip()] = may
    return found


MATRIX = documented()


def test_every_public_operation_is_in_the_docs() -> None:
    named = {re.split(r"[(`]", name)[0] for name in MATRIX}
    kinds: dict[str, type] = {"lake": Lake, "table": Table, "staged": StagedCommit, "consumer": Consumer}
    public = {
        f"{word}.{name}"
        for word, kind in kinds.items()
        for name, member in vars(kind).items()
        if not name.startswith("_") and callable(member)
    }
    not_about_the_catalog = {"lake.close", "consumer.plan_advance", "consumer.note_advance", "table.report_hive"}
    assert named == public - not_about_the_catalog
    assert set(OPERATIONS) == set(MATRIX)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_for_the_roles_that_the_docs_name(town: Town, name: str) -> None:
    for role in ROLES:
        act = OPERATIONS[name](place(town, role))
        if role in MATRIX[name]:
            act()
            continue
        before = town.state()
        with pytest.raises(lakelib.InvalidInputError) as caught:
            act()
        assert caught.value.kind == "catalog_refused", (role, caught.value)
        assert re.search(rf"role ({'|'.join(MATRIX[name])})\b", caught.value.remedy), (role, caught.value.remedy)
        assert town.users[role] in str(caught.value)
        assert town.state() == before, role


@pytest.mark.parametrize("role", ROLES)
def test_every_role_sees_the_properties(town: Town, role: str) -> None:
    seen = place(town, role).gated
    for thing in (seen.lake, seen.table, seen.staged()):
        for name, member in vars(type(thing)).items():
            if isinstance(member, property):
                getattr(thing, name)
        assert repr(thing)


def test_who_has_no_role_hears_at_once_which_one_is_missing(town: Town) -> None:
    with pytest.raises(lakelib.InvalidInputError, match=f"lake grant reader {town.stranger}") as caught:
        lakelib.connect(warehouse=town.warehouse, catalog=as_user(town.url, town.stranger))

    assert caught.value.kind == "catalog_refused"


def test_a_writer_publishes_to_a_gated_table_what_a_publisher_has_let_through(town: Town) -> None:
    seen = place(town, "writer").gated
    staged = seen.table.stage_upsert(rows(9))
    with pytest.raises(lakelib.RejectedError) as caught:
        staged.publish()
    assert caught.value.kind == "verdict_missing"

    town.lakes["publisher"].staged(staged.id).judge()

    assert staged.publish().id == 3


def test_a_reader_follows_a_table_by_a_stream_that_keeps_nothing(town: Town) -> None:
    seen = place(town, "reader")
    runtime = seen.lake.runtime

    def follow(**asked: Any) -> list[int]:
        """How many changes each batch has."""
        table = find_table(runtime, seen.made.name)
        request = StreamRequest(schema_id=table.schema.id, starting_after=0, most_snapshots=1, **asked)
        found, start = [], None
        while (end := next_position(runtime, table, request, start, until=None, is_limited=True)) != start:
            assert end is not None
            batch = plan_batch(runtime, table, request, start, end)
            assert isinstance(batch.plan, ChangesPlan)
            found.append(count_rows(runtime, batch.plan))
            keep_unread(runtime, table, request, end)
            start = end
        return found

    before = town.state()
    with pytest.raises(lakelib.InvalidInputError) as refused:
        follow()
    assert refused.value.kind == "catalog_refused"
    assert "`lake grant writer" in refused.value.remedy
    assert 'keepFor="0s"' in refused.value.remedy
    assert follow(keep_for=NOW) == [2, 2]
    assert town.state() == before


def test_a_role_is_lost_at_once(town: Town) -> None:
    user = town.users["extra"]
    town.root.grant("writer", user)
    with lakelib.connect(warehouse=town.warehouse, catalog=as_user(town.url, user)) as lake:
        table = lake.table(place(town, "reader").made.name)
        table.upsert(rows(5))

        town.root.revoke("writer", user)

        with pytest.raises(lakelib.InvalidInputError) as caught:
            table.upsert(rows(6))
        assert caught.value.kind == "catalog_refused"


def test_grants_are_listed_and_may_be_repeated(town: Town) -> None:
    town.root.grant("reader", town.users["reader"])
    town.lakes["owner"].grant("reader", town.users["reader"])

    listed = [(each.role.value, each.user) for each in town.root.grants() if each.user != town.users["extra"]]

    assert listed == [(role, town.users[role]) for role in ROLES]


def test_revoking_what_was_not_granted_and_granting_to_nobody_are_errors(town: Town) -> None:
    with pytest.raises(lakelib.NotFoundError) as caught:
        town.root.revoke("owner", town.stranger)
    assert caught.value.kind == "grant_not_found"
    for role, user, kind in [
        ("reader", "nobody at all", "user_not_found"),
        ("king", town.stranger, "invalid_role"),
        ("reader", "", "invalid_user"),
        ("reader", "a\0b", "invalid_user"),
        ("owner", group_name(Role.READER, town.url.partition("?")[0].rpartition("/")[2]), "invalid_user"),
    ]:
        with pytest.raises(lakelib.InvalidInputError) as refused:
            town.root.grant(role, user)
        assert refused.value.kind == kind


def test_groups_of_long_and_odd_databases_have_names_of_their_own() -> None:
    names = {group_name(role, database) for role in Role for database in ("a" * 63, "a" * 62 + "b", 'o"d d', "o_d_d")}

    assert len(names) == 4 * len(Role)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name) for name in names)


STATEMENTS = {
    "INSERT INTO {t} (id, day) VALUES (9, 'mon')": ("writer", "publisher", "owner"),
    "INSERT OVERWRITE {t} SELECT * FROM {t}": ("writer", "publisher", "owner"),
    "TRUNCATE TABLE {t}": ("writer", "publisher", "owner"),
    "CREATE TABLE {t}_made AS SELECT * FROM {t}": ("owner",),
    "ALTER TABLE {t} ADD COLUMN x INT": ("owner",),
    "DROP TABLE {t}": ("owner",),
    "CALL tag('{t}', 'kept')": ("publisher", "owner"),
    "CALL compact('{t}')": ("maintainer", "owner"),
    "EXPLAIN DROP TABLE {t}": ROLES,
    "SHOW TABLES": ROLES,
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_takes_the_role_of_the_method_that_it_stands_for(town: Town, statement: str) -> None:
    for role in ROLES:
        there = place(town, role)
        text = statement.format(t=there.made.name)
        if role in STATEMENTS[statement]:
            there.lake.sql(text)
            continue
        head = there.made.head
        with pytest.raises(InvalidInputError) as refused:
            there.lake.sql(text)
        assert (refused.value.kind, there.made.head) == ("catalog_refused", head)
        assert f"{there.made.name}_made" not in town.root.tables()
