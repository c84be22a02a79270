"""A tool call on the wire: the names of tools that a provider takes, and the arguments that a model wrote.

A call may have side effects, so its arguments are read as they stand; `base/parsing` mends what is not quite JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, cast

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.tools.schemas import ArgumentsError
from SimpleLLMFunc.type import mend
from SimpleLLMFunc.utils import object_of, refuse_constant

_WIRE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")


def is_wire_name(name: str) -> bool:
    """Whether every provider takes the name as it is."""
    return _WIRE.fullmatch(name) is not None


def wire_name(name: str) -> str:
    """Return the name as a provider takes it: ``web.search`` becomes ``web_search``, always the same way.

    Names of which too little would remain (a Chinese one, one of 100 characters) keep a checksum, so that two
    of them stay two.
    """
    if is_wire_name(name):
        return name
    kept = _REFUSED.sub("_", name).strip("_")
    if len(kept) <= 64 and len(kept) * 2 > len(name):
        return kept
    checksum = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept[:55] or 'tool'}_{checksum}"


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Return ``{name: name on the wire}``, all different; a name that is fine as it is always keeps itself."""
    wanted = list(names)
    taken = {name for name in wanted if is_wire_name(name)}
    found: dict[str, str] = {}
    for name in wanted:
        candidate = wire_name(name)
        number = 2
        while candidate in taken and candidate != name:
            candidate = f"{wire_name(name)[:60]}_{number}"
            number += 1
        taken.add(candidate)
        found[name] = candidate
    return found


# --- arguments ---


def read_arguments(text: str) -> dict[str, Any]:
    """Return the object that the text is; no text at all and ``null`` are the empty one.

    Raises:
        ArgumentsError: no JSON, or no object.
    """
    if not text.strip():
        return {}
    try:
        value = _DECODER.decode(text)
        if value is None or isinstance(value, dict):
            has_all = "\\u" not in text and text.isascii()  # no half of a character can be in it
            return cast("dict[str, Any]", (value if has_all else mend(value)) or {})
        problem = ""
    except RecursionError:
        problem = " (nested too deeply)"
    except ValueError as error:
        problem = f" ({cut(str(error), 100)})"
    raise ArgumentsError([("", "a JSON object", cut(text, 80) + problem)])


_DECODER = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=object_of)
