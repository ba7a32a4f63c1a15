"""A regular expression means what it means in Java, or is refused."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelib.errors import InvalidInputError
from lakelib.rows.regex import re2_of

TEXTS = [
    "", "a", "b", "ab", "aab", "AB", "a\n", "a\r\n", "\n", "a\nb", "a.b", "a]b", "-", "a-b", "x9_", "\x0b",
    "\u2028", "é", "ſ", "\u212a", "日本", "a{2}", "&", "^",
]  # fmt: skip
TAKEN = [
    "a", "a|b", "^a", "^$", "b$|^a$", "a+b", "a*?b", "(ab)?x", "(?:a|)b", "a{2}", "a{1,2}b", "a{2,}", ".", "^.$",
    "a.b", r"a\.b", r"\d", r"\D", r"\w+", r"\W", r"\s", r"\S", r"[^\s]", r"[\d_]", "[a-c]", "[^a-c]", "[-a]",
    "[a-]", r"[\]]", r"\]", "]", "[a&]", r"\x41", r"A", r"\x{65e5}", r"\t|\n", "[ab^]", r"\A.", r"b\z", r"\-", "日",
    "(?i)ab", "(?i)[a-b]+$", "(?i)k", "(?i)S", "(?i)[^a]b",
]  # fmt: skip
REFUSED = [
    "(?=a)", "(?!a)", "(?<=a)b", "(?<n>a)", "(?>a)", r"(a)\1", r"\bx", r"\Bx", r"\pL", r"\p{L}", r"\h", r"\R",
    r"\Z", r"\Qa\E", "a*+", "a++", "a?+", "a{2}+", "a**", "*a", "+", "(*a)", "a|*", "a{", "{", "a{2", "[", "[]",
    "[]a]", "[^]", "[[a]]", "[a&&b]", "[b-a]", r"[\d-z]", "(", ")", "a)", "(a", "a$b", "(a$)", "$*", r"\r$",
    "(?s).", "(?im)a", "a(?i)b", "\\", r"\k<n>", r"\u12", r"\x4", r"\xd800"[:2] + "{d800}", "a{5,2}", "a{2000}",
    r"\cA", r"\07",
]  # fmt: skip


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_is_taken_finds_what_java_finds(pattern: str) -> None:
    """Python means by these what Java does, told of ASCII, of the ends of lines, and in other words."""
    ends = "\n\r\x85\u2028\u2029"
    told = pattern.replace(r"\A.", rf"\A[^{ends}]").replace("^.$", rf"^[^{ends}]$").replace("a.b", f"a[^{ends}]b")
    told = f"[^{ends}]" if pattern == "." else told
    told = told.replace(r"\z", r"\Z").replace(r"\x{65e5}", "日").replace("$", rf"(?:\r\n|[{ends}])?\Z")
    java = re.compile(told, re.ASCII)
    expected = [java.search(text) is not None for text in TEXTS]
    assert pc.match_substring_regex(pa.array(TEXTS), re2_of(pattern)).to_pylist() == expected


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_java_means_in_another_way_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="regular expression"):
        re2_of(pattern)


def test_no_pattern_takes_for_ever() -> None:
    texts = pa.array(["a" * 100_000 + "!"])
    assert not pc.match_substring_regex(texts, re2_of("^(a+)+$"))[0].as_py()
