"""Pure. Decides what a schema becomes when all rows of a table are replaced by rows of another one."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.declare import Declared
from lakelib.plan.evolve import is_wider


def replaced_schema(
    schema: TableSchema,
    wanted: Sequence[Declared],
    next_id: int,
    *,
    fixed_ids: Collection[int],
    kept_ids: Collection[int],
    stays_required: bool = False,
) -> TableSchema:
    """The wanted columns, in their order. One that is there by its name, in a type that its values have a place in, is
    the same column; any other is a new one, with an id from `next_id`, and may be NULL: what others have staged may
    come without it. `kept_ids` (primary key, partition, sequence, merge engine) have to be among them, `fixed_ids`
    (primary key, partition) in the same type. With `stays_required` a column that is NOT NULL stays so. Raises
    InvalidInputError that names the column.
    """
    columns: list[Column] = []
    for each in wanted:
        found = schema.find(each.name)
        if found is not None and _is_same(each, found, fixed_ids, kept_ids):
            columns.append(_kept(each, found, stays_required))
            continue
        if not each.nullable:
            raise _required(each.name, "is new")
        columns.append(Column(id=next_id, name=each.name, type=each.type, comment=each.comment))
        next_id += 1
    ids = {column.id for column in columns}
    lost = next((column for column in schema.columns if column.id in kept_ids and column.id not in ids), None)
    if lost is not None:
        raise InvalidInputError(
            f"The new columns lack {lost.name!r}, which belongs to the primary key, partition, sequence or merge"
            " engine.",
            kind="table_differs",
            remedy="Keep it; or make a table of another name.",
        )
    return TableSchema(id=schema.id + 1, columns=tuple(columns))


def _is_same(wanted: Declared, found: Column, fixed_ids: Collection[int], kept_ids: Collection[int]) -> bool:
    if wanted.type == found.type:
        return True
    is_same = found.id not in fixed_ids and is_wider(wanted.type, found.type)
    if not is_same and found.id in kept_ids:
        raise InvalidInputError(
            f"Column {found.name!r} is {found.type}, and {wanted.type} in the new columns: it belongs to the primary"
            " key, partition, sequence or merge engine.",
            kind="table_differs",
            remedy="Keep its type; or make a table of another name.",
        )
    return is_same


def _kept(wanted: Declared, found: Column, stays_required: bool) -> Column:
    if found.nullable and not wanted.nullable:
        raise _required(found.name, "may be NULL in the table")
    nullable = found.nullable if stays_required else wanted.nullable
    comment = wanted.comment or found.comment
    return replace(found, name=wanted.name, type=wanted.type, nullable=nullable, comment=comment)


def _required(name: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"Column {name!r} cannot be NOT NULL: it {why}, and older rows may come back without it.",
        kind="invalid_evolution",
        remedy="Declare it as nullable; a gate can check that it is never NULL.",
    )
