"""Which field a key of an object answers to."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from SimpleLLMFunc.base.parsing.alignment.alignment import Misfit
from SimpleLLMFunc.base.parsing.alignment.shape import FieldShape, ObjectShape
from SimpleLLMFunc.base.parsing.json_node import Node, Path, is_same, path_text
from SimpleLLMFunc.base.parsing.parsed import Repair


def assigned(
    shape: ObjectShape, node: dict[str, Node], path: Path, *, may_coerce: bool
) -> tuple[dict[str, Node], dict[str, Node], list[Repair]] | Misfit:
    """Return the values by field, the unknown keys, and the repairs; keys match by exact name first, then folded."""
    taken: dict[str, Node] = {}
    unknown = dict(node)
    repairs: list[Repair] = []
    ways: list[Callable[[str], FieldShape | None]] = [shape.by_name.get]
    if may_coerce:
        ways.append(partial(field_of, shape))
    for find in ways:
        for key, value in list(unknown.items()):
            part = find(key)
            if part is None:
                continue
            del unknown[key]
            if part.key in taken:
                if not is_same(taken[part.key], value):
                    got = f"two different values for one field of {shape.name}"
                    return Misfit([(path_text((*path, part.key)), part.shape.name, got)])
                continue
            taken[part.key] = value
            if key != part.key:
                repairs.append((path_text((*path, part.key)), f"key {key!r} read as {part.key!r}"))
    return taken, unknown, repairs


def folded_key(key: str) -> str:
    """Return a key without case, spaces, hyphens and underscores."""
    return re.sub(r"[\W_]+", "", key.casefold())


def field_of(shape: ObjectShape, key: str) -> FieldShape | None:
    """Return the one field that answers to the key when case, spaces, hyphens and underscores do not count."""
    wanted = folded_key(key)
    if not wanted:
        return None
    found = {part.key: part for name, part in shape.by_name.items() if folded_key(name) == wanted}
    return next(iter(found.values())) if len(found) == 1 else None
