"""What an MCP server sends: questions while one of its tools runs, and what the tool answered.

It may ask for a model's answer (sampling) or a person's (elicitation). An answer becomes a value that our tools may return:
text, JSON data, images, notes of the rest.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from typing import Any, Final

from SimpleLLMFunc.errors import SchemaError, SimpleLLMFuncError, cut
from SimpleLLMFunc.logger import push_warning, shown_error
from SimpleLLMFunc.tools.context import CALLER
from SimpleLLMFunc.tools.running import Confirm, filled_in, in_thread
from SimpleLLMFunc.tools.schemas import SchemaValidation
from SimpleLLMFunc.type import MAX_FILE_BYTES, ImgUrl, Message

MAX_SAMPLINGS: Final = 20
"""Answers of a model that a server may ask for during one call of a tool."""

_PARAMS: Final = {"maxTokens": "max_tokens", "temperature": "temperature", "stopSequences": "stop"}
_STOP_REASONS: Final = {"stop": "endTurn", "length": "maxTokens"}
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_MAX_NOTE_CHARS: Final = 500


class RefusedError(Exception):
    """The server is told no; its text is what the server reads."""


class CallAsked:
    """One call of a tool, and who answers what the server asks meanwhile; made in the task that calls.

    The function that runs the tool has its own model answer, and its own `toolkit_confirm`. Both run on the event loop and
    in the context of the call, so they count in its budget and show in its traces.

    Args:
        tool: the name that the function knows it by.
        confirm: asked instead of `toolkit_confirm`, where it is given.
        limit: of the call; it stops while a person thinks.
    """

    def __init__(self, tool: str, confirm: Confirm | None, limit: asyncio.Timeout) -> None:
        self._tool = tool
        self._caller = CALLER.get()
        self._limits = [limit, *([self._caller.limit] if self._caller is not None and self._caller.limit else [])]
        self.confirm = confirm or (self._caller.confirm if self._caller is not None else None)
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._samplings = 0
        self._under_way: set[Future[Any]] = set()
        self._is_over = False

    @property
    def model(self) -> Any:
        """The model that answers, None where no function runs the tool."""
        return self._caller.model if self._caller is not None else None

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the client answers to a request of the server, as on the wire; from any event loop.

        Args:
            method: "sampling" or "elicitation".
            params: of the request, as on the wire.

        Raises:
            RefusedError: neither a model nor a person can be asked, or what was asked cannot be done.
        """
        asked = self._sampled(params) if method == "sampling" else self._elicited(params)
        # A copy of the context: two questions at once cannot both be in it.
        future = self._context.copy().run(asyncio.run_coroutine_threadsafe, asked, self._loop)
        self._under_way.add(future)
        if self._is_over:  # the call may have ended in its own thread before this one noted the question
            future.cancel()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not future.cancelled() or (task is not None and task.cancelling()):
                raise
            # Only the call was cancelled. A cancellation that reaches the session would end the connection.
            raise RefusedError("the call is over") from None
        finally:
            self._under_way.discard(future)

    def end(self) -> None:
        """Give up what is still being answered: the call is over."""
        self._is_over = True
        for future in list(self._under_way):
            future.cancel()

    async def _sampled(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._caller is None:
            raise RefusedError("no function runs this tool, so there is no model to ask")
        if params.get("tools"):
            raise RefusedError("tools in a request for sampling are not supported")
        self._samplings += 1
        if self._samplings > MAX_SAMPLINGS:
            raise RefusedError(f"at most {MAX_SAMPLINGS} requests for sampling during one call of a tool")
        messages = [_message(each) for each in params["messages"]]
        if params.get("systemPrompt"):
            messages.insert(0, {"role": "system", "content": params["systemPrompt"]})
        given = {ours: params[name] for name, ours in _PARAMS.items() if params.get(name) is not None}
        try:
            reply = await self._caller.ask(f"{self._tool}.sampling", messages, given)
        except SimpleLLMFuncError as error:
            push_warning(f"tool {self._tool}: its server asked for sampling: {shown_error(error)}")
            raise RefusedError(f"the model gave no answer ({type(error).__name__})") from None
        return {
            "role": "assistant",
            "content": {"type": "text", "text": reply.text},
            "model": reply.model or self._caller.model.model_name,
            "stopReason": _STOP_REASONS.get(reply.finish_reason or "", reply.finish_reason),
        }

    async def _elicited(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self.confirm is None:
            push_warning(f"tool {self._tool}: its server asks a person, and toolkit_confirm= was not given")
            raise RefusedError("no person can be asked here")
        schema = params.get("requestedSchema")
        form = {name: params[name] for name in ("message", "url", "requestedSchema") if name in params}
        with ExitStack() as paused:
            for limit in self._limits:
                paused.enter_context(_paused(limit))
            said = await filled_in(self.confirm, self._tool, form)
        if said is True and schema is not None:
            said = _agreed(schema)
        if said is False or (schema is not None and await in_thread(self._misfits, said, schema)):
            return {"action": "decline"}
        return {"action": "accept", **({} if schema is None else {"content": said})}

    def _misfits(self, said: Any, schema: Mapping[str, Any]) -> bool:
        try:
            wrong = [f"{path or 'it'}: {expected}" for path, expected, _ in SchemaValidation(schema).violations(said)]
        except SchemaError as error:
            wrong = [str(error)]
        if wrong:
            push_warning(
                f"tool {self._tool}: the answer of toolkit_confirm does not fit what the server asks for "
                f"({cut('; '.join(wrong), 300)}). Return a dict with its fields."
            )
        return bool(wrong)


@contextmanager
def _paused(limit: asyncio.Timeout) -> Iterator[None]:
    """Stop a clock for the length of a block."""
    when, began = limit.when(), time.monotonic()
    limit.reschedule(None)
    try:
        yield
    finally:
        with suppress(RuntimeError):  # the call is over
            limit.reschedule(when if when is None else when + time.monotonic() - began)


def _agreed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plain yes fills in: True where that is asked for, else what the server proposes."""
    found: dict[str, Any] = {}
    for name, field in (schema.get("properties") or {}).items():
        if field.get("type") == "boolean":
            found[name] = True
        elif "default" in field:
            found[name] = field["default"]
    return found


def _message(given: Mapping[str, Any]) -> Message:
    content = given["content"]
    parts = list(content_parts([content] if isinstance(content, Mapping) else content))
    if all(isinstance(part, str) for part in parts):
        return {"role": given["role"], "content": "\n".join(map(str, parts))}
    shown: list[Any] = [{"type": "text", "text": part} if isinstance(part, str) else part.to_part() for part in parts]
    return {"role": given["role"], "content": shown}


# --- what a tool answered ---


def result_value(result: Mapping[str, Any]) -> Any:
    """Return the value of a result that is no error.

    Text is text. Structured content is its JSON data; the protocol has servers repeat it as text, and what only
    repeats is left out. Images are `ImgUrl` data parts. Of resources and links the text, or a note, remains.

    Args:
        result: as on the wire, with `content` and perhaps `structuredContent`.
    """
    parts = list(content_parts(result.get("content") or ()))
    texts = [part for part in parts if isinstance(part, str)]
    images = [part for part in parts if not isinstance(part, str)]
    value = _combined(texts, result.get("structuredContent"))
    if not images:
        return value
    if isinstance(value, str):
        return [*parts] if value else images
    return [value, *images]


def error_text(result: Mapping[str, Any]) -> str:
    """Return what a result that is an error says."""
    texts = [part for part in content_parts(result.get("content") or ()) if isinstance(part, str)]
    said = "\n".join(texts).strip()
    return said or json.dumps(result.get("structuredContent") or "the server gave no reason", ensure_ascii=False)


def _combined(texts: Sequence[str], structured: Any) -> Any:
    text = "\n".join(texts)
    if structured is None:
        return text
    # A value that is no object is wrapped: {"result": 3} and the text "3". A list may have a text for each item.
    is_wrapped = isinstance(structured, Mapping) and list(structured) == ["result"]
    for value in (structured["result"], structured) if is_wrapped else (structured,):
        one_by_one = isinstance(value, list) and len(value) == len(texts) and all(map(_is_same, texts, value))
        if one_by_one or _is_same(text, value):
            return value
    if not text:
        return structured
    if isinstance(structured, Mapping):
        # The texts stand before it; a long one that is a member too would cost its tokens again.
        repeated = {name for name, value in structured.items() if value in (text, *texts)}
        if repeated == set(structured):
            return text
        structured = {
            name: value for name, value in structured.items() if name not in repeated or len(value) < _MAX_NOTE_CHARS
        }
    return f"{text}\n{json.dumps(structured, ensure_ascii=False)}"


def _is_same(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)


def content_parts(content: Sequence[Any]) -> Iterator[str | ImgUrl]:
    """Yield what blocks of content say, as on the wire: their texts, images, and a note for each of the rest."""
    for block in content:
        kind = block.get("type")
        if kind == "text":
            yield str(block.get("text", ""))
        elif kind == "image":
            yield _image(block.get("mimeType"), block.get("data"))
        elif kind == "resource":
            yield _resource(block.get("resource") or {})
        elif kind == "resource_link":
            yield _note("link", block.get("title") or block.get("name"), block.get("uri"), block.get("description"))
        else:
            yield _note(kind or "content", block.get("mimeType"), _size(block.get("data")), "not shown")


def _image(mime: Any, data: Any) -> str | ImgUrl:
    if str(mime).lower() not in _IMAGE_TYPES:
        return _note("image", mime, _size(data), "not shown: no PNG, JPEG, GIF, WebP or BMP")
    if not isinstance(data, str) or not _BASE64.fullmatch(data):
        return _note("image", mime, "not shown: its data is not base64")
    if len(data) * 3 // 4 > MAX_FILE_BYTES:
        return _note("image", mime, _size(data), "not shown: too large")
    return ImgUrl(f"data:{str(mime).lower()};base64,{data}")


def _resource(resource: Mapping[str, Any]) -> str | ImgUrl:
    mime, uri, blob = resource.get("mimeType"), resource.get("uri"), resource.get("blob")
    if isinstance(resource.get("text"), str):
        return f"{_note('resource', uri, mime)}\n{resource['text']}"
    if str(mime).lower() in _IMAGE_TYPES:
        return _image(mime, blob)
    return _note("resource", uri, mime, _size(blob), "not shown")


def _note(*words: Any) -> str:
    return f"[{cut(', '.join(str(word) for word in words if word), _MAX_NOTE_CHARS)}]"


def _size(data: Any) -> str:
    if not isinstance(data, str):
        return ""
    size = len(data) * 3 // 4
    return f"{size} B" if size < 1000 else f"{round(size / 1000)} kB"
