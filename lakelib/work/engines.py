"""Work. Who does it: the threads of this process, or Spark's tasks. Chosen here, and nowhere else.

Rows that are handed in are written where they are, a Spark data frame by Spark. For the lake's own rows the caller says
it with a Spark session; None is this process. Spark is loaded here, only if it is asked for: not everybody has it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.changes import ChangeSplit
from lakelib.model.files import NewFile, Split
from lakelib.model.schema import Column
from lakelib.storage.filesystem import Storage
from lakelib.work import key_check
from lakelib.work.changes import ChangeTarget, read_changes
from lakelib.work.key_check import Key
from lakelib.work.masks import MaskWork
from lakelib.work.masks import find_masked as find_masked_here
from lakelib.work.moves import MoveWork
from lakelib.work.moves import write_leaving as write_leaving_here
from lakelib.work.parallel import stream_as_ready
from lakelib.work.read import ReadTarget
from lakelib.work.revised import Revised
from lakelib.work.rewrite import RewriteWork, rewrite_split
from lakelib.work.source_files import SourceFile
from lakelib.work.source_rows import FileRows, look_into_files
from lakelib.work.sources import RowSource, open_arrow
from lakelib.work.write import WrittenFiles

if TYPE_CHECKING:
    from lakelib.work.spark.splits import Combine, Gather

_MOST_ROWS_HERE = 50_000_000
"""What masks are found in within a few seconds, from the columns of the key alone."""

Done = Callable[[int], None]
"""Hears of so many bytes that were rewritten."""


def open_source(data: Any) -> RowSource:
    """Takes a Spark DataFrame, a source of rows, or whatever `open_arrow` does. Raises InvalidInputError for anything
    else, and for data without columns."""
    source = _open(data)
    if len(source.schema) == 0:
        raise InvalidInputError(
            "The data has no columns.", kind="no_columns", remedy="Give at least the primary key columns."
        )
    return source


def _open(data: Any) -> RowSource:
    if _is_spark_frame(data):
        from lakelib.work.spark.frames import open_frame

        return open_frame(data)
    if not isinstance(data, pa.Table) and isinstance(data, RowSource):
        return data
    return open_arrow(data)


def _is_spark_frame(data: Any) -> bool:
    """Whether it is a DataFrame, classic or Spark Connect's; found out without importing pyspark."""
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def engine_name(session: Any) -> str:
    return "arrow" if session is None else "spark"


def require_spark() -> None:
    """Raises ImportError, with what to install."""
    import lakelib.work.spark  # noqa: F401 - it says so


def takes_masks(session: Any, storage: Storage, target: ReadTarget, splits: Sequence[Split]) -> bool:
    """Whether Spark reads the splits faster where their masks are known."""
    from lakelib.work.spark import read

    return read.takes_masks(session, storage, target, splits)


def read_frame(
    session: Any,
    storage: Storage,
    target: ReadTarget,
    splits: Sequence[Split],
    vectors: Mapping[int, bytes] | None = None,
) -> Any:
    """The rows of the splits as a Spark data frame; where it `takes_masks`, by the vectors of the files' masks. Nothing
    is read yet."""
    from lakelib.work.spark import read

    return read.read_frame(session, storage, target, splits, vectors)


def read_change_frame(session: Any, storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit]) -> Any:
    """The changes in the splits as a Spark data frame. Nothing is read yet."""
    from lakelib.work.spark import changes

    return changes.read_frame(session, storage, target, splits)


def run_query(
    session: Any,
    text: str,
    frames: Mapping[str, Any],
    bound: Mapping[str, Any],
    columns: Sequence[tuple[str, str]],
) -> Any:
    """The rows of a query in Spark's SQL, over frames, as a frame. Nothing is read yet."""
    from lakelib.work.spark import query

    return query.run_query(session, text, frames, bound, columns)


def count_revised(frame: Any, revised: Revised) -> Counter[int]:
    """Of a frame of changes how many there are of each kind. Raises InvalidInputError for one that cannot be so."""
    from lakelib.work.spark import query

    return query.count_revised(frame, revised)


def kept(frame: Any) -> AbstractContextManager[None]:
    """Meanwhile a Spark data frame's rows, once they are computed, stay what they are."""
    from lakelib.work.spark import query

    return query.kept(frame)


def known_frame(session: Any, rows: pa.Table) -> Any:
    """A few rows that are known already, as a Spark data frame."""
    from lakelib.work.spark import query

    return query.known_frame(session, rows)


def collected(frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows of a Spark data frame, in this process."""
    yield from frame.toArrow().cast(schema).to_batches()


def look_into(session: Any, storage: Storage, files: Sequence[SourceFile], format: str, **how: Any) -> FileRows:
    """Files as `look_into_files` gives them, for the session's tasks to read; None is this process."""
    if session is None:
        return look_into_files(storage, files, format, **how)
    from lakelib.work.spark.files import open_files

    return open_files(session, storage, files, format, **how)


def find_repeated(
    source: FileRows, key: Sequence[Column], partition_by: Sequence[Column], threads: int
) -> tuple[Key, ...]:
    """Some of the keys that come more than once in their partition; who has the rows looks. Raises InvalidInputError
    for one that is NULL."""
    if source.session is None:
        return key_check.find_repeated(source, key, partition_by, threads)
    from lakelib.work.spark.files import find_repeated as find_on_spark

    return find_on_spark(source, key, partition_by)  # type: ignore[arg-type]


def count_changes(
    session: Any, storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit], threads: int
) -> dict[str, int]:
    """How many changes of each kind the splits have; `target` gives the kind alone."""
    if session is not None:
        rows = read_change_frame(session, storage, target, splits).groupBy(target.told_in).count().collect()
        return {row[0]: row[1] for row in rows}
    found = Counter[str]()
    for part in stream_as_ready(splits, lambda split: read_changes(storage, target, split), threads):
        for kind in pc.value_counts(part.column(target.told_in)).to_pylist():
            found[kind["values"]] += kind["counts"]
    return dict(found)


def task_count(session: Any) -> int:
    """How many tasks Spark runs at once. Raises InvalidInputError for what is no session."""
    from lakelib.work.spark.sessions import checked_session, parallelism

    return parallelism(checked_session(session))


def gather_findings(
    session: Any,
    storage: Storage,
    target: ReadTarget,
    splits: Sequence[Split],
    gather: "Gather",
    combine: "Combine",
    *,
    heap_count: int,
) -> list[bytes]:
    """What Spark's tasks gather of the rows of the splits, combined by so many of them."""
    from lakelib.work.spark.splits import gather_on_spark

    return gather_on_spark(session, storage, target, splits, gather, combine, heap_count=heap_count)


def rewrite_splits(
    works: Sequence[RewriteWork], *, session: Any, threads: int, done: Done
) -> list[tuple[NewFile, ...]]:
    """The files of each work. An error leaves no file behind that is known of."""
    if session is None:
        return _rewrite_here(works, threads, done)
    from lakelib.work.spark.splits import rewrite_on_spark

    files = rewrite_on_spark(session, works)
    done(sum(work.split.size_bytes for work in works))
    return files


def _rewrite_here(works: Sequence[RewriteWork], threads: int, done: Done) -> list[tuple[NewFile, ...]]:
    threads_each = max(1, threads // len(works))
    with ThreadPoolExecutor(threads, thread_name_prefix="lakelib-compact") as pool:
        futures = {pool.submit(rewrite_split, replace(work, threads=threads_each)): work for work in works}
        try:
            for future in as_completed(futures):
                future.result()
                done(futures[future].split.size_bytes)
        except BaseException:
            _take_back(futures)
            raise
    return [future.result() for future in futures]


def _take_back(futures: Mapping["Future[tuple[NewFile, ...]]", RewriteWork]) -> None:
    """Begins nothing more, waits for what is under way, and deletes what came of it."""
    for future in futures:
        future.cancel()
    for future, work in futures.items():
        if not future.cancelled() and future.exception() is None:
            with suppress(LakeError):  # what cannot be deleted now is an orphan: no commit names it
                work.storage.at(work.target.location).delete_files([file.path for file in future.result()])


def find_masked(storage: Storage, works: Sequence[MaskWork], *, session: Any, threads: int) -> list[dict[int, bytes]]:
    """Of each work the vectors of its files. Many rows are looked at by Spark's tasks, where there is a session."""
    rows = sum(file.row_count for work in works for file in work.split.files)
    if session is not None and rows > _MOST_ROWS_HERE:
        from lakelib.work.spark.splits import find_masks_on_spark

        return find_masks_on_spark(session, storage, works)
    if threads == 1 or len(works) <= 1:
        return [find_masked_here(storage, work) for work in works]
    with ThreadPoolExecutor(min(threads, len(works)), thread_name_prefix="lakelib-mask") as pool:
        return list(pool.map(lambda work: find_masked_here(storage, work), works))


def write_leaving(works: Sequence[MoveWork], *, session: Any, threads: int) -> list[NewFile]:
    """The files of delete marks of all works, each in runs of its own. An error leaves no file behind that is known
    of."""
    if session is None:
        written = _write_leaving_here(works, threads)
    else:
        from lakelib.work.spark.splits import write_moves_on_spark

        written = write_moves_on_spark(session, works)
    files: list[NewFile] = []
    for each in written:
        first_run = 1 + max((file.run for file in files), default=-1)
        files += [replace(file, run=first_run + file.run) for file in each.files]
    return files


def _write_leaving_here(works: Sequence[MoveWork], threads: int) -> list[WrittenFiles]:
    written: list[WrittenFiles] = []
    try:
        written.extend(write_leaving_here(work, threads) for work in works)
    except BaseException:
        with suppress(LakeError):  # what cannot be deleted now is an orphan: no commit names it
            root = works[0].storage.at(works[0].writes.location)
            root.delete_files([file.path for each in written for file in each.files])
        raise
    return written
