"""A change that others overtake is the one that would have come after them, whatever they have done; and a merge does
what a plain model does, row by row."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelib
from lakelib import Lake, LakeError, Table
from lakelib.model.table import Proposal
from tests.conftest import EXAMPLES
from tests.staging_hooks import before_staging

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64()), ("seq", pa.int64())])
_KINDS: dict[str, dict[str, Any]] = {
    "key": {"primary_key": ["id"], "buckets": 2},
    "partition": {"primary_key": ["id"], "partition_by": ["day"]},
    "sequence": {"primary_key": ["id"], "partition_by": ["day"], "sequence_by": ["seq"]},
    "moving": {"primary_key": ["id"], "partition_by": ["day"], "cross_partition": True},
    "moving in order": {
        "primary_key": ["id"],
        "partition_by": ["day"],
        "sequence_by": ["seq"],
        "cross_partition": True,
    },
    "no key": {"partition_by": ["day"]},
    "partial": {"primary_key": ["id"], "merge": "partial_update"},
    "first": {"primary_key": ["id"], "merge": "first_row"},
}
_KEYED = [kind for kind in _KINDS if kind != "no key"]
_number = st.one_of(st.none(), st.integers(0, 3))
_row = st.tuples(
    st.integers(0, 5), st.sampled_from(["mon", "tue", None]), _number, st.one_of(st.none(), st.integers(0, 3))
)
_rows = st.lists(_row, min_size=1, max_size=6)
_act = st.one_of(
    st.tuples(st.just("append"), _rows),
    st.tuples(st.just("compact"), st.just([])),
    st.tuples(st.just("delete"), st.sampled_from(["value = 0", "day = 'tue'", "id = 3"])),
    st.tuples(st.just("update"), st.sampled_from(["value = 1", "true"])),
)
_where = st.sampled_from(["value = 1", "value >= 2 or value is null", "day = 'mon'", "id < 3", "true"])
_set = st.sampled_from(
    [{"value": "value + 1"}, {"value": "id"}, {"seq": "seq + 1", "value": "0"}, {"value": "NULL"}, {"seq": "seq - 1"}]
)
_source = st.lists(_row, max_size=5, unique_by=lambda row: row[0])
_clauses = st.lists(
    st.sampled_from(
        [
            ("when_matched_update", {"set": {"value": "target.value + 1"}, "condition": "source.value = 1"}),
            ("when_matched_update", {"set": {"value": "source.value"}, "condition": "target.id > 2"}),
            ("when_matched_delete", {"condition": "source.value = 2"}),
            ("when_not_matched_insert", {}),
            ("when_not_matched_by_source_delete", {"condition": "target.value = 0"}),
            ("when_not_matched_by_source_update", {"set": {"value": "3"}, "condition": "target.value = 2"}),
        ]
    ),
    min_size=1,
    max_size=4,
    unique_by=str,
)


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("p")
        yield lake


@pytest.mark.parametrize("kind", _KINDS)
@settings(max_examples=max(2, EXAMPLES // 30), suppress_health_check=list(HealthCheck))
@given(first=st.lists(_act, max_size=3), beside=st.lists(_act, min_size=1, max_size=2), where=_where, values=_set)
def test_an_update_beside_others_equals_one_after_them(
    lake: Lake, kind: str, first: list[Any], beside: list[Any], where: str, values: dict[str, str]
) -> None:
    beside_equals_after(lake, kind, first, beside, lambda table: table.update(values, where))


@pytest.mark.parametrize("kind", _KEYED)
@settings(max_examples=max(2, EXAMPLES // 30), suppress_health_check=list(HealthCheck))
@given(first=st.lists(_act, max_size=3), beside=st.lists(_act, max_size=2), source=_source, clauses=_clauses)
def test_a_merge_beside_others_equals_one_after_them(
    lake: Lake, kind: str, first: list[Any], beside: list[Any], source: list[Any], clauses: list[Any]
) -> None:
    def merge(table: Table) -> None:
        built = table.merge(rows(source))
        for name, options in clauses:
            built = getattr(built, name)(**options)
        built.execute()

    beside_equals_after(lake, kind, first, beside, merge)


def beside_equals_after(lake: Lake, kind: str, first: list[Any], beside: list[Any], change: Any) -> None:
    table, twin = (lake.create_table(f"p.t{uuid4().hex}", SCHEMA, **_KINDS[kind]) for _ in range(2))
    for each in (table, twin):
        for act in first:
            do(each, act)
    with pytest.MonkeyPatch.context() as patch:
        left = overtake(patch, table, beside)
        outcome = outcome_of(change, table)
    for act in beside if not left else []:  # what is refused at once nobody overtakes
        do(twin, act)
    before = content(twin)
    assert outcome_of(change, twin) == outcome
    assert content(table) == content(twin)
    assert outcome is None or content(table) == before
    table.compact(full=True)
    assert content(table) == content(twin)


def outcome_of(change: Any, table: Table) -> str | None:
    """What an error is of; None for none."""
    try:
        change(table)
    except LakeError as error:
        return error.kind
    return None


def overtake(patch: pytest.MonkeyPatch, table: Table, acts: list[Any]) -> list[Any]:
    """Once the change has looked, and before it is staged, the others come. Gives those that have not come yet."""
    left = list(acts)

    def act(catalog: Any, proposal: Proposal) -> None:
        if left:
            mine, left[:] = list(left), []
            for each in mine:
                do(table, each)

    before_staging(patch, act)
    return left


def do(table: Table, act: tuple[str, Any]) -> None:
    kind, given = act
    if kind == "append":
        table.append(rows(given))
    elif kind == "compact":
        table.compact(full=True)
    elif kind == "delete":
        table.delete(given)
    elif outcome_of(lambda each: each.update({"value": "value + 1"}, given), table) not in (None, "update_refused"):
        raise AssertionError("an update that can be")


def rows(given: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


def content(table: Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


# Against a plain model


@pytest.mark.parametrize("kind", ["key", "partition", "sequence", "moving"])
@settings(max_examples=max(2, EXAMPLES // 15), suppress_health_check=list(HealthCheck))
@given(first=_rows, source=st.lists(_row, max_size=6), clauses=_clauses)
def test_a_merge_does_what_its_clauses_say_row_by_row(
    lake: Lake, kind: str, first: list[Any], source: list[Any], clauses: list[Any]
) -> None:
    """Or is refused, where one row would become two things."""
    table = lake.create_table(f"p.t{uuid4().hex}", SCHEMA, **_KINDS[kind])
    table.append(rows(first))
    before = content(table)
    built = table.merge(rows(source))
    for name, options in clauses:
        built = getattr(built, name)(**options)
    expected = modelled(before, source, [name + str(options) for name, options in clauses], kind)
    outcome = outcome_of(lambda _: built.execute(), table)
    if expected is None:
        assert outcome in ("ambiguous_source", "duplicate_key")
        assert content(table) == before
    else:
        assert (outcome, content(table)) == (None, sorted(expected, key=repr))


def modelled(before: list[Any], source: list[Any], clauses: list[str], kind: str) -> list[Any] | None:
    """None where two rows of the source would change one, or be one."""

    def key_of(row: Any) -> Any:
        return row[0] if kind in ("key", "moving") else row[:2]

    there = {key_of(row): row for row in before}
    found: dict[Any, Any] = {}
    for row in source:
        old = there.get(key_of(row))
        change = matched(old, row, clauses) if old is not None else inserted(row, clauses)
        if change is None:
            continue
        if key_of(row) in found and not (found[key_of(row)] == change == "delete"):
            return None
        found[key_of(row)] = change
    named = {key_of(row) for row in source}
    kept = [found.get(key, row) if key in named else lone(row, clauses) for key, row in there.items()]
    new = [change for key, change in found.items() if key not in there]
    return [row for row in (*kept, *new) if row != "delete"]


def matched(old: Any, row: Any, clauses: list[str]) -> Any:
    for each in clauses:
        if "matched_update" in each and "not" not in each and "source.value = 1" in each and row[2] == 1:
            return (*old[:2], None if old[2] is None else old[2] + 1, old[3])
        if "target.id > 2" in each and old[0] > 2:
            return (*old[:2], row[2], old[3])
        if each.startswith("when_matched_delete") and row[2] == 2:
            return "delete"
    return None


def inserted(row: Any, clauses: list[str]) -> Any:
    return row if any("insert" in each for each in clauses) else None


def lone(row: Any, clauses: list[str]) -> Any:
    for each in clauses:
        if "by_source_delete" in each and row[2] == 0:
            return "delete"
        if "by_source_update" in each and row[2] == 2:
            return (*row[:2], 3, row[3])
    return row
