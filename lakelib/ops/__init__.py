"""Use cases, each a module. `from lakelib.ops import compact` loads one when something of it is first asked for: most
programs use few of them."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module until it is loaded, and after that where it was imported before."""

    def __getattribute__(self, name: str) -> Any:
        return getattr(_loaded(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_loaded(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_loaded(self), name)


def _loaded(module: _Later) -> ModuleType:
    own = object.__getattribute__(module, "__dict__")
    if "_loaded" not in own:
        own["_loaded"] = import_module(own["__name__"])
    found: ModuleType = own["_loaded"]
    return found


@cache
def _names() -> frozenset[str]:
    return frozenset(each.name for each in iter_modules(__path__))


def __getattr__(name: str) -> Any:
    """Modules of this package that nobody has loaded yet."""
    if name not in _names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Later(f"{__name__}.{name}")
