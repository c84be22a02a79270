"""`Summary`: the background of a conversation in three sentences, as a Call and as a plain function."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from pydantic import Field

from SimpleLLMFunc.base.templates import guard_tags, render_template
from SimpleLLMFunc.calls.call_data import (
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    DataBase,
    ExecutorBackground,
    LanguageType,
    conversation_messages,
)
from SimpleLLMFunc.calls.core import CoreCall, call_errors
from SimpleLLMFunc.calls.summary.prompt import SUMMARY_PROMPT
from SimpleLLMFunc.calls.summary.schema import SummaryOutput
from SimpleLLMFunc.errors import CallError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import in_thread

_ROLES = ("user", "assistant", "tool")


class Summary(CoreCall, input_model=DataBase, output_model=SummaryOutput):
    """Sum up the conversation and the facts, for the steps and conversations to come.

    The summary is streamed as TEXT chunks; when it is complete it becomes `task.runtime.reasoning`. The conversation and
    the facts cannot open or close a tag of the prompt.

    Attributes:
        context: what is summed up; by default the background of the task.
    """

    _infos: ClassVar = {
        LanguageType.CHINESE: CallInfo("理解上下文", "使用大模型，理解对话上下文，生成三句话以内的背景总结。"),
        LanguageType.ENGLISH: CallInfo(
            "Summary", "Understand the conversation with the LLM, and sum up its background in at most three sentences."
        ),
    }

    context: ExecutorBackground = Field(default_factory=ExecutorBackground, description="对话上下文")

    async def _init(self, call_vars: CallVars) -> DataBase:
        """Take the background of the task as the context, where none was given."""
        if "context" not in self.model_fields_set:
            self.context = call_vars.background
        return DataBase()

    def _prompt(self) -> str:
        template = SUMMARY_PROMPT[self._language]
        values = {
            "conversation": conversation_messages(self.context.conversation, roles=_ROLES, latest=self.context.num),
            "facts": [fact for fact in self.context.facts if fact.strip()],
        }
        return render_template(template, values, name="SUMMARY_PROMPT", text=guard_tags(template))

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:  # noqa: ARG002
        """Yield the summary as TEXT chunks, as they arrive; at the end set `task.runtime.reasoning` to the whole of it.

        Raises:
            CallError: the prompt could not be rendered, or the model did not answer.
        """
        pieces: list[str] = []
        with call_errors(self.name or "Summary"):  # a subclass may catch them
            messages = [{"role": "user", "content": await in_thread(self._prompt)}]
            async for piece in self._llm(messages, streaming=True):
                pieces.append(piece)
                yield CallOutputChunk(CallOutputType.TEXT, piece)
        if (runtime := getattr(getattr(self._executor, "task", None), "runtime", None)) is not None:
            runtime.reasoning = "".join(pieces)


@border
async def summarize(
    conversation: Iterable[Mapping[str, Any]],
    facts: Iterable[str] = (),
    *,
    llm: LLM_Interface | None = None,
    language: LanguageType | str = LanguageType.CHINESE,
) -> str:
    """Return the background of a conversation in at most three sentences, without a scheduler.

    Args:
        conversation: a list of messages as a chat gives it, or ``{"question": …, "answer": …}`` items.
        facts: one sentence each.
        llm: None asks the model that `use_llm` or the environment names.
        language: of the prompt and so of the summary.

    Raises:
        CallError: the call failed; the original error is its `__cause__`.
    """
    if isinstance(conversation, (str, bytes, Mapping)):
        raise CallError('conversation is a list of items such as {"role": "user", "content": "…"}.')
    with call_errors("Summary"):
        messages = conversation_messages(conversation, roles=_ROLES)
        background = ExecutorBackground(conversation=messages, facts=[facts] if isinstance(facts, str) else list(facts))
        task = SimpleNamespace(question="", language=LanguageType.of(language), background=background)
        executor = SimpleNamespace(task=task, step=None, llm=llm)
        call = await Summary.instance(executor)
        return "".join([str(chunk.content) async for chunk in call.exec(executor, call.input)])
