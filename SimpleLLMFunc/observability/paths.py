"""Paths in an answer, without the keys that the model wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PIECE = re.compile(r"\[\d+\]|[^.\[\]]+")


def declared_path(path: str, schema: Mapping[str, Any] | None) -> str:
    """Return the path of a part of an answer; each name that no type declares becomes ``*``.

    The model chooses the keys of a dict, so they are content, as its values are.

    Args:
        path: as violations and repairs write it: ``items[2].price``.
        schema: JSON Schema of the answer; None declares nothing.
    """
    names = set(_declared(schema))
    return _PIECE.sub(lambda piece: piece[0] if piece[0].startswith("[") or piece[0] in names else "*", path)


def _declared(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            properties = node.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node
