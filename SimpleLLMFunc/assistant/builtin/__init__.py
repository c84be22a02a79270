"""The assistant's own tools: weather, ids, images, documents.

`builtin_tools` gives all of them; each kind has its own function for those who want some, or other settings.
"""

from __future__ import annotations

import os

from SimpleLLMFunc.assistant.builtin.document import document_tools
from SimpleLLMFunc.assistant.builtin.ids import id_tools
from SimpleLLMFunc.assistant.builtin.image import image_tools
from SimpleLLMFunc.assistant.builtin.weather import weather_tools
from SimpleLLMFunc.assistant.words import Language
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.tools import Tool

__all__ = ["builtin_tools", "document_tools", "id_tools", "image_tools", "weather_tools"]


def builtin_tools(
    llm: LLM_Interface | None = None, *, root: str | os.PathLike[str] | None = None, language: Language = "zh"
) -> list[Tool]:
    """Return the five built-in tools.

    `get_weather`, `generate_ai_id`, `generate_frequency_number`, `analyze_image`, `process_document`.

    Args:
        llm: looks at images and reads documents; None takes the current one (`use_llm`, environment) at each call.
        root: the folder whose files may be read as well as those of the session; None reads only the session's.
        language: of the descriptions, and of what the tools say.
    """
    return [
        *weather_tools(language=language),
        *id_tools(language),
        *image_tools(llm, root=root, language=language),
        *document_tools(root, llm=llm, language=language),
    ]
