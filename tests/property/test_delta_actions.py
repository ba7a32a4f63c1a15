"""Actions of a Delta log become JSON, and a checkpoint, and come back as they were."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lakelib.interop.delta import actions as told
from lakelib.interop.delta.actions import Action, from_json, to_json
from lakelib.interop.delta.checkpoint import from_table, to_tables

_TEXT = st.text(max_size=8)
_NUMBER = st.integers(-(2**63), 2**63 - 1)
_SMALL = st.integers(0, 2**31 - 1)
_VALUES = st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3)
_TEXTS = st.dictionaries(_TEXT, _TEXT, max_size=3)
_NAMES = st.lists(_TEXT, max_size=3).map(tuple)
_OTHERS = st.dictionaries(
    st.sampled_from(("baseRowId", "clusteringProvider", "ünbekannt")), _NUMBER | _TEXT | _VALUES, max_size=2
)


def _or_none(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


_VECTOR = st.builds(
    told.DeletionVector,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=_TEXT,
    offset=_or_none(_SMALL),
    size_in_bytes=_SMALL,
    cardinality=_NUMBER,
)
_IN_CHECKPOINTS = st.one_of(
    st.builds(
        told.Protocol,
        min_reader_version=_SMALL,
        min_writer_version=_SMALL,
        reader_features=_or_none(_NAMES),
        writer_features=_or_none(_NAMES),
    ),
    st.builds(
        told.Metadata,
        id=_TEXT,
        name=_or_none(_TEXT),
        description=_or_none(_TEXT),
        format=st.builds(told.Format, provider=_TEXT, options=_TEXTS),
        schema_string=_TEXT,
        partition_columns=_NAMES,
        configuration=_TEXTS,
        created_time=_or_none(_NUMBER),
    ),
    st.builds(
        told.Add,
        path=_TEXT,
        partition_values=_VALUES,
        size=_NUMBER,
        modification_time=_NUMBER,
        data_change=st.booleans(),
        stats=_or_none(_TEXT),
        tags=_or_none(_VALUES),
        deletion_vector=_or_none(_VECTOR),
    ),
    st.builds(
        told.Remove,
        path=_TEXT,
        deletion_timestamp=_or_none(_NUMBER),
        data_change=st.booleans(),
        extended_file_metadata=_or_none(st.booleans()),
        partition_values=_or_none(_VALUES),
        size=_or_none(_NUMBER),
        deletion_vector=_or_none(_VECTOR),
    ),
    st.builds(told.Txn, app_id=_TEXT, version=_NUMBER, last_updated=_or_none(_NUMBER)),
)
_ACTIONS = st.one_of(
    _IN_CHECKPOINTS.flatmap(lambda action: _OTHERS.map(lambda others: replace(action, others=others))),
    st.builds(
        told.CommitInfo,
        timestamp=_or_none(_NUMBER),
        operation=_or_none(_TEXT),
        operation_parameters=_or_none(_TEXTS),
        operation_metrics=_or_none(_TEXTS),
        is_blind_append=_or_none(st.booleans()),
        others=_OTHERS,
    ),
    st.builds(told.DomainMetadata, domain=_TEXT, configuration=_TEXT, removed=st.booleans(), others=_OTHERS),
    st.builds(told.CheckpointMetadata, version=_NUMBER, tags=_or_none(_VALUES), others=_OTHERS),
    st.builds(told.Sidecar, path=_TEXT, size_in_bytes=_NUMBER, modification_time=_NUMBER, others=_OTHERS),
    st.builds(told.Unknown, name=st.sampled_from(("cdc", "rowIdHighWaterMark")), body=_VALUES),
)


@given(st.lists(_ACTIONS, max_size=4))
def test_actions_come_back_from_json(actions: list[Action]) -> None:
    content = to_json(actions)

    assert from_json(content, "a version") == tuple(actions)
    assert content.count(b"\n") == len(actions)
    assert all(json.loads(line) for line in content.split(b"\n") if line)


@given(st.lists(_IN_CHECKPOINTS, max_size=5), st.integers(1, 3))
def test_actions_come_back_from_the_parts_of_a_checkpoint(actions: list[Action], part_actions: int) -> None:
    tables = to_tables(actions, part_actions)

    assert [each for table in tables for each in from_table(table, "a checkpoint")] == actions
    assert all(table.num_rows <= part_actions for table in tables)
