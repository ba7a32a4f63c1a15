"""What Spark's own reader opens: frames of files that a session has opened before, and rows that masks leave.

Spark looks at each file that it opens, which takes as long as reading some millions of rows. Files of tables never
change: once is enough.

Masked rows are dropped in the JVM: the reader tells of each row its file and its place there. Every executor has a bit
for each row of the masked files, in words; a row finds the words of its file by the file's size, which is a number that
Spark looks up faster than a name, or by its name where two files have the same size. It is an anti join, for Spark
takes any other for the product of its sides.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile
from lakelib.storage.vectors import decode_positions

_MOST_FRAMES = 16
_MOST_MASK_BYTES = 16_000_000
"""Of a frame that is kept: its masks are in the driver's memory as long."""
_FIRST_READERS = "spark.sql.sources.useV1SourceList"
_WORD_BITS = 64
_FILE = "_file"
_MASKED = "_masked_file"
_WORDS = "_masked_words"

ROW_INDEX = "_tmp_metadata_row_index"
"""A column of this name, asked for in the schema that a file is read with, is what `_metadata.row_index` is made of.
That one comes in a struct, made anew for each row. Where Spark does not know the name it is NULL, and reading fails."""


@dataclass(frozen=True, slots=True)
class _What:
    uris: tuple[str, ...]
    schema: str
    masks: bytes


_lock = threading.Lock()
_frames: "OrderedDict[tuple[int, _What], DataFrame]" = OrderedDict()
"""By session and content, those last that were asked for last. A frame keeps its session: its number is its own."""


def opened(
    session: SparkSession,
    uris: Sequence[str],
    schema: StructType,
    masks: Sequence[bytes],
    open_files: Callable[[], DataFrame],
) -> DataFrame:
    """What `open_files` gives for these files, read with this schema and these masks, in the order of the files."""
    if sum(map(len, masks)) > _MOST_MASK_BYTES:
        return open_files()
    what = _What(uris=tuple(uris), schema=schema.json(), masks=_digest(masks))
    key = (id(session), what)
    with _lock:
        found = _frames.get(key)
        if found is not None:
            _frames.move_to_end(key)
    if found is None:
        found = open_files()
        with _lock:
            _frames[key] = found
            while len(_frames) > _MOST_FRAMES:
                _frames.popitem(last=False)
    return found


def _digest(masks: Sequence[bytes]) -> bytes:
    digest = blake2b()
    for each in masks:
        digest.update(len(each).to_bytes(8, "big"))
        digest.update(each)
    return digest.digest()


# Masked rows


def tells_places(session: SparkSession) -> bool:
    """Whether the session's reader of Parquet files tells where a row is from: the one that is called V2 does not."""
    return "parquet" in (session.conf.get(_FIRST_READERS, "parquet") or "").casefold().split(",")


def without_masked(
    session: SparkSession, frame: DataFrame, files: Sequence[DataFile], vectors: Mapping[int, bytes]
) -> DataFrame:
    """The rows of these files that their masks leave. Each of the files is of the size that the catalog knows; the
    frame has ROW_INDEX."""
    by_size = len({file.size_bytes for file in files}) == len(files)
    masked = [file for file in files if file.id in vectors]
    names = [file.size_bytes if by_size else file.path.rpartition("/")[2] for file in masked]
    words = [_words(file.row_count, vectors[file.id]) for file in masked]
    masks = pa.table(
        {
            _MASKED: pa.array(names, pa.int64() if by_size else pa.string()),
            _WORDS: pa.array(words, pa.list_(pa.int64())),
        }
    )
    told = sf.col("_metadata.file_size" if by_size else "_metadata.file_name")
    known = frame.select("*", told.alias(_FILE))
    return known.join(sf.broadcast(session.createDataFrame(masks)), _is_masked(), "left_anti")


def _is_masked() -> SparkColumn:
    row = sf.col(ROW_INDEX)
    word = sf.col(_WORDS)[sf.shiftright(row, 6).cast("int")]
    bit = sf.bit_get(word, row.bitwiseAND(sf.lit(_WORD_BITS - 1)).cast("int"))
    return (sf.col(_FILE) == sf.col(_MASKED)) & (bit == 1)


def _words(row_count: int, vector: bytes) -> pa.Array:
    """A bit a row, in words of 64, the lowest bit first."""
    bits = np.zeros(-(-row_count // _WORD_BITS) * _WORD_BITS, np.uint8)
    bits[decode_positions(vector)] = 1
    return np.packbits(bits, bitorder="little").view("<i8")
