"""Runs that the page starts: of functions with edited arguments, and of chats."""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.run import EventSink, Run, watching
from SimpleLLMFunc.base.schemas import ANSWER_TOOL
from SimpleLLMFunc.errors import SimpleLLMFuncError, UsageError
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.tools import ArgumentsError
from SimpleLLMFunc.type import Message
from SimpleLLMFunc.viewer.offered import Offered, OfferedChat, OfferedFunction, patch_of, varied
from SimpleLLMFunc.viewer.responses import Lines, Refusal, Veil, attempt_facts, body_of, clean, error_facts, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_SESSIONS: Final = 100
_MAX_MESSAGE: Final = 200_000


@dataclass(slots=True)
class _Session:
    """A conversation with a chat or an assistant."""

    chat: str
    history: list[Message] = field(default_factory=list)
    is_busy: bool = False


class RunningPages:
    """Lists and runs functions and chats.

    Args:
        offered: what may be run.
        sinks: get the events of every run.
    """

    def __init__(self, offered: Offered, sinks: tuple[EventSink, ...]) -> None:
        self._offered = offered
        self._sinks = sinks
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    async def functions(self, _request: Request) -> Response:
        """Return the functions that may be run, with their forms."""
        offered = self._offered.functions.values()
        models = list(self._offered.models)
        return await reply_of(lambda: {"functions": clean([each.described() for each in offered]), "models": models})

    async def patch(self, request: Request) -> Response:
        """Return a change of a function as a patch of its source."""
        function = self._offered.functions.get(request.path_params["name"])
        if function is None:
            raise Refusal(404, "There is no such function to run.")
        change = (await body_of(request)).get("change")
        if not isinstance(change, dict) or not change:
            raise Refusal(422, "Nothing is changed.")
        return await reply_of(lambda: {"text": patch_of(function, change, self._offered.models)})

    async def preview(self, request: Request) -> Response:
        """Return the exact request that a function would send."""
        function, args, kwargs = await self._asked(request)

        def read() -> dict[str, Any]:
            try:
                preview = function.pipeline.preview(args, kwargs)
            except SimpleLLMFuncError as error:
                return {"failed": error_facts(error)}
            shown = asdict(preview)
            body, url = clean(shown.pop("body")), clean(shown.pop("url"))
            # Masked before the shell's quotes, which would hide a secret with one inside.
            return {**clean(shown), "curl": replace(preview, body=body, url=url).as_curl()}

        return await reply_of(read)

    async def play(self, request: Request) -> Any:
        """Run a function; the response has a line for each event."""
        function, args, kwargs = await self._asked(request)
        return Lines(_told(_played(function, args, kwargs, self._sinks)))

    async def chats(self, _request: Request) -> Response:
        """Return the chats and assistants."""
        return await reply_of(lambda: {"chats": clean([each.described() for each in self._offered.chats.values()])})

    async def say(self, request: Request) -> Any:
        """Send a message to a chat; the response has a line for each event, the last one with the session's name."""
        chat = self._offered.chats.get(request.path_params["name"])
        if chat is None or chat.problem:
            raise Refusal(404, chat.problem if chat else "There is no such chat to talk to.")
        body = await body_of(request)
        message, name = body.get("message"), body.get("session")
        if not isinstance(message, str) or not message.strip() or len(message) > _MAX_MESSAGE:
            raise Refusal(400, "Say something, as text.")
        if name is not None and (not isinstance(name, str) or name not in self._sessions):
            raise Refusal(404, "That conversation is no longer kept. Begin a new one.")
        name, session = self._session(name, chat)
        if session.chat != chat.name:
            raise Refusal(409, "That conversation is with another chat.")
        if session.is_busy:
            raise Refusal(409, "The answer before is still being written.")
        return Lines(_told(_said(chat, session, name, message, self._sinks), session=name))

    def _session(self, name: str | None, chat: OfferedChat) -> tuple[str, _Session]:
        if name is None:
            while len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.popitem(last=False)
            name = secrets.token_urlsafe(12)
            self._sessions[name] = _Session(chat.name)
        self._sessions.move_to_end(name)
        return name, self._sessions[name]

    async def _asked(self, request: Request) -> tuple[OfferedFunction, tuple[Any, ...], dict[str, Any]]:
        function = self._offered.functions.get(request.path_params["name"])
        if function is None or function.tool is None:
            raise Refusal(404, function.problem if function else "There is no such function to run.")
        body = await body_of(request)
        arguments = body.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refusal(400, "The arguments are a JSON object.")
        try:
            args, kwargs = await in_thread(function.tool.bind, arguments)
        except ArgumentsError as error:
            raise Refusal(422, f"The arguments do not fit: {clean(str(error))}") from None
        return await in_thread(varied, function, body.get("change"), self._offered.models), tuple(args), kwargs


async def _told(items: AsyncGenerator[Any, None], **named: str) -> AsyncGenerator[Mapping[str, Any], None]:
    """Yield the lines that the page gets for the texts, events and lines of a run; of an error, the last one."""
    veil = Veil()
    try:
        async with aclosing(items):
            async for item in items:
                for line in _lines(item, veil):
                    yield line
    except Exception as error:  # noqa: BLE001 - the page shows every failure
        yield {"type": "error", **named, **error_facts(error)}


async def _played(
    function: OfferedFunction, args: tuple[Any, ...], kwargs: dict[str, Any], sinks: tuple[EventSink, ...]
) -> AsyncGenerator[ReActEvent | str | dict[str, Any], None]:
    with watching(*sinks):
        run = function.pipeline.start(args, kwargs, stream=True)
    async with aclosing(function.pipeline.events_of(run)) as happened:
        async for event in happened:
            if isinstance(event, events.ReplyDelta) and run.output_mode == "tool":
                answer = (call.arguments or "" for call in event.tool_calls if call.name in {None, ANSWER_TOOL})
                yield event.text + "".join(answer)
            else:
                yield event
    yield await in_thread(_done, function, run)


def _lines(item: ReActEvent | str | dict[str, Any], veil: Veil) -> list[dict[str, Any]]:
    """Return the lines that the page gets for one text, event or line."""
    if isinstance(item, events.ReplyDelta):
        item = item.text
    if isinstance(item, str):
        return _text_lines(veil.add(item))
    if isinstance(item, dict):
        # The sources of an answer come between pieces of its text, one of which may be held.
        return [*_text_lines(veil.rest() if item["type"] == "done" else ""), item]
    lines = _text_lines(veil.rest())
    match item:
        case (
            events.RunStarted()
            | events.TurnStarted()
            | events.ReplyReceived()
            | events.ToolCallStarted()
            | events.ToolCallProgress()
            | events.ToolCallFinished()
        ):
            told = events.to_dict(item)
            told.pop("messages", None)  # they are in the trace
            lines.append(clean(told))
        case events.TryFailed() | events.AnswerReviewed() | events.MessageAppended():
            pass
        case events.RunFinished() | events.RunFailed():
            pass  # `done` and `error`, the last line, tell of the end
        case _:
            assert_never(item)
    return lines


def _text_lines(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _done(function: OfferedFunction, run: Run) -> dict[str, Any]:
    """Return the last line of a run."""
    facts, parsed = run.facts(), run.parsed
    assert parsed is not None, "an accepted answer was parsed"
    adapter = function.pipeline.definition.output.adapter
    return {
        "type": "done",
        "value": clean(json.loads(adapter.dump_json(parsed.value, by_alias=True, warnings=False))),
        "text": clean(run.reply.text if run.reply else ""),
        "repairs": clean(parsed.repairs),
        "attempts": [attempt_facts(each) for each in facts["attempts"]],
        **{name: facts[name] for name in ("trace_id", "seconds", "usage", "cost", "output_mode")},
    }


async def _said(
    chat: OfferedChat, session: _Session, name: str, message: str, sinks: tuple[EventSink, ...]
) -> AsyncGenerator[ReActEvent | str | dict[str, Any], None]:
    run: Run | None = None
    if session.is_busy:  # another message came before this stream was read
        raise UsageError("the answer before is still being written. Wait for its end.")
    session.is_busy = True  # here, where the stream is read: a client that leaves earlier leaves no busy session
    try:
        with watching(*sinks):
            if chat.assistant is not None:
                items: AsyncGenerator[Any, None] = chat.assistant.stream_query(message, session_id=name)
            else:
                assert chat.pipeline is not None, "what is no assistant is a chat"
                given: dict[str, Any] = {chat.history: list(session.history), chat.message: message}
                run = chat.pipeline.start((), given, stream=True)
                items = chat.pipeline.events_of(run)
        async with aclosing(items):
            async for item in items:
                yield {"type": "sources", "sources": clean(item["sources"])} if isinstance(item, dict) else item
        if run is not None:
            session.history = copied(run.messages)
        yield {"type": "done", "session": name}
    finally:
        session.is_busy = False
