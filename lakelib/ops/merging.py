"""Part of reads and writes: which merge engine a table has, in the columns of one version of its schema."""

from lakelib.errors import InvalidInputError
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.rows.merge_engine import Engine, engine_of


def merge_engine(table: TableInfo, schema: TableSchema) -> Engine | None:
    """None keeps the newest version of each key."""
    return engine_of(table.merge, schema, table.primary_key_ids, table.partition_ids, table.sequence_ids)


def require_newest(table: TableInfo, what: str) -> None:
    """Raises InvalidInputError where a key may have more than its newest version."""
    if not table.merge.is_newest:
        raise InvalidInputError(
            f"{what} shows of each key of {table.full_name} one of its versions, and its merge engine is"
            f" {table.merge.engine.value}.",
            kind="invalid_merge",
            remedy='A Delta log has what compactions have written: set the option delta to "compacted".',
        )
