"""Interop. Masks as Delta's deletion vectors: files are named where they are, small ones stand in the log."""

from uuid import UUID

import numpy as np

from lakelib.interop.delta.actions import DeletionVector
from lakelib.model.files import FOLDER, Mask

_DIGITS = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8
)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint32)
_OFFSET = 1
"""Of the one vector in its file: behind the version of the format."""


def vector_of(mask: Mask) -> DeletionVector:
    """What `add` and `remove` say of the mask."""
    if mask.path is None:
        assert mask.inline is not None
        return inline_vector(mask.inline, mask.cardinality)
    name = UUID(mask.path.removeprefix(f"{FOLDER}/deletion_vector_").removesuffix(".bin"))
    return DeletionVector(
        storage_type="u",
        path_or_inline_dv=FOLDER + z85(name.bytes),
        offset=_OFFSET,
        size_in_bytes=mask.size_bytes,
        cardinality=mask.cardinality,
    )


def inline_vector(vector: bytes, cardinality: int) -> DeletionVector:
    """A vector that stands in the log itself."""
    return DeletionVector(
        storage_type="i", path_or_inline_dv=z85(vector), size_in_bytes=len(vector), cardinality=cardinality
    )


def z85(content: bytes) -> str:
    """Bytes as text in ZeroMQ's base 85, filled up with zeros to a multiple of four."""
    words = np.frombuffer(content + bytes(-len(content) % 4), ">u4").astype(np.uint32)
    text: bytes = _DIGITS[(words[:, None] // _POWERS) % 85].tobytes()
    return text.decode("ascii")
