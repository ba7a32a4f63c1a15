"""Dataclasses that take little time to define.

To compile the methods of classes takes most of the time in which they are loaded, and a process makes values of few
of them: what makes one is compiled for the first value, and the other methods are made without being written. Beside
that these are the standard library's dataclasses, without its InitVar.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, repr=True):
        """As the standard library's."""

        def define(cls: type) -> type:
            return _defined(cls, frozen=frozen, slots=slots, kw_only=kw_only, repr=repr)

        return define if cls is None else define(cls)


__all__ = ["dataclass"]

_Method = Callable[..., Any]
_NOT_GIVEN = object()


def _defined(cls: type, *, frozen: bool, slots: bool, kw_only: bool, repr: bool) -> type:
    own, text = dict(vars(cls)), cls.__doc__
    cls.__doc__ = text or cls.__name__  # else one is made of the signature
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    cls.__doc__ = text
    for name, method in _methods(cls, frozen, slots, repr).items():
        if own.get(name) is None:
            setattr(cls, name, method)
    return cls


def _methods(cls: type, frozen: bool, slots: bool, repr: bool) -> Mapping[str, _Method | None]:
    fields = dataclasses.fields(cls)
    names = tuple(each.name for each in fields)
    compared = _values(each.name for each in fields if each.compare)
    methods: dict[str, _Method | None] = {"__init__": _init_later(cls, frozen, slots), "__eq__": _eq(compared)}
    if repr:
        methods["__repr__"] = _repr(tuple(each.name for each in fields if each.repr))
    if not frozen:
        return methods | {"__hash__": None}
    methods |= {"__hash__": _hash(compared), "__setattr__": _set(cls, names), "__delattr__": _delete(cls, names)}
    return methods | ({"__getstate__": _state(_values(names)), "__setstate__": _restore(names)} if slots else {})


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of fields."""
    match tuple(names):
        case ():
            return lambda each: ()
        case (name,):
            return lambda each: (getattr(each, name),)
        case several:
            return attrgetter(*several)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> _Method:
    def equals(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equals


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> _Method:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _repr(names: tuple[str, ...]) -> _Method:
    @recursive_repr()
    def shown(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _set(cls: Any, names: tuple[str, ...]) -> _Method:
    def set_nothing(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    return set_nothing


def _delete(cls: Any, names: tuple[str, ...]) -> _Method:
    def delete_nothing(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return delete_nothing


def _state(values: Callable[[Any], tuple[Any, ...]]) -> _Method:
    def state(self: Any) -> tuple[Any, ...]:
        return values(self)

    return state


def _restore(names: tuple[str, ...]) -> _Method:
    def restore(self: Any, values: tuple[Any, ...]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return restore


def _init_later(cls: Any, frozen: bool, slots: bool) -> _Method:
    def first_init(self: Any, *args: Any, **named: Any) -> None:
        _compile_init(cls, frozen, slots)
        cls.__init__(self, *args, **named)

    return first_init


def _compile_init(cls: Any, frozen: bool, slots: bool) -> None:
    """The class gets the method."""
    fields, known = dataclasses.fields(cls), _known(cls, slots)
    parameters = [_parameter(each) for each in fields if each.init and not each.kw_only]
    by_name = [_parameter(each) for each in fields if each.init and each.kw_only]
    lines = [_assigned(each, frozen, slots) for each in fields]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    signature = ", ".join(["self", *parameters, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({signature}):\n " + "\n ".join(lines or ["pass"]), known)
    cls.__init__ = known["__init__"]
    cls.__init__.__module__, cls.__init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"


def _known(cls: Any, slots: bool) -> dict[str, Any]:
    """What the method's text names."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_not_given": _NOT_GIVEN}
    for each in dataclasses.fields(cls):
        known[f"_default_{each.name}"], known[f"_make_{each.name}"] = each.default, each.default_factory
        if slots:
            known[f"_set_{each.name}"] = getattr(cls, each.name).__set__  # which takes less time than to look for it
    return known


def _parameter(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is dataclasses.MISSING else f"{field.name}=_not_given"


def _assigned(field: "dataclasses.Field[Any]", frozen: bool, slots: bool) -> str:
    name = value = field.name
    if field.default_factory is not dataclasses.MISSING:
        value = f"_make_{name}() if {name} is _not_given else {name}" if field.init else f"_make_{name}()"
    elif not field.init:
        value = f"_default_{name}"
    if slots:
        return f"_set_{name}(self, {value})"
    return f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"
