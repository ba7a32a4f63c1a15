"""Drops masked rows in the JVM: Spark's own reader tells of each row its file and its place there.

Every executor has a bit for each row of the masked files, in words; a row finds the words of its file by the file's
size, which is a number that Spark looks up faster than a name, or by its name where two files have the same size. It is
an anti join, for Spark takes any other for the product of its sides.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakelib.model.files import DataFile
from lakelib.storage.vectors import decode_positions

_FIRST_READERS = "spark.sql.sources.useV1SourceList"
_WORD_BITS = 64
_FILE = "_file"
_MASKED = "_masked_file"
_WORDS = "_masked_words"

ROW_INDEX = "_tmp_metadata_row_index"
"""A column of this name, asked for in the schema that a file is read with, is what `_metadata.row_index` is made of.
That one comes in a struct, made anew for each row. Where Spark does not know the name it is NULL, and reading fails."""


def tells_places(session: SparkSession) -> bool:
    """Whether the session's reader of Parquet files tells where a row is from: the one that is called V2 does not."""
    return "parquet" in (session.conf.get(_FIRST_READERS, "parquet") or "").casefold().split(",")


def without_masked(
    session: SparkSession, frame: DataFrame, files: Sequence[DataFile], vectors: Mapping[int, bytes]
) -> DataFrame:
    """The rows of these files that their masks leave. Each of the files has one, and is of the size that the catalog
    knows; the frame has ROW_INDEX."""
    by_size = len({file.size_bytes for file in files}) == len(files)
    names = [file.size_bytes if by_size else file.path.rpartition("/")[2] for file in files]
    words = [_words(file.row_count, vectors[file.id]) for file in files]
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
