"""Pure. Decides which type a column takes when wider values arrive for it."""

import pyarrow as pa

from lakelib.rows.convert import RefusedError, fits
from lakelib.rows.types import arrow_type, is_list_like, type_text


def widened_type(current: pa.DataType, given: pa.DataType, *, explicit: bool = False, path: str = "") -> pa.DataType:
    """The type that holds the column's values and the given ones: the current type, or a wider one.

    int → bigint and its like, float → double, more digits of a decimal on either side of its point, and new fields of
    structs, at any depth. Raises RefusedError for any other pair of types; with `explicit` the current type stays.
    """
    if pa.types.is_dictionary(given) or pa.types.is_run_end_encoded(given):
        return widened_type(current, given.value_type, explicit=explicit, path=path)
    if pa.types.is_struct(current) and pa.types.is_struct(given):
        return _widened_struct(current, given, explicit, path)
    if pa.types.is_list(current) and is_list_like(given):
        return pa.list_(widened_type(current.value_type, given.value_type, explicit=explicit, path=f"{path}.element"))
    if pa.types.is_map(current) and pa.types.is_map(given):
        key = widened_type(current.key_type, given.key_type, explicit=explicit, path=f"{path}.key")
        return pa.map_(key, widened_type(current.item_type, given.item_type, explicit=explicit, path=f"{path}.value"))
    if fits(given, current):
        return current
    if _is_wider(given, current):
        return arrow_type(type_text(given))
    if explicit:
        return current
    remedy = "Cast the column before writing, or give explicit_cast=True to cast it into the table's type."
    raise RefusedError(path.removeprefix("."), given, current, remedy)


def _widened_struct(current: pa.DataType, given: pa.DataType, explicit: bool, path: str) -> pa.DataType:
    incoming = {field.name.casefold(): field for field in given}
    fields = []
    for field in current:
        match = incoming.pop(field.name.casefold(), None)
        wide = (
            field.type
            if match is None
            else widened_type(field.type, match.type, explicit=explicit, path=f"{path}.{field.name}")
        )
        fields.append(pa.field(field.name, wide))
    fields += [pa.field(field.name, arrow_type(type_text(field.type))) for field in incoming.values()]
    return pa.struct(fields)


def _is_wider(wide: pa.DataType, narrow: pa.DataType) -> bool:
    types = pa.types
    if types.is_signed_integer(wide) and types.is_signed_integer(narrow):
        return bool(wide.bit_width > narrow.bit_width)
    if types.is_floating(wide) and types.is_floating(narrow):
        return bool(wide.bit_width > narrow.bit_width)
    if types.is_decimal(wide) and types.is_decimal(narrow) and not types.is_decimal256(wide):
        return wide != narrow and fits(narrow, wide)
    return False
