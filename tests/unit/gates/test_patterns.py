"""Promises of patterns: what RE2 is given finds a match in the texts in which Python finds one."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.gates.patterns import as_re2, why_wrong

_CHARACTERS = "ab1 _-\n\r\t.é١ß😀\u00a0\u0000A"
_PIECES = st.sampled_from(
    [
        "a",
        "b",
        "1",
        "é",
        ".",
        r"\d",
        r"\D",
        r"\s",
        r"\S",
        r"\w",
        "[ab]",
        "[^a]",
        r"[\d_-]",
        r"[^\s]",
        "[a-é]",
        r"\.",
        "(a|b)",
    ]
)
_REPEATS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])


def _sequence(pieces: "list[tuple[str, str]]") -> str:
    return "".join(piece + repeat for piece, repeat in pieces)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    sequences = st.lists(st.tuples(_PIECES, _REPEATS), min_size=1, max_size=4).map(_sequence)
    branches = draw(st.lists(sequences, min_size=1, max_size=3))
    flags = draw(st.sampled_from(["", "", "(?s)"]))
    start, end = draw(st.sampled_from(["", "^", r"\A"])), draw(st.sampled_from(["", "$", r"\Z"]))
    body = "|".join(branches)
    return f"{flags}{start}({body}){end}" if draw(st.booleans()) else flags + start + body + end


@given(pattern=patterns(), texts=st.lists(st.text(_CHARACTERS, max_size=5), min_size=1, max_size=20))
def test_re2_finds_what_python_finds(pattern: str, texts: list[str]) -> None:
    said = as_re2(pattern)
    assert said is not None
    found = pc.match_substring_regex(pa.array(texts), said).to_pylist()
    assert found == [re.search(pattern, text) is not None for text in texts]


def test_classes_of_characters_are_pythons() -> None:
    """But for characters that only one of the two has heard of."""
    texts = [chr(code) for code in range(0x3000) if not re.match(r"[\ud800-\udfff]", chr(code))]
    for pattern in (r"\d", r"\s", r"\S", "."):
        found = pc.match_substring_regex(pa.array(texts), as_re2(pattern)).to_pylist()
        assert found == [re.search(pattern, text) is not None for text in texts]


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", "(?=a)", "(?<!a)b", r"\ba", "(?i)a", "(?m)^a", "a$b", "a{2000}", r"(?>a+)"]
)
def test_what_re2_cannot_say_or_means_otherwise_is_left_to_python(pattern: str) -> None:
    assert as_re2(pattern) is None
    assert why_wrong(pattern) is None


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2,1}", r"\p{L}"])
def test_wrong_patterns_are_told(pattern: str) -> None:
    assert why_wrong(pattern)
