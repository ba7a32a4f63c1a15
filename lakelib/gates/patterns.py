"""Pure. Python's regular expressions, said so that RE2 takes them: it comes to an end with every pattern.

What is translated is the pattern as Python has parsed it, piece by piece, and only pieces that RE2 can say with the
same meaning. Whether a text holds a match does not depend on how greedy the repeats are.
"""

import re
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.rows.buffers import array_of_bytes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]

_DIGIT = r"\p{Nd}"
_SPACE = r"\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WORD = r"\p{L}\p{N}_"
_NOT_SPACE = (
    r"\x{0}-\x{8}\x{e}-\x{1b}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}"
)
_CATEGORIES = {
    op.CATEGORY_DIGIT: _DIGIT,
    op.CATEGORY_NOT_DIGIT: r"\P{Nd}",
    op.CATEGORY_SPACE: _SPACE,
    op.CATEGORY_NOT_SPACE: _NOT_SPACE,
    op.CATEGORY_WORD: _WORD,
}
_FLAGS = re.UNICODE.value | re.DOTALL.value | re.VERBOSE.value
"""Those under which the pieces mean what is written here."""
_SURROGATES = range(0xD800, 0xE000)


class _OtherMeaningError(Exception):
    """RE2 cannot say it, or says something else."""


def why_wrong(pattern: str) -> str | None:
    """What Python has against a pattern; None for a right one."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__
    return None


@cache
def as_re2(pattern: str) -> str | None:
    """The pattern for RE2, which finds a match in the texts in which `re.search` finds one; None if there is none."""
    try:
        parsed = _parser.parse(pattern)
        if parsed.state.flags & ~_FLAGS:
            return None
        said = _sequence(list(parsed), dot=_dot(parsed.state.flags), at_end=True)
        pc.match_substring_regex(array_of_bytes([b""], pa.string()), said)  # it is compiled: repeats have a most
    except (_OtherMeaningError, re.error, RecursionError, pa.ArrowInvalid):
        return None
    return said


def _dot(flags: int) -> str:
    return r"(?s:.)" if flags & re.DOTALL.value else r"[^\n]"


def _sequence(items: Sequence[tuple[Any, Any]], *, dot: str, at_end: bool) -> str:
    """`at_end`: whether nothing may follow in the text but what `$` stands before."""
    last = len(items) - 1
    return "".join(_piece(*item, dot=dot, at_end=at_end and place == last) for place, item in enumerate(items))


def _piece(code: Any, given: Any, *, dot: str, at_end: bool) -> str:
    match code:
        case op.LITERAL:
            return _character(given)
        case op.NOT_LITERAL:
            return f"[^{_character(given)}]"
        case op.ANY:
            return dot
        case op.IN:
            return _class(given)
        case op.BRANCH:
            _, branches = given
            return "(?:" + "|".join(_sequence(list(each), dot=dot, at_end=at_end) for each in branches) + ")"
        case op.SUBPATTERN:
            _, added, removed, inner = given
            if added or removed:
                raise _OtherMeaningError
            return f"(?:{_sequence(list(inner), dot=dot, at_end=at_end)})"
        case op.MAX_REPEAT | op.MIN_REPEAT:
            least, most, inner = given
            return f"(?:{_sequence(list(inner), dot=dot, at_end=False)}){_times(least, most)}"
        case op.AT:
            return _place(given, at_end=at_end)
    raise _OtherMeaningError


def _times(least: int, most: int) -> str:
    if most == op.MAXREPEAT:
        return "*" if least == 0 else "+" if least == 1 else f"{{{least},}}"
    return f"{{{least},{most}}}"


def _place(code: Any, *, at_end: bool) -> str:
    if code in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return r"\A"
    if code == op.AT_END_STRING:
        return r"\z"
    if code == op.AT_END and at_end:  # Python's also stands before the line end that is the last character
        return r"\n?\z"
    raise _OtherMeaningError


def _class(items: Sequence[tuple[Any, Any]]) -> str:
    negated = items[0][0] == op.NEGATE
    return f"[{'^' if negated else ''}{''.join(_member(*item) for item in items[negated:])}]"


def _member(code: Any, given: Any) -> str:
    match code:
        case op.LITERAL:
            return _character(given)
        case op.RANGE:
            return f"{_character(given[0])}-{_character(given[1])}"
        case op.CATEGORY if given in _CATEGORIES:
            return _CATEGORIES[given]
    raise _OtherMeaningError


def _character(code_point: int) -> str:
    if code_point in _SURROGATES:
        raise _OtherMeaningError
    return f"\\x{{{code_point:x}}}"
