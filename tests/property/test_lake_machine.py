"""The lake does what a dict would: random work on several tables, each read compared with `lake_model`."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import lakelib
from lakelib import Lake, LakeError, StagedCommit, Table
from lakelib.catalog.snapshots import find_moved
from lakelib.consumer import Consumer
from lakelib.errors import ExpiredError
from lakelib.model.gate import Outcome
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import ArrowEngine, Engine
from tests.masked import seen_rows, unmasked_rows
from tests.property.lake_model import Entry, Place, Proposal, RefusedError, TableModel, Values, matches, shown
from tests.property.lake_values import (
    ARROW,
    COMMIT,
    FLAT,
    FUNCTIONS,
    KEY_TYPES,
    ORDER_TYPES,
    TEXTS,
    WIDER,
    Both,
    Col,
    Pred,
    compare,
    is_null,
    predicates,
)

STEPS_A_RUN = 60
RUNS = int(os.environ.get("LAKE_MACHINE_RUNS", "10"))
"""For each of the four tests."""
IN_PROCESS: Engine = ArrowEngine()

_SPARE_NAMES = ("n1", "n 2", "n`3", "größe")
_APPLICATIONS = ("etl", "app's")
_BULK = "y" * 16_000
_TAGS = ("eod", "größe 2")
_CONSUMERS = ("billing", "größe")
_NOW = timedelta(0)
_NEEDED_FILES: LiteralString = """
    select f.path
    from lake."table" t join lake.data_file f on f.table_id = t.id join lake.commit c on c.id = f.commit_id
    where t.name = %(name)s
      and (c.state in ('staged', 'rejected')
           or exists (select from lake.snapshot s
                      where s.table_id = t.id and s.expired_at is null and s.id >= f.added_snapshot
                        and s.id < coalesce(f.removed_snapshot, 9223372036854775807)))"""
_TABLE_ID: LiteralString = 'select id from lake."table" where name = %(name)s'
_KNOWN_FILES: LiteralString = """
    select f.path from lake."table" t join lake.data_file f on f.table_id = t.id where t.name = %(name)s
    union all
    select q.path from lake."table" t join lake.deletion_queue q on q.table_id = t.id where t.name = %(name)s"""
_MOMENTS: LiteralString = """
    select s.id, s.committed_at from lake."table" t join lake.snapshot s on s.table_id = t.id
    where t.name = %(name)s order by s.id"""
_LEASED: LiteralString = """
    select distinct held.id as snapshot_id from lake."table" t join lake.lease l on l.table_id = t.id
    cross join generate_series(l.snapshot_id, coalesce(l.last_snapshot_id, l.snapshot_id)) as held (id)
    where t.name = %(name)s and l.expires_at > clock_timestamp()"""
_END_LEASES: LiteralString = """
    update lake.lease set expires_at = clock_timestamp()
    where table_id = (select id from lake."table" where name = %(name)s)
    returning id"""
_GATE = """
name: few
expectations:
  - type: expect_table_row_count_to_be_between
    kwargs: {{max_value: {most}}}
"""
_rarely = st.sampled_from((False, False, False, True))
_scopes = st.sampled_from(("staged", "merged"))
_types = st.sampled_from(tuple(ARROW))
_INVERSE = ("sum", "count")
_ENGINES = ("first_row", "partial_update", "aggregate")


def test_tables_with_keys_do_what_a_dict_does(machine_lake: Lake) -> None:
    _run(machine_lake, ("fixed", "dynamic"))


def test_append_tables_and_postponed_buckets_do_what_a_dict_does(machine_lake: Lake) -> None:
    _run(machine_lake, ("append", "postpone"))


def test_sequenced_and_append_tables_together_do_what_a_dict_does(machine_lake: Lake) -> None:
    _run(machine_lake, ("sequenced", "append", "sequenced"))


def test_tables_that_merge_versions_do_what_a_dict_does(machine_lake: Lake) -> None:
    _run(machine_lake, ("first_row", "partial_update", "aggregate"))


def _run(lake: Lake, kinds: Sequence[str]) -> None:
    steps: list[str] = []
    run_machine(lambda: LakeMachine(lake, kinds, steps), RUNS)
    print(f"{len(steps)} steps")


def run_machine(machine: Callable[[], "LakeMachine"], runs: int) -> None:
    """Lets new machines work, each for some steps."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=STEPS_A_RUN,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # to shrink what fails takes minutes: add Phase.shrink to look into a failure
            suppress_health_check=list(HealthCheck),
        ),
    )


class LakeMachine(RuleBasedStateMachine):
    """Each rule does one thing to the lake and to the model, and compares what both say.

    What takes rows in, reads, compacts or judges is done by one of the engines, drawn each time.
    """

    rolls_back = True
    has_consumers = True
    replaces = True
    """Whether it replaces rows, columns and buckets."""
    changes_of_columns: tuple[str, ...] = ("add", "drop", "rename", "widen", "swap", "move", "comment")
    wider = WIDER

    def __init__(
        self, lake: Lake, kinds: Sequence[str], steps: list[str], engines: Sequence[Engine] = (IN_PROCESS,)
    ) -> None:
        super().__init__()
        self.engines = engines
        self.lake = lake
        self.kinds = kinds
        self.steps = steps
        self.tables: list[Table] = []
        self.models: list[TableModel] = []
        self.staged: list[tuple[int, int, StagedCommit]] = []
        """Table, number of the proposal in its model, and the commit."""
        self.opened: list[tuple[int, int, Callable[[], pa.Table], list[tuple[Any, ...]]]] = []
        """Table, snapshot, what reads it, and the rows."""
        self.placed: dict[int, int] = {}
        """Of tables, up to which snapshot the model knows the places of files."""

    @initialize(data=st.data())
    def create_tables(self, data: st.DataObject) -> None:
        for kind in self.kinds:
            table, model = _create(self.lake, kind, data.draw)
            model.wider = self.wider
            self.tables.append(table)
            self.models.append(model)

    # Writes

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        engine = self._engine(data)
        rows, auxiliary, schema, options, source = _draw_batch(data.draw, model, engine, full=True)
        key = data.draw(_keys())
        proposal = model.upsert(rows, auxiliary, new_schema=schema, key=key)
        method = "append" if not model.primary_key or data.draw(_rarely) else "upsert"
        self._write(number, proposal, method, data.draw(st.booleans()), source, engine=engine, **options)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        columns = sorted(model.partition_columns, key=lambda column: column.id)
        if not columns or data.draw(st.booleans()):
            columns = [*model.schema, COMMIT]
        pred = data.draw(_predicates(columns))
        if model.refuses_deletes:
            assert _refusal(lambda: self.tables[number].delete(pred.text)) == "deletes_refused"
            self._check_head(number)
            return
        proposal = model.delete(pred, key=data.draw(_keys()))
        self._write(number, proposal, "delete", data.draw(st.booleans()), pred.text)

    @rule(data=st.data())
    def delete_keys(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        if not model.primary_key:
            return
        wanted, says_all = _told_of_deletes(data.draw, model)
        rows = data.draw(st.lists(_rows(model, [column for column in model.schema if column.id in wanted]), max_size=4))
        names = {column.id: column for column in model.schema if column.id in wanted}
        takes_nothing = model.retracts and not any(column.function in _INVERSE for column in names.values())
        if model.refuses_deletes or takes_nothing:
            keys = _arrow(data.draw, rows, tuple(names.values()))
            expected = "missing_column" if takes_nothing else "deletes_refused"
            assert _refusal(lambda: self.tables[number].delete_keys(keys)) == expected
            self._check_head(number)
            return
        proposal = model.delete_keys(rows, with_sequence=says_all, key=data.draw(_keys()))
        source = _arrow(data.draw, rows, tuple(names.values()))
        self._write(number, proposal, "delete_keys", data.draw(st.booleans()), source, engine=self._engine(data))

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        target = data.draw(st.sampled_from(("all", "dynamic", "dynamic", "static")))
        fixed: Values = {}
        if target == "static" and model.partition_by:
            chosen = data.draw(st.lists(st.sampled_from(model.partition_by), min_size=1, unique=True))
            fixed = {each: data.draw(_value(model, _by_id(model.schema, each))) for each in chosen}
        engine = self._engine(data)
        rows, _, schema, options, source = _draw_batch(data.draw, model, engine, full=False, fixed=fixed)
        more = {"new_schema": schema, "key": data.draw(_keys())}
        partitions: Any = target
        if fixed:
            tests = tuple(_equal(_by_id(model.schema, each), value) for each, value in fixed.items())
            proposal = model.overwrite_static(rows, Both(False, tests), **more)
            partitions = {_by_id(model.schema, each).name: value for each, value in fixed.items()}
        elif target == "dynamic":
            proposal = model.overwrite_dynamic(rows, **more)
        else:
            proposal, partitions = model.overwrite_all(rows, **more), "all"
        options |= {"partitions": partitions}
        self._write(number, proposal, "overwrite", data.draw(st.booleans()), source, engine=engine, **options)

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        if not self.replaces:
            return
        number, model = self._pick(data)
        columns = sorted(model.partition_columns, key=lambda column: column.id)
        is_newest = not model.sequence_by and model.merge is None
        if is_newest and (not columns or data.draw(st.booleans())):
            columns = [column for column in model.schema if column.type in FLAT]
        if not columns:
            return
        pred = data.draw(_predicates(columns))
        drawn = data.draw(st.lists(_rows(model, model.schema), max_size=6))
        rows = [row for row in drawn if matches(pred, Entry(row, None))]
        proposal = model.replace(rows, pred, key=data.draw(_keys()))
        engine, staged = self._engine(data), data.draw(st.booleans())
        source = _arrow(data.draw, rows, model.schema)
        self._write(number, proposal, "overwrite", staged, source, engine=engine, where=pred.text)

    @rule(data=st.data())
    def overwrite_with_columns(self, data: st.DataObject) -> None:
        if not self.replaces:
            return
        number, model = self._pick(data)
        schema = _draw_columns(data.draw, model)
        if schema == model.schema:
            return
        rows = data.draw(st.lists(_rows(model, schema), max_size=4))
        proposal = model.overwrite_all(rows, new_schema=schema, key=data.draw(_keys()))
        arrays = [pa.array([row.get(column.id) for row in rows], ARROW[column.type]) for column in schema]
        source = pa.Table.from_arrays(arrays, [column.name for column in schema])
        engine, staged = self._engine(data), data.draw(st.booleans())
        self._write(number, proposal, "overwrite", staged, source, engine=engine, overwrite_schema=True)

    @rule(data=st.data())
    def evolve(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        schema, changes = _draw_evolution(data.draw, model, self.changes_of_columns)
        if changes:
            self._write(number, model.evolve(schema, key=data.draw(_keys())), "evolve", False, **changes)

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        if not self.rolls_back or not model.head_id:
            return
        target = data.draw(st.sampled_from(model.kept_ids) | st.integers(1, model.head_id + 1))
        key = data.draw(_keys())
        if target > model.head_id or target in model.expired:
            expected = "snapshot_expired" if target in model.expired else "snapshot_not_found"
            assert _refusal(lambda: self.tables[number].rollback(target)) == expected
            assert _refusal(lambda: self.tables[number].preview_rollback(target)) == expected
            return
        proposal = model.rollback(target, *self._moved(number, target), key=key)
        self._write(number, proposal, "rollback", data.draw(st.booleans()), target)

    def _moved(self, number: int, target: int) -> tuple[set[Place], set[Any]]:
        """The places of the files that a rollback takes out, and the partitions in which it moves files."""
        model = self.models[number]
        held, holds = self._places(number, target), self._places(number, model.head_id)
        table_id = self._ask_catalog(number, _TABLE_ID)[0]["id"]
        moved = find_moved(self.lake.runtime.catalog, table_id, target)
        come = {holds[file.path] for file in moved if not file.is_restored}
        return come, {place[0] for place in come} | {held[file.path][0] for file in moved if file.is_restored}

    # Staged commits

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        number, proposal, commit = data.draw(st.sampled_from(self.staged))
        try:
            expected: Any = self.models[number].publish(proposal)
        except RefusedError as refused:
            expected = str(refused)
        assert _outcome(commit.publish) == expected
        assert commit.state == self.models[number].states[proposal]
        self._check_head(number)

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def publish_together(self, data: st.DataObject) -> None:
        chosen = data.draw(
            st.lists(st.sampled_from(self.staged), min_size=1, max_size=4, unique_by=lambda one: one[2].id)
        )
        moves = self._draw_moves(data)
        models = [model.copy() for model in self.models]
        expected: Any = None
        try:
            is_replay = all(models[number].is_done(proposal) for number, proposal, _ in chosen)
            for number, consumer, seen, to, backwards in moves:
                models[number].move(consumer.name, seen, to, backwards=backwards, is_replay=is_replay)
            expected = _publish_in_order(models, [(number, proposal) for number, proposal, _ in chosen])
            self.models = models
        except RefusedError as refused:
            expected = str(refused)
        assert self._transaction([commit for _, _, commit in chosen], moves) == expected
        for number in {number for number, _, _ in chosen}:
            self._check_head(number)
        for number in {number for number, *_ in moves}:
            self._check_consumers(number)

    def _draw_moves(self, data: st.DataObject) -> list[tuple[int, Consumer, int, int, bool]]:
        """Consumers of some tables that were read, each from where and to where it is to move; somebody else may have
        moved one since."""
        if not self.has_consumers:
            return []
        known = [(number, name) for number, model in enumerate(self.models) if model.head_id for name in _CONSUMERS]
        moves = []
        for number, name in data.draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else ():
            model = self.models[number]
            if name not in model.consumers:
                model.consumers[name] = data.draw(st.sampled_from([0, *model.kept_ids]))
            seen = model.consumers[name]
            consumer = self.tables[number].consumer(name, after=seen)
            assert consumer.position == seen
            if data.draw(_rarely):
                model.consumers[name] = data.draw(st.sampled_from([0, *model.kept_ids]))
                self.tables[number].consumer(name).advance(model.consumers[name], backwards=True)
            anywhere, backwards = data.draw(_rarely), data.draw(_rarely)
            to = data.draw(st.integers(0, model.head_id + 1) if anywhere else st.integers(seen, model.head_id))
            moves.append((number, consumer, seen, to, backwards))
        return moves

    def _check_consumers(self, number: int) -> None:
        """They stand where the model says. Some are removed: else hardly anything would ever expire."""
        model, table = self.models[number], self.tables[number]
        assert {each.name: each.position for each in table.consumers()} == model.consumers
        for name in list(model.consumers)[1:]:
            table.consumer(name).remove()
            del model.consumers[name]
        self._step("move")

    def _transaction(
        self, commits: Sequence[StagedCommit], moves: Sequence[tuple[int, Consumer, int, int, bool]]
    ) -> Any:
        try:
            with self.lake.transaction() as transaction:
                for commit in commits:
                    transaction.add(commit)
                for _, consumer, _, to, backwards in moves:
                    transaction.advance(consumer, to, backwards=backwards)
        except LakeError as error:
            return error.kind
        return [snapshot.id for snapshot in transaction.snapshots]

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        number, proposal, commit = data.draw(st.sampled_from(self.staged))
        states = self.models[number].states
        if states[proposal] == "staged":
            states[proposal] = "rejected"
            commit.reject("looks wrong")
        elif states[proposal] != "rejected":
            with pytest.raises(lakelib.ConflictError):
                commit.reject("too late")
        assert commit.state == states[proposal]
        self._check_head(number)

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def judge(self, data: st.DataObject) -> None:
        """A gate that lets few rows in. Seldom: a verdict takes longer than all other steps together."""
        number, place, commit = data.draw(st.sampled_from(self.staged))
        model = self.models[number]
        if data.draw(st.integers(0, 7)) or model.states[place] != "staged":
            return
        if model.proposals[place].restores is not None:  # whose own rows are those of files, not of the table
            return
        most = data.draw(st.integers(0, 4))
        rejects = len(model.rows_of(model.proposals[place])) > most
        verdict = self._engine(data).judge(commit, parse_suite(_GATE.format(most=most)))
        assert verdict.outcome is (Outcome.REJECT if rejects else Outcome.ACCEPT)
        if rejects:
            model.states[place] = "rejected"
        assert commit.state == model.states[place]
        self._check_head(number)

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def look_at_staged(self, data: st.DataObject) -> None:
        number, place, commit = data.draw(st.sampled_from(self.staged))
        model = self.models[number]
        proposal = model.proposals[place]
        if model.states[place] == "expired":
            assert _refusal(lambda: commit.scan(scope=data.draw(_scopes))) == "commit_expired"
        elif model.states[place] != "published":
            schema = proposal.new_schema or model.schema
            if proposal.restores is None:
                self._compare(data, commit.scan, schema, model.rows_of(proposal), scope="staged")
        elif model.became[place] in model.expired:
            assert _refusal(lambda: commit.scan(scope="staged")) == "snapshot_expired"
        if model.states[place] == "staged" and not model.conflicts(proposal):
            after = model.apply(proposal, None)
            self._compare(data, commit.scan, after.schema, model.live(after), scope="merged")
        self._step("look_at_staged")

    # Reads

    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        if model.head_id:
            chosen = data.draw(st.sampled_from(model.kept_ids) | st.integers(1, model.head_id))
            if chosen in model.expired:
                assert _refusal(lambda: self.tables[number].scan(at=chosen)) == "snapshot_expired"
            else:
                self._read_at(data, number, chosen)
        self._step("travel")

    def _read_at(self, data: st.DataObject, number: int, snapshot: int, at: int | str | None = None) -> None:
        model, table = self.models[number], self.tables[number]
        head = model.snapshots[snapshot]
        self._compare(data, table.scan, head.schema, model.live(head), at=at or snapshot)

    @rule(data=st.data())
    def look_at_masks(self, data: st.DataObject) -> None:
        """The files as they are, without the rows that masks name, in any order of snapshots."""
        number, model = self._pick(data)
        if model.primary_key and model.kept_ids and model.merge is None:
            at = data.draw(st.sampled_from(model.kept_ids))
            ids = sorted({*model.primary_key, *model.partition_by})
            names = [_by_id(model.snapshots[at].schema, each).name for each in ids]
            table = self.tables[number]
            assert unmasked_rows(self.lake, table, at, ids) == seen_rows(table, at, names)
        self._step("masks")

    @rule(data=st.data())
    def travel_by_time(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        table = self.tables[number]
        history = table.history()
        assert [snapshot.id for snapshot in history] == model.kept_ids[::-1]
        moments = self._moments(number)
        assert list(moments.values()) == sorted(moments.values())
        if history:
            chosen = data.draw(st.sampled_from(history))
            assert moments[chosen.id] == chosen.committed_at
            for moment in (chosen.committed_at, chosen.committed_at - timedelta(microseconds=1)):
                self._travel_to(number, moment, moments)
        self._step("travel_by_time")

    def _travel_to(self, number: int, moment: datetime, moments: dict[int, datetime]) -> None:
        model, table = self.models[number], self.tables[number]
        newest = max((each for each, made_at in moments.items() if made_at <= moment), default=None)
        if newest is None:
            assert _refusal(lambda: table.scan(at=moment)) == "snapshot_not_found"
        elif newest in model.expired:
            assert _refusal(lambda: table.scan(at=moment)) == "snapshot_expired"
        else:
            assert table.scan(at=moment).snapshot_id == newest

    def _moments(self, number: int) -> dict[int, datetime]:
        """When the table's snapshots were made, also those that have expired; some were made together."""
        return {row["id"]: row["committed_at"] for row in self._ask_catalog(number, _MOMENTS)}

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        self._compare(data, self.tables[number].scan, model.schema, model.live(model.head))
        self._step("read")

    @rule(data=st.data())
    def open_scan(self, data: st.DataObject) -> None:
        """What is read later on, whatever has happened to the table."""
        number, model = self._pick(data)
        columns, pred = _draw_query(data.draw, model.schema)
        scan = self.tables[number].scan(columns=[column.name for column in columns], where=pred and pred.text)
        expected = shown(model.live(model.head), columns, pred)
        self.opened.append((number, model.head_id, self._engine(data).open(scan), expected))
        self._step("open_scan")

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def read_opened(self, data: st.DataObject) -> None:
        number, snapshot, read, expected = data.draw(st.sampled_from(self.opened))
        if snapshot not in self.models[number].expired:
            assert _rows_read(read()) == expected
        self._step("read_opened")

    @rule(data=st.data())
    def changes(self, data: st.DataObject) -> None:
        """Between two snapshots that are kept the changes are the difference of what they hold."""
        number, model = self._pick(data)
        if model.kept_ids:
            until = data.draw(st.sampled_from(model.kept_ids))
            after = data.draw(st.sampled_from([0, *(each for each in model.kept_ids if each <= until)]))
            columns = [*model.snapshots[until].schema, COMMIT]
            old, new = (self._counted(number, each, columns) for each in (after, until))
            self._check_latest(data, number, after, until, old, new)
            self._check_net(data, number, after, until, old, new)
        self._step("changes")

    def _counted(self, number: int, snapshot: int, columns: Sequence[Col]) -> Counter[tuple[Any, ...]]:
        model = self.models[number]
        entries = model.live(model.snapshots[snapshot]) if snapshot else []
        return Counter(shown(entries, columns, None))

    def _check_latest(
        self, data: st.DataObject, number: int, after: int, until: int, old: Counter[Any], new: Counter[Any]
    ) -> None:
        read = self._engine(data).read(self.tables[number].changes(after=after, until=until))  # type: ignore[arg-type]
        written, deleted = (_told(read, "_op", word) for word in ("upsert", "delete"))
        assert written == new - old
        if not self.tables[number].primary_key:
            assert _without_commits(deleted) == _without_commits(old - new)
            return
        names = {*self.tables[number].primary_key, *self.tables[number].partition_by}
        places = [place for place, name in enumerate(read.column_names) if name in names]
        gone = {tuple(row[place] for place in places) for row in deleted}
        left = {tuple(row[place] for place in places) for row in new}
        assert not gone & left
        assert gone >= {tuple(row[place] for place in places) for row in old} - left

    def _check_net(
        self, data: st.DataObject, number: int, after: int, until: int, old: Counter[Any], new: Counter[Any]
    ) -> None:
        old, new = (_without_commits(rows) for rows in (old, new))
        ids = [[column.id for column in head.schema] for head in self.models[number].snapshots]
        for changes, before, afterwards in (
            (self.tables[number].changes(after=after, until=until, view="net"), old, new),
            (self.tables[number].diff(until, after), new, old),
        ):
            if changes.until_id == 0 or ids[changes.until_id] != ids[until]:
                continue  # in the columns of another schema
            read = self._engine(data).read(changes)  # type: ignore[arg-type]
            gone = _told(read, "_change", "delete") + _told(read, "_change", "update_before")
            came = _told(read, "_change", "insert") + _told(read, "_change", "update_after")
            assert (_without_commits(gone), _without_commits(came)) == (before - afterwards, afterwards - before)

    @rule(data=st.data())
    def list_partitions(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        names = [_by_id(model.schema, each).name for each in model.partition_by]
        found = [tuple(partition.values[name] for name in names) for partition in self.tables[number].partitions()]
        expected = {file.partition for file in model.head.files.values()}
        assert len(found) == len(expected)
        assert set(found) == expected
        self._step("list_partitions")

    # Maintenance

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        table, columns = self.tables[number], sorted(model.partition_columns, key=lambda column: column.id)
        where: Pred | None = None
        if columns and data.draw(_rarely):
            where = data.draw(_predicates(columns))
        known = self._places(number, model.head_id)
        full = data.draw(st.booleans())
        said = where and where.text
        if self.replaces and model.primary_key and data.draw(_rarely):
            buckets = data.draw(st.sampled_from((1, 4, 16, "dynamic", "postpone")))
            result = table.rebucket(buckets, where=said, session=getattr(self._engine(data), "session", None))
        else:
            result = self._engine(data).compact(table, full=full, where=said)
        assert [snapshot.id for snapshot in result.snapshots] == list(
            range(model.head_id + 1, model.head_id + 1 + len(result.snapshots))
        )
        for snapshot in result.snapshots:
            assert snapshot.kind == "compact"
            left = self._places(number, snapshot.id)
            replaced = {known[path] for path in known.keys() - left.keys()}
            known_columns = frozenset(columns)
            for partition, _ in replaced if where is not None else ():
                values = dict(zip(model.partition_by, partition, strict=True))
                assert where.may_be(True, known_columns, lambda column, values=values: values[column.id])
            model.compact(replaced, set(left.values()))
            known = left
        self._check_unchanged(data, number)

    def _places(self, number: int, snapshot: int) -> dict[str, Place]:
        """The files of a snapshot by path: their partition, and the snapshot that brought them."""
        if not snapshot:
            return {}
        model, table = self.models[number], self.tables[number]
        names = [_by_id(model.schema, each).name for each in model.partition_by]
        return {
            file.path: (tuple(file.partition[name] for name in names), file.added_snapshot)
            for file in table.files(at=snapshot)
        }

    @rule(data=st.data())
    def tag(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        name = data.draw(st.sampled_from(_TAGS))
        at = data.draw(st.none() | st.integers(1, model.head_id + 1))
        try:
            expected: Any = model.tag(name, at)
        except RefusedError as refused:
            expected = str(refused)
        assert _outcome(lambda: self.tables[number].tag(name, at=at), "snapshot_id") == expected
        self._check_unchanged(data, number)

    @rule(data=st.data())
    def delete_tag(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        name = data.draw(st.sampled_from(_TAGS))
        if model.tags.pop(name, None) is None:
            assert _refusal(lambda: self.tables[number].delete_tag(name)) == "tag_not_found"
        else:
            self.tables[number].delete_tag(name)
        self._check_unchanged(data, number)

    @rule(data=st.data())
    def consume(self, data: st.DataObject) -> None:
        """A consumer finds all that it has not read, whatever has expired, and moves as it may. One that was moved on
        to a snapshot that had expired may be told that what came then is not known any more."""
        if not self.has_consumers:
            return
        number, model = self._pick(data)
        table, name = self.tables[number], data.draw(st.sampled_from(_CONSUMERS))
        if name not in model.consumers:
            model.consumers[name] = data.draw(st.sampled_from([0, *model.kept_ids]))
        position = model.consumers[name]
        consumer = table.consumer(name, after=position)
        try:
            found = consumer.read()
            assert (consumer.position, found.after_id, found.until_id) == (position, position, model.head_id)
            if position < model.head_id:
                columns = [*model.snapshots[model.head_id].schema, COMMIT]
                old, new = (self._counted(number, each, columns) for each in (position, model.head_id))
                self._check_latest(data, number, position, model.head_id, old, new)
        except ExpiredError:
            assert position in model.expired
        to, backwards = data.draw(st.integers(0, model.head_id + 1)), data.draw(st.booleans())
        try:
            expected: Any = model.advance(name, to, backwards=backwards)
        except RefusedError as refused:
            expected = str(refused)
        assert _moved(lambda: consumer.advance(to, backwards=backwards)) == expected
        if data.draw(st.booleans()):  # else hardly anything would ever expire
            consumer.remove()
            del model.consumers[name]
        assert {each.name: each.position for each in table.consumers()} == model.consumers
        self._step("consume")

    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        number, model = self._pick(data)
        keep_last = data.draw(st.integers(1, 4))
        with_commits = data.draw(_rarely)
        rules: dict[str, Any] = {"keep_last": keep_last, "staged_older_than": _NOW if with_commits else None}
        if data.draw(st.booleans()):  # the day is over for which data frames hold what they read
            self._ask_catalog(number, _END_LEASES)
        leased = {row["snapshot_id"] for row in self._ask_catalog(number, _LEASED)}
        told = self.tables[number].expire(**rules, dry_run=True)
        self._check_files(number)
        result = self.tables[number].expire(**rules, grace=data.draw(st.sampled_from((_NOW, _NOW, timedelta(days=1)))))
        held = model.expire(keep_last, result.snapshots, leased, with_commits=with_commits)
        assert [each.id for each in result.kept_back] == held
        assert told == replace(result, dry_run=True)
        assert all(commit.state == model.states[place] for other, place, commit in self.staged if other == number)
        self._check_unchanged(data, number)

    @rule(data=st.data())
    def vacuum(self, data: st.DataObject) -> None:
        self.lake.vacuum(grace=_NOW)
        for number, table in enumerate(self.tables):
            location = Path(urlsplit(table.location).path)
            stored = {str(path.relative_to(location)) for path in location.rglob("*") if path.is_file()}
            assert stored == self._paths(number, _KNOWN_FILES)
        self._check_unchanged(data, data.draw(st.integers(0, len(self.tables) - 1)))

    def _check_unchanged(self, data: st.DataObject, number: int) -> None:
        """Maintenance has changed no answer: that of the head, of each tag, of a snapshot that is left."""
        model, table = self.models[number], self.tables[number]
        self._check_head(number)
        assert {tag.name: tag.snapshot_id for tag in table.tags()} == model.tags
        for name, snapshot in model.tags.items():
            self._read_at(data, number, snapshot, f"tag:{name}")
        if model.kept_ids:
            self._read_at(data, number, data.draw(st.sampled_from(model.kept_ids)))

    def teardown(self) -> None:
        for table in self.tables:
            self.lake.drop_table(table.name)

    # How it is done

    def _pick(self, data: st.DataObject) -> tuple[int, TableModel]:
        number = data.draw(st.integers(0, len(self.tables) - 1))
        return number, self.models[number]

    def _engine(self, data: st.DataObject) -> Engine:
        return data.draw(st.sampled_from(self.engines))

    def _write(
        self,
        number: int,
        proposal: Proposal,
        method: str,
        staged: bool,
        *args: Any,
        engine: Engine | None = None,
        **options: Any,
    ) -> None:
        """Does the work directly or as a staged commit, and compares the answer. Rows are written by an engine."""
        table, model = self.tables[number], self.models[number]
        name = f"stage_{method}" if staged else method
        work = getattr(table, name) if engine is None else partial(engine.write, table, name)
        options["idempotency_key"] = proposal.key
        if staged:
            commit = work(*args, **options)
            self.staged.append((number, model.stage(proposal), commit))
        else:
            expected = None if proposal.key is None else model.done_by(proposal.key)
            if expected is None:
                expected = model.publish(model.stage(proposal))
            assert _outcome(lambda: work(*args, **options)) == expected
        self._check_head(number)

    def _check_head(self, number: int) -> None:
        """What must hold after every step."""
        model, table = self.models[number], self.tables[number]
        self._place_rollbacks(number)
        scan = table.scan(columns=[*(column.name for column in model.schema), COMMIT.name])
        rows = _rows_read(scan.to_arrow())
        assert (scan.snapshot_id or 0) == model.head_id
        assert rows == shown(model.live(model.head), [*model.schema, COMMIT], None)
        names = [name.casefold() for name in table.scan().schema.names]
        assert names == [column.name.casefold() for column in model.schema]
        assert scan.count() == len(rows)
        self._check_files(number)
        self._step("write")

    def _place_rollbacks(self, number: int) -> None:
        """Tells the model in which buckets files were brought back."""
        model = self.models[number]
        fresh = [snapshot for snapshot in model.rollbacks if snapshot > self.placed.get(number, 0)]
        for snapshot in range(min(fresh), model.head_id + 1) if fresh else ():
            places = set(self._places(number, snapshot).values())
            if model.primary_key:
                model.place_files(snapshot, places)
            else:
                assert places == {(file.partition, file.since) for file in model.snapshots[snapshot].files.values()}
        self.placed[number] = model.head_id

    def _check_files(self, number: int) -> None:
        """Every file of every snapshot that has not expired, and of every commit that may be published, is there."""
        location = Path(urlsplit(self.tables[number].location).path)
        assert all((location / path).is_file() for path in self._paths(number, _NEEDED_FILES))

    def _paths(self, number: int, query: LiteralString) -> set[str]:
        return {row["path"] for row in self._ask_catalog(number, query)}

    def _ask_catalog(self, number: int, query: LiteralString) -> list[Any]:
        name = {"name": self.tables[number].name.partition(".")[2]}
        rows: list[Any] = self.lake.runtime.catalog.run(lambda db: db.execute(query, name).fetchall())
        return rows

    def _compare(
        self, data: st.DataObject, scan: Callable[..., Any], schema: Sequence[Col], entries: list[Entry], **more: Any
    ) -> None:
        """A read of some columns, with or without a predicate, against the model."""
        columns, pred = _draw_query(data.draw, schema)
        found = scan(columns=[column.name for column in columns], where=pred and pred.text, **more)
        expected = shown(entries, columns, pred)
        engine = self._engine(data)
        in_batches = engine is IN_PROCESS and data.draw(st.booleans())
        read = pa.Table.from_batches(found.to_batches(), found.schema) if in_batches else engine.read(found)
        assert read.schema.equals(found.schema)
        assert read.schema.types == [ARROW[column.type] for column in columns]
        assert _rows_read(read) == expected
        assert found.count() == len(expected)

    def _step(self, name: str) -> None:
        self.steps.append(name)


def _publish_in_order(models: Sequence[TableModel], chosen: Sequence[tuple[int, int]]) -> list[int]:
    """Proposals of tables, one after the other; none may make obsolete what comes after it."""
    fresh: set[tuple[int, int]] = set()
    snapshots = []
    for number, proposal in chosen:
        model = models[number]
        state = model.states[proposal]
        snapshots.append(model.publish(proposal))
        if state != "published" and model.states[proposal] == "published":
            fresh.add((number, snapshots[-1]))
        elif (number, snapshots[-1]) in fresh:
            raise RefusedError("fenced" if state == "expired" else "version_order")
    return snapshots


def _outcome(work: Callable[[], Any], name: str = "id") -> int | str:
    """The id of the snapshot, or the kind of the error."""
    try:
        return int(getattr(work(), name))
    except LakeError as error:
        return error.kind


def _moved(act: Callable[[], int]) -> int | str:
    """Where it moves, or why it does not."""
    try:
        return act()
    except LakeError as error:
        return error.kind


def _refusal(work: Callable[[], Any]) -> str:
    """The kind of the error."""
    with pytest.raises(LakeError) as caught:
        work()
    return caught.value.kind


def _rows_read(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [Col(place, name, "") for place, name in enumerate(table.column_names, start=1)]
    entries = [
        Entry(dict(enumerate(values, start=1)), None)
        for values in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]
    return shown(entries, columns, None)


def _told(table: pa.Table, column: str, word: str) -> Counter[tuple[Any, ...]]:
    """The rows of which that is told."""
    chosen = table.filter(pc.equal(table.column(column), word)).drop_columns([column])
    return Counter(_rows_read(chosen))


def _without_commits(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        counted[row[:-1]] += count
    return counted


# What is drawn


def _create(lake: Lake, kind: str, draw: Callable[..., Any]) -> tuple[Table, TableModel]:
    if kind == "keyed":
        kind = draw(st.sampled_from(("fixed", "dynamic", "postpone", "sequenced", *_ENGINES)))
    keys = 0 if kind == "append" else draw(st.integers(1, 3))
    types = [draw(st.sampled_from(KEY_TYPES)) for _ in range(keys)]
    partitions = draw(st.integers(0, 2))
    types += [draw(st.sampled_from(KEY_TYPES)) for _ in range(partitions)]
    orders = draw(st.integers(1, 2)) if kind == "sequenced" or (kind in _ENGINES and draw(st.booleans())) else 0
    types += [draw(st.sampled_from(ORDER_TYPES)) for _ in range(orders)]
    types += ["string", draw(st.sampled_from(tuple(WIDER)))]
    columns = [Col(number, f"c{number}", type_text) for number, type_text in enumerate(types, start=1)]
    merge = _draw_engine(draw, kind, columns) if kind in _ENGINES else None
    key_ids = draw(st.permutations(range(1, keys + 1)))
    partition_ids = list(range(keys + 1, keys + partitions + 1))
    if keys > 1 and draw(_rarely):
        partition_ids.append(key_ids[0])
    sequence_ids = list(range(keys + partitions + 1, keys + partitions + orders + 1))
    buckets = {"fixed": draw(st.sampled_from((1, 2, 8))), "append": None}.get(kind, kind)
    if kind == "sequenced" or merge:
        buckets = draw(st.sampled_from((4, "dynamic", "postpone")))
    table = lake.create_table(
        f"m.t{uuid4().hex}",
        pa.schema([pa.field(column.name, ARROW[column.type]) for column in columns]),
        primary_key=[f"c{each}" for each in key_ids],
        partition_by=[f"c{each}" for each in partition_ids],
        sequence_by=[f"c{each}" for each in sequence_ids],
        buckets=buckets,
        **({"merge": _in_names(merge, columns)} if merge else {}),
        options={
            "row_group_rows": draw(st.sampled_from((1, 3))),
            "min_bucket_file_bytes": draw(st.sampled_from((0, 0, 100))),
            "write_buffer_bytes": 65_536,
            "target_file_bytes": 65_536,
            "read_batch_rows": 2,
        },
    )
    return table, TableModel(columns, key_ids, partition_ids, sequence_ids, merge)


def _draw_engine(draw: Callable[..., Any], engine: str, columns: list[Col]) -> dict[str, Any]:
    """What merges, in ids. Adds the columns that it takes."""

    def add(type_text: str, function: str | None = None) -> int:
        number = len(columns) + 1
        columns.append(Col(number, f"c{number}", type_text, function))
        return number

    if engine == "first_row":
        return {"engine": engine}
    if engine == "aggregate":
        retract = draw(st.booleans())
        known = [each for each in FUNCTIONS if not retract or each[0] in ("sum", "count", "first", "last")]
        for function, type_text in draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)):
            add(type_text, function)
        return {"engine": engine, "retract": retract}
    groups = []
    for _ in range(draw(st.integers(0, 2))):
        sequence = [add(draw(st.sampled_from(ORDER_TYPES))) for _ in range(draw(st.integers(1, 2)))]
        groups.append({"sequence": sequence, "columns": [add(draw(_types)) for _ in range(draw(st.integers(1, 2)))]})
    on_delete = draw(st.sampled_from(("row", "refuse", "groups", "groups") if groups else ("row", "row", "refuse")))
    return {"engine": engine, "groups": groups, "on_delete": on_delete}


def _in_names(merge: dict[str, Any], columns: Sequence[Col]) -> dict[str, Any]:
    """As `create_table` takes it."""
    named = {
        key: [{part: [f"c{each}" for each in ids] for part, ids in group.items()} for group in value]
        if key == "groups"
        else value
        for key, value in merge.items()
    }
    functions = {column.name: column.function for column in columns if column.function is not None}
    return {**named, "functions": functions} if functions else named


def _told_of_deletes(draw: Callable[..., Any], model: TableModel) -> tuple[tuple[int, ...], bool]:
    """The columns that keys to delete come with, and whether they say all that marks say."""
    wanted = model.primary_key + model.partition_by
    with_sequence = draw(st.booleans())
    if with_sequence:
        wanted += model.sequence_by
    if model.retracts:
        inverse = [column.id for column in model.schema if column.function in _INVERSE]
        wanted += tuple(each for each in inverse if not draw(_rarely))
    if model.merge is None or not model.empties_groups:
        return wanted, with_sequence or model.merge is not None
    told = [group["sequence"] for group in model.merge["groups"] if draw(st.booleans())]
    return (*wanted, *(each for group in told for each in group)), bool(told)


def _keys() -> st.SearchStrategy[tuple[str, int] | None]:
    return st.none() | st.none() | st.tuples(st.sampled_from(_APPLICATIONS), st.integers(0, 9))


def _by_id(schema: Sequence[Col], column_id: int) -> Col:
    return next(column for column in schema if column.id == column_id)


def _value(model: TableModel, column: Col) -> st.SearchStrategy[Any]:
    values = st.sampled_from(column.values)
    if column.id in model.primary_key:
        return values
    return st.none() | values | values | values


def _rows(model: TableModel, columns: Sequence[Col]) -> st.SearchStrategy[Values]:
    return st.fixed_dictionaries({column.id: _value(model, column) for column in columns})


def _predicates(columns: Sequence[Col]) -> st.SearchStrategy[Pred]:
    return predicates([column for column in columns if column.type in FLAT])


def _same_key(model: TableModel, row: Values, other: Values) -> Values:
    """Another version of a row."""
    key = model.primary_key + model.partition_by
    return {each: (row if each in key else other)[each] for each in row}


def _equal(column: Col, value: Any) -> Pred:
    return is_null(column) if value is None else compare(column, "=", value)


def _draw_query(draw: Callable[..., Any], schema: Sequence[Col]) -> tuple[list[Col], Pred | None]:
    """The columns that are read, and the predicate."""
    known = [*schema, COMMIT]
    columns = draw(st.lists(st.sampled_from(known), min_size=1, unique=True) | st.just(known))
    return columns, draw(st.none() | _predicates(known))


def _draw_batch(
    draw: Callable[..., Any], model: TableModel, engine: Engine, *, full: bool, fixed: Values | None = None
) -> tuple[list[Values], list[Any], tuple[Col, ...] | None, dict[str, Any], Any]:
    """Rows; their auxiliary order; the schema that they bring; the keywords; and all of it as Arrow data."""
    fixed = fixed or {}
    schema, options = model.schema, {}
    if draw(_rarely):
        schema = _draw_merge(draw, model)
        options["merge_schema"] = True
    named = model.primary_key + model.partition_by + model.sequence_by
    optional = [column.id for column in schema if column.id not in named]
    missing = draw(st.lists(st.sampled_from(optional), max_size=2)) if optional and draw(_rarely) else []
    columns = [
        column
        for column in schema
        if column.id not in missing
        and (column.id not in fixed or draw(st.booleans()) or column.id in model.primary_key)
    ]
    columns = columns or [schema[0]]
    rows = draw(st.lists(_rows(model, columns), max_size=8 if full else 4))
    if rows and model.primary_key and draw(st.booleans()):
        rows += [_same_key(model, row, draw(_rows(model, columns))) for row in draw(st.lists(st.sampled_from(rows)))]
    if model.primary_key and draw(st.integers(0, 15)) == 0:
        text = next((column.id for column in columns if column.type == "string" and column.id in optional), None)
        for row in rows if text is not None and text not in model.sequence_by + model.partition_by else ():
            row[text] = _BULK
    for row in rows:
        row |= fixed
    auxiliary: list[Any] = []
    given = list(columns)
    if full and model.primary_key and draw(_rarely):
        auxiliary = draw(st.lists(st.none() | st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
        options["aux_order"] = ["arrived"]
        given.append(Col(0, "arrived", "int"))
    with_auxiliary = [row | {0: order} for row, order in zip(rows, auxiliary, strict=True)] if auxiliary else rows
    widened = None if schema == model.schema else _merged(model.schema, schema, columns)
    stream_ok = _may_stream(model, engine, again=bool(auxiliary))
    return rows, auxiliary, widened, options, _arrow(draw, with_auxiliary, tuple(given), stream_ok=stream_ok)


def _may_stream(model: TableModel, engine: Engine, *, again: bool) -> bool:
    """In process a stream is not read again. On Spark each of its batches is a task's, and the model knows one file of
    a commit in each partition of an append table."""
    return not again if engine is IN_PROCESS else bool(model.primary_key)


def _draw_merge(draw: Callable[..., Any], model: TableModel) -> tuple[Col, ...]:
    """The schema with a new column, or with a wider one."""
    fixed = model.primary_key + model.partition_by
    wider = [column for column in model.schema if column.type in model.wider and column.id not in fixed]
    if wider and draw(st.booleans()):
        chosen = draw(st.sampled_from(wider))
        return _with(model.schema, replace(chosen, type=model.wider[chosen.type]))
    names = [name for name in _SPARE_NAMES if name not in {column.name for column in model.schema}]
    if not names:
        return model.schema
    model.next_column += 1
    new = Col(model.next_column, draw(st.sampled_from(names)), draw(_types))
    return (*model.schema, new)


def _merged(before: tuple[Col, ...], wanted: Sequence[Col], given: Sequence[Col]) -> tuple[Col, ...] | None:
    """What the table's schema becomes: only columns that the data has change it."""
    names = {column.id for column in given}
    merged = tuple(column for column in wanted if column.id in names or column in before)
    merged += tuple(column for column in before if column.id not in {each.id for each in merged})
    merged = tuple(sorted(merged, key=lambda column: [each.id for each in wanted].index(column.id)))
    return None if merged == before else merged


def _with(schema: Sequence[Col], changed: Col) -> tuple[Col, ...]:
    return tuple(changed if column.id == changed.id else column for column in schema)


def _draw_columns(draw: Callable[..., Any], model: TableModel) -> tuple[Col, ...]:
    """Those that have to stay, some of the others, and perhaps a new one, in any order."""
    kept = model.primary_key + model.partition_by + model.sequence_by + model.grouped_ids
    chosen = [each for each in model.schema if each.id in kept or each.function is not None or draw(st.booleans())]
    names = [name for name in _SPARE_NAMES if name not in {column.name for column in model.schema}]
    if names and (not chosen or draw(st.booleans())):
        model.next_column += 1
        chosen.append(Col(model.next_column, draw(st.sampled_from(names)), draw(_types)))
    return tuple(draw(st.permutations(chosen))) or model.schema


def _draw_evolution(
    draw: Callable[..., Any], model: TableModel, kinds: Sequence[str]
) -> tuple[tuple[Col, ...], dict[str, Any]]:
    kept = model.primary_key + model.partition_by + model.sequence_by + model.grouped_ids
    names = [name for name in _SPARE_NAMES if name not in {column.name for column in model.schema}]
    schema, changes = model.schema, {}
    droppable = [column for column in schema if column.id not in kept]
    wider = [
        column
        for column in schema
        if column.type in model.wider and column.id not in model.primary_key + model.partition_by
    ]
    match draw(st.sampled_from(kinds)):
        case "add" if names:
            model.next_column += 1
            new = Col(model.next_column, draw(st.sampled_from(names)), draw(_types))
            changes = {"add": [(new.name, new.type)]}
            known = [function for function, type_text in FUNCTIONS if type_text == new.type]
            if model.merge is not None and model.merge["engine"] == "aggregate" and known and draw(st.booleans()):
                new = replace(new, function=draw(st.sampled_from(known)))
                changes["functions"] = {new.name: new.function}
            return (*schema, new), changes
        case "drop" if len(droppable) > 1:
            gone = draw(st.sampled_from(droppable))
            return tuple(column for column in schema if column != gone), {"drop": [gone.name]}
        case "rename" if names:
            old = draw(st.sampled_from(schema))
            new = replace(old, name=draw(st.sampled_from(names)))
            return _with(schema, new), {"rename": {old.name: new.name}}
        case "widen" if wider:
            old = draw(st.sampled_from(wider))
            new = replace(old, type=model.wider[old.type])
            return _with(schema, new), {"widen": {old.name: new.type}}
        case "swap" if len(schema) > 1:
            left, right = draw(st.permutations(schema))[:2]
            swapped = _with(_with(schema, replace(left, name=right.name)), replace(right, name=left.name))
            changes = {"rename": {left.name: right.name, right.name: left.name}}
            return swapped, changes
        case "move" if len(schema) > 1:
            moved, before = draw(st.permutations(schema))[:2]
            rest = [column for column in schema if column != moved]
            at = draw(st.sampled_from((0, rest.index(before) + 1)))
            return (*rest[:at], moved, *rest[at:]), {"move": {moved.name: f"after {before.name}" if at else "first"}}
        case "comment":
            return schema, {"comment": {draw(st.sampled_from(schema)).name: draw(st.sampled_from(TEXTS))}}
    return schema, changes


def _arrow(draw: Callable[..., Any], rows: Sequence[Values], columns: Sequence[Col], *, stream_ok: bool = True) -> Any:
    """The rows as a table, one batch, or a stream of small ones; columns in any order, names in any case."""
    ordered = draw(st.permutations(columns))
    upper = draw(_rarely)
    names = [column.name.upper() if upper and column.name.isascii() else column.name for column in ordered]
    arrays = [pa.array([row.get(column.id) for row in rows], ARROW[column.type]) for column in ordered]
    table = pa.Table.from_arrays(arrays, names)
    form = draw(st.sampled_from(("table", "batch", "stream")))
    if form == "batch":
        return table.combine_chunks().to_batches()[0] if rows else table
    if form == "stream" and stream_ok:
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
    return table
