"""`fill_slots`: a Slot for people without a scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.calls.call_data import ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.failure import call_errors
from SimpleLLMFunc.calls.slot.schema import SlotOutput
from SimpleLLMFunc.calls.slot.slot import Slot
from SimpleLLMFunc.calls.zone import DEFAULT_ZONE
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.utils import get_last_item_of_async_generator


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
        chunk = await get_last_item_of_async_generator(slot.exec(executor, slot.input))
        assert chunk is not None, "a Slot that raises nothing gives its output"
        return SlotOutput.model_validate(chunk.content)
