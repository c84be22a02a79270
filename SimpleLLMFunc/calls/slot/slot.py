"""`Slot`: fill the parameters of a tool from the question, the facts and the outputs of earlier steps.

`fill_slots` does it without a scheduler. Data in the prompts cannot open or close their tags.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from pydantic import Field, PrivateAttr

from SimpleLLMFunc.base.parsing import Repair, without_reasoning
from SimpleLLMFunc.base.run import read_answer
from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.base.templates import render_template
from SimpleLLMFunc.calls.call_data import (
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    ExecutorHistory,
    LanguageType,
)
from SimpleLLMFunc.calls.core import CoreCall, call_errors
from SimpleLLMFunc.calls.slot.filling import Filling
from SimpleLLMFunc.calls.slot.places import with_null
from SimpleLLMFunc.calls.slot.processor import SlotProcessor, in_standard_words
from SimpleLLMFunc.calls.slot.prompt import (
    NOTHING,
    SLOT_FUNCTION_PROMPT,
    SLOT_GEN_PROMPT,
    SLOT_SYSTEM_PROMPT,
    as_json,
    guard_text,
)
from SimpleLLMFunc.calls.slot.schema import SlotInput, SlotOutput
from SimpleLLMFunc.calls.zone import DEFAULT_ZONE
from SimpleLLMFunc.errors import CallError, EmptyResponseError, ResponseParseError, cut
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.logger import border, push_info, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.utils import get_last_item_of_async_generator

_SHOWN_ANSWER: Final = 4_000
"""Characters of an answer without JSON that the second phase shows again."""

_SHOWN_VALUE: Final = 200
"""Characters of a wrong value that the second phase shows."""


class Slot(CoreCall, input_model=SlotInput, output_model=SlotOutput):
    """Fill in the parameters of a tool, in at most two requests.

    The first asks for JSON as text, the second, for what is still missing, with a function call. What is filled is
    not asked again and stays as it is; a complete slot asks nothing. The one chunk is the `SlotOutput` as DATA.

    Attributes:
        data: what is known of the parameters, by plain key or JSON Pointer.
        current_schema: JSON schema of all the parameters.
        summary: of the background.
        facts: one sentence each; those of the task's background count too.
        step_num: how many of the latest steps are shown.
        time_zone: in which words about time are meant, an IANA name. They become dates and times where the schema has
            such a type or format; see `SlotProcessor.process_json`.
    """

    _infos: ClassVar = {
        LanguageType.CHINESE: CallInfo("参数自动填充", "根据用户的问题、背景信息和步骤历史，自动填充工具的参数。"),
        LanguageType.ENGLISH: CallInfo(
            "Parameter filling",
            "Fill in the parameters of a tool from the user's question, the background and the earlier steps.",
        ),
    }

    data: dict[str, Any] = Field(default={}, description="当前输入数据")
    current_schema: dict[str, Any] = Field(default={}, description="当前JSON Schema")
    summary: str = Field(default="", description="背景信息总结")
    facts: list[str] = Field(default=[], description="事实信息列表")
    step_num: int = Field(default=1, ge=0, description="历史步骤数")
    time_zone: str = Field(default=DEFAULT_ZONE, description="理解时间词语所用的时区")

    _receipts: list[Repair] = PrivateAttr(default=[])
    _dropped: list[Repair] = PrivateAttr(default=[])

    @property
    def receipts(self) -> list[Repair]:
        """What was converted to fit the schema, as ``(path, what was done)``."""
        return list(self._receipts)

    @property
    def dropped(self) -> list[Repair]:
        """What was left out because the schema has no place for it, as ``(pointer, why)``."""
        return list(self._dropped)

    async def _init(self, call_vars: CallVars) -> SlotInput:  # noqa: ARG002 - the input depends on the parameters alone
        """Return the schema of what is missing.

        Raises:
            SchemaError: the schema cannot be used.
            CallError: a pointer in `data` makes no sense.
        """
        return SlotInput(remaining_schema=(await in_thread(self._begun, self.current_schema)).remaining)

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        """Fill what is missing, and yield the `SlotOutput` as one DATA chunk.

        Args:
            input_data: of a `SlotInput`; its schema is that of the parameters where there is no `current_schema`.

        Raises:
            CallError: the model could not be asked.
        """
        schema = self.current_schema or _plain_schema(input_data["remaining_schema"])
        filling = await in_thread(self._begun, schema)
        answer, unfit = "", []
        if filling.remaining:
            answer, found = await self._llm_slot_fill(await in_thread(filling.wanted))
            unfit = await in_thread(filling.take, found)
        if filling.remaining:
            found = await self._function_slot_fill(answer, filling.remaining, unfit)
            await in_thread(filling.take, found)
        self._note(filling)
        output = SlotOutput(slot_data=await in_thread(filling.processed), remaining_schema=filling.remaining)
        yield CallOutputChunk(CallOutputType.DATA, output.model_dump())

    def _begun(self, schema: Mapping[str, Any]) -> Filling:
        """Return the slot with what is known; checking much data against a schema takes its time, as it does later."""
        return Filling(schema, SlotProcessor(schema, time_zone=self.time_zone), self.data)

    async def output(self, executor: Any) -> SlotOutput:
        """Fill what is missing; return what `exec` yields.

        Raises:
            CallError: as from `exec`.
        """
        chunk = await get_last_item_of_async_generator(self.exec(executor, self.input))
        assert chunk is not None, "a Slot that raises nothing gives its output"
        return SlotOutput.model_validate(chunk.content)

    # --- the two phases ------------------------------------------------------------------------------------

    async def _llm_slot_fill(self, remaining_schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Ask for the values as text; return the JSON object in the answer, else the answer itself and no values.

        Raises:
            SimpleLLMFuncError: the model could not be asked.
        """
        prompt = await in_thread(self._prompt, remaining_schema)
        messages = _spoken(system=SLOT_SYSTEM_PROMPT[self._language], user=prompt)
        try:
            answer = "".join([piece async for piece in self._llm(messages)])
        except EmptyResponseError:
            return "", {}
        found = await _object_in(answer)
        return (answer, {}) if found is None else ("", found)

    async def _function_slot_fill(
        self, answer: str, remaining_schema: Mapping[str, Any], unfit: list[tuple[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Ask for the values with a function call whose parameters are the remaining schema; return what came.

        Args:
            answer: of the first phase, where no JSON could be read in it; shown to the model again.
            remaining_schema: of what is missing.
            unfit: pointer and value of each answer of the first phase that does not fit.

        Raises:
            SimpleLLMFuncError: the model could not be asked.
        """
        nullable = with_null(in_standard_words(remaining_schema))
        prompt = await in_thread(partial(self._prompt, nullable, is_call=True))
        messages = _spoken(system=SLOT_SYSTEM_PROMPT[self._language], user=prompt)
        said = cut(without_reasoning(answer)[0].strip(), _SHOWN_ANSWER)
        if said:
            messages += _spoken(assistant=said, user="")
        if said or unfit:
            values = {"problems": [f"{pointer}: {cut(as_json(value), _SHOWN_VALUE)}" for pointer, value in unfit or ()]}
            template = SLOT_FUNCTION_PROMPT[self._language]
            request = render_template(template, values, name="SLOT_FUNCTION_PROMPT", text=guard_text)
            messages[-1]["content"] = f"{messages[-1]['content']}\n\n{request}".strip()
        try:
            return await self._json(messages, nullable)
        except (ResponseParseError, EmptyResponseError) as error:
            push_warning(f"{self.name or 'Slot'}: the model gave no JSON for the missing values: {error}")
            return {}

    def _prompt(self, schema: Mapping[str, Any], *, is_call: bool = False) -> str:
        """Return the prompt that asks for the values of a schema; `is_call` where they come as a function call."""
        call_vars = self._call_vars or CallVars()
        nothing = NOTHING[self._language]
        own = self.info(self._language)
        facts = dict.fromkeys([*self.facts, *call_vars.background.facts])
        values = {
            "summary": self.summary.strip() or nothing,
            "facts": as_json(list(facts)),
            "history": [
                {"name": step.step_name, "description": step.step_description or nothing, "data": as_json(step.data)}
                for step in call_vars.latest(self.step_num)
            ],
            "question": call_vars.question.strip() or nothing,
            "tool_name": nothing if self.name in {"", own.name} else self.name,
            "tool_description": nothing if self.description in {"", own.description} else self.description,
            "schema": as_json(in_standard_words(schema)),
            "is_call": is_call,
        }
        return render_template(SLOT_GEN_PROMPT[self._language], values, name="SLOT_GEN_PROMPT", text=guard_text)

    def _note(self, filling: Filling) -> None:
        self._receipts, self._dropped = filling.receipts, filling.dropped
        for path, step in filling.receipts:
            push_info(f"{self.name or 'Slot'}: {path or 'the answer'}: {step}")
        for pointer, why in filling.dropped:
            push_warning(f"{self.name or 'Slot'}: {pointer} is left out: {why}")


@border
async def fill_slots(
    schema: Mapping[str, Any] | type,
    question: str,
    *,
    llm: LLM_Interface | None = None,
    data: Mapping[str, Any] | None = None,
    facts: Iterable[str] = (),
    history: Iterable[ExecutorHistory | Mapping[str, Any]] = (),
    language: LanguageType | str = LanguageType.CHINESE,
    summary: str = "",
    tool_name: str = "",
    tool_description: str = "",
    time_zone: str = DEFAULT_ZONE,
) -> SlotOutput:
    """Return the parameters of a tool as far as question, facts and history tell them, and the schema of the rest.

    At most two requests, none where `data` is complete; what `data` holds is kept and not asked for. From code that
    is not async: ``run_sync(fill_slots(…))``.

    Args:
        schema: JSON schema of an object; or a class that one can be made of: a pydantic model, a dataclass, a TypedDict.
        question: what the user said.
        llm: the model; None asks what `use_llm` or the environment names.
        data: what is known, by plain key or by JSON Pointer such as ``/items/0/price``.
        facts: one sentence each.
        history: what earlier steps put out, oldest first; all of it is shown.
        language: of the prompt; an unknown one is Chinese, with a warning.
        summary: of the background.
        tool_name: of the tool; by default the `title` of the schema.
        tool_description: of the tool; by default the `description` of the schema.
        time_zone: in which words about time are meant, an IANA name.

    Raises:
        CallError: the model could not be asked, the schema cannot be used, or a pointer in `data` makes no sense; its
            `__cause__` is the original.
        SignatureError: no schema can be made of the class.
    """
    wanted = schema if isinstance(schema, Mapping) else compile_output(schema).schema
    with call_errors(tool_name or "fill_slots"):
        steps = [ExecutorHistory.model_validate(step) for step in history]
        task = SimpleNamespace(question=question, language=LanguageType.of(language), history=steps)
        step = SimpleNamespace(
            name=tool_name or str(wanted.get("title", "")),
            description=tool_description or str(wanted.get("description", "")),
        )
        executor = SimpleNamespace(task=task, step=step, llm=llm)
        slot = await Slot.instance(
            executor,
            data=dict(data or {}),
            current_schema=dict(wanted),
            summary=summary,
            facts=[facts] if isinstance(facts, str) else list(facts),
            step_num=len(steps),
            time_zone=time_zone,
        )
        return await slot.output(executor)


def _spoken(**messages: str) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in messages.items()]


def _plain_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of an input as that of the parameters.

    Raises:
        CallError: it is keyed by JSON Pointer, so it describes only what is missing of something else.
    """
    if any(name.startswith("/") for name in schema.get("properties", {})):
        raise CallError(
            "the remaining schema says what is missing, not what the parameters are. Give the Slot their schema as "
            "current_schema, and what is known as data."
        )
    return schema


async def _object_in(answer: str) -> dict[str, Any] | None:
    """Return the JSON object that a text holds; None where it holds none, or several that differ."""
    try:
        return dict((await read_answer(compile_output(dict[str, Any]), answer)).value)
    except ResponseParseError:
        return None
