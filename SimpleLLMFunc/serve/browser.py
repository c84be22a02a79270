"""Runs as streams that web pages read: AG-UI events, and the data stream of Vercel's AI SDK.

Source: AG-UI 1.0, events over server-sent events; AI SDK 5 and later, "UI message stream protocol", version v1.
"""

from __future__ import annotations

import inspect
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, TypeAlias, assert_never

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.run import watching
from SimpleLLMFunc.errors import ConfigError, RunPaused, UsageError
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.decorated import Chat, Function, answers_of, is_function
from SimpleLLMFunc.serve.http_responses import problem_of
from SimpleLLMFunc.serve.offer import refuse_files
from SimpleLLMFunc.type import Message, content_text

Protocol: TypeAlias = Literal["ag-ui", "ai-sdk"]

PROTOCOLS: Final[Mapping[str, Mapping[str, str]]] = {
    "ag-ui": {"content-type": "text/event-stream", "cache-control": "no-store"},
    "ai-sdk": {"content-type": "text/event-stream", "cache-control": "no-store", "x-vercel-ai-ui-message-stream": "v1"},
}
"""The headers of each protocol."""

_OF_THE_SDK: Final = {"id", "messages", "trigger", "messageId"}
_Event: TypeAlias = dict[str, Any]


class BrowserStream:
    """The run of a chat or a function as a byte stream for a web page; an async iterable, for any ASGI framework.

    ``StreamingResponse(stream, headers=stream.headers)`` of Starlette and FastAPI,
    ``StreamingHttpResponse(stream, headers=stream.headers)`` of Django. The last message of the page is the chat's message, or
    a function's first parameter; the messages before it are the chat's history, without system messages, which are the
    server's own. Further parameters come from ``forwardedProps`` (AG-UI) or from further keys of the body (AI SDK). Text,
    thinking, tool calls and their results are shown as they happen; a value that is no text comes at the end. A failure
    is an event too, without secrets. When the page leaves, the run is cancelled.

    Inside a `durable` block a run that pauses tells the page what waits for an approval (the outcome ``interrupt`` of AG-UI's
    RUN_FINISHED, parts ``data-approval`` of the AI SDK), and then raises `RunPaused`; `SimpleLLMFunc.journal.answer` settles it.

    Args:
        function: an `@llm_chat` or `@llm_function`.
        body: of the request, as data.
        protocol: "ag-ui" or "ai-sdk".

    Attributes:
        headers: of the response.

    Raises:
        UsageError: the body does not follow the protocol.
        ConfigError: a parameter takes the path of a file, which a page must not name.
        SignatureError: the arguments do not fit the function.
    """

    def __init__(self, function: Chat | Function, body: Any, protocol: Protocol = "ag-ui") -> None:
        if protocol not in PROTOCOLS:
            raise ConfigError(f'protocol is "ag-ui" or "ai-sdk", not {protocol!r}.')
        self.headers = dict(PROTOCOLS[protocol])
        self._pipeline: Any = function._pipeline  # noqa: SLF001 - of our own object
        self._source: Any = answers_of(function) if is_function(function) else self._pipeline
        self._arguments = _arguments(self._pipeline, body, protocol)
        self._pipeline.start((), dict(self._arguments))  # raises before anything is sent
        self._writer: _Writer = (_AgUi if protocol == "ag-ui" else _AiSdk)(body)
        self._end = "[DONE]" if protocol == "ai-sdk" else None

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.data()) as lines:
            async for line in lines:
                yield f"data: {line}\n\n".encode()

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of the server-sent events."""
        pipeline, writer = self._pipeline, self._writer
        is_text = isinstance(pipeline, ChatPipeline) or pipeline.definition.output.is_text
        paused: RunPaused | None = None
        last: list[_Event] = []
        for told in writer.start():
            yield json.dumps(told)
        try:
            with watching(lambda _trace_id, _event: None):  # so that the last event holds the value
                async with aclosing(self._source.events((), dict(self._arguments))) as happened:
                    async for event in happened:
                        for told in writer.tell(event, is_text=is_text, is_held=pipeline.guards.judge_values):
                            yield json.dumps(told)
        except RunPaused as pause:
            paused, last = pause, writer.paused(pause.pending)
        except Exception as error:  # noqa: BLE001 - the page must hear of a fault of a tool, or of ours
            problem = problem_of(error, "a run for a browser")
            last = writer.failed(problem.to_dict()["detail"], problem.kind)
        for told in [*writer.closed(), *last]:
            yield json.dumps(told)
        if self._end is not None:
            yield self._end
        if paused is not None:
            raise paused


class _Writer(ABC):
    """Turns the events of a run into those of a protocol; text and thinking are parts that begin and end."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.thread = str(body.get("threadId") or uuid.uuid4())
        self.run = str(body.get("runId") or uuid.uuid4())
        self.turn = 0
        self._open: tuple[str, str] | None = None  # text or reasoning, and its id
        self._parts = 0

    def tell(self, event: ReActEvent, *, is_text: bool, is_held: bool) -> list[_Event]:
        """Return the protocol's events for an event of the run.

        Args:
            event: of the run.
            is_text: the answer is text, not the JSON of a value.
            is_held: the answer is sent at the end, after the guards.
        """
        match event:
            case events.TurnStarted(turn=turn) if turn != self.turn:
                before, self.turn = self.turn, turn
                return [*self.closed(), *self.next_turn(before)]
            case events.ReplyDelta():
                text = event.text if is_text and not is_held else ""
                return [*self._grown("reasoning", event.thinking), *self._grown("text", text)]
            case events.ToolCallStarted(call=call):
                try:
                    arguments = json.loads(call.function.arguments or "{}")
                except (ValueError, RecursionError):
                    arguments = call.function.arguments
                return [*self.closed(), *self.call(call.id, call.function.name, arguments)]
            case events.ToolCallFinished(call=call, content=content, failed=failed):
                text = content if isinstance(content, str) else content_text(content) or ""
                return self.result(call.id, text, failed=failed)
            case events.RunFinished():
                held = self._grown("text", event.reply.text) if is_text and is_held else []
                value = None if is_text else to_jsonable_python(event.value, by_alias=True, fallback=str)
                return [*held, *self.closed(), *self.end(value)]
            case events.RunStarted() | events.TurnStarted() | events.TryFailed() | events.ReplyReceived():
                return []
            case events.AnswerReviewed() | events.ToolCallProgress() | events.MessageAppended() | events.RunFailed():
                return []
            case _:
                assert_never(event)

    def _grown(self, kind: str, delta: str) -> list[_Event]:
        if not delta:
            return []
        told: list[_Event] = []
        if self._open is None or self._open[0] != kind:
            self._parts += 1
            part = f"{self.run}-{self._parts}"
            told = [*self.closed(), *self.part_start(kind, part)]
            self._open = (kind, part)
        return [*told, *self.part_delta(*self._open, delta)]

    def closed(self) -> list[_Event]:
        """Return the end of the open part; empty without one."""
        part, self._open = self._open, None
        return [] if part is None else self.part_end(*part)

    # --- what each protocol says ---

    @abstractmethod
    def start(self) -> list[_Event]: ...

    def next_turn(self, before: int) -> list[_Event]:  # noqa: ARG002 - one protocol tells of turns
        return []

    @abstractmethod
    def part_start(self, kind: str, part: str) -> list[_Event]: ...

    @abstractmethod
    def part_delta(self, kind: str, part: str, delta: str) -> list[_Event]: ...

    @abstractmethod
    def part_end(self, kind: str, part: str) -> list[_Event]: ...

    @abstractmethod
    def call(self, call: str, name: str, arguments: Any) -> list[_Event]: ...

    @abstractmethod
    def result(self, call: str, text: str, *, failed: bool) -> list[_Event]: ...

    @abstractmethod
    def end(self, value: Any) -> list[_Event]: ...

    @abstractmethod
    def paused(self, pending: Sequence[Mapping[str, Any]]) -> list[_Event]: ...

    @abstractmethod
    def failed(self, message: str, kind: str | None) -> list[_Event]: ...


class _AgUi(_Writer):
    def start(self) -> list[_Event]:
        return [{"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run}]

    def part_start(self, kind: str, part: str) -> list[_Event]:
        if kind == "text":
            return [{"type": "TEXT_MESSAGE_START", "messageId": part, "role": "assistant"}]
        start = {"type": "REASONING_MESSAGE_START", "messageId": part, "role": "reasoning"}
        return [{"type": "REASONING_START", "messageId": part}, start]

    def part_delta(self, kind: str, part: str, delta: str) -> list[_Event]:
        name = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
        return [{"type": name, "messageId": part, "delta": delta}]

    def part_end(self, kind: str, part: str) -> list[_Event]:
        names = ["TEXT_MESSAGE_END"] if kind == "text" else ["REASONING_MESSAGE_END", "REASONING_END"]
        return [{"type": name, "messageId": part} for name in names]

    def call(self, call: str, name: str, arguments: Any) -> list[_Event]:
        # The calls of one turn are one message; a client sends them back as one.
        parent = {"parentMessageId": f"{self.run}-turn-{self.turn}"}
        return [
            {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, **parent},
            {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": json.dumps(arguments)},
            {"type": "TOOL_CALL_END", "toolCallId": call},
        ]

    def result(self, call: str, text: str, *, failed: bool) -> list[_Event]:  # noqa: ARG002 - the text says it
        told = {"messageId": f"{self.run}-{call}-result", "toolCallId": call, "content": text, "role": "tool"}
        return [{"type": "TOOL_CALL_RESULT", **told}]

    def end(self, value: Any) -> list[_Event]:
        return self._finished({} if value is None else {"result": value})

    def paused(self, pending: Sequence[Mapping[str, Any]]) -> list[_Event]:
        interrupts = [
            {"id": each["call_id"], "reason": each["why"], "message": f"{each['tool']} {json.dumps(each['arguments'])}"}
            for each in pending
        ]
        return self._finished({"outcome": {"type": "interrupt", "interrupts": interrupts}})

    def _finished(self, told: _Event) -> list[_Event]:
        return [{"type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run, **told}]

    def failed(self, message: str, kind: str | None) -> list[_Event]:
        return [{"type": "RUN_ERROR", "message": message, **({"code": kind} if kind else {})}]


class _AiSdk(_Writer):
    def start(self) -> list[_Event]:
        return [{"type": "start", "messageId": self.run}]

    def next_turn(self, before: int) -> list[_Event]:
        return [*([{"type": "finish-step"}] if before else []), {"type": "start-step"}]

    def part_start(self, kind: str, part: str) -> list[_Event]:
        return [{"type": f"{kind}-start", "id": part}]

    def part_delta(self, kind: str, part: str, delta: str) -> list[_Event]:
        return [{"type": f"{kind}-delta", "id": part, "delta": delta}]

    def part_end(self, kind: str, part: str) -> list[_Event]:
        return [{"type": f"{kind}-end", "id": part}]

    def call(self, call: str, name: str, arguments: Any) -> list[_Event]:
        # The page knows no types of our tools.
        told = {"toolCallId": call, "toolName": name, "dynamic": True}
        return [{"type": "tool-input-start", **told}, {"type": "tool-input-available", **told, "input": arguments}]

    def result(self, call: str, text: str, *, failed: bool) -> list[_Event]:
        kind, name = ("error", "errorText") if failed else ("available", "output")
        return [{"type": f"tool-output-{kind}", name: text, "toolCallId": call, "dynamic": True}]

    def end(self, value: Any) -> list[_Event]:
        result = [] if value is None else [{"type": "data-result", "data": value}]
        return [*result, {"type": "finish-step"}, {"type": "finish", "finishReason": "stop"}]

    def paused(self, pending: Sequence[Mapping[str, Any]]) -> list[_Event]:
        waiting = [{"type": "data-approval", "id": each["call_id"], "data": each} for each in pending]
        return [*waiting, {"type": "finish-step"}, {"type": "finish", "finishReason": "other"}]

    def failed(self, message: str, kind: str | None) -> list[_Event]:  # noqa: ARG002 - the protocol has no place for it
        return [{"type": "error", "errorText": message}]


# --- what the page sent ----------------------------------------------------------------------------------


def _arguments(pipeline: Any, body: Any, protocol: Protocol) -> dict[str, Any]:
    """Return the arguments that a request is."""
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list) or not body["messages"]:
        raise UsageError("the body must be an object with messages, as the clients of the protocol send it.")
    read = _ag_ui_messages if protocol == "ag-ui" else _ai_sdk_messages
    messages = [message for given in body["messages"] for message in read(given)]
    if not messages or messages[-1]["role"] != "user":
        raise UsageError("the last message must be the user's.")
    forwarded = body.get("forwardedProps") if protocol == "ag-ui" else body
    extras = forwarded if isinstance(forwarded, Mapping) else {}
    refuse_files(pipeline.definition.name, pipeline)
    history = pipeline.history_param
    found: dict[str, Any] = {}
    asked: str | None = None
    for name, parameter in pipeline.definition.signature.parameters.items():
        if name == history or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if name in extras and name not in _OF_THE_SDK:
            found[name] = extras[name]
        elif asked is None:
            asked = name
    if asked is None:
        raise UsageError(f"{pipeline.definition.name} has no parameter for the user's message.")
    return {**found, asked: messages[-1]["content"], **({history: messages[:-1]} if history else {})}


def _ag_ui_messages(given: Any) -> list[Message]:
    match given:
        case {"role": "user", "content": content}:
            return [{"role": "user", "content": _text(content)}]
        case {"role": "assistant"}:
            calls = [
                {"id": str(call["id"]), "type": "function", "function": dict(call["function"])}
                for call in given.get("toolCalls") or ()
                if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping) and "id" in call
            ]
            return _assistant(_text(given.get("content") or ""), calls)
        case {"role": "tool", "toolCallId": call, "content": content}:
            return [{"role": "tool", "tool_call_id": str(call), "content": _text(content)}]
        case {"role": str()}:
            return []  # system messages are the server's; thoughts and activities are not part of the history
    raise UsageError("a message does not follow the protocol.")


def _ai_sdk_messages(given: Any) -> list[Message]:
    match given:
        case {"role": "user", "parts": list(parts)}:
            return [{"role": "user", "content": _text(parts)}]
        case {"role": "assistant", "parts": list(parts)}:
            calls: list[dict[str, Any]] = []
            results: list[Message] = []
            told: list[Message] = []
            texts: list[str] = []
            for part in [*parts, {"type": "step-start"}]:
                kind = str(part.get("type")) if isinstance(part, Mapping) else ""
                if kind == "text":
                    texts.append(str(part.get("text", "")))
                elif kind == "dynamic-tool" or kind.startswith("tool-"):
                    call = {"id": str(part.get("toolCallId")), "type": "function"}
                    name = str(part.get("toolName") or kind.removeprefix("tool-"))
                    calls.append({**call, "function": {"name": name, "arguments": json.dumps(part.get("input") or {})}})
                    output = part.get("errorText") or part.get("output") or ""
                    shown = output if isinstance(output, str) else json.dumps(output)
                    results.append({"role": "tool", "tool_call_id": call["id"], "content": shown})
                elif kind == "step-start":
                    told += [*_assistant("".join(texts), calls), *results]
                    texts, calls, results = [], [], []
            return told
        case {"role": str()}:
            return []
    raise UsageError("a message does not follow the protocol.")


def _assistant(text: str, calls: list[dict[str, Any]]) -> list[Message]:
    message: Any = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    return [message] if text or calls else []


def _text(content: Any) -> str:
    """Return the text of a message.

    Raises:
        UsageError: it holds something else, such as an image.
    """
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, Mapping) else {} for part in content] if isinstance(content, list) else [{}]
    other = next((str(part.get("type")) for part in parts if part.get("type") != "text"), None)
    if other is not None:
        raise UsageError(f"a message holds a part of the type {other!r}; only text is taken from a page.")
    return "".join(str(part.get("text", "")) for part in parts)
