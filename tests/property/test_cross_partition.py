"""Whatever is done to a table in which a key is in one partition: its rows are those of a plain dict, and its changes
lead from one state to the next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelib
from lakelib import ConflictError, Lake, StagedCommit, Table
from lakelib.ops import moves

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
_PARTITIONS = ("a", "b", "c", None)
_STEPS = 14
Row = tuple[int, str | None, int]
State = dict[int, Row]


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("moves")
        yield lake


_keys = st.integers(0, 9)
_row_lists = st.lists(st.tuples(_keys, st.sampled_from(_PARTITIONS), st.integers(0, 9)), min_size=1, max_size=8)
_key_lists = st.lists(_keys, min_size=1, max_size=3, unique=True)


@dataclass
class _Course:
    """A table, what it should hold, and the commits that wait."""

    table: Table
    has_order: bool
    state: State
    deleted: dict[int, int]
    """Where versions have an order: the sequence of keys that are deleted."""
    staged: list[tuple[StagedCommit, list[Row]]]
    states: list[State]

    def take(self, rows: list[Row]) -> None:
        for row in rows:
            key, _, value = row
            least = self.state[key][2] if key in self.state else self.deleted.get(key, -1)
            if not self.has_order or value >= least:
                self.state[key] = row
                self.deleted.pop(key, None)

    def drop(self, keys: Any) -> None:
        for key in keys:
            if (row := self.state.pop(key, None)) is not None:
                self.deleted[key] = row[2]


def _data(rows: list[Row]) -> pa.Table:
    columns = [[row[place] for row in rows] for place in range(3)]
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


_numbers = iter(range(1 << 30))


@pytest.mark.parametrize("has_order", [False, True])
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_rows_are_those_of_a_dict(lake: Lake, monkeypatch: pytest.MonkeyPatch, has_order: bool, data: Any) -> None:
    monkeypatch.setattr(moves, "_FEW_ROWS", data.draw(st.sampled_from((0, 100))))
    table = lake.create_table(
        f"moves.t{next(_numbers)}",
        SCHEMA,
        primary_key=["id"],
        partition_by=["p"],
        sequence_by=["v"] if has_order else [],
        buckets=data.draw(st.sampled_from((1, 4, "dynamic"))),
        cross_partition=True,
        options={"min_bucket_file_bytes": 0},
    )
    course = _Course(table=table, has_order=has_order, state={}, deleted={}, staged=[], states=[{}])
    steps = [_upsert, _upsert, _upsert, _stage, _publish, _publish_all, _delete, _delete_keys, _overwrite, _compact]
    for _ in range(data.draw(st.integers(1, _STEPS))):
        data.draw(st.sampled_from(steps))(lake, course, data.draw)
        _check(course)
    _check_changes(course, data.draw)


def _upsert(lake: Lake, course: _Course, draw: Any) -> None:
    rows = draw(_row_lists)
    course.table.upsert(_data(rows))
    course.take(rows)


def _stage(lake: Lake, course: _Course, draw: Any) -> None:
    rows = draw(_row_lists)
    course.staged.append((course.table.stage_upsert(_data(rows)), rows))


def _publish(lake: Lake, course: _Course, draw: Any) -> None:
    if not course.staged:
        return
    staged, rows = course.staged.pop(draw(st.integers(0, len(course.staged) - 1)))
    if _goes_through(course, staged.publish):
        course.take(rows)


def _publish_all(lake: Lake, course: _Course, draw: Any) -> None:
    waiting, course.staged = course.staged, []
    if not waiting:
        return

    def publish() -> None:
        with lake.transaction() as together:
            for staged, _ in waiting:
                together.add(staged)

    if _goes_through(course, publish):
        for _, rows in waiting:
            course.take(rows)


def _goes_through(course: _Course, publish: Callable[[], Any]) -> bool:
    """Where versions have an order, rows may have gone by which a staged commit went."""
    try:
        publish()
    except ConflictError as error:
        if not course.has_order or error.kind != "keys_lost":
            raise
        return False
    return True


def _delete(lake: Lake, course: _Course, draw: Any) -> None:
    least = draw(st.integers(5, 9))
    course.table.delete(f"v >= {least}")
    course.drop([key for key, row in course.state.items() if row[2] >= least])


def _delete_keys(lake: Lake, course: _Course, draw: Any) -> None:
    keys = draw(_key_lists)
    course.table.delete_keys(pa.table({"id": pa.array(keys, pa.int64())}))
    course.drop(keys)


def _overwrite(lake: Lake, course: _Course, draw: Any) -> None:
    """Of a partition. Where versions have an order the files that go take what they know of it with them: left out."""
    if course.has_order:
        return
    partition = draw(st.sampled_from(_PARTITIONS))
    rows = [(key, partition, value) for key, _, value in draw(_row_lists)]
    course.table.overwrite(_data(rows), {"p": partition})
    for key in [key for key, row in course.state.items() if row[1] == partition]:
        del course.state[key]
    course.take(rows)


def _compact(lake: Lake, course: _Course, draw: Any) -> None:
    course.table.compact(full=True)


def _check(course: _Course) -> None:
    found = [tuple(row.values()) for row in course.table.scan().to_arrow().to_pylist()]
    assert sorted(found, key=repr) == sorted(course.state.values(), key=repr)
    for partition in ("a", None):
        where = "p is null" if partition is None else f"p = '{partition}'"
        wanted = sum(row[1] == partition for row in course.state.values())
        assert course.table.scan(where=where).count() == wanted
    head = course.table.head.id if course.table.head else 0
    course.states += [course.states[-1]] * (head + 1 - len(course.states))
    course.states[head] = dict(course.state)


def _check_changes(course: _Course, draw: Any) -> None:
    head = len(course.states) - 1
    after = draw(st.integers(0, head))
    before, wanted = _at(course.table, after), course.state
    latest = dict(before)
    for row in course.table.changes(after=after, view="latest").to_arrow().to_pylist():
        key = row["id"]
        if row["_op"] == "delete":
            latest.pop(key, None)
        else:
            latest[key] = (key, row["p"], row["v"])
    assert latest == wanted
    told = course.table.changes(after=after, view="net").to_arrow().to_pylist()
    kinds: dict[int, list[str]] = {}
    for row in told:
        kinds.setdefault(row["id"], []).append(row["_change"])
    expected = {
        key: ["delete"] if key not in wanted else ["insert"] if key not in before else ["update_before", "update_after"]
        for key in before.keys() | wanted.keys()
        if before.get(key) != wanted.get(key)
    }
    assert kinds == expected


def _at(table: Table, snapshot_id: int) -> State:
    if snapshot_id == 0:
        return {}
    return {row["id"]: tuple(row.values()) for row in table.scan(at=snapshot_id).to_arrow().to_pylist()}  # type: ignore[misc]
