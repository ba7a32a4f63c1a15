"""The splits of a scan: every file wherever its keys may be, in order, and no key twice."""

from hypothesis import given
from hypothesis import strategies as st

from lakelib.model.files import ColumnBounds, DataFile, Partition
from lakelib.plan.scan import arrange_splits

DEPTH = 5


@st.composite
def tables(draw: st.DrawFn) -> list[DataFile]:
    places = st.integers(0, DEPTH).flatmap(lambda depth: st.tuples(st.just(depth), st.integers(0, (1 << depth) - 1)))
    drawn = draw(st.lists(st.tuples(places, st.integers(1, 50), st.integers(1, 2)), max_size=25))
    ids = draw(st.permutations(range(len(drawn))))
    return [
        DataFile(
            id=number,
            path="",
            partition_id=partition_id,
            depth=depth,
            prefix=prefix,
            run=0,
            level=0,
            row_count=1,
            delete_count=0,
            size_bytes=size_bytes,
            schema_id=1,
            sequence=1,
            added_snapshot=1,
            removed_snapshot=None,
            bounds=ColumnBounds(),
        )
        for number, ((depth, prefix), size_bytes, partition_id) in zip(ids, drawn, strict=True)
    ]


def keys_of(depth: int, prefix: int) -> set[int]:
    """The hashes, of as many bits as the deepest file has, that begin with the prefix."""
    return set(range(prefix << (DEPTH - depth), (prefix + 1) << (DEPTH - depth)))


@given(tables())
def test_splits_hold_every_file_where_its_keys_may_be_and_no_key_twice(files: list[DataFile]) -> None:
    partitions = {number: Partition(id=number, key=(bytes([number]),), path="") for number in (1, 2)}
    splits = arrange_splits(files, partitions, merges=True)
    for partition in partitions.values():
        here = [split for split in splits if split.partition == partition]
        mine = [file for file in files if file.partition_id == partition.id]
        covered = [keys_of(split.depth, split.prefix) for split in here]
        assert sum(map(len, covered)) == len(set().union(*covered))
        assert all(keys_of(file.depth, file.prefix) <= set().union(*covered) for file in mine)
        for split, keys in zip(here, covered, strict=True):
            assert list(split.files) == [file for file in mine if keys_of(file.depth, file.prefix) & keys]
