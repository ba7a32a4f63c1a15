"""Storage. Positions of rows as bytes, and as the files that Delta calls deletion vectors.

A vector is a magic number and a roaring bitmap of 64 bits in its portable form; its file says the format's version, the
length and a checksum around that. Other engines read these bytes as they are.
"""

import hashlib
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakelib.errors import CorruptionError
from lakelib.storage.filesystem import Storage

Positions = npt.NDArray[np.int64]

_MAGIC = struct.pack("<I", 1681511377)
_VERSION = b"\x01"
_LENGTH = struct.Struct(">I")
_REMEDY = "Nothing is lost: masks are made anew where they are missing. See `lake doctor`."


def encode_positions(positions: Positions) -> bytes:
    """The vector of some positions, in any order."""
    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    return _MAGIC + bytes(bitmap.serialize())


def unite(vectors: Sequence[bytes]) -> tuple[bytes, int]:
    """The positions of some vectors together as one, and how many there are."""
    united = BitMap64.union(*map(_bitmap, vectors))
    united.run_optimize()
    return _MAGIC + bytes(united.serialize()), len(united)


def decode_positions(vector: bytes) -> Positions:
    """The positions of a vector, ascending. Raises CorruptionError."""
    return np.frombuffer(_bitmap(vector).to_array(), np.int64)


def _bitmap(vector: bytes) -> BitMap64:
    if vector[: len(_MAGIC)] != _MAGIC:
        raise _unreadable("it does not begin as one", "A mask in the catalog")
    try:
        return BitMap64.deserialize(vector[len(_MAGIC) :])
    except ValueError as error:
        raise _unreadable(str(error), "A mask in the catalog") from error


def write_vector(storage: Storage, path: str, vector: bytes) -> None:
    """A file with this vector alone."""
    checksum = _LENGTH.pack(zlib.crc32(vector))
    storage.write_bytes(path, _VERSION + _LENGTH.pack(len(vector)) + vector + checksum)


def read_vector(storage: Storage, path: str) -> bytes:
    """The vector of a file. Raises CorruptionError if the file is not there, or is not what it should be."""
    with storage.open_input(path, named_by_catalog=True) as stream:
        content: bytes = stream.read()
    uri = storage.uri_of(path)
    start, end = len(_VERSION) + _LENGTH.size, len(content) - _LENGTH.size
    if content[: len(_VERSION)] != _VERSION or _LENGTH.pack(end - start) != content[len(_VERSION) : start]:
        raise _unreadable("it does not begin as one", uri)
    if _LENGTH.pack(zlib.crc32(content[start:end])) != content[end:]:
        raise _unreadable("its checksum is another", uri)
    return content[start:end]


def digest_of(vector: bytes) -> str:
    """A name that no vector of other positions has."""
    return hashlib.blake2b(vector, digest_size=16).hexdigest()


def write_positions(storage: Storage, path: str, data_path: str, positions: Positions) -> int:
    """A file of the positions as Iceberg's and DuckLake's position deletes have them; its size."""
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(positions), np.int32)), pa.array([data_path]))
    sink = pa.BufferOutputStream()
    table = pa.table({"file_path": names, "pos": pa.array(positions)})
    # Readers open one of these for each file: what makes it smaller costs them more than it saves.
    pq.write_table(
        table, sink, compression="none", use_dictionary=["file_path"], write_statistics=False, store_schema=False
    )
    content = sink.getvalue().to_pybytes()
    storage.write_bytes(path, content)
    return len(content)


def _unreadable(why: str, where: str) -> CorruptionError:
    return CorruptionError(f"{where} is no vector of positions: {why}.", kind="unreadable_mask", remedy=_REMEDY)
