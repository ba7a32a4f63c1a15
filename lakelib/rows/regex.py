r"""Pure. Regular expressions that Java and RE2 take alike, or that can be said so: RE2 never goes back in the text, so
that no pattern takes for ever.

`.` leaves out all ends of lines, `\s` has the vertical tab, `$` may stand before the last end of a line, as in Java.
What Java means in another way, or RE2 cannot do, is refused: look-around, backreferences, `\b`, `\p`, possessive
quantifiers, flags but a leading `(?i)`, classes within classes.
"""

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.errors import InvalidInputError

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r"\t\n\x{b}\f\r "
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": _SPACES}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "a": r"\x{7}", "e": r"\x{1b}"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})")
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})")
_LAST_CODE = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def re2_of(pattern: str) -> str:
    """The pattern as RE2 takes it, to be found anywhere in a text. Raises InvalidInputError, quoting what is in the
    way."""
    translated = "".join(_Translator(pattern).pieces())
    try:
        pc.match_substring_regex(pa.nulls(1, pa.string()), translated)
    except pa.ArrowInvalid:
        raise _refused(pattern, "what RE2 does not take") from None
    return translated


def _refused(pattern: str, what: str) -> InvalidInputError:
    shown = pattern if len(pattern) <= 80 else pattern[:80] + "…"
    return InvalidInputError(
        f"The regular expression {shown!r} has {what}.",
        kind="invalid_predicate",
        remedy="Write it without look-around, backreferences, \\b, \\p, flags but a leading (?i), and quantifiers that"
        " are possessive: it is matched without going back.",
    )


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._ignores_case = pattern.startswith("(?i)")
        self._at = 4 if self._ignores_case else 0
        self._depth = 0

    def pieces(self) -> Iterator[str]:
        may_repeat = False
        while self._at < len(self._pattern):
            found = _QUANTIFIER.match(self._pattern, self._at)
            if found is not None:
                if not may_repeat:
                    raise self._wrong(found[0])
                yield self._quantifier(found)
                may_repeat = False
                continue
            character = self._pattern[self._at]
            self._at += 1
            may_repeat = character not in "(|^$"
            yield self._piece(character)
        if self._depth:
            raise self._wrong("(")

    def _quantifier(self, found: "re.Match[str]") -> str:
        self._at = found.end()
        following = self._pattern[self._at : self._at + 1]
        if following == "+":
            raise self._wrong(found[0] + following)
        if following == "?":
            self._at += 1
        return found[0] + ("?" if following == "?" else "")

    def _piece(self, character: str) -> str:
        match character:
            case "\\":
                return self._escaped(in_class=False)
            case "[":
                return self._class()
            case ".":
                return f"[^{_LINE_ENDS}]"
            case "^":
                return r"\A"
            case "$":
                return self._end()
            case "(":
                return self._group()
            case ")":
                self._depth -= 1
                if self._depth < 0:
                    raise self._wrong(")")
                return ")"
            case "|":
                return "|"
            case "{":
                raise self._wrong("{")
        return self._literal(ord(character))

    def _group(self) -> str:
        self._depth += 1
        if not self._pattern.startswith("?", self._at):
            return "(?:"
        if not self._pattern.startswith("?:", self._at):
            raise self._wrong(self._pattern[self._at - 1 : self._at + 3])
        self._at += 2
        return "(?:"

    def _end(self) -> str:
        """It takes up the end of a line, so that nothing may follow; `\\r` before it would be the half of one."""
        is_last = self._at == len(self._pattern) or (self._depth == 0 and self._pattern[self._at] == "|")
        if not is_last or ("\\" in self._pattern and re.search(r"\\(r|x0?\{?0?[dD]|u000[dD])", self._pattern)):
            raise self._wrong("$")
        if "\r" in self._pattern:
            raise self._wrong("$")
        return rf"(?:\r\n|[{_LINE_ENDS}])?\z"

    def _escaped(self, *, in_class: bool) -> str:
        found = _CODE.match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            if code > _LAST_CODE or code in _SURROGATES:
                raise self._wrong(f"\\{found[0]}")
            return self._literal(code, in_class=in_class)
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        if character in _CONTROLS and character:
            return _CONTROLS[character]
        if character in _CLASSES and character:
            return _CLASSES[character] if in_class else f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES and character and not in_class:
            return f"[^{_CLASSES[character.lower()]}]"
        if character == "A" and not in_class:
            return r"\A"
        if character == "z" and not in_class:
            return r"\z"
        if not character or character.isalnum():
            raise self._wrong(f"\\{character}")
        return self._literal(ord(character), in_class=in_class)

    def _literal(self, code: int, *, in_class: bool = False) -> str:
        other = ord(chr(code).swapcase()) if self._ignores_case and code < 128 else code
        if other == code:
            return rf"\x{{{code:x}}}"
        both = rf"\x{{{code:x}}}\x{{{other:x}}}"
        return both if in_class else f"[{both}]"

    def _class(self) -> str:
        is_negated = self._pattern.startswith("^", self._at)
        self._at += is_negated
        members = []
        while True:
            member = self._member()
            if member is None:
                break
            members.append(member)
        if not members:
            raise self._wrong("[]")
        return f"[{'^' if is_negated else ''}{''.join(members)}]"

    def _member(self) -> str | None:
        """One of a class, or a range; None at its end."""
        first = self._one()
        if first is None:
            return None
        is_range = self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at)
        if isinstance(first, str) and is_range:
            raise self._wrong("-")
        if isinstance(first, str):
            return first
        if not is_range:
            return self._literal(first, in_class=True)
        self._at += 1
        last = self._one()
        if not isinstance(last, int) or last < first:
            raise self._wrong("-")
        return self._range(first, last)

    def _one(self) -> int | str | None:
        """A character's code, or what stands for several."""
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        if not character or character == "[" or self._pattern.startswith("&&", self._at - 1):
            raise self._wrong(character or "[")
        if character == "]":
            return None
        if character != "\\":
            return ord(character)
        found = self._escaped(in_class=True)
        code = re.fullmatch(r"\\x\{([0-9a-f]+)\}", found)
        return int(code[1], 16) if code else {r"\t": 9, r"\n": 10, r"\r": 13, r"\f": 12}.get(found, found)

    def _range(self, first: int, last: int) -> str:
        plain = rf"\x{{{first:x}}}-\x{{{last:x}}}"
        if not self._ignores_case:
            return plain
        both = [plain]
        for letters, offset in ((("a", "z"), -32), (("A", "Z"), 32)):
            low, high = max(first, ord(letters[0])), min(last, ord(letters[1]))
            if low <= high:
                both.append(rf"\x{{{low + offset:x}}}-\x{{{high + offset:x}}}")
        return "".join(both)

    def _wrong(self, what: str) -> InvalidInputError:
        return _refused(self._pattern, repr(what))
