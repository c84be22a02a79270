"""Objects of a user's class of which only some fields have arrived; tested through `PartialReader`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from pydantic import BaseModel


def unfinished(cls: Any, values: dict[str, Any]) -> Any:
    """Return an instance of `cls` that has only these fields; the others are absent, their defaults too."""
    if cls is None:
        return values
    if issubclass(cls, BaseModel):
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", set(values))
        object.__setattr__(made, "__pydantic_extra__", {} if cls.model_config.get("extra") == "allow" else None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made
    made = object.__new__(_unfinished_class(cls))
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


class _Absent:
    """Stands where a dataclass keeps a default: a field that has not arrived has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{self._name!r} has not arrived yet")


@functools.lru_cache(maxsize=512)
def _unfinished_class(cls: type) -> type:
    """Return a subclass of a dataclass whose instances may lack fields and can still be printed and compared."""
    names = [part.name for part in dataclasses.fields(cls)]

    def arrived(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def shown(self: Any) -> str:
        return f"{cls.__name__}({', '.join(f'{name}={value!r}' for name, value in arrived(self).items())})"

    def is_equal(self: Any, other: object) -> bool:
        return type(self) is type(other) and arrived(self) == arrived(other)

    members: dict[str, Any] = {
        "__repr__": shown, "__eq__": is_equal, "__hash__": None, "__slots__": (), "__module__": cls.__module__
    }  # fmt: skip
    if "__slots__" not in vars(cls):
        members |= {name: _Absent() for name in names if name in vars(cls)}
    return type(cls.__name__, (cls,), members)
