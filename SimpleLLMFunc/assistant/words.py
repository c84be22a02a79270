"""What the assistant and its tools say to users and models, in both languages: the texts of ``words.json``."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

Language: TypeAlias = Literal["zh", "en"]
"""Of the descriptions of tools, and of what they say."""

WORDS: Final[dict[str, Any]] = json.loads(files("SimpleLLMFunc.assistant").joinpath("words.json").read_text("utf-8"))
"""The texts by their place and language; the Chinese docstrings of the tools; the words that models use for operations and kinds."""

SPOKEN: Final = {"zh": "Simplified Chinese", "en": "English"}
"""What a model is told to write in."""
