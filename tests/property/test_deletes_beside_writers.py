"""A delete that others overtake deletes just what it would have deleted after them, whatever they have done."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelib
from lakelib import Lake, Table
from lakelib.model.table import CommitKind, Proposal
from tests.conftest import EXAMPLES
from tests.staging_hooks import before_staging

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64()), ("seq", pa.int64())])
_KINDS: dict[str, dict[str, Any]] = {
    "keys": {"primary_key": ["id"], "partition_by": ["day"], "buckets": 2},
    "sequence": {"primary_key": ["id"], "partition_by": ["day"], "sequence_by": ["seq"]},
    "append": {"partition_by": ["day"]},
}
_row = st.tuples(st.integers(0, 5), st.sampled_from(["mon", "tue"]), st.integers(0, 3), st.integers(0, 3))
_rows = st.lists(_row, min_size=1, max_size=6)
_act = st.one_of(
    st.tuples(st.just("append"), _rows),
    st.tuples(st.just("compact"), st.just([])),
    st.tuples(st.just("delete"), st.sampled_from(["value = 0", "day = 'tue'", "id = 3"])),
)
_where = st.sampled_from(["value = 1", "value >= 2", "day = 'mon'", "day = 'mon' and value = 1", "id < 3", "true"])


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("p")
        yield lake


@pytest.mark.parametrize("kind", _KINDS)
@settings(max_examples=EXAMPLES // 5, suppress_health_check=list(HealthCheck))
@given(first=st.lists(_act, max_size=3), beside=st.lists(_act, min_size=1, max_size=3), where=_where)
def test_a_delete_beside_others_equals_one_after_them(
    lake: Lake, kind: str, first: list[Any], beside: list[Any], where: str
) -> None:
    table, twin = (lake.create_table(f"p.t{uuid4().hex}", SCHEMA, **_KINDS[kind]) for _ in range(2))
    for each in (table, twin):
        for act in first:
            do(each, act)

    with pytest.MonkeyPatch.context() as patch:
        overtake(patch, table, beside)
        table.delete(where)
    for act in beside:
        do(twin, act)
    twin.delete(where)

    assert content(table) == content(twin)
    for each in (table, twin):
        each.append(pa.Table.from_pylist([{"id": 1, "day": "mon", "value": 9, "seq": 9}], schema=SCHEMA))
    assert content(table) == content(twin), "no mark hides a later row"


def overtake(patch: pytest.MonkeyPatch, table: Table, acts: list[Any]) -> None:
    """Once the delete has looked, and before it is staged, the others come."""
    left = list(acts)

    def act(catalog: Any, proposal: Proposal) -> None:
        if proposal.kind is CommitKind.DELETE and left:
            mine, left[:] = list(left), []
            for each in mine:
                do(table, each)

    before_staging(patch, act)


def do(table: Table, act: tuple[str, Any]) -> None:
    kind, given_rows = act
    if kind == "append":
        names = SCHEMA.names
        table.append(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given_rows], schema=SCHEMA))
    elif kind == "compact":
        table.compact(full=True)
    else:
        table.delete(given_rows)


def content(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
