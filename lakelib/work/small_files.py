"""Work. Reads small files many at a time: what one costs by itself is more than its rows are worth."""

from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile
from lakelib.model.schema import COMMIT_COLUMN
from lakelib.rows.buffers import array_of_numbers, whole_array
from lakelib.rows.types import hidden_field
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import ParquetReader, open_files


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeFiles:
    """Open files of one schema, all with delete marks or all without."""

    files: tuple[DataFile, ...]
    readers: tuple[ParquetReader, ...]

    @property
    def schema_id(self) -> int:
        return self.files[0].schema_id

    @property
    def hold_deletes(self) -> bool:
        return self.files[0].delete_count > 0

    def read(self, names: Sequence[str]) -> pa.Table:
        """All rows, file by file, with the columns named."""
        leaves = self.readers[0].leaves_of(names)
        return pa.concat_tables([reader.read_leaves(leaves) for reader in self.readers]).select(names).combine_chunks()

    def with_commits(self, rows: pa.Table, sequences: Sequence[int | None]) -> pa.Table:
        """The rows that `read` gave: one without a commit of its own has that of its file, where that has one."""
        place = rows.column_names.index(COMMIT_COLUMN)
        of_files = pa.array(sequences, pa.int64()).take(array_of_numbers(self._file_places()))
        filled = pc.coalesce(whole_array(rows.column(place)), of_files)
        return rows.set_column(place, hidden_field(COMMIT_COLUMN), filled)

    def with_any(self, mask: npt.NDArray[np.bool_]) -> tuple["AlikeFiles", npt.NDArray[np.bool_]]:
        """Only the files that have a row of the mask, and the mask over their rows alone."""
        places = self._file_places()
        chosen = np.zeros(len(self.files), np.bool_)
        chosen[places[mask]] = True
        kept = AlikeFiles(files=tuple(compress(self.files, chosen)), readers=tuple(compress(self.readers, chosen)))
        return kept, mask[chosen[places]]

    def _file_places(self) -> npt.NDArray[np.int64]:
        """For each row the place of its file."""
        return np.repeat(np.arange(len(self.readers)), [reader.row_count for reader in self.readers])


def open_alike(storage: Storage, location: str, files: Sequence[DataFile]) -> Iterator[AlikeFiles]:
    """Opens files, and gives them, in order, with those that follow each other and are alike together."""
    readers = open_files(storage, location, [(file.path, file.size_bytes) for file in files])
    start = 0
    for end in range(1, len(files) + 1):
        if end < len(files) and _are_alike(files[end - 1], files[end], readers[end - 1], readers[end]):
            continue
        yield AlikeFiles(files=tuple(files[start:end]), readers=tuple(readers[start:end]))
        start = end


def _are_alike(one: DataFile, other: DataFile, reader: ParquetReader, other_reader: ParquetReader) -> bool:
    """Files of one schema of the table may still differ, as those that hold delete marks allow more to be NULL."""
    if one.schema_id != other.schema_id or bool(one.delete_count) != bool(other.delete_count):
        return False
    return reader.schema is other_reader.schema or bool(reader.schema.equals(other_reader.schema))
