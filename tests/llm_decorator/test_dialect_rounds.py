"""Tool rounds through a real socket, in the dialects of the providers: what arrives, and what goes out next.

Each dialect writes the same calls its own way (faults.md, rows 27 to 31; those that differ in nothing but the pieces of a
call are in the fault matrix). Whatever the way, the tools run once each with
the right arguments, and the next request holds every call with another id, answered in order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from SimpleLLMFunc import (
    ChatPair,
    ImgPath,
    ImgUrl,
    Message,
    OpenAICompatible,
    OutputTruncated,
    llm_chat,
    llm_function,
    watching,
)
from SimpleLLMFunc.base.events import ReActEvent, ReplyReceived, RunFinished, ToolCallStarted
from tests.support.server import Answer, LoopbackServer

SIGNATURE = "EqQBCqEBAXLI2nw7q/+signature=="
THOUGHTS = "They want two temperatures."
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Call:
    """A call as a model means it; `arguments` is the JSON text it writes."""

    name: str
    arguments: str
    id: str = ""


# --- the dialects ---


@dataclass(frozen=True)
class Dialect:
    """How one provider writes a reply.

    Attributes:
        whole, streamed: the body of a reply with these calls, or this text.
        call_extra: what the first call carries that has to go back.
        reasoning: that its replies hold with the answer.
        returns_reasoning: the reasoning has to go back.
    """

    profile: str
    whole: Callable[[Sequence[Call], str | None], bytes]
    streamed: Callable[[Sequence[Call], str | None], bytes]
    call_extra: dict[str, Any] = field(default_factory=dict)
    reasoning: str = ""
    returns_reasoning: bool = False

    def reply(self, calls: Sequence[Call] = (), text: str | None = None) -> Callable[[Any], Answer]:
        def answer(request: Any) -> Answer:
            if request.stream:
                return Answer(headers={"content-type": "text/event-stream"}, pieces=[self.streamed(calls, text)])
            return Answer(headers={"content-type": "application/json"}, body=self.whole(calls, text))

        return answer


def events(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + DONE


def halves(text: str) -> list[str]:
    return [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]


def call_of(call: Call, **more: Any) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **more}


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(message: dict[str, Any], calls: Sequence[Any], *, reason: str = "", **about: Any) -> bytes:
    """Return the body of a whole reply; `about` stands beside its choice."""
    said = {"role": "assistant", **message, **({"tool_calls": list(calls)} if calls else {})}
    ended = {"finish_reason": reason or ("tool_calls" if calls else "stop")}
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE, **about}
    return json.dumps({**reply, "choices": [{"index": 0, "message": said, "logprobs": None, **ended}]}).encode()


def chunk(delta: dict[str, Any], reason: str | None = None, **about: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "choices": [choice], **about}


def texts(text: str | None, **more: Any) -> list[dict[str, Any]]:
    return [chunk({"content": piece, **more}) for piece in halves(text or "")]


def pieces(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return each call as its head without arguments, and these in two pieces."""
    heads = [call_of(call, index=at, function={"name": call.name, "arguments": ""}) for at, call in enumerate(calls)]
    told = [
        [head, *({"index": at, "function": {"arguments": piece}} for piece in halves(call.arguments))]
        for at, (head, call) in enumerate(zip(heads, calls, strict=True))
    ]
    return [chunk({"tool_calls": [piece]}) for each in told for piece in each]


def end(calls: Sequence[Call]) -> str:
    return "tool_calls" if calls else "stop"


def openai_whole(calls: Sequence[Call], text: str | None) -> bytes:
    message = {"content": text, "refusal": None, "annotations": []}
    return whole(message, [call_of(call) for call in calls], service_tier="default")


def openai_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    first = chunk({"role": "assistant", "content": None, "refusal": None}, usage=None, obfuscation="x")
    last = {**chunk({}), "choices": [], "usage": USAGE}
    return events(first, *texts(text), *pieces(calls), chunk({}, end(calls)), last)


SIGNED = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}


def gemini_whole(calls: Sequence[Call], text: str | None) -> bytes:
    # The one signature stands at the first call; a message of calls has no content at all; finish_reason is "stop".
    told = [call_of(call, **({} if at else SIGNED)) for at, call in enumerate(calls)]
    return whole({} if text is None else {"content": text}, told, reason="stop")


def gemini_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    chunks = texts(text, role="assistant")
    for at, call in enumerate(calls):
        # The head without its arguments, then two pieces that say neither index, nor id, nor name.
        head = call_of(call, function={"name": call.name, "arguments": ""}, **({} if at else SIGNED))
        rest = [{"function": {"arguments": piece}, "type": "function"} for piece in halves(call.arguments)]
        chunks += [chunk({"tool_calls": [piece], "role": "assistant"}, usage=USAGE) for piece in (head, *rest)]
    return events(*chunks, chunk({"role": "assistant"}, "stop", usage=USAGE))


def deepseek_whole(calls: Sequence[Call], text: str | None) -> bytes:
    told = [call_of(call, index=at) for at, call in enumerate(calls)]
    return whole({"content": text or "", "reasoning_content": THOUGHTS}, told)


def deepseek_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    # The content is null while it reasons, and the reasoning null while it answers.
    first = chunk({"role": "assistant", "content": None, "reasoning_content": ""})
    thought = [chunk({"content": None, "reasoning_content": piece}) for piece in halves(THOUGHTS)]
    last = chunk({"content": "", "reasoning_content": None}, end(calls), usage=USAGE)
    return events(first, *thought, *texts(text, reasoning_content=None), *pieces(calls), last)


def thinking(text: str | None) -> str:
    return f"<think>\n{THOUGHTS}\n</think>\n\n{text or ''}"


DIALECTS = {
    "openai": Dialect("openai", openai_whole, openai_streamed),
    "gemini": Dialect(
        "gemini",
        gemini_whole,
        gemini_streamed,
        call_extra=SIGNED,
    ),
    "deepseek": Dialect("deepseek", deepseek_whole, deepseek_streamed, reasoning=THOUGHTS, returns_reasoning=True),
    "reasoning-kept-back": Dialect("vllm", deepseek_whole, deepseek_streamed, reasoning=THOUGHTS),
    "think": Dialect(
        "openai-compatible",
        lambda calls, text: openai_whole(calls, thinking(text)),
        lambda calls, text: openai_streamed(calls, thinking(text)),
        reasoning=THOUGHTS,
    ),
    "think-returned": Dialect(
        "moonshot",
        lambda calls, text: openai_whole(calls, thinking(text)),
        lambda calls, text: openai_streamed(calls, thinking(text)),
        reasoning=THOUGHTS,
        returns_reasoning=True,
    ),
}


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


# --- the ways to ask ---


@dataclass
class Seen:
    """What one run gave."""

    text: str = ""
    history: list[Message] = field(default_factory=list)
    events: list[ReActEvent] = field(default_factory=list)

    @property
    def started(self) -> list[tuple[str, str]]:
        return [
            (e.call.function.name, e.call.function.arguments) for e in self.events if isinstance(e, ToolCallStarted)
        ]


def model(server: LoopbackServer, dialect: Dialect) -> OpenAICompatible:
    return OpenAICompatible(
        "m", api_key="sk-test-12345678", base_url=server.base_url, profile=dialect.profile, max_retries=0
    )


async def by_call(llm: OpenAICompatible, **options: Any) -> tuple[str, list[Message]]:
    @llm_function(llm, **options)
    async def ask(question: str) -> str:
        """Answer."""

    result = await ask.call("How warm?")
    return result.value, result.messages


async def by_streamed_chat(llm: OpenAICompatible, **options: Any) -> tuple[str, list[Message]]:
    @llm_chat(llm, stream=True, **options)
    async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        """Answer."""

    pairs = [pair async for pair in chat([], "How warm?")]
    return "".join(text for text, _ in pairs), pairs[-1][1]


# A whole reply and a streamed one: what else a function or a chat makes of the same events, other tests show.
WAYS: dict[str, Callable[..., Any]] = {"call": by_call, "streamed chat": by_streamed_chat}


async def ask(way: str, server: LoopbackServer, dialect: Dialect, **options: Any) -> Seen:
    seen = Seen()
    with watching(lambda _, event: seen.events.append(event)):
        seen.text, history = await WAYS[way](model(server, dialect), **options)
    finished = seen.events[-1]
    assert isinstance(finished, RunFinished)
    seen.history = history
    return seen


# --- what must go out ---


def check_round(sent: list[dict[str, Any]], calls: Sequence[Call], dialect: Dialect) -> list[str]:
    """Check the assistant's message and its answers, the last messages sent; return the contents of the answers."""
    position = max(number for number, message in enumerate(sent) if message["role"] == "assistant")
    assistant, answers = sent[position], sent[position + 1 : position + 1 + len(calls)]
    written = assistant["tool_calls"]
    ids = [call["id"] for call in written]
    assert ids == [call.id for call in calls]
    for number, (call, one) in enumerate(zip(calls, written, strict=True)):
        extra = dialect.call_extra if number == 0 else {}
        function = {"name": call.name, "arguments": call.arguments}
        assert one == {"id": ids[number], "type": "function", "function": function, **extra}
    # Nothing of ours; what a provider added to its message goes back to it as it came.
    assert set(assistant) <= {"role", "content", "tool_calls", "reasoning_content", "annotations"}
    assert not assistant["content"]
    assert assistant.get("reasoning_content", "").strip() == (dialect.reasoning if dialect.returns_reasoning else "")
    assert [(message["role"], message["tool_call_id"]) for message in answers] == [("tool", one) for one in ids]
    return [message["content"] for message in answers]


# --- the three-tool round ---

TEMPERATURES = {"Rome": 21, "Oslo": 7}
THREE = [
    Call("weather", '{"city": "Rome"}', "call_a1"),
    Call("weather", '{"city": "Oslo"}', "call_b2"),
    Call("clock", "{}", "call_c3"),
]


def weather(city: str) -> int:
    """Measure the temperature in a city."""
    return TEMPERATURES[city]


async def clock() -> str:
    """Look at the clock."""
    return "noon"


@pytest.mark.parametrize("way", WAYS)
async def test_the_three_tool_round(way: str, dialect: Dialect) -> None:
    async with LoopbackServer() as server:
        server.answer(dialect.reply(THREE))
        server.answer(dialect.reply(text="At noon it is 21 in Rome and 7 in Oslo."))
        seen = await ask(way, server, dialect, toolkit=[weather, clock])
        assert seen.text == "At noon it is 21 in Rome and 7 in Oslo."
        assert seen.started == [(call.name, call.arguments) for call in THREE]
        first, second = (request.body for request in server.requests)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["weather", "clock"]
        assert second["tools"] == first["tools"]
        assert second["messages"][:2] == first["messages"]
        assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", *["tool"] * 3]
        assert check_round(second["messages"], THREE, dialect) == ["21", "7", "noon"]
        # The history holds the same, and the answer.
        assert [m["role"] for m in seen.history] == ["system", "user", "assistant", *["tool"] * 3, "assistant"]
        assert [call["id"] for call in seen.history[2]["tool_calls"]] == [  # type: ignore[typeddict-item]
            call["id"] for call in second["messages"][2]["tool_calls"]
        ]
        assert seen.history[-1]["content"] == "At noon it is 21 in Rome and 7 in Oslo."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_saved_history_goes_on_in_every_dialect(stream: bool, dialect: Dialect) -> None:
    async with LoopbackServer() as server:

        @llm_chat(model(server, dialect), stream=stream, toolkit=[weather, clock])
        async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
            """Answer."""

        server.answer(dialect.reply(THREE))
        server.answer(dialect.reply(text="21 and 7."))
        server.answer(dialect.reply(THREE[:1]))
        server.answer(dialect.reply(text="Still 21."))
        pairs = [pair async for pair in chat([], "How warm?")]
        saved = json.dumps(pairs[-1][1])
        pairs = [pair async for pair in chat(json.loads(saved), "And now?")]
        assert "".join(text for text, _ in pairs) == "Still 21."
        sent = server.requests[2].body["messages"]
        assert sent[:6] == server.requests[1].body["messages"]
        assert sent[6]["content"] == "21 and 7."
        assert ("reasoning_content" in sent[6]) is dialect.returns_reasoning
        assert sent[7] == {"role": "user", "content": "message: And now?"}
        last = server.requests[3].body["messages"]
        assert last[:8] == sent
        assert check_round(last, THREE[:1], dialect) == ["21"]
        assert json.loads(json.dumps(pairs[-1][1])) == pairs[-1][1]


async def test_reasoning_is_kept_with_the_answer(dialect: Dialect) -> None:
    for stream in (False, True):
        async with LoopbackServer() as server:
            server.answer(dialect.reply(THREE))
            server.answer(dialect.reply(text="21 and 7."))
            seen = await ask("streamed chat" if stream else "call", server, dialect, toolkit=[weather, clock])
            replies = [event.reply for event in seen.events if isinstance(event, ReplyReceived)]
            assert [(reply.message.reasoning_content or "").strip() for reply in replies] == [dialect.reasoning] * 2
            assert [reply.text for reply in replies] == ["", "21 and 7."]
            # As the service sent it, or put together from what it sent.
            assert dialect.reasoning in json.dumps(replies[1].raw, ensure_ascii=False)


# --- the mixed image round ---

IMAGES = [
    Call("photo", '{"of": "cat"}', "call_p1"),
    Call("note", '{"of": "cat"}', "call_p2"),
    Call("link", "{}", "call_p3"),
    Call("gallery", "{}", "call_p4"),
]
LINK = "https://example.org/cat.png"
DATA = "data:image/png;base64," + base64.b64encode(PNG).decode()


@pytest.mark.parametrize("way", WAYS)
async def test_the_mixed_image_round(way: str, tmp_path: Any) -> None:
    dialect = DIALECTS["openai"]
    (tmp_path / "cat.png").write_bytes(PNG)

    def photo(of: str) -> tuple[str, ImgPath]:
        """Take a photo."""
        return f"a {of}", ImgPath(tmp_path / "cat.png", detail="low")

    async def note(of: str) -> str:
        """Look a note up."""
        return f"the {of} sleeps"

    def link() -> ImgUrl:
        """Find a picture."""
        return ImgUrl(LINK)

    async def gallery() -> list[Any]:
        """Show all there is."""
        return ["first", ImgUrl(LINK), "then", ImgPath(tmp_path / "cat.png")]

    async with LoopbackServer() as server:
        server.answer(dialect.reply(IMAGES))
        server.answer(dialect.reply(text="A cat."))
        seen = await ask(way, server, dialect, toolkit=[photo, note, link, gallery])
        assert seen.text == "A cat."
        sent = server.requests[1].body["messages"]
        assert [m["role"] for m in sent] == ["system", "user", "assistant", *["tool"] * 4, "user"]
        contents = check_round(sent, IMAGES, dialect)
        assert contents[0].splitlines()[0] == "a cat"
        assert contents[1] == "the cat sleeps"
        assert contents[3].splitlines()[:2] == ["first", "then"]
        assert all("next message" in contents[number] for number in (0, 2, 3))
        parts = sent[-1]["content"]
        assert [part["type"] for part in parts] == [
            *["text", "image_url"] * 2,
            *["text", "image_url", "image_url"],
        ]
        assert [part["image_url"] for part in parts if part["type"] == "image_url"] == [
            {"url": DATA, "detail": "low"},
            {"url": LINK},
            {"url": LINK},
            {"url": DATA},
        ]
        ids = [call["id"] for call in sent[2]["tool_calls"]]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        assert all(ids[number] in text for number, text in zip((0, 2, 3), texts, strict=True))
        # What was shown stays in the history, and the whole of it is JSON.
        assert json.loads(json.dumps(seen.history))[-2] == sent[-1]


# --- single oddities, as they were seen on the wire ---


async def test_gemini_signs_the_message_itself_where_there_is_no_call() -> None:
    reply = {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": "Hello.",
                    "extra_content": {"google": {"thought_signature": "abc=="}},
                },
            }
        ]
    }
    async with LoopbackServer() as server:
        server.reply_json(reply)
        server.reply("Again.")

        @llm_chat(model(server, DIALECTS["gemini"]))
        async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
            """Talk."""

        *_, (_, history) = [pair async for pair in chat([], "Hi")]
        _ = [pair async for pair in chat(history, "Hi again")]
        assert server.requests[1].body["messages"][2]["extra_content"] == {"google": {"thought_signature": "abc=="}}


async def test_an_unclosed_thought_is_no_answer() -> None:
    cut = openai_whole([], "<think>\nI wonder").replace(b'"finish_reason": "stop"', b'"finish_reason": "length"')
    async with LoopbackServer() as server:
        server.answer(Answer(headers={"content-type": "application/json"}, body=cut))
        with pytest.raises(OutputTruncated):
            await ask("call", server, DIALECTS["think"])
        assert len(server.requests) == 1
