"""What Parquet files promise on every store."""

import ctypes
import gc
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib.errors import CorruptionError, InvalidInputError
from lakelib.model.options import TableOptions
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode
from lakelib.plan.prune import Bounds
from lakelib.rows.types import arrow_type
from lakelib.storage.file_cache import FileCache
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import MAX_BOUND_BYTES, NAN_COLUMNS, parse_footer
from lakelib.storage.parquet import open_file
from lakelib.storage.parquet_writer import WrittenParquet, write_file

NAN = encode("double", math.nan)
TYPES = {
    "tinyint": pa.int8(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "array<int>": pa.list_(pa.int32()),
    "struct<a:int,b:string>": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "map<string,int>": pa.map_(pa.string(), pa.int32()),
}


def columns_of(*types: str) -> list[Column]:
    return [Column(id=at, name=f"c{at}", type=type_text) for at, type_text in enumerate(types, start=1)]


def schema_of(columns: list[Column]) -> TableSchema:
    return TableSchema(id=1, columns=tuple(columns))


def table_of(columns: list[Column], *values: Any) -> pa.Table:
    arrays = [
        each if isinstance(each, pa.Array) else pa.array(each, TYPES[column.type])
        for column, each in zip(columns, values, strict=True)
    ]
    return pa.table(arrays, names=[column.name for column in columns])


def write(storage: Storage, columns: list[Column], *tables: pa.Table, **options: Any) -> WrittenParquet:
    return write_file(
        storage.at(f"{storage.uri}/t"),
        "p/file.parquet",
        tables,
        tables[0].schema,
        schema_of(columns),
        TableOptions(**options),
    )


def read(storage: Storage, columns: list[str] | None = None) -> pa.Table:
    with open_file(storage, f"{storage.uri}/t", "p/file.parquet") as file:
        return file.read_all(columns)


def write_column(storage: Storage, type_text: str, values: Any, **options: Any) -> WrittenParquet:
    columns = columns_of(type_text)
    return write(storage, columns, table_of(columns, values), **options)


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def allocated_bytes() -> int:
    """What the C library's allocator has given out in this process."""
    ask = ctypes.CDLL("libc.so.6").mallinfo2
    ask.restype = _MallocInfo
    info = ask()
    return int(info.uordblks + info.hblkhd)


def known(lower: bytes | None, upper: bytes | None, null_count: int | None, row_count: int) -> Bounds:
    return Bounds(lower=lower, upper=upper, null_count=null_count, row_count=row_count)


def bounds(written: WrittenParquet) -> tuple[bytes | None, bytes | None, int | None]:
    """Of the only column."""
    return written.bounds.lower[0], written.bounds.upper[0], written.bounds.null_counts[0]


def test_a_flipped_bit_is_an_error_and_no_other_value(storage: Storage) -> None:
    rows = 4000
    columns = columns_of("bigint", "double", "string")
    table = table_of(
        columns, range(rows), [number / 7 for number in range(rows)], [str(number) for number in range(rows)]
    )
    write(storage, columns, table, compression="none")
    whole = storage.read_bytes("t/p/file.parquet")
    for place in range(500, len(whole) - 6000, len(whole) // 23):
        storage.write_bytes("t/p/file.parquet", whole[:place] + bytes((whole[place] ^ 4,)) + whole[place + 1 :])
        try:
            found = read(storage)
        except CorruptionError:
            continue
        assert found.equals(table), f"the bit at {place} changed what is read"


def test_every_type_is_read_back_as_it_was(storage: Storage) -> None:
    columns = columns_of(*TYPES)
    rows = table_of(
        columns,
        [-1, None], [2, None], [3, None], [1.5, None], [-0.0, None], ["é", None], [b"\xff", None], [True, None],
        [date(1, 1, 1), None], [datetime(9999, 1, 1, tzinfo=UTC), None], [datetime(1, 1, 1), None],
        [Decimal("-0.01"), None], [Decimal("9" * 28), None], [[1, None], None], [{"a": 1, "b": None}, None],
        [[("k", 1)], None],
    )  # fmt: skip
    written = write(storage, columns, rows)
    assert read(storage).equals(rows)
    assert written.row_count == 2
    assert written.size_bytes == storage.size("t/p/file.parquet")


def test_what_a_file_holds_is_said_once(storage: Storage) -> None:
    """A second description, for Arrow alone, would be half of a small file's footer and most of the time to open it."""
    write(storage, columns_of("array<int>"), table_of(columns_of("array<int>"), [[1]]))
    with storage.open_input("t/p/file.parquet") as file:
        said = pq.read_metadata(file).metadata
    assert list(said) == [NAN_COLUMNS]


def test_column_ids_are_the_field_ids_of_the_file(storage: Storage) -> None:
    columns = [Column(id=7, name="a", type="int"), Column(id=3, name="b", type="int")]
    hidden = pa.array([None], pa.int64())
    write(
        storage, columns, pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32()), "_commit": hidden})
    )
    with storage.open_input("t/p/file.parquet") as file:
        schema = pq.read_schema(file)
    assert [schema.field(name).metadata[b"PARQUET:field_id"] for name in ("a", "b")] == [b"7", b"3"]


def test_bounds_stand_at_the_columns_ids(storage: Storage) -> None:
    columns = [Column(id=4, name="a", type="int"), Column(id=2, name="b", type="int")]
    written = write(storage, columns, pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())}))
    assert written.bounds.lower == (None, encode("int", 2), None, encode("int", 1))
    assert written.bounds.null_counts == (None, 0, None, 0)


@pytest.mark.parametrize(
    ("type_text", "values", "lower", "upper"),
    [
        ("tinyint", [3, -5, None], -5, 3),
        ("bigint", [2**63 - 1, -(2**63), None], -(2**63), 2**63 - 1),
        ("float", [1.5, -2.5, None], -2.5, 1.5),
        ("double", [math.inf, -math.inf, None], -math.inf, math.inf),
        ("string", ["b", "a", "é", None], "a", "é"),
        ("binary", [b"\x80", b"\x7f", None], b"\x7f", b"\x80"),
        ("boolean", [True, False, None], False, True),
        ("date", pa.array([2_932_897, -719_529, None], pa.int32()).cast(pa.date32()), -719_529, 2_932_897),
        ("timestamp", pa.array([2**62, -(2**62), None]).cast(pa.timestamp("us", "UTC")), -(2**62), 2**62),
        ("timestamp_ntz", pa.array([2**62, -1, None]).cast(pa.timestamp("us")), -1, 2**62),
        ("decimal(9,2)", [Decimal("1.00"), Decimal("-1.23"), None], -123, 100),
        ("decimal(38,10)", [Decimal("9" * 28), Decimal("-" + "9" * 28), None], -(10**38 - 10**10), 10**38 - 10**10),
    ],
)  # fmt: skip
def test_bounds_are_the_least_and_the_greatest_value(
    storage: Storage, type_text: str, values: Any, lower: Any, upper: Any
) -> None:
    written = write_column(storage, type_text, values, row_group_rows=1)
    assert bounds(written) == (encode(type_text, lower), encode(type_text, upper), 1)


def test_nan_is_the_greatest_value(storage: Storage) -> None:
    assert bounds(write_column(storage, "double", [1.0, math.nan, None])) == (encode("double", 1.0), NAN, 1)


def test_nan_alone_has_an_upper_bound(storage: Storage) -> None:
    assert bounds(write_column(storage, "float", [math.nan]))[1:] == (NAN, 0)


def test_zeros_are_one_value(storage: Storage) -> None:
    assert bounds(write_column(storage, "double", [-0.0])) == (encode("double", 0.0), encode("double", 0.0), 0)


def test_a_column_of_nulls_has_a_count_and_no_bounds(storage: Storage) -> None:
    assert bounds(write_column(storage, "string", [None, None])) == (None, None, 2)


def test_nulls_of_a_whole_row_group_leave_the_bounds_alone(storage: Storage) -> None:
    assert bounds(write_column(storage, "int", [None, 1], row_group_rows=1)) == (encode("int", 1), encode("int", 1), 1)


def test_long_values_have_cut_bounds(storage: Storage) -> None:
    lower, upper, _ = bounds(write_column(storage, "string", ["x" * 1000]))
    assert lower == b"x" * MAX_BOUND_BYTES
    assert upper == b"x" * (MAX_BOUND_BYTES - 1) + b"y"


def test_values_too_long_for_statistics_have_unknown_bounds(storage: Storage) -> None:
    assert bounds(write_column(storage, "string", ["x" * 100_000, None])) == (None, None, 1)


def test_nested_columns_have_unknown_bounds(storage: Storage) -> None:
    columns = columns_of("struct<a:int,b:string>", "int")
    written = write(storage, columns, table_of(columns, [{"a": 1, "b": "x"}], [5]))
    assert written.bounds.lower == (None, encode("int", 5))
    assert written.bounds.null_counts == (None, 0)


def test_row_groups_have_bounds_of_their_own(storage: Storage) -> None:
    columns = columns_of("int", "double", "array<int>", "string")
    write(
        storage, columns, table_of(columns, [1, 2, 3], [1.0, 2.0, None], [[1]] * 3, ["a", "b", "c"]), row_group_rows=2
    )
    file = open_file(storage, f"{storage.uri}/t", "p/file.parquet")
    assert (file.row_count, file.row_group_count) == (3, 2)
    assert file.row_group_bounds(0, "c1", "int") == known(encode("int", 1), encode("int", 2), 0, 2)
    assert file.row_group_bounds(1, "c1", "bigint") == known(encode("int", 3), encode("int", 3), 0, 1)
    assert file.row_group_bounds(0, "c2", "double") == known(encode("double", 1.0), encode("double", 2.0), 0, 2)
    assert file.row_group_bounds(1, "c2", "double") == known(None, None, 1, 1)
    assert file.row_group_bounds(1, "c3", "array<int>") == known(None, None, None, 1)
    assert file.row_group_bounds(1, "elsewhere", "int") == known(None, None, None, 1)
    assert file.row_groups_matching(lambda group: file.row_group_bounds(group, "c4", "string").lower == b"c") == [1]


def test_nan_is_the_upper_bound_of_every_row_group_of_its_column(storage: Storage) -> None:
    write_column(storage, "double", [1.0, math.nan], row_group_rows=1)
    file = open_file(storage, f"{storage.uri}/t", "p/file.parquet")
    assert file.row_group_bounds(0, "c1", "double") == known(None, NAN, None, 1)
    assert file.row_group_bounds(1, "c1", "double").upper == NAN


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_column_with_nan_has_bounds_and_no_statistics(storage: Storage, kind: str) -> None:
    columns = columns_of(kind, kind, "struct<a:int,b:string>")
    first = table_of(columns, [2.0, None, -1.0], [1.0, None, 2.0], [None, None, {"a": 1, "b": "x"}])
    later = table_of(columns, [math.nan, None, 5.0], [0.0, 3.0, math.inf], [None, None, None])
    written = write(storage, columns, first, later, row_group_rows=3)
    assert written.bounds.lower[:2] == (encode(kind, -1.0), encode(kind, 0.0))
    assert written.bounds.upper[:2] == (NAN, encode(kind, math.inf))
    assert written.bounds.null_counts[:2] == (2, 1)
    with storage.open_input("t/p/file.parquet") as stream:
        metadata = pq.read_metadata(stream)
    for group in range(2):
        chunks = [metadata.row_group(group).column(place) for place in range(metadata.num_columns)]
        told = {chunk.path_in_schema: chunk.is_stats_set for chunk in chunks}
        assert told == {"c1": False, "c2": True, "c3.a": True, "c3.b": True}


def test_floats_within_others_have_no_statistics(storage: Storage) -> None:
    kinds = {
        "s": "struct<`a.b`:double,n:int>",
        "l": "array<struct<x:float,t:string>>",
        "m": "map<string,array<double>>",
    }
    columns = [Column(id=at, name=name, type=kind) for at, (name, kind) in enumerate(kinds.items(), start=1)]
    columns += [Column(id=4, name="s.n", type="bigint"), Column(id=5, name="s.a.b", type="bigint")]
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
    row = {"s": {"a.b": math.nan, "n": 1}, "l": [{"x": math.nan, "t": "x"}], "m": [("k", [math.nan])]}
    written = write(storage, columns, pa.Table.from_pylist([{**row, "s.n": 7, "s.a.b": 8}], schema))
    with storage.open_input("t/p/file.parquet") as stream:
        metadata = pq.read_metadata(stream)
    chunks = [metadata.row_group(0).column(place) for place in range(metadata.num_columns)]
    floats = {"s.a.b", "l.list.element.x", "m.key_value.value.list.element"}
    assert floats <= {chunk.path_in_schema for chunk in chunks}
    assert {chunk.path_in_schema for chunk in chunks if not chunk.is_stats_set} == floats
    assert written.bounds.lower[3:] == (encode("bigint", 7), None)


def test_in_a_foreign_file_any_float_may_be_nan(storage: Storage) -> None:
    with storage.open_output("t/foreign.parquet") as stream:
        pq.write_table(pa.table({"c1": [1.0], "c2": [1]}), stream)
    file = open_file(storage, f"{storage.uri}/t", "foreign.parquet")
    assert file.row_group_bounds(0, "c1", "double") == known(encode("double", 1.0), NAN, 0, 1)
    assert file.row_group_bounds(0, "c2", "bigint").upper == encode("bigint", 1)


def test_small_tables_are_collected_and_large_ones_cut_into_row_groups(storage: Storage) -> None:
    columns = columns_of("int")
    tables = [table_of(columns, range(start, end)) for start, end in ((0, 1), (1, 3), (3, 3), (3, 14), (14, 15))]
    write(storage, columns, *tables, row_group_rows=4)
    file = open_file(storage, f"{storage.uri}/t", "p/file.parquet")
    assert [file.row_group_bounds(group, "c1", "int").row_count for group in range(4)] == [4, 4, 4, 3]
    assert file.read_all()["c1"].to_pylist() == list(range(15))


def test_a_file_of_no_rows_is_a_file(storage: Storage) -> None:
    columns = columns_of("int", "double")
    written = write_file(storage, "f", [], table_of(columns, [], []).schema, schema_of(columns), TableOptions())
    assert written.row_count == 0
    assert open_file(storage, storage.uri, "f").read_all().num_rows == 0


def test_columns_are_read_in_the_order_named(storage: Storage) -> None:
    columns = columns_of("int", "struct<a:int,b:string>", "string")
    rows = table_of(columns, [1, 2, 3], [{"a": 1, "b": "x"}] * 3, ["a", "b", "c"])
    write(storage, columns, rows, row_group_rows=1)
    file = open_file(storage, f"{storage.uri}/t", "p/file.parquet")
    assert file.read_row_groups([2, 0], ["c3", "c1"]).equals(rows.select(["c3", "c1"]).take([2, 0]))
    assert file.read_all(["c2"]).equals(rows.select(["c2"]))


def test_rows_are_counted_without_columns(storage: Storage) -> None:
    write_column(storage, "int", [1, 2, 3])
    assert read(storage, []).num_rows == 3
    assert read(storage, []).num_columns == 0


def test_names_with_dots_are_names(storage: Storage) -> None:
    columns = [Column(id=1, name="a", type="struct<b:int>"), Column(id=2, name="a.b", type="int")]
    rows = pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.int32())])), "a.b": pa.array([2], pa.int32())})
    written = write(storage, columns, rows)
    assert written.bounds.lower == (None, encode("int", 2))
    assert read(storage, ["a.b"]).to_pylist() == [{"a.b": 2}]


@pytest.mark.parametrize(("inner", "outer"), [("string", "bigint"), ("bigint", "string"), ("string", "string")])
def test_a_name_with_a_dot_is_not_taken_for_a_part_of_a_nested_column(storage: Storage, inner: str, outer: str) -> None:
    """Neither for its encoding, as the first key column, nor for its Bloom filter, dictionary or codes."""
    values: dict[str, list[Any]] = {"string": [str(number // 3) for number in range(3000)], "bigint": [*range(3000)]}
    columns = [Column(id=1, name="a.b", type=outer), Column(id=2, name="a", type=f"struct<b:{inner}>")]
    parts = pa.StructArray.from_arrays([pa.array(values[inner], TYPES[inner])], ["b"])
    rows = pa.table({"a.b": pa.array(values[outer], TYPES[outer]), "a": parts})
    write_file(
        storage.at(f"{storage.uri}/t"),
        "p/file.parquet",
        [rows],
        rows.schema,
        schema_of(columns),
        TableOptions(),
        columns[:1],
    )
    with open_file(storage, f"{storage.uri}/t", "p/file.parquet") as file:
        assert file.may_hold(0, "a.b", rows["a.b"].slice(2999, 1).combine_chunks())
        file.keep_codes([name for name in ("a.b",) if file.has_codes(name)])
        found = file.read_all()
    assert found.equals(rows)


def test_codes_of_a_foreign_file_are_not_mixed_up(storage: Storage) -> None:
    parts = pa.StructArray.from_arrays([pa.array(["x"] * 10)], ["b"])
    with storage.open_output("t/foreign.parquet") as stream:
        pq.write_table(pa.table({"a.b": ["y"] * 10, "a": parts}), stream)
    file = open_file(storage, f"{storage.uri}/t", "foreign.parquet")
    assert not file.has_codes("a.b")


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "gzip", "none"])
def test_every_compression_is_readable(storage: Storage, compression: str) -> None:
    write_column(storage, "string", ["a", "b"] * 1000, compression=compression)
    assert read(storage).num_rows == 2000
    assert (_compression_of(storage) == "UNCOMPRESSED") == (compression == "none")


def test_a_few_bytes_a_column_are_not_compressed(storage: Storage) -> None:
    write_column(storage, "string", ["a", "b"] * 10, compression="zstd")
    assert read(storage).num_rows == 20
    assert _compression_of(storage) == "UNCOMPRESSED"


@pytest.mark.parametrize(
    ("compression", "packed"), [("zstd", "UNCOMPRESSED"), ("gzip", "UNCOMPRESSED"), ("lz4", "LZ4")]
)
def test_numbers_are_kept_as_readers_have_them_soonest(storage: Storage, compression: str, packed: str) -> None:
    """Without a codec that takes long and leaves them as they are, and with a dictionary if a row group has few."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, 200_000, 140_000)
    columns = columns_of("bigint", "double", "double", "string")
    rows = table_of(
        columns,
        numbers,
        random.integers(0, 10_000, 140_000) / 100,
        pa.array(numbers / 100),
        pa.array(numbers).cast(pa.string()),
    )
    write(storage, columns, rows, row_group_rows=70_000, compression=compression)

    with storage.open_input(storage.uri_of("t/p/file.parquet")) as stream:
        kept = pq.read_metadata(stream)
    for number in range(2):
        found = [kept.row_group(number).column(place) for place in range(4)]
        assert found[0].compression == packed
        assert {each.compression for each in found[1:]} == {compression.upper()}
        assert ["RLE_DICTIONARY" in each.encodings for each in found] == [False, True, False, False]
    assert read(storage).equals(rows)


def _compression_of(storage: Storage) -> str:
    with storage.open_input("t/p/file.parquet") as stream:
        found: str = pq.read_metadata(stream).row_group(0).column(0).compression
    return found


def test_an_impossible_compression_level_is_refused_and_leaves_no_file(storage: Storage) -> None:
    with pytest.raises(InvalidInputError, match="options"):
        write_column(storage, "string", ["a" * 2000], compression="gzip", compression_level=99)
    assert list(storage.list_files()) == []


def test_a_write_that_fails_half_way_leaves_no_file(storage: Storage) -> None:
    columns = columns_of("int")

    class Source(list[pa.Table]):
        """Its tables can be looked at once; then only the first of them comes."""

        looks = 0

        def __iter__(self) -> Iterator[pa.Table]:
            self.looks += 1
            if self.looks == 1:
                yield from super().__iter__()
                return
            yield self[0]
            raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        write_file(
            storage,
            "f",
            Source([table_of(columns, range(100_000))] * 2),
            table_of(columns, []).schema,
            schema_of(columns),
            TableOptions(row_group_rows=1000),
        )
    assert list(storage.list_files()) == []


def test_rows_of_another_schema_are_refused_and_leave_no_file(storage: Storage) -> None:
    columns = columns_of("int")
    with pytest.raises(InvalidInputError, match="Cannot write"):
        write(storage, columns, table_of(columns, [1]), pa.table({"c1": ["text"]}))
    assert list(storage.list_files()) == []


def test_a_missing_file_is_corruption(storage: Storage) -> None:
    with pytest.raises(CorruptionError, match=r"The catalog names the file .*/t/p/file\.parquet"):
        read(storage)


def test_a_file_that_vanished_after_its_footer_was_read_is_corruption(storage: Storage) -> None:
    write_column(storage, "int", [1])
    open_file(storage, f"{storage.uri}/t", "p/file.parquet").close()
    storage.delete_files(["t/p/file.parquet"])
    with pytest.raises(CorruptionError, match="The catalog names the file"):
        read(storage)


@pytest.mark.parametrize("content", [b"", b"no", b"not Parquet at all", b"PAR1" + b"\x00" * 100 + b"PAR1"])
def test_a_file_that_is_not_parquet_is_corruption(storage: Storage, content: bytes) -> None:
    storage.write_bytes("t/p/file.parquet", content)
    with pytest.raises(CorruptionError, match=r"t/p/file\.parquet is not the Parquet file it should be"):
        read(storage)


def test_a_file_of_another_size_is_corruption_and_both_sizes_are_named(storage: Storage) -> None:
    """One complete Parquet file in the place of another."""
    written = write_column(storage, "int", [1])
    with pytest.raises(CorruptionError, match=r"p/file\.parquet .* has [\d,]+ bytes, .* 1,234\. Restore") as caught:
        open_file(storage, f"{storage.uri}/t", "p/file.parquet", 1234)
    assert f"{written.size_bytes:,}" in str(caught.value)
    assert caught.value.kind == "unreadable_file"
    assert open_file(storage, f"{storage.uri}/t", "p/file.parquet", written.size_bytes).row_count == 1


def test_a_file_that_was_swapped_after_its_footer_was_read_is_corruption(storage: Storage) -> None:
    size_bytes = write_column(storage, "int", [1]).size_bytes
    open_file(storage, f"{storage.uri}/t", "p/file.parquet", size_bytes).close()
    write_column(storage, "string", ["another"] * 100)
    reader = open_file(storage, f"{storage.uri}/t", "p/file.parquet", size_bytes)
    with pytest.raises(CorruptionError, match=r"has .* bytes"):
        reader.read_all()


def test_damaged_rows_are_corruption(storage: Storage) -> None:
    write_column(storage, "string", [f"value {number}" for number in range(10_000)])
    content = storage.read_bytes("t/p/file.parquet")
    storage.write_bytes("t/p/file.parquet", content[:4] + b"\xff" * 2000 + content[2004:])
    with pytest.raises(CorruptionError, match="is not the Parquet file it should be"):
        read(storage)


def test_a_column_that_is_not_there_is_corruption(storage: Storage) -> None:
    write_column(storage, "int", [1])
    with pytest.raises(CorruptionError, match="has no column 'other'"):
        read(storage, ["other"])


def test_the_footer_of_a_file_is_read_once(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    write_column(storage, "int", [1])
    open_file(storage, f"{storage.uri}/t", "p/file.parquet").close()
    monkeypatch.setattr(Storage, "open_input", None)
    assert open_file(storage, f"{storage.uri}/t", "p/file.parquet").row_count == 1


@pytest.mark.parametrize("row_groups", [1, 10])
@pytest.mark.parametrize("column_count", [7, 60])
def test_the_cache_counts_what_footers_take_in_memory(
    local_storage: Storage, column_count: int, row_groups: int
) -> None:
    """As the allocator sees it, for the native part, which is nearly all of it."""
    columns = columns_of(*["bigint", "string", "double"] * (column_count // 3), *["bigint"] * (column_count % 3))
    values = {"bigint": range(1000), "string": [f"value {number}" for number in range(1000)], "double": [0.5] * 1000}
    rows = table_of(columns, *(values[column.type] for column in columns))
    write(local_storage, columns, rows, row_group_rows=rows.num_rows // row_groups)
    content = local_storage.read_bytes("t/p/file.parquet")
    parse_footer(pq.read_metadata(pa.BufferReader(content)))

    gc.collect()  # footers of others: they and their schemas name each other
    before = allocated_bytes()
    footers = [parse_footer(pq.read_metadata(pa.BufferReader(content))) for _ in range(200)]
    taken_bytes = allocated_bytes() - before

    assert 0.7 * taken_bytes < sum(footer.memory_bytes for footer in footers) < 1.5 * taken_bytes


def test_the_cache_forgets_what_was_used_least_recently() -> None:
    cache: FileCache[str] = FileCache(20)
    for name in ("a", "b"):
        cache.keep(name, name, 10)
    assert cache.find("a") == "a"
    cache.keep("c", "c", 10)
    assert [cache.find(name) for name in ("a", "b", "c")] == ["a", None, "c"]
