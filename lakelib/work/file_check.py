"""Work. Compares a file with what the catalog says of it: its footer, or with all its rows."""

from lakelib.errors import CorruptionError
from lakelib.rows.verify import Breach, Promise, Verifier
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import open_anew

_STEP_ROWS = 131_072
_HIDDEN_NAN = Breach(kind="hidden_nan", detail="it has NaN in columns whose statistics leave that out")


def check_file(storage: Storage, promise: Promise, *, deep: bool) -> tuple[Breach, ...]:
    """What is wrong with a file of the table that the storage is of. A deep look reads every page and compares its
    checksum. Memory does not grow with the file.

    Raises RetryableError if the store is out of reach.
    """
    file = promise.file
    try:
        with open_anew(storage, file.path, file.size_bytes) as reader:
            missing = [column.name for column in promise.columns if column.name not in reader.schema.names]
            if missing:
                return (Breach(kind="missing_column", detail=f"it has no column {missing[0]!r}"),)
            if reader.row_count != file.row_count:
                detail = f"it has {reader.row_count:,} rows, and the catalog knows {file.row_count:,}"
                return (Breach(kind="wrong_rows", detail=detail),)
            hidden = (_HIDDEN_NAN,) if reader.hides_nan and file.removed_snapshot is None else ()
            if not deep:
                return hidden
            verifier = Verifier(promise)
            for row_group in range(reader.row_group_count):
                for rows in reader.read_in_steps(row_group, reader.schema.names, _STEP_ROWS):
                    verifier.look(rows)
            return (*hidden, *verifier.finish())
    except CorruptionError as error:
        return (Breach(kind=error.kind, detail=error.message),)
