"""Cassettes: real exchanges recorded once, at the level of messages, and replayed for ever.

    with use_cassette("tests/cassettes/translate.json"):
        assert translate("Good morning") == "Bonjour"

The first run asks the model and records its replies. Later runs replay them from the file; a request that is not in the
file fails with a diff to the nearest one. Under pytest, `@pytest.mark.llm_cassette` does the same for a test.
"""

from __future__ import annotations

import asyncio
import difflib
import threading
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from os import PathLike
from typing import Any, Literal, TypeAlias, get_args

from SimpleLLMFunc.base.events import ReActEvent, RunFailed, RunFinished, RunStarted
from SimpleLLMFunc.base.metadata import FunctionMetadata
from SimpleLLMFunc.base.run import watching_everywhere
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import AuthenticationError, BadRequest, ConfigError, ContextTooLong, ProviderError, counted
from SimpleLLMFunc.interface.anthropic import Anthropic
from SimpleLLMFunc.interface.composite import ModelInFront
from SimpleLLMFunc.interface.current import standing_in
from SimpleLLMFunc.interface.gemini import Gemini
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import ReplyAssembler, check_call_params
from SimpleLLMFunc.logger import get_current_context
from SimpleLLMFunc.runtime import block, in_thread
from SimpleLLMFunc.testing.cassette_file import Exchange, plain_request, read_cassette, scrubbed, update_cassette
from SimpleLLMFunc.testing.reply_chunks import split_reply
from SimpleLLMFunc.testing.requests import UnmatchedRequest, request_text
from SimpleLLMFunc.testing.scripted import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message

RecordMode: TypeAlias = Literal["once", "new", "all", "none"]
"""once: record if there is no file; new: record requests that are not in the file; all: record everything; none."""

_MOST_COMPARED = 50
_MOST_DIFF_LINES = 80
_KEPT_ERRORS: dict[str, type[BadRequest | ContextTooLong | AuthenticationError]] = {
    # Errors about the request. Errors about the service (busy, down) are not kept.
    "BadRequest": BadRequest,
    "ContextTooLong": ContextTooLong,
    "AuthenticationError": AuthenticationError,
}
_MORE_FACTS = ("problem", "param", "code", "tool")
"""Of a `BadRequest`, where it has them."""

_HEAD = frozenset({"id", "object", "created", "system_fingerprint"})


class Cassette:
    """A file of exchanges, and its use by one test.

    Args:
        path: of the file.
        record: see `RecordMode`.
        test: name of the test; "all" replaces its earlier exchanges.

    Attributes:
        unmatched: error texts of requests that were neither replayed nor recorded.
        recorded, replayed: numbers of exchanges.
        may_record: whether the model may be asked.

    Raises:
        ConfigError: the file is not a cassette, or there is no such mode.
    """

    def __init__(self, path: str | PathLike[str], record: RecordMode = "once", *, test: str = "") -> None:
        if record not in get_args(RecordMode):
            raise ConfigError(f"record must be one of {', '.join(get_args(RecordMode))}, not {record!r}.")
        self.path = file_path(path)
        self.record: RecordMode = record
        self.test = test
        self.unmatched: list[str] = []
        self.replayed = 0
        self.may_record = record in {"new", "all"} or (record == "once" and not self.path.exists())
        self._there = read_cassette(self.path)
        self._waiting: defaultdict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in self._there if record != "all" else ():
            self._waiting[exchange.key].append(exchange)
        self._new: list[Exchange] = []
        self._functions: dict[str, FunctionMetadata] = {}
        self._wrapped: dict[int, CassetteLLM] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, record={self.record!r}, replayed={self.replayed}, new={len(self._new)})"

    @property
    def recorded(self) -> int:
        """Number of exchanges that are recorded and not saved."""
        return sum(bool(exchange.outcome) for exchange in self._new)

    def wrap(self, llm: LLM_Interface) -> LLM_Interface:
        """Return a model that replays the replies of `llm`, or records them."""
        if isinstance(llm, CassetteLLM):
            return llm
        with self._lock:
            return self._wrapped.setdefault(id(llm), CassetteLLM(llm, self))

    @contextmanager
    def inserted(self) -> Generator[Cassette, None, None]:
        """Replay or record all requests inside the block, in all threads, except those to test doubles."""
        with watching_everywhere(self._note), standing_in(self._in_place_of):
            yield self

    def _in_place_of(self, llm: LLM_Interface | None) -> LLM_Interface | None:
        if isinstance(llm, ScriptedLLM):
            return None
        if llm is not None:
            return self.wrap(llm)
        # Without a named model, as on a machine without a key: the recorded one, if there is exactly one.
        names = {(exchange.model, exchange.profile, exchange.wire) for exchange in self._there}
        if self.may_record or len(names) != 1:
            return None
        return self.wrap(RecordedLLM(*names.pop()))

    def save(self) -> None:
        """Write the recorded exchanges into the file; without new ones the file is not touched.

        Raises:
            ConfigError: it cannot be written.
        """
        with self._lock:
            new, self._new = [exchange for exchange in self._new if exchange.outcome], []
        if new:
            update_cassette(self.path, new, replacing=self.test if self.record == "all" else None)

    # --- for the models ----------------------------------------------------------------------------------

    def _note(self, trace_id: str, event: ReActEvent) -> None:
        if isinstance(event, RunStarted) and event.run is not None:
            self._functions[trace_id] = event.run.function
        elif isinstance(event, RunFinished | RunFailed):
            self._functions.pop(trace_id, None)

    def _begin(self, llm: LLM_Interface, trace_id: str, request: dict[str, Any]) -> tuple[Exchange, bool]:
        """Return the exchange of a request, and whether it is a replay; else the caller adds its outcome.

        Raises:
            UnmatchedRequest: the request is not in the file, and may not be recorded.
        """
        facts = self._functions.get(trace_id)
        context = get_current_context()
        name = (facts.place or facts.name) if facts else context.function_name if context else ""
        profile = llm.profile.name if PROFILES.get(llm.profile.name) == llm.profile else ""
        version = facts.version if facts else ""
        wire = "" if llm.wire_name == "chat" else llm.wire_name
        asked = Exchange(name, version, llm.model_name, self.test, request, profile=profile, wire=wire)
        with self._lock:
            waiting = self._waiting.get(asked.key)
            if waiting:
                self.replayed += 1
                return waiting.popleft(), True
            if self.may_record:
                # In the order of requests, not of replies: identical requests are replayed in that order.
                self._new.append(asked)
                return asked, False
        complaint = self._complaint(asked)
        self.unmatched.append(complaint)
        raise UnmatchedRequest(complaint)

    def _complaint(self, asked: Exchange) -> str:
        who = f" of {asked.function.rpartition(':')[2]}()" if asked.function else ""
        where, request = repr(str(self.path)), f"The request{who}:\n{_text(asked)}"
        if not self.path.exists():
            return f"there is no cassette {where}, and record={self.record!r} records none. Record it: {_how('once')}.\n{request}"
        again = f"record what is new: {_how('new')}, or everything again: {_how('all')}"
        if same := sum(each.key == asked.key for each in self._there):
            return f"{where} holds this request {counted(same, 'time')}, and it was made once more; {again}.\n{request}"
        if not self._there:
            return f"{where} holds no exchange; {again}.\n{request}"
        return f"{where} does not hold this request{who}. If the change is meant, {again}.\n{self._drift(asked)}"

    def _drift(self, asked: Exchange) -> str:
        """Return what differs from the nearest recorded request."""
        wanted = _text(asked).split("\n")

        def likeness(exchange: Exchange) -> tuple[bool, bool, float]:
            ratio = difflib.SequenceMatcher(None, _text(exchange).split("\n"), wanted, autojunk=False).ratio()
            return exchange.function == asked.function, exchange.test == asked.test, ratio

        nearest = max(self._there[:_MOST_COMPARED], key=likeness)
        diff = list(difflib.unified_diff(_text(nearest).split("\n"), wanted, "recorded", "asked now", lineterm=""))
        if len(diff) > _MOST_DIFF_LINES:
            diff[_MOST_DIFF_LINES:] = [f"… {len(diff) - _MOST_DIFF_LINES} more lines"]
        return "\n".join(["What drifted from the nearest one:", *diff])


@block
def use_cassette(path: str | PathLike[str], record: RecordMode = "once") -> Generator[Cassette, None, None]:
    """Replay all requests inside the block from a file, and record new ones as `record` allows; for use without pytest.

    Raises:
        ConfigError: the file is not a cassette, or cannot be written.
    """
    tape = Cassette(path, record)
    try:
        with tape.inserted():
            yield tape
    finally:
        tape.save()


def _how(mode: RecordMode) -> str:
    return f"`pytest --llm-record={mode}` or record={mode!r}"


def _text(exchange: Exchange) -> str:
    wire = f" by {exchange.wire}" if exchange.wire else ""
    return f"[model] {exchange.model}{wire}\n{request_text(limit=100_000, **exchange.request)}"


# --- the models --------------------------------------------------------------------------------------------


class CassetteLLM(ModelInFront):
    """A model behind a cassette: replays, or asks the model and records its reply."""

    def __init__(self, llm: LLM_Interface, cassette: Cassette) -> None:
        super().__init__(llm)
        self._cassette = cassette

    def __repr__(self) -> str:
        return f"CassetteLLM({self.llm!r}, {str(self._cassette.path)!r})"

    async def chat(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> ChatCompletion:
        """Return the recorded reply, or ask and record it; takes what `LLM_Interface.chat` does.

        Raises:
            UnmatchedRequest: it was not recorded, and may not be.
        """
        exchange, is_replay, _ = await self._begin(messages, trace_id, deadline, options)
        if is_replay:
            await asyncio.sleep(0)  # as with a network, other tasks run before the reply comes
            return ReplyAssembler(_chunks(exchange)).completion() if "stream" in exchange.outcome else _reply(exchange)
        try:
            reply = await self.llm.chat(messages, trace_id=trace_id, deadline=deadline, **options)
        except ProviderError as error:
            _keep_error(exchange, error)
            raise
        plain = {name: part for name, part in reply.to_dict().items() if name not in _HEAD}
        exchange.outcome = {"reply": scrubbed(plain)}
        return reply

    async def chat_stream(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the recorded reply in its original chunks, or ask and record them; errors as in `chat`."""
        exchange, is_replay, clock = await self._begin(messages, trace_id, deadline, options)
        if is_replay:
            for chunk in _chunks(exchange) if "stream" in exchange.outcome else split_reply(_reply(exchange)):
                await asyncio.sleep(0)
                clock.check()
                yield chunk
            if exchange.outcome.get("left"):
                raise UnmatchedRequest(
                    f"the recording in {str(self._cassette.path)!r} ends here: the reader left this stream early then. "
                    f"Record it again: `pytest --llm-record=all`."
                )
            return
        chunks: list[ChatCompletionChunk] = []
        left = True
        try:
            async with aclosing(
                self.llm.chat_stream(messages, trace_id=trace_id, deadline=deadline, **options)
            ) as stream:
                async for chunk in stream:
                    if chunks and chunk.tries > chunks[-1].tries:
                        chunks.clear()  # the stream broke, and was restarted
                    chunks.append(chunk)
                    yield chunk
            left = False
        except ProviderError as error:
            chunks.clear()
            _keep_error(exchange, error)
            raise
        finally:
            if chunks:
                exchange.outcome = {"stream": _plain_stream(chunks), **({"left": True} if left else {})}

    async def _begin(
        self, messages: Sequence[Message], trace_id: str, deadline: float | None, options: Mapping[str, Any]
    ) -> tuple[Exchange, bool, Deadline]:
        clock = Deadline.after(deadline).stricter(current_deadline())
        clock.check()
        check_call_params(options)
        # In a thread: hashing images and comparing long prompts is slow.
        begin = self._cassette._begin  # noqa: SLF001 - of the same module
        begun = await in_thread(lambda: begin(self, trace_id, plain_request(messages, **options)))
        return *begun, clock


class RecordedLLM(ScriptedLLM):
    """A model known only from a cassette, which answers for it: its name, wire and profile."""

    provider = "custom"
    takes_extra_body = True  # as the services that are recorded

    def __init__(self, model_name: str, profile: str, wire: str) -> None:
        maker = {"messages": Anthropic, "gemini": Gemini}.get(wire)
        known = PROFILES.get(profile, GENERIC) if profile or maker is None else maker(model_name).profile
        super().__init__(model_name=model_name, profile=known)
        self._wire = wire or "chat"

    @property
    def wire_name(self) -> str:
        """The protocol of the recorded requests."""
        return self._wire


# --- replies, to the file and back -----------------------------------------------------------------------


def _reply(exchange: Exchange) -> ChatCompletion:
    if kept := exchange.outcome.get("error"):
        more = {fact: kept[fact] for fact in _MORE_FACTS if fact in kept}
        raise _KEPT_ERRORS[kept["type"]](exchange.model, status=kept.get("status"), body=kept.get("body", ""), **more)
    head = {"id": f"cassette-{exchange.key[:8]}", "object": "chat.completion", "created": 0}
    return ChatCompletion.from_dict({**head, **exchange.outcome["reply"]}, tries=0)


def _plain_stream(chunks: Sequence[ChatCompletionChunk]) -> list[Any]:
    """Return the stored form of a stream; a chunk with only text is a text."""
    said = ReplyAssembler(chunks).completion().to_dict()
    if scrubbed(said) != said:
        # A secret spread over several chunks: the masked text is split into new chunks.
        chunks = list(split_reply(ChatCompletion.from_dict(scrubbed(said))))
    return [_plain_chunk(chunk, is_first=number == 0) for number, chunk in enumerate(chunks)]


def _plain_chunk(chunk: ChatCompletionChunk, *, is_first: bool) -> Any:
    # The first chunk has the model's name.
    left_out = _HEAD if is_first else _HEAD | {"model"}
    data = {name: part for name, part in chunk.to_dict().items() if name not in left_out}
    return chunk.text if data == _piece(chunk.text) else scrubbed(data)


def _piece(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def _chunks(exchange: Exchange) -> list[ChatCompletionChunk]:
    pieces = [_piece(each) if isinstance(each, str) else each for each in exchange.outcome["stream"]]
    served = str(pieces[0].get("model", exchange.model)) if pieces else exchange.model
    head = {"id": f"cassette-{exchange.key[:8]}", "object": "chat.completion.chunk", "created": 0, "model": served}
    return [ChatCompletionChunk.from_dict({**head, **each}, tries=0) for each in pieces]


def _keep_error(exchange: Exchange, error: ProviderError) -> None:
    name = type(error).__name__
    if name in _KEPT_ERRORS:
        body = scrubbed(str(getattr(error, "body", "")))
        more = {fact: scrubbed(value) for fact in _MORE_FACTS if (value := getattr(error, fact, ""))}
        exchange.outcome = {"error": {"type": name, "status": error.status, "body": body, **more}}
