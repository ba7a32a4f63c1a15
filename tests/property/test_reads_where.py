"""What the catalog remembers of a predicate rules out no partition that the predicate itself does not."""

import json

from hypothesis import given
from hypothesis import strategies as st

from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.reads_where import reads_where_from_json, reads_where_to_json
from lakelib.model.sortable import encode
from lakelib.plan.prune import partition_may_match
from tests.property.test_predicates import COLUMNS, VALUES, predicates


@given(data=st.data(), predicate=predicates)
def test_a_remembered_predicate_rules_out_no_more_partitions(data: st.DataObject, predicate: Predicate) -> None:
    partition_by = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique_by=lambda each: each.id))
    raws = [data.draw(st.none() | VALUES[column.type]) for column in partition_by]
    key = tuple(
        None if raw is None else encode(column.type, raw) for column, raw in zip(partition_by, raws, strict=True)
    )
    stored = json.loads(json.dumps(reads_where_to_json(predicate, [column.id for column in partition_by])))
    remembered = partition_may_match(reads_where_from_json(stored), partition_by, key)
    meant = partition_may_match(predicate, partition_by, key)
    assert remembered >= meant
    if columns_of(predicate) <= {column.id for column in partition_by}:
        assert remembered == meant
