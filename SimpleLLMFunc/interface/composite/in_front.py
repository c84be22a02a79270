"""A model in front of another one: it answers some questions itself, and is the same in all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.type import Message, Usage


class ModelInFront(LLM_Interface):
    """What a cache and a cassette tell of the model behind them; a subclass answers."""

    def __init__(self, llm: LLM_Interface) -> None:
        self.members = (llm,)
        self.model_name, self.provider, self.base_url = llm.model_name, llm.provider, llm.base_url
        self.profile, self.context_window = llm.profile, llm.context_window
        self.takes_extra_body = llm.takes_extra_body
        self.keeps_tools = llm.keeps_tools

    @property
    def llm(self) -> LLM_Interface:
        """The model behind it."""
        return self.members[0]

    def render(self, messages: Sequence[Message], **asked: Any) -> dict[str, Any]:
        """Return the body that goes out where the model behind is asked; takes what `LLM_Interface.render` does."""
        return self.llm.render(messages, **asked)

    def price(self, usage: Usage, model: str = "") -> float | None:
        """Return what `usage` costs where the model behind is asked."""
        return self.llm.price(usage, model)
