"""Frames of files that a session has opened before: Spark looks at each file that it opens, which takes as long as
reading some millions of rows. Files of tables never change: once is enough."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelib.dataclass import dataclass

_MOST_FRAMES = 16
_MOST_MASK_BYTES = 16_000_000
"""Of a frame that is kept: its masks are in the driver's memory as long."""


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
