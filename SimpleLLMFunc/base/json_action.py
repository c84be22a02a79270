"""Tools for a model that cannot call them: it writes a JSON action instead.

``{"tool": name, "arguments": {…}}`` calls a tool, ``{"answer": …}`` ends the run. Requests are rewritten on
their way out and replies on their way in, so that events, history and limits are those of native tool calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from SimpleLLMFunc.base.parsing import (
    Frame,
    JsonGrowth,
    Num,
    Repair,
    find_json,
    is_certain,
    plain_value,
    without_reasoning,
)
from SimpleLLMFunc.interface.wires import new_call_id
from SimpleLLMFunc.type import ChatCompletion, FunctionCall, Message, ToolCall, ToolSpec, content_text, spec_name

_SIGNS = frozenset({"tool", "arguments", "answer"})


@dataclass(frozen=True, slots=True)
class JsonActions:
    """How tools are offered as JSON actions.

    Attributes:
        tools: what may be called, in wire form.
        answer_schema: JSON schema of the typed answer, None for plain text.
        native: the provider holds the reply to a schema; else the form is described only.
        choice: what `tool_choice` says: "required" leaves no answer, a named function no other, "none" no tool.
    """

    tools: Sequence[ToolSpec]
    answer_schema: Mapping[str, Any] | None = None
    native: bool = False
    choice: Any = None

    @property
    def _offered(self) -> list[ToolSpec]:
        if isinstance(self.choice, Mapping):
            wanted = (self.choice.get("function") or {}).get("name")
            return [tool for tool in self.tools if spec_name(tool) == wanted]
        return [] if self.choice == "none" else list(self.tools)

    @property
    def _may_answer(self) -> bool:
        return self.choice in (None, "auto", "none")  # a named function is a mapping

    @property
    def response_format(self) -> dict[str, Any] | None:
        """The schema of one action: a union of a branch per tool and the answer."""
        if not self.native:
            return None
        defs: dict[str, Any] = {}
        branches: list[dict[str, Any]] = []
        for number, tool in enumerate(self._offered):
            arguments = _with_defs(parameters_of(tool), defs, f"{number}_")
            branches.append(_closed_object({"tool": {"const": spec_name(tool)}, "arguments": arguments}))
        if self._may_answer:
            plain = {"type": "string"}
            answer = plain if self.answer_schema is None else _with_defs(self.answer_schema, defs, "answer_")
            branches.append(_closed_object({"answer": answer}))
        schema = {"anyOf": branches, **({"$defs": defs} if defs else {})}
        return {"type": "json_schema", "json_schema": {"name": "action", "schema": schema, "strict": False}}

    def messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the conversation as a model reads it that knows actions: calls and results as text."""
        rewritten: list[dict[str, Any]] = []
        names: dict[str, str] = {}
        for message in cast("Sequence[dict[str, Any]]", messages):
            if message["role"] == "assistant" and message.get("tool_calls"):
                calls = [ToolCall.from_dict(call) for call in message["tool_calls"]]
                names.update({call.id: call.function.name for call in calls})
                lines = [content_text(message.get("content")) or "", *map(_action_text, calls)]
                rewritten.append({"role": "assistant", "content": "\n".join(line for line in lines if line)})
            elif message["role"] == "tool":
                name = names.get(str(message.get("tool_call_id")), "tool")
                _add_user_text(rewritten, f"Result of {name}:\n{content_text(message['content'])}")
            else:
                rewritten.append(message)
        return cast("list[Message]", _with_system_text(rewritten, self._instructions()))

    def _instructions(self) -> str:
        tools = "\n".join(
            f"- {spec_name(tool)}: {tool['function'].get('description', '')}\n"
            f"  arguments: {json.dumps(parameters_of(tool), ensure_ascii=False)}"
            for tool in self._offered
        )
        answer = "text" if self.answer_schema is None else "the return value as JSON"
        lines = ["Reply with exactly one JSON object and nothing else:"]
        if tools:
            lines.append('{"tool": "<name>", "arguments": {…}} to use a tool; you will be told its result.')
        if self._may_answer:
            lines.append(f'{{"answer": …}} {"when you know the answer" if tools else "to answer"} ({answer}).')
        return "\n".join([*lines, *(["", "Tools:", tools] if tools else [])])

    def read(self, reply: ChatCompletion) -> ChatCompletion:
        """Return the reply with its actions as tool calls, or with its answer as the text.

        A reply that is no action keeps its text: it is judged as an answer. A cut one calls no tool; of a cut
        plain answer its text remains.
        """
        if reply.tool_calls or not reply.text.strip():
            return reply
        if reply.finish_reason == "length":
            begun = AnswerText().feed(reply.text) if self.answer_schema is None else ""
            return reply.with_message(content=begun) if begun else reply
        answers: list[Any] = []
        calls: list[ToolCall] = []
        for node, raw, repairs in _actions(reply.text):
            if isinstance(node.get("tool"), str):
                text = arguments = node.get("arguments", {})
                if not isinstance(arguments, str):
                    text = _written(arguments) if is_certain(arguments, repairs) else raw
                calls.append(ToolCall(new_call_id(), FunctionCall(node["tool"], text)))
            elif "answer" in node and "tool" not in node and not self._is_value(node):
                answers.append(node["answer"])
        if calls:
            # An answer in the same reply as calls was written before their results were known.
            return reply.with_message(content=None, tool_calls=tuple(calls))
        if len(answers) == 1:
            answer = answers[0]
            as_text = self.answer_schema is None and isinstance(answer, str)
            return reply.with_message(content=answer if as_text else _written(answer))
        return reply

    def _is_value(self, node: Mapping[str, Any]) -> bool:
        # A model that forgot the action around an object that has a field named `answer`.
        properties = (self.answer_schema or {}).get("properties") or {}
        return "answer" in properties and not isinstance(node["answer"], dict)


def _actions(text: str) -> Iterable[tuple[dict[str, Any], str, Sequence[Repair]]]:
    """Yield each action, its arguments as they are written, with what follows them, and what was mended."""
    searched, _ = without_reasoning(text)
    for candidate in find_json(searched).candidates:
        raw = searched[candidate.start : candidate.end].partition("arguments")[2].lstrip("\"' :")
        for node in candidate.node if isinstance(candidate.node, list) else [candidate.node]:
            if isinstance(node, dict) and node and node.keys() <= _SIGNS:
                yield node, raw, candidate.repairs


def parameters_of(tool: ToolSpec) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments."""
    return cast("Mapping[str, Any]", tool["function"].get("parameters") or {"type": "object", "properties": {}})


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _with_defs(schema: Mapping[str, Any], defs: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return `schema` without its `$defs`, which move to `defs` under new names; what refers to them follows."""

    def moved(part: Any) -> Any:
        if not isinstance(part, Mapping):
            return [moved(item) for item in part] if isinstance(part, list) else part
        made = {key: moved(value) for key, value in part.items() if key != "$defs"}
        if isinstance(made.get("$ref"), str):
            made["$ref"] = re.sub(r"^#/\$defs/", f"#/$defs/{prefix}", made["$ref"])
        return made

    for name, definition in (schema.get("$defs") or {}).items():
        defs[prefix + name] = moved(definition)
    return cast("dict[str, Any]", moved(schema))


def _action_text(call: ToolCall) -> str:
    return f'{{"tool": {json.dumps(call.function.name)}, "arguments": {call.function.arguments or "{}"}}}'


def _add_user_text(messages: list[dict[str, Any]], text: str) -> None:
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and str(last.get("content", "")).startswith("Result of "):
        messages[-1] = {**last, "content": f"{last['content']}\n\n{text}"}
    else:
        messages.append({"role": "user", "content": text})


def _with_system_text(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{content_text(messages[0]['content'])}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _written(node: Any) -> str:
    """Return a value as JSON, numbers with the digits the model wrote."""
    if isinstance(node, Num):
        return node.text
    if isinstance(node, list):
        return "[" + ", ".join(map(_written, node)) + "]"
    if isinstance(node, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_written(v)}" for k, v in node.items()) + "}"
    return json.dumps(plain_value(node), ensure_ascii=False)


class AnswerText:
    """Takes the text of the answer out of a streamed action, piece by piece.

    ``{"answer": "Hello…`` gives "Hello…" as it grows, escapes decoded; a typed answer gives nothing. Nothing of an
    action that calls a tool is given. A reply that does not begin like an action is held back: whole, it is
    read by `JsonActions.read`.
    """

    def __init__(self) -> None:
        self._growth = JsonGrowth(lambda _: None, self._completed)
        self._pieces: list[str] = []
        self._shown = 0  # of the pieces

    @property
    def given(self) -> str:
        """All that was given so far."""
        return "".join(self._pieces)

    def feed(self, piece: str) -> str:
        """Take in the next piece of the reply; return the next piece of the answer, often empty."""
        growth = self._growth
        if not growth.stack:
            piece = piece.lstrip()
            growth.is_over = growth.is_over or not "{".startswith(piece[:1])
        growth.feed(piece)
        if growth.string is not None and len(growth.stack) == 1:
            [action] = growth.stack
            if action.key == "answer" and action.expects == "value" and not action.node:
                self._pieces = growth.string
        new, self._shown = self._pieces[self._shown :], len(self._pieces)
        return "".join(new)

    def _completed(self, frame: Frame, node: Any) -> None:
        is_answer = len(self._growth.stack) == 1 and list(frame.node) == ["answer"]
        if is_answer and isinstance(node, str) and not self._pieces:
            self._pieces = [node]  # it began and ended in one piece of the reply
