"""A value of the return type → the answer that a model would write, as JSON data and as messages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.schemas import ANSWER_TOOL, OutputSpec, literal
from SimpleLLMFunc.type import Message, ToolCallDict
from SimpleLLMFunc.utils import settled


def answer_messages(
    output: OutputSpec, answer: Any, mode: OutputMode, *, call_id: str = "call_example", in_json: bool = False
) -> list[Message]:
    """Return the messages of a model that answers, in the form that an output mode asks for.

    Args:
        output: the return type.
        answer: as JSON data, not wrapped; see `as_answer`.
        mode: how the answer was asked for.
        call_id: of the call, where the answer is one.
        in_json: a label of a choice goes over the wire as ``{"value": …}``.
    """
    if mode == "text" or (mode == "prompt" and output.is_text):
        return [{"role": "assistant", "content": str(answer)}]
    if mode == "choice":
        label = next(label for label, value in output.labels.items() if as_answer(output, value) == answer)
        return [{"role": "assistant", "content": literal({"value": label}) if in_json else label}]
    if output.thinks:
        answer = {"value": answer}  # an example has no reasons, and made up ones would be learnt
    wrapped = {"value": answer} if output.is_wrapped else answer
    if mode != "tool":
        return [{"role": "assistant", "content": literal(answer if mode == "prompt" else wrapped)}]
    call: ToolCallDict = {
        "id": call_id,
        "type": "function",
        "function": {"name": ANSWER_TOOL, "arguments": literal(wrapped)},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        # Services refuse a call that nothing answered.
        {"role": "tool", "tool_call_id": call_id, "content": "Accepted."},
    ]


def as_answer(output: OutputSpec, value: Any) -> Any:
    """Return a value of the return type as the JSON data that a model writes for it.

    Raises:
        ValueError: it has no such form.
    """
    plain = output.adapter.dump_python(value, mode="json", by_alias=True, warnings="error")
    return settled(plain, output.adapter.dump_python(value, by_alias=True), _number)


def answer_text(output: OutputSpec, value: Any) -> str:
    """Return a value of the return type as the text that a model writes for it; what has no such form as `str` gives it."""
    try:
        answer = as_answer(output, value)
    except (ValueError, TypeError):
        return str(value)
    return str(answer) if output.is_text else literal(answer)


def _number(plain: Any, value: Any) -> Any:
    """Write a Decimal as the number that the schema on the wire asks for; pydantic writes it as text."""
    if isinstance(value, Decimal) and isinstance(plain, str) and value.is_finite():
        number = int(value) if value == value.to_integral_value() and "." not in plain else float(value)
        return number if Decimal(str(number)) == value else plain
    return plain
