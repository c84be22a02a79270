"""Read the outputs of earlier steps by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.calls.call_data import CallVars, ExecutorHistory


def read_history(path: Any, history: Any) -> Any:
    """Return the value at ``step/key/sub`` in the outputs of earlier steps, or None.

    The step's name alone gives its whole output. The text of a text step is also its ``text``. A segment is a key of
    an object or an index of a list; ``~1`` in it is a slash and ``~0`` a tilde, as in a JSON Pointer. Never raises.

    Args:
        path: with or without a leading slash.
        history: steps by name (`CallVars.step_data`), or a list of them, oldest first.
    """
    if not isinstance(path, str):
        return None
    steps = _by_name(history)
    first, *keys = path.removeprefix("/").split("/")
    step = steps.get(_unescaped(first), steps.get(first))
    output = getattr(step, "output_data", step)
    if isinstance(output, str) and keys and keys[0] == "text":
        keys = keys[1:]
    for key in keys:
        output = _below(output, key)
        if output is None:
            return None
    return output


def _by_name(history: Any) -> Mapping[str, Any]:
    if isinstance(history, Mapping):
        return history
    if isinstance(history, Sequence) and not isinstance(history, str):
        return CallVars.steps_of([step for step in history if isinstance(step, ExecutorHistory)])
    return {}


def _below(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(_unescaped(key), value.get(key))
    if isinstance(value, (list, tuple)) and key.isascii() and key.isdigit() and len(key) < 10:
        return value[int(key)] if int(key) < len(value) else None
    return None


def _unescaped(segment: str) -> str:
    return segment.replace("~1", "/").replace("~0", "~")
