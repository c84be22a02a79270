"""Names of tools: what the user wrote, and what a provider takes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

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
