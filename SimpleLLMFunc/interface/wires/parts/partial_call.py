"""A call of a tool that comes in pieces: each names a place in the arguments, and what stands there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.type import mappings

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_VALUES = ("numberValue", "boolValue", "stringValue")


class PartialCall:
    """The calls of one stream, put together.

    Source: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling, streamed arguments
    """

    def __init__(self) -> None:
        self._part: dict[str, Any] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._part is not None

    def add(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        """Take a part with a call, or a piece of one; return the whole part once it is complete.

        Raises:
            ValueError: a piece of no call, or of a place that cannot be.
        """
        call: Mapping[str, Any] = part["functionCall"]
        if call.get("name"):
            if self._part is not None:
                raise ValueError("a call began before the one before it had ended")
            whole = {name: value for name, value in call.items() if name not in {"willContinue", "partialArgs"}}
            self._part = {**part, "functionCall": whole}
        elif self._part is None:
            raise ValueError("a piece belongs to no call")
        for piece in mappings(call.get("partialArgs")):
            _put(self._part["functionCall"].setdefault("args", {}), piece)
        if call.get("willContinue"):
            return None
        done, self._part = self._part, None
        return done


def _put(arguments: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Put a value where a piece says; a text grows."""
    path = str(piece.get("jsonPath") or "")
    steps: list[str | int] = [int(found[2]) if found[2] else found[1] or found[3] for found in _STEP.finditer(path)]
    if not steps or not isinstance(steps[0], str):
        raise ValueError(f"a piece has no place: {path[:100]}")
    value = next((piece[name] for name in _VALUES if name in piece), None)
    place: Any = arguments
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if not _has(place, step):
            raise ValueError(f"a piece has no place: {path[:100]}")
        if isinstance(step, int) and step == len(place):
            place.append(None)
        old = place[step] if isinstance(step, int) else place.get(step)
        if following is None:
            place[step] = old + value if isinstance(old, str) and isinstance(value, str) else value
        elif old is None:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]


def _has(place: Any, step: int | str) -> bool:
    """Whether a step leads somewhere: to an item, or the one behind the last, or to a field."""
    return isinstance(place, list) and step <= len(place) if isinstance(step, int) else isinstance(place, dict)
