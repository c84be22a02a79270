"""How many tokens a request will take, roughly: for budgets, limits and previews, without a tokenizer's download."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.body_json import text_size
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.type import Message, ToolSpec

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
"""What the role and the marks around one message take."""

IMAGE_TOKENS = 800
"""An image, a sound or a file: what providers charge for an image of ordinary size."""

SMALL_IMAGE_TOKENS = 85
"""An image sent with ``detail="low"``."""

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


def estimate_text_tokens(text: str) -> int:
    """Return about how many tokens `text` takes: one per CJK character, one per four bytes of anything else."""
    if text.isascii():
        return math.ceil(len(text) / BYTES_PER_TOKEN)
    rest, wide = _CJK.subn("", text)
    return wide + math.ceil(len(rest.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


def estimate_tokens(
    messages: Sequence[Message | Mapping[str, Any]],
    tools: Sequence[ToolSpec] | None = None,
    response_format: Mapping[str, Any] | None = None,
) -> int:
    """Return about how many tokens the model will read for this request."""
    total = sum(MESSAGE_TOKENS + _of_value(dict(message)) for message in messages)
    for extra in (tools, response_format):
        if extra:
            total += _of_json(extra)
    return total


async def count_request(
    messages: Sequence[Message], tools: Sequence[ToolSpec] | None, response_format: Mapping[str, Any] | None
) -> int:
    """Return what `estimate_tokens` does; long messages are counted in a worker thread, so that other calls go on."""
    return await off_loop_if_large(text_size(messages), lambda: estimate_tokens(messages, tools, response_format))


def _of_value(message: dict[str, Any]) -> int:
    """Count all fields of a message: providers add fields, and read them again."""
    content = message.pop("content", None)
    message.pop("role", None)
    total = _of_json({name: value for name, value in message.items() if value}) if any(message.values()) else 0
    if isinstance(content, str):
        return total + estimate_text_tokens(content)
    if isinstance(content, Sequence):
        return total + sum(_of_part(part) for part in content)
    return total


def _of_part(part: Any) -> int:
    match part:
        case {"type": "text", "text": str(text)}:
            return estimate_text_tokens(text)
        case {"type": "image_url", "image_url": {"detail": "low"}}:
            return SMALL_IMAGE_TOKENS
        case {"type": "image_url" | "input_audio" | "file"}:
            return IMAGE_TOKENS
    return _of_json(part)


def _of_json(value: Any) -> int:
    return estimate_text_tokens(json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":")))
