"""`LLM`: ask the model with the user's prompts, the history and the outputs of earlier steps."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import AsyncGenerator
from typing import Any, ClassVar

from pydantic import Field, field_validator

from SimpleLLMFunc.base.run import JOURNAL
from SimpleLLMFunc.base.templates import Finished, guard_tags, render_template
from SimpleLLMFunc.calls.call_data import (
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    LanguageType,
    conversation_messages,
)
from SimpleLLMFunc.calls.core import CoreCall, call_errors
from SimpleLLMFunc.calls.llm.prompt import LLM_CONTEXT_PROMPT, LLM_DEFAULT_PROMPT, NO_CONTEXT
from SimpleLLMFunc.calls.llm.schema import LLMInput, LLMOutput
from SimpleLLMFunc.calls.zone import DEFAULT_ZONE, zone_of
from SimpleLLMFunc.errors import CallError
from SimpleLLMFunc.runtime import in_thread


class LLM(CoreCall, input_model=LLMInput, output_model=LLMOutput):
    """Ask the model and stream its answer.

    Both prompts are Jinja2 templates. They can use `time`, `question`, `context` (what was thought and what the latest
    steps have put out, or that there is nothing), and one by one `reasoning`, `context_data`, `facts`, `step_data` and
    `language`. These values cannot open or close a tag that the prompts use.

    Attributes:
        temperature: 0 to 2; None leaves it to the provider.
        step_history_size: how many of the latest steps `context` shows, 0 to 10.
        history_length: how many of the latest messages of the conversation go before the prompts.
        system_prompt: empty for none.
        user_prompt: the default is in the language of the task.
        time_zone: of `time`, an IANA name.
    """

    _infos: ClassVar = {
        LanguageType.CHINESE: CallInfo("大模型", "以指定的提示词和上下文信息调用大模型，并获得输出。"),
        LanguageType.ENGLISH: CallInfo("LLM", "Call the LLM with the given prompts and context, and get its output."),
    }

    to_user: bool = Field(default=True, description="是否需要将输出返回给用户")
    temperature: float | None = Field(default=0.7, ge=0, le=2, description="大模型温度（随机化程度）")
    step_history_size: int = Field(default=3, ge=0, le=10, description="上下文信息中包含的步骤历史数量")
    history_length: int = Field(default=0, ge=0, description="历史对话记录数量")
    system_prompt: str = Field(default="You are a helpful assistant.", description="大模型系统提示词")
    user_prompt: str = Field(default=LLM_DEFAULT_PROMPT[LanguageType.CHINESE], description="大模型用户提示词")
    time_zone: str = Field(default=DEFAULT_ZONE, description="提示词中当前时间的时区")

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        zone_of(name)
        return name

    async def _prepare_message(self, call_vars: CallVars) -> list[dict[str, str]]:
        """Return the messages: history, system, user.

        Raises:
            CallError: a prompt cannot be rendered, or is empty.
        """
        with call_errors(self.name or "LLM"):
            # A template may take a third of a second before it is stopped: not on the event loop.
            return [*self._history(call_vars), *await in_thread(self._prompts, call_vars)]

    def _prompts(self, call_vars: CallVars) -> list[dict[str, str]]:
        language = call_vars.language
        context_prompt = LLM_CONTEXT_PROMPT[language]
        user_prompt = self.user_prompt if "user_prompt" in self.model_fields_set else LLM_DEFAULT_PROMPT[language]
        own = guard_tags(self.system_prompt, user_prompt)
        inner = guard_tags(self.system_prompt, user_prompt, context_prompt)

        values: dict[str, Any] = {
            "reasoning": call_vars.thinking.strip(),
            "context_data": [step.model_dump() for step in call_vars.latest(self.step_history_size)],
        }
        context = render_template(context_prompt, values, name="LLM_CONTEXT_PROMPT", text=inner)
        values |= {
            "time": self._now().strftime("%Y-%m-%d %H:%M:%S"),
            "context": Finished(context or NO_CONTEXT[language]),
            "question": call_vars.question,
            "facts": call_vars.background.facts,
            "step_data": call_vars.step_data,
            "language": language,
        }
        system = render_template(self.system_prompt, values, name="system_prompt", text=own)
        user = render_template(user_prompt, values, name="user_prompt", text=own)

        if not user.strip():
            raise CallError("user_prompt is empty: there is nothing to ask the model.", {"field": "user_prompt"})
        asked = {"role": "user", "content": user}
        return [{"role": "system", "content": system}, asked] if system.strip() else [asked]

    def _history(self, call_vars: CallVars) -> list[dict[str, str]]:
        if self.history_length == 0:
            return []
        background = call_vars.background
        return conversation_messages(background.conversation, latest=background.num)[-self.history_length :]

    def _now(self) -> dt.datetime:
        around = JOURNAL.get()  # which is asked again by the same prompt
        told = time.time() if around is None else around.moment(self.name)
        return dt.datetime.fromtimestamp(told, zone_of(self.time_zone))

    async def _init(self, call_vars: CallVars) -> LLMInput:
        """Return the messages as the input."""
        return LLMInput(message=await self._prepare_message(call_vars))

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        """Yield the answer as TEXT chunks, as they arrive.

        Raises:
            CallError: the model could not be asked, or did not answer.
        """
        params = {} if self.temperature is None else {"temperature": self.temperature}
        with call_errors(self.name or "LLM"):  # a subclass may catch them
            messages = LLMInput.model_validate(input_data).message
            async for piece in self._llm(messages, streaming=True, **params):
                yield CallOutputChunk(CallOutputType.TEXT, piece)
