"""The parts of a JSON Schema: where they stand, which data they describe, copies of them with what they refer to."""

from __future__ import annotations

from SimpleLLMFunc.calls.slot.subschemas.bounds import check_growth
from SimpleLLMFunc.calls.slot.subschemas.copies import Carrier
from SimpleLLMFunc.calls.slot.subschemas.members import DEFINITIONS, Schema, copied, rebuilt
from SimpleLLMFunc.calls.slot.subschemas.nullable import with_null
from SimpleLLMFunc.calls.slot.subschemas.walk import ALL_KINDS, Choice, Places, kinds_of_value

__all__ = [
    "ALL_KINDS",
    "DEFINITIONS",
    "Carrier",
    "Choice",
    "Places",
    "Schema",
    "check_growth",
    "copied",
    "kinds_of_value",
    "rebuilt",
    "with_null",
]
