"""Sortable encoding: a column value as bytes whose order is the value's order.

Raw values are what Parquet stores: bool; int for integers, dates (days since 1970), timestamps (microseconds since
1970) and decimals (unscaled); float; str; bytes. Integers of every width encode alike, so that
widening a column keeps its bounds.
Floats: -0.0 encodes as 0.0, and every NaN alike, above infinity.
"""

import math
import struct

from lakelib.model.predicate import Raw

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"))
_SIGN_64 = 1 << 63
_SIGN_128 = 1 << 127
_ALL_64 = (1 << 64) - 1


def is_sortable(type_text: str) -> bool:
    """Whether values of the type can be encoded: every type but the nested ones."""
    return not type_text.startswith(("array<", "map<", "struct<"))


def encode(type_text: str, raw: Raw) -> bytes:
    """The sortable encoding of a raw value of that type."""
    if type_text in _INTEGERS:
        return (int(raw) + _SIGN_64).to_bytes(8, "big")
    if type_text.startswith("decimal("):
        return (int(raw) + _SIGN_128).to_bytes(16, "big")
    if type_text == "string":
        return str(raw).encode()
    if type_text == "binary":
        return bytes(raw)  # type: ignore[arg-type]
    if type_text == "boolean":
        return b"\x01" if raw else b"\x00"
    if type_text in ("float", "double"):
        return _encode_float(float(raw))
    raise ValueError(f"type {type_text} has no sortable encoding")


def encode_both(type_text: str, lower: Raw | None, upper: Raw | None) -> tuple[bytes | None, bytes | None]:
    """The encodings of two bounds, of which either may be missing."""
    return (
        None if lower is None else encode(type_text, lower),
        None if upper is None else encode(type_text, upper),
    )


def decode(type_text: str, encoded: bytes) -> Raw:
    """The raw value that was encoded (not for cut bounds)."""
    if type_text in _INTEGERS:
        return int.from_bytes(encoded, "big") - _SIGN_64
    if type_text.startswith("decimal("):
        return int.from_bytes(encoded, "big") - _SIGN_128
    if type_text == "string":
        return encoded.decode()
    if type_text == "binary":
        return encoded
    if type_text == "boolean":
        return encoded == b"\x01"
    if type_text in ("float", "double"):
        return _decode_float(encoded)
    raise ValueError(f"type {type_text} has no sortable encoding")


def _encode_float(value: float) -> bytes:
    if math.isnan(value):
        return b"\xff" * 8
    bits: int = struct.unpack(">Q", struct.pack(">d", value + 0.0))[0]
    flipped = bits ^ (_ALL_64 if bits & _SIGN_64 else _SIGN_64)
    return flipped.to_bytes(8, "big")


def _decode_float(encoded: bytes) -> float:
    flipped = int.from_bytes(encoded, "big")
    if flipped == _ALL_64:
        return math.nan
    bits = flipped ^ (_SIGN_64 if flipped & _SIGN_64 else _ALL_64)
    value: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    return value
