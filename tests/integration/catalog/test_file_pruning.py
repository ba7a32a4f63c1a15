"""Files are found in SQL: with the same answer as the pure planner gives, and without holding all of them."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.catalog import commits, files, tables
from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import migrate
from lakelib.catalog.tables import NewTable
from lakelib.model import sortable
from lakelib.model.files import ColumnBounds, NewFile
from lakelib.model.merge import DEDUPLICATE
from lakelib.model.options import TableOptions
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Raw,
)
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import NO_READ, Buckets, CommitKind, Proposal, TableInfo
from lakelib.plan.prune import file_may_match, partition_may_match
from tests.conftest import drop_database

NUMBER = Column(id=1, name="number", type="bigint")
TEXT = Column(id=2, name="text", type="string")
AMOUNT = Column(id=3, name="amount", type="double")
DAY = Column(id=4, name="day", type="string")
REGION = Column(id=5, name="region", type="bigint")
COLUMNS = (NUMBER, TEXT, AMOUNT, DAY, REGION)
PARTITION_BY = (DAY, REGION)
ALL_IDS = frozenset(column.id for column in COLUMNS)

VALUES: dict[str, list[Raw]] = {
    "bigint": [-5, -1, 0, 1, 2, 7, 2**62],
    "string": ["", "a", "ab", "b", "ä", "z"],
    "double": [float("-inf"), -1.5, 0.0, 1.5, float("inf"), float("nan")],
}


@pytest.fixture(scope="module")
def known(make_database: Callable[[], str]) -> Iterator[tuple[Catalog, int]]:
    """A table of 150 files with bounds of every kind, in partitions with and without NULL, and its id."""
    url = make_database()
    catalog = Catalog(url)
    migrate(catalog)
    yield catalog, _publish_files(catalog, [_any_file(random.Random(number), number) for number in range(150)])
    catalog.close()
    drop_database(url)


def comparisons() -> st.SearchStrategy[Predicate]:
    def of(column: Column) -> st.SearchStrategy[Predicate]:
        values = st.sampled_from(VALUES[column.type])
        return st.one_of(
            st.builds(
                lambda op, value: Compare(column=column, op=op, value=value), st.sampled_from(Comparison), values
            ),
            st.builds(lambda chosen: In(column=column, values=tuple(chosen)), st.lists(values, min_size=1, max_size=4)),
            st.just(IsNull(column=column)),
        )

    return st.one_of([of(column) for column in COLUMNS]) | st.builds(
        lambda value: Constant(value=value), st.sampled_from([True, False, None])
    )


def loose() -> st.SearchStrategy[Predicate]:
    """What SQL does not look into."""
    likes = st.builds(
        lambda pattern: Like(column=TEXT, pattern=pattern), st.sampled_from(["a%", "%a", "", "ab", "_", "%", "z%z"])
    )
    pairs = st.builds(
        lambda op, ends: CompareColumns(left=ends[0], op=op, right=ends[1]),
        st.sampled_from(Comparison),
        st.sampled_from([(NUMBER, REGION), (REGION, NUMBER), (TEXT, DAY)]),
    )
    return likes | pairs


def combined(leaves: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.builds(lambda part: Not(part=part), parts),
            st.builds(lambda chosen: And(parts=tuple(chosen)), st.lists(parts, min_size=2, max_size=3)),
            st.builds(lambda chosen: Or(parts=tuple(chosen)), st.lists(parts, min_size=2, max_size=3)),
        ),
        max_leaves=6,
    )


@given(predicate=combined(comparisons()))
def test_sql_and_the_planner_prune_the_same_files(known: tuple[Catalog, int], predicate: Predicate) -> None:
    catalog, table_id = known
    everything = files.load_files(catalog, files.FileQuery(table_id=table_id, snapshot_id=1, with_bounds=True))
    query = files.FileQuery(table_id=table_id, snapshot_id=1, file_predicate=predicate, usable_ids=ALL_IDS)

    found = files.load_files(catalog, query)

    assert {file.id for file in found.files} == {
        file.id for file in everything.files if file_may_match(predicate, file)
    }
    assert set(found.partitions) == {file.partition_id for file in found.files}


@given(predicate=combined(comparisons()))
def test_sql_and_the_planner_prune_the_same_partitions(known: tuple[Catalog, int], predicate: Predicate) -> None:
    catalog, table_id = known
    everything = files.load_files(catalog, files.FileQuery(table_id=table_id, snapshot_id=1))
    query = files.FileQuery(table_id=table_id, snapshot_id=1, partition_by=PARTITION_BY, partition_predicate=predicate)

    found = files.load_files(catalog, query)

    assert {file.partition_id for file in found.files} == {
        partition.id
        for partition in everything.partitions.values()
        if partition_may_match(predicate, PARTITION_BY, partition.key)
    }


@given(predicate=combined(comparisons() | loose()))
def test_sql_never_prunes_a_file_that_the_planner_keeps(known: tuple[Catalog, int], predicate: Predicate) -> None:
    catalog, table_id = known
    everything = files.load_files(catalog, files.FileQuery(table_id=table_id, snapshot_id=1, with_bounds=True))
    query = files.FileQuery(
        table_id=table_id,
        snapshot_id=1,
        partition_by=PARTITION_BY,
        partition_predicate=predicate,
        file_predicate=predicate,
        usable_ids=ALL_IDS,
    )

    found = {file.id for file in files.load_files(catalog, query).files}

    for file in everything.files:
        partition = everything.partitions[file.partition_id]
        if file_may_match(predicate, file) and partition_may_match(predicate, PARTITION_BY, partition.key):
            assert file.id in found


@given(values=st.lists(st.integers(-10, 10), min_size=1, max_size=3), more=st.integers(0, 2000))
def test_long_lists_never_prune_a_file_that_the_planner_keeps(
    known: tuple[Catalog, int], values: list[int], more: int
) -> None:
    catalog, table_id = known
    everything = files.load_files(catalog, files.FileQuery(table_id=table_id, snapshot_id=1, with_bounds=True)).files
    listed = In(column=NUMBER, values=(*values, *range(100, 100 + 3 * more, 3)))
    for predicate in (listed, Not(part=listed)):
        query = files.FileQuery(table_id=table_id, snapshot_id=1, file_predicate=predicate, usable_ids=ALL_IDS)
        found = {file.id for file in files.load_files(catalog, query).files}
        kept = {file.id for file in everything if file_may_match(predicate, file)}
        assert kept <= found
        assert len(listed.values) > 1000 or kept == found


def test_a_list_of_70_000_values_still_prunes(known: tuple[Catalog, int]) -> None:
    catalog, table_id = known
    beyond = In(column=NUMBER, values=tuple(range(2**40, 2**40 + 70_000)))
    query = files.FileQuery(table_id=table_id, snapshot_id=1, file_predicate=beyond, usable_ids=ALL_IDS)
    everything = files.load_files(catalog, files.FileQuery(table_id=table_id, snapshot_id=1, with_bounds=True)).files

    found = files.load_files(catalog, query).files

    assert {file.id for file in found} == {file.id for file in everything if file_may_match(beyond, file)}
    assert len(found) < len(everything)


def test_a_predicate_beyond_the_servers_parameters_is_judged_by_what_has_room(known: tuple[Catalog, int]) -> None:
    catalog, table_id = known
    pairs = tuple(
        And(parts=tuple(Compare(column=column, op=Comparison.EQ, value=number) for column in (NUMBER, REGION)))
        for number in range(40_000)
    )
    exact = IsNull(column=DAY)
    short = files.FileQuery(table_id=table_id, snapshot_id=1, partition_by=PARTITION_BY, partition_predicate=exact)
    for predicate in (Or(parts=pairs), Not(part=And(parts=tuple(Not(part=pair) for pair in pairs)))):
        both = And(parts=(predicate, exact))
        query = files.FileQuery(
            table_id=table_id,
            snapshot_id=1,
            partition_by=PARTITION_BY,
            partition_predicate=both,
            file_predicate=both,
            usable_ids=ALL_IDS,
        )
        found = files.load_files(catalog, query).files
        assert {file.partition_id for file in found} <= files.load_files(catalog, short).partitions.keys()
        assert found


def test_files_are_found_by_the_hash_of_their_keys(catalog: Catalog) -> None:
    placed = [
        (depth, prefix) for depth in (0, 1, 3, 16) for prefix in sorted({0, 1, 5, 2**depth - 1}) if prefix < 2**depth
    ]
    new = [
        replace(_any_file(random.Random(1), number), depth=depth, prefix=prefix)
        for number, (depth, prefix) in enumerate(placed)
    ]
    table_id = _publish_files(catalog, new)
    for wanted in ((), (0,), (65_535,), (1, 40_000), (5, 5 << 13, 0), tuple(range(0, 65_536, 77))):
        query = files.FileQuery(table_id=table_id, snapshot_id=1, hash_prefixes=wanted)
        found = {(file.depth, file.prefix) for file in files.load_files(catalog, query).files}
        assert found == {(depth, prefix) for depth, prefix in placed if any(h >> 16 - depth == prefix for h in wanted)}


def test_a_listing_of_many_files_streams(catalog: Catalog) -> None:
    count = 20_000
    table_id = _publish_files(catalog, [_any_file(random.Random(1), 0)])
    catalog.run(
        lambda db: db.execute(
            "insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count,"
            " delete_count, size_bytes, schema_id, lower_bounds, upper_bounds, null_counts, sequence, added_snapshot)"
            " select table_id, commit_id, partition_id, path || n, depth, prefix, run, level, row_count, delete_count,"
            " size_bytes, schema_id, lower_bounds, upper_bounds, null_counts, sequence, added_snapshot"
            " from lake.data_file, generate_series(2, %s) n",
            (count,),
        )
    )
    tracemalloc.start()

    with files.stream_files(catalog, _table(catalog), 1) as found:
        listed = sum(1 for _ in found)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert listed == files.count_files(catalog, table_id, 1) == count
    assert peak_bytes < 12 * 2**20


def test_listings_that_are_begun_and_left_keep_nobody_from_the_catalog(catalog: Catalog) -> None:
    """More of them than a lake has connections for its work."""
    table_id = _publish_files(catalog, [_any_file(random.Random(1), number) for number in range(2)])

    with ExitStack() as left:
        for _ in range(12):
            rows = left.enter_context(files.stream_files(catalog, _table(catalog), 1))
            assert next(rows).path == "file-0"
        assert files.count_files(catalog, table_id, 1) == 2


def _table(catalog: Catalog) -> TableInfo:
    table = tables.find_table(catalog, "shop", "a")
    assert table is not None
    return table


def _any_file(chance: random.Random, number: int) -> NewFile:
    bounds = [_any_bounds(chance, column) for column in COLUMNS]
    key = tuple(
        None if chance.random() < 0.2 else sortable.encode(column.type, chance.choice(VALUES[column.type][:4]))
        for column in PARTITION_BY
    )
    known = chance.randint(0, len(bounds)) if chance.random() < 0.3 else len(bounds)
    return NewFile(
        path=f"file-{number}",
        partition_key=key,
        partition_path="",
        depth=0,
        prefix=0,
        run=0,
        level=0,
        row_count=10,
        delete_count=0,
        size_bytes=1000,
        bounds=ColumnBounds(
            lower=tuple(lower for lower, _, _ in bounds[:known]),
            upper=tuple(upper for _, upper, _ in bounds[:known]),
            null_counts=tuple(nulls for _, _, nulls in bounds[:known]),
        ),
    )


def _any_bounds(chance: random.Random, column: Column) -> tuple[bytes | None, bytes | None, int | None]:
    """Bounds of some values: any of the three may be unknown; all may be NULL."""
    nulls = chance.choice([0, 0, 3, 10, None])
    if nulls == 10:
        return None, None, 10
    ends = sorted(
        sortable.encode(column.type, chance.choice(VALUES[column.type])) for _ in range(chance.choice([1, 2]))
    )
    lower = None if chance.random() < 0.1 else ends[0]
    upper = None if chance.random() < 0.1 else ends[-1]
    return lower, upper, nulls


def _publish_files(catalog: Catalog, new: list[NewFile]) -> int:
    """A table that has these files in its first snapshot; its id."""
    schema = TableSchema(id=1, columns=COLUMNS)
    tables.create_namespace(catalog, "shop")
    tables.create_table(
        catalog,
        NewTable(
            namespace="shop",
            name="a",
            location="file:///nowhere",
            schema=schema,
            primary_key_ids=(),
            partition_ids=tuple(column.id for column in PARTITION_BY),
            sequence_ids=(),
            buckets=Buckets(mode="none"),
            merge=DEDUPLICATE,
            options=TableOptions(),
        ),
    )
    table = _table(catalog)
    proposal = Proposal(
        commit_id=uuid4(),
        table_id=table.id,
        kind=CommitKind.APPEND,
        base_snapshot_id=0,
        began_at=table.loaded_at,
        schema=schema,
        files=tuple(new),
        read_scope=NO_READ,
    )
    commits.commit(catalog, proposal, epoch=1)
    return table.id
