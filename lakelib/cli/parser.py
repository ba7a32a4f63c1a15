"""How command lines are read: strictly, for what schedulers pass on was written by others.

An option is written in full and given once; what is not known is told without its value, which may be a secret.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup

_SEVERAL = ("--path", "--partitions")
"""Take all values that follow, up to the next option."""
_LONG = re.compile(r"--[a-z][a-z-]*(=|$)")


class QuickGroup(TyperGroup):
    """`lake`, before the command's name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _take_texts_as_they_are(self.get_params(ctx))
        return super().parse_args(ctx, args)


class StrictCommand(TyperCommand):
    """A command of `lake`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _take_texts_as_they_are(self.get_params(ctx))
        if ctx.resilient_parsing:  # a shell completes what is not written yet
            return super().parse_args(ctx, args)
        options = [each for each in self.get_params(ctx) if each.param_type_name == "option"]
        known = {name: each for each in options for name in (*each.opts, *each.secondary_opts)}
        args = list(_checked(ctx, known, args))
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest:
            ctx.fail(f"unknown arguments: {len(rest)} too many")
        return rest


def _take_texts_as_they_are(params: Sequence[Any]) -> None:
    """What is not given, and plain text, is not converted: what converts takes a tenth of a second to load."""
    for param in params:
        convert = param.process_value
        if not isinstance(convert, partial):
            param.process_value = partial(_processed, param, convert)


def _processed(param: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    is_text = isinstance(value, str) and value.isascii() and param.type_descriptor.annotation is str
    if param.required or not (value is None or is_text):
        return convert(ctx, value)
    if value is None and (param.multiple or param.nargs == -1):
        value = ()
    return value if param.callback is None else param.callback(ctx, param, value)


def _checked(ctx: Any, known: dict[str, Any], args: Sequence[str]) -> Iterator[str]:
    """The words, one value an option. Ends the command where an option is unknown, lacks its value, or is given
    twice."""
    words, seen = list(args), set()
    while words:
        word = words.pop(0)
        if word == "--":
            yield from (word, *words)
            return
        name, has_value, _ = word.partition("=")
        option = known.get(name) if word.startswith("-") else None
        if option is None:
            if word.startswith("--"):
                ctx.fail(f"unknown arguments: {', '.join(_unknown(known, [word, *words]))}")
            yield word
            continue
        if option.is_flag:
            yield word
            continue
        if not option.multiple and option.name in seen:
            ctx.fail(f"{name} is given twice")
        seen.add(option.name)
        values = [] if has_value else _values(ctx, known, name, words)
        yield from [word] if has_value else [part for value in values for part in (name, value)]


def _values(ctx: Any, known: dict[str, Any], name: str, words: list[str]) -> list[str]:
    """Those of an option, which are taken off the words. One that begins as an option does stands behind a `=`."""
    values: list[str] = []
    while words and not _is_option(known, words[0]) and (not values or name in _SEVERAL):
        values.append(words.pop(0))
    if not values:
        ctx.fail(f"{name} is without its value; one that looks like an option is written {name}=…")
    return values


def _is_option(known: dict[str, Any], word: str) -> bool:
    """Or looks like one."""
    return word == "--" or word.partition("=")[0] in known or bool(_LONG.match(word))


def _unknown(known: dict[str, Any], words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word == "--":
            return
        name = word.partition("=")[0]
        if name.startswith("--") and name not in known:
            yield name
