"""What a value holds: the items of a container, the fields of an object, and whether a picture is among them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from SimpleLLMFunc.type.multimodal import MULTIMODAL


def holds_multimodal(value: Any) -> bool:
    """Tell whether a value is a picture, a sound, a file or a `Text`, or a container or an object with one somewhere in it."""
    left, seen = [value], set[int]()  # a list may hold itself
    while left:
        each = left.pop()
        if isinstance(each, MULTIMODAL):
            return True
        if id(each) not in seen and (inside := fields_or_items(each)) is not None:
            seen.add(id(each))
            left.extend(inside.values() if isinstance(inside, Mapping) else inside)
    return False


def fields_or_items(value: Any) -> Mapping[Any, Any] | Collection[Any] | None:
    """Return what a container or an object of fields holds, None for anything else."""
    if isinstance(value, BaseModel):
        # A model that was made without checks may lack a field.
        own = {name: field for name, field in type(value).model_fields.items() if not field.exclude}
        named = {field.serialization_alias or name: getattr(value, name, None) for name, field in own.items()}
        return {**named, **(value.model_extra or {})}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    return value if isinstance(value, (list, tuple, set, frozenset, deque, Mapping)) else None
