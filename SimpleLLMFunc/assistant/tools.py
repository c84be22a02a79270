"""`ToolInvoker`: the assistant's tools, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

from SimpleLLMFunc.assistant.words import WORDS
from SimpleLLMFunc.base.request import ToolWords
from SimpleLLMFunc.base.tool_result import render_result
from SimpleLLMFunc.errors import ToolDefinitionError, ToolFailed, cut
from SimpleLLMFunc.logger import push_warning, redact
from SimpleLLMFunc.runtime import run_sync
from SimpleLLMFunc.tools import NotConfirmed, Tool, ToolRegistry
from SimpleLLMFunc.tools.schemas import ArgumentsError

MAX_RESULT_CHARS = 65536


class AssistantWords(ToolWords):
    """What the assistant's model reads of a call that came to nothing, in the words of `words.json` where those have it."""

    def __init__(self, language: str = "zh") -> None:
        self._words: dict[str, str] = WORDS["tool calls"]["zh" if language == "zh" else "en"]

    def _own(self, what: str, **facts: object) -> str:
        return self._words.get(what, "").format(**facts)

    def unknown(self, name: str, known: str) -> str:
        """Say that no tool has this name, in the words of design note 001."""
        return self._own("unknown", name=name, known=known)

    def failed(self, name: str, problem: str) -> str:
        """Say that a tool failed, in the words of design note 001."""
        return self._own("failed", name=name, problem=problem)

    def unfit(self, name: str, problem: str) -> str:
        """Say that the arguments do not fit the tool; which and why is told in English, as validation tells it."""
        return self._own("unfit", name=name, problem=problem) or super().unfit(name, problem)

    def not_confirmed(self, name: str) -> str:
        """Say that the call was not confirmed."""
        return self._own("not confirmed", name=name) or super().not_confirmed(name)

    def repeated(self, name: str) -> str:
        """Say that a call was not run, since the turns before made it too and got the same result."""
        return self._own("repeated", name=name) or super().repeated(name)

    def too_slow(self, seconds: float) -> str:
        """Say what the problem is of a tool that was stopped after its time."""
        return self._own("too slow", seconds=seconds) or super().too_slow(seconds)


class ToolInvoker(ToolRegistry):
    """Tools that are registered by name, told to the model, and run.

    Args:
        tools: to begin with: `Tool` objects, decorated functions, plain callables.
        language: of what the model reads of a failure, "zh" or "en".
    """

    def __init__(self, tools: Iterable[Any] = (), *, language: Literal["zh", "en"] = "zh") -> None:
        super().__init__()
        self.words = AssistantWords(language)
        for candidate in tools:
            self.register(candidate, replace=True)

    def register_tool(
        self,
        name: str,
        func: Callable[..., Any],
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Tool:
        """Register a tool; one that has this name already is replaced.

        Args:
            name: what the model calls it by.
            func: sync or async.
            description: what the model reads; None takes the docstring.
            parameters: ``{"city": {"type": "string", "description": "…"}, "date": {…, "optional": True}}``, where
                each parameter is required that is not optional; or a whole JSON Schema of an object. None reads
                them from the signature.

        Raises:
            ToolDefinitionError: it cannot be told to a model.
        """
        schema = None if parameters is None else _schema(name, parameters)
        return self.register(Tool(func, name, description, schema), replace=True)

    def invoke_tool(self, tool_name: str, /, **kwargs: Any) -> str:
        """Run a tool and return its result as text, or a text that says why there is no result."""
        return run_sync(self.invoke(tool_name, **kwargs))

    async def invoke(self, tool_name: str, /, **kwargs: Any) -> str:
        """Run a tool and return its result as text; what goes wrong is a text too, without secrets."""
        names = self.names()
        if tool_name not in names and tool_name not in self.tool_map():
            return cut(redact(self.words.unknown(tool_name, ", ".join(names) or "-")))
        try:
            result = await super().invoke(tool_name, **kwargs)
        except ToolFailed as error:
            if isinstance(error.__cause__, NotConfirmed):
                return cut(redact(self.words.not_confirmed(tool_name)))
            problem = error.problem
            push_warning(lambda: f"tool {tool_name} failed: {problem}")
            return cut(redact(self.words.failed(tool_name, problem)))
        except ArgumentsError as error:
            return cut(redact(self.words.failed(tool_name, str(error))))
        content = render_result(result, MAX_RESULT_CHARS)
        if isinstance(content, str):
            return content
        return json.dumps(content, ensure_ascii=False)


def _schema(name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters as a JSON Schema; the form of design note 001 is read where it is not one already."""
    # A parameter of the note's form is described by a dictionary, so one called "type" is no string.
    if isinstance(parameters.get("type"), str):
        return parameters
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter, described in parameters.items():
        if not isinstance(described, Mapping):
            raise ToolDefinitionError(
                name,
                f'the parameter {parameter!r} must be described by a dictionary such as {{"type": "string"}}, '
                f"not by {cut(repr(described), 60)}.",
            )
        own = dict(cast("Mapping[str, Any]", described))
        is_optional = own.pop("optional", False)
        is_required = own.pop("required", True) if isinstance(own.get("required"), bool) else True
        properties[parameter] = own
        if is_required and not is_optional:
            required.append(parameter)
    return {"type": "object", "properties": properties, "required": required}
