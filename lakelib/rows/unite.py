"""Pure. What files have together: the columns of all of them, in the types of the table that they are for."""

from collections.abc import Mapping

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.rows.align import plan_column_conversion, refusal
from lakelib.rows.convert import RefusedError, Rules, fits
from lakelib.rows.types import arrow_type, is_list_like
from lakelib.rows.widen import widened_type


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumns:
    """What a table asks of the files whose rows it is to take. Names of columns are casefolded."""

    columns: tuple[Column, ...] = ()
    roles: frozenset[str] = frozenset()
    """The columns that each file has to have: those of key, partition and sequence, and those that may not be NULL."""
    fixed: frozenset[str] = frozenset()
    """Those that keep their type whatever arrives."""
    explicit_cast: bool = False
    merge_schema: bool = False

    @property
    def by_name(self) -> dict[str, Column]:
        return {column.name.casefold(): column for column in self.columns}


def unite(
    united: Mapping[str, pa.Field], given: pa.Schema, target: TargetColumns, *, are_text: bool
) -> dict[str, pa.Field]:
    """The columns, by casefolded name, of some files and of one more. Each is named as where it came first.

    A column of the table has the table's type, or a wider one where the table takes that; text becomes what is wanted
    of it. Another column has the type that holds the values of all files. Raises InvalidInputError for a type that does
    not lead there.
    """
    known = target.by_name
    more: dict[str, pa.Field] = {}
    for field in given:
        folded = field.name.casefold()
        before = united.get(folded)
        column = known.get(folded)
        if column is None:
            kind = field.type if before is None else _common(field, before.type, are_text)
        else:
            current = arrow_type(column.type) if before is None else before.type
            kind = current if are_text else _taken(field.type, column, current, target)
        more[folded] = pa.field(field.name if before is None else before.name, kind)
    return {**united, **more}


def _taken(given: pa.DataType, column: Column, current: pa.DataType, target: TargetColumns) -> pa.DataType:
    """The type that a table's column has with the values that are given."""
    if not target.merge_schema or column.name.casefold() in target.fixed:
        plan_column_conversion(given, column, Rules(explicit=target.explicit_cast))
        return current
    try:
        return widened_type(current, given, explicit=target.explicit_cast)
    except RefusedError as refused:
        raise refusal(column, given, refused) from None


def _common(field: pa.Field, before: pa.DataType, are_text: bool) -> pa.DataType:
    try:
        return _holding_both(before, field.type, are_text)
    except RefusedError:
        raise InvalidInputError(
            f"Column {field.name!r} has type {field.type}, and {before} in files before.",
            kind="wrong_type",
            remedy="Give it one type in all files, or declare the files' columns.",
        ) from None


def _holding_both(one: pa.DataType, other: pa.DataType, are_text: bool) -> pa.DataType:
    """The type of the two whose values hold the other's. Numbers in text are whole or not, as they come."""
    one, other = _decoded(one), _decoded(other)
    if pa.types.is_null(one) or fits(one, other):
        return other
    if pa.types.is_null(other) or fits(other, one):
        return one
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _struct_of_both(one, other, are_text)
    if is_list_like(one) and is_list_like(other):
        return pa.list_(_holding_both(one.value_type, other.value_type, are_text))
    if are_text and {str(one), str(other)} == {"int64", "double"}:
        return pa.float64()
    raise RefusedError("", other, one, "")


def _struct_of_both(one: pa.DataType, other: pa.DataType, are_text: bool) -> pa.DataType:
    fields = {field.name.casefold(): field for field in one}
    for field in other:
        before = fields.get(field.name.casefold())
        kind = field.type if before is None else _holding_both(before.type, field.type, are_text)
        fields[field.name.casefold()] = pa.field(field.name if before is None else before.name, kind)
    return pa.struct(list(fields.values()))


def _decoded(kind: pa.DataType) -> pa.DataType:
    is_coded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return kind.value_type if is_coded else kind
