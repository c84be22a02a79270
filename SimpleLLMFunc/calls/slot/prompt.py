"""The prompts of a Slot, in both languages; data in them cannot open or close their tags."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.templates import Finished, guard_tags
from SimpleLLMFunc.calls.call_data import LanguageType, prompt_files
from SimpleLLMFunc.type import without_surrogates

SLOT_SYSTEM_PROMPT: Final = {
    LanguageType.CHINESE: "你是一个为工具填写参数的助手，只输出JSON。",
    LanguageType.ENGLISH: "You fill in the parameters of tools. You answer in JSON only.",
}
"""What the model is, in both phases."""

SLOT_GEN_PROMPT: Final = prompt_files("SimpleLLMFunc.calls.slot", "fill")
"""The prompt of both phases, a Jinja2 template; `is_call` is set in the second, whose schema allows null.

Its other values go through `guard_text` or `as_json`.
"""

SLOT_FUNCTION_PROMPT: Final = prompt_files("SimpleLLMFunc.calls.slot", "again")
"""What the second phase adds where the first gave something that cannot be used."""

NOTHING: Final = {LanguageType.CHINESE: "无", LanguageType.ENGLISH: "none"}
"""What stands where there is no summary, no question or no description."""

guard_text: Final = guard_tags(*SLOT_GEN_PROMPT.values())
"""Keeps a text from opening or closing a tag of the prompt."""

_MARK: Final = re.compile(r"[<＜](?=[\s/／]*(?:[^\W\d]|\|))")


def as_json(value: Any) -> Finished:
    """Return `value` as JSON for a prompt; characters that could open a tag are escaped, as JSON may.

    A reader of the JSON sees the same data. An object without a JSON form becomes its text.
    """
    written = json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)
    return Finished(_MARK.sub(lambda mark: f"\\u{ord(mark.group()):04x}", without_surrogates(written)))
