"""Tool rounds through a real socket, in the dialects of the providers: what arrives, and what goes out next.

Each dialect writes the same calls its own way (faults.md, rows 27 to 31). Whatever the way, the tools run once each with
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
        keeps_ids: its ids are usable as they are.
        call_extra: what the first call carries that has to go back.
        reasoning: that its replies hold with the answer.
        returns_reasoning: the reasoning has to go back.
    """

    profile: str
    whole: Callable[[Sequence[Call], str | None], bytes]
    streamed: Callable[[Sequence[Call], str | None], bytes]
    keeps_ids: bool = True
    call_extra: dict[str, Any] = field(default_factory=dict)
    reasoning: str = ""
    returns_reasoning: bool = False

    def reply(self, calls: Sequence[Call] = (), text: str | None = None) -> Callable[[Any], Answer]:
        def answer(request: Any) -> Answer:
            if request.stream:
                return Answer(headers={"content-type": "text/event-stream"}, pieces=[self.streamed(calls, text)])
            return Answer(headers={"content-type": "application/json"}, body=self.whole(calls, text))

        return answer


def text_of(value: Any) -> str:
    return json.dumps(value)


def events(*chunks: str) -> bytes:
    return "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def openai_whole(calls: Sequence[Call], text: str | None) -> bytes:
    written = ",".join(
        f'{{"id":"{call.id}","type":"function","function":'
        f'{{"name":"{call.name}","arguments":{text_of(call.arguments)}}}}}'
        for call in calls
    )
    extra = f',"tool_calls":[{written}]' if calls else ""
    reason = "tool_calls" if calls else "stop"
    return (
        '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-5-mini","choices":[{"index":0,'
        f'"message":{{"role":"assistant","content":{text_of(text)},"refusal":null,"annotations":[]{extra}}},'
        f'"logprobs":null,"finish_reason":"{reason}"}}],'
        '"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15},"service_tier":"default"}'
    ).encode()


def openai_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    def chunk(delta: str, reason: str = "null") -> str:
        return (
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-5-mini","choices":'
            f'[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}],"usage":null,"obfuscation":"x"}}'
        )

    chunks = [chunk('{"role":"assistant","content":null,"refusal":null}')]
    chunks += [chunk(f'{{"content":{text_of(piece)}}}') for piece in halves(text or "") if piece]
    for index, call in enumerate(calls):
        chunks.append(
            chunk(
                f'{{"tool_calls":[{{"index":{index},"id":"{call.id}","type":"function",'
                f'"function":{{"name":"{call.name}","arguments":""}}}}]}}'
            )
        )
        chunks += [
            chunk(f'{{"tool_calls":[{{"index":{index},"function":{{"arguments":{text_of(piece)}}}}}]}}')
            for piece in halves(call.arguments)
        ]
    chunks.append(chunk("{}", '"tool_calls"' if calls else '"stop"'))
    usage = '{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}'
    chunks.append(f'{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"choices":[],"usage":{usage}}}')
    return events(*chunks) + DONE


def gemini_calls(calls: Sequence[Call]) -> list[str]:
    signed = f'"extra_content":{{"google":{{"thought_signature":"{SIGNATURE}"}}}},'
    return [
        f'{{{signed if number == 0 else ""}"function":{{"arguments":{text_of(call.arguments)},"name":"{call.name}"}},'
        f'"id":"{call.id}","type":"function"}}'
        for number, call in enumerate(calls)
    ]


def gemini_whole(calls: Sequence[Call], text: str | None) -> bytes:
    # The one signature stands at the first call; a message of calls has no content at all; finish_reason is "stop".
    said = f'"content":{text_of(text)},' if text is not None else ""
    written = f'"tool_calls":[{",".join(gemini_calls(calls))}],' if calls else ""
    return (
        f'{{"choices":[{{"finish_reason":"stop","index":0,"message":{{{said}{written}"role":"assistant"}}}}],'
        '"created":1,"id":"g1","model":"gemini-3-flash","object":"chat.completion",'
        '"usage":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15}}'
    ).encode()


def gemini_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    def chunk(delta: str, reason: str = "") -> str:
        end = f'"finish_reason":"{reason}",' if reason else ""
        return (
            f'{{"choices":[{{"delta":{{{delta}"role":"assistant"}},{end}"index":0}}],"created":1,"id":"g1",'
            '"model":"gemini-3-flash","object":"chat.completion.chunk",'
            '"usage":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15}}'
        )

    chunks = [chunk(f'"content":{text_of(piece)},') for piece in halves(text or "") if piece]
    for call, written in zip(calls, gemini_calls(calls), strict=True):
        # The head without its arguments, then two pieces that say neither index, nor id, nor name.
        chunks.append(chunk(f'"tool_calls":[{written.replace(text_of(call.arguments), text_of(""))}],'))
        chunks += [
            chunk(f'"tool_calls":[{{"function":{{"arguments":{text_of(piece)}}},"type":"function"}}],')
            for piece in halves(call.arguments)
        ]
    chunks.append(chunk("", "stop"))
    return events(*chunks) + DONE


def ollama_whole(calls: Sequence[Call], text: str | None) -> bytes:
    written = ",".join(
        f'{{"id":"{call.id}","index":0,"type":"function","function":'
        f'{{"name":"{call.name}","arguments":{text_of(call.arguments)}}}}}'
        for call in calls
    )
    return ollama_body(f',"tool_calls":[{written}]' if calls else "", text)


def ollama_bare_whole(calls: Sequence[Call], text: str | None) -> bytes:
    written = ",".join(f'{{"function":{{"name":"{call.name}","arguments":{call.arguments}}}}}' for call in calls)
    return ollama_body(f',"tool_calls":[{written}]' if calls else "", text)


def ollama_body(extra: str, text: str | None) -> bytes:
    return (
        '{"id":"chatcmpl-7","object":"chat.completion","created":1,"model":"qwen3:4b","system_fingerprint":"fp_ollama",'
        f'"choices":[{{"index":0,"message":{{"role":"assistant","content":{text_of(text or "")}{extra}}},'
        f'"finish_reason":"{"tool_calls" if extra else "stop"}"}}],'
        '"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n'
    ).encode()


def ollama_chunk(delta: str, reason: str = "null") -> str:
    return (
        '{"id":"chatcmpl-7","object":"chat.completion.chunk","created":1,"model":"qwen3:4b",'
        f'"system_fingerprint":"fp_ollama","choices":[{{"index":0,"delta":{{"role":"assistant",{delta}}},'
        f'"finish_reason":{reason}}}]}}'
    )


def ollama_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    # Each call is whole, in one chunk, and all of them say index 0.
    chunks = [ollama_chunk(f'"content":{text_of(piece)}') for piece in halves(text or "") if piece]
    chunks += [
        ollama_chunk(
            f'"content":"","tool_calls":[{{"id":"{call.id}","index":0,"type":"function","function":'
            f'{{"name":"{call.name}","arguments":{text_of(call.arguments)}}}}}]'
        )
        for call in calls
    ]
    return events(*chunks, ollama_chunk('"content":""', '"tool_calls"' if calls else '"stop"')) + DONE


def ollama_bare_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    # As older versions and the native form do: no id, arguments as an object.
    chunks = [ollama_chunk(f'"content":{text_of(piece)}') for piece in halves(text or "") if piece]
    chunks += [
        ollama_chunk(
            f'"content":"","tool_calls":[{{"index":0,"function":{{"name":"{call.name}","arguments":{call.arguments}}}}}]'
        )
        for call in calls
    ]
    return events(*chunks, ollama_chunk('"content":""', '"stop"')) + DONE


def vllm_whole(calls: Sequence[Call], text: str | None) -> bytes:
    # Empty arguments for a tool without any, and no type.
    written = ",".join(
        f'{{"id":"{call.id}","function":{{"name":"{call.name}","arguments":{text_of(vllm_arguments(call))}}}}}'
        for call in calls
    )
    return (
        '{"id":"chatcmpl-v","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
        f'{{"role":"assistant","reasoning_content":null,"content":{text_of(text)},"tool_calls":[{written}]}},'
        f'"logprobs":null,"finish_reason":"{"tool_calls" if calls else "stop"}","stop_reason":null}}],'
        '"usage":{"prompt_tokens":10,"total_tokens":15,"completion_tokens":5,"prompt_tokens_details":null},'
        '"prompt_logprobs":null}'
    ).encode()


def vllm_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    def chunk(delta: str, reason: str = "null") -> str:
        return (
            '{"id":"chatcmpl-v","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
            f'"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]}}'
        )

    chunks = [chunk('{"role":"assistant","content":""}')]
    chunks += [chunk(f'{{"content":{text_of(piece)}}}') for piece in halves(text or "") if piece]
    for index, call in enumerate(calls):
        # Id and name are repeated with every piece; once the name is an empty text.
        first, second = halves(vllm_arguments(call))
        for name, piece in ((call.name, ""), (call.name, first), ("", second)):
            chunks.append(
                chunk(
                    f'{{"tool_calls":[{{"index":{index},"id":"{call.id}",'
                    f'"function":{{"name":"{name}","arguments":{text_of(piece)}}}}}]}}'
                )
            )
    return events(*chunks, chunk('{"content":""}', '"tool_calls"' if calls else '"stop"')) + DONE


def vllm_arguments(call: Call) -> str:
    return "" if call.arguments == "{}" else call.arguments


def one_id(
    body: Callable[[Sequence[Call], str | None], bytes],
) -> Callable[[Sequence[Call], str | None], bytes]:
    return lambda calls, text: body([Call(call.name, call.arguments, "call_0") for call in calls], text)


def deepseek_whole(calls: Sequence[Call], text: str | None) -> bytes:
    written = ",".join(
        f'{{"index":{index},"id":"{call.id}","type":"function","function":'
        f'{{"name":"{call.name}","arguments":{text_of(call.arguments)}}}}}'
        for index, call in enumerate(calls)
    )
    extra = f',"tool_calls":[{written}]' if calls else ""
    return (
        '{"id":"d1","object":"chat.completion","created":1,"model":"deepseek-reasoner","choices":[{"index":0,"message":'
        f'{{"role":"assistant","content":{text_of(text or "")},"reasoning_content":{text_of(THOUGHTS)}{extra}}},'
        f'"logprobs":null,"finish_reason":"{"tool_calls" if calls else "stop"}"}}],'
        '"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_cache_hit_tokens":4,'
        '"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"fp_1"}'
    ).encode()


def deepseek_streamed(calls: Sequence[Call], text: str | None) -> bytes:
    def chunk(delta: str, reason: str = "null", more: str = "") -> str:
        return (
            '{"id":"d1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner",'
            f'"system_fingerprint":"fp_1","choices":[{{"index":0,"delta":{delta},"logprobs":null,'
            f'"finish_reason":{reason}}}]{more}}}'
        )

    # The content is null while it reasons, and the reasoning null while it answers.
    chunks = [chunk('{"role":"assistant","content":null,"reasoning_content":""}')]
    chunks += [chunk(f'{{"content":null,"reasoning_content":{text_of(piece)}}}') for piece in halves(THOUGHTS)]
    chunks += [
        chunk(f'{{"content":{text_of(piece)},"reasoning_content":null}}') for piece in halves(text or "") if piece
    ]
    for index, call in enumerate(calls):
        chunks.append(
            chunk(
                f'{{"tool_calls":[{{"index":{index},"id":"{call.id}","type":"function","function":'
                f'{{"name":"{call.name}","arguments":""}}}}]}}'
            )
        )
        chunks += [
            chunk(f'{{"tool_calls":[{{"index":{index},"function":{{"arguments":{text_of(piece)}}}}}]}}')
            for piece in halves(call.arguments)
        ]
    usage = ',"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}'
    end = chunk('{"content":"","reasoning_content":null}', '"tool_calls"' if calls else '"stop"', usage)
    return events(*chunks, end) + DONE


def thinking(text: str | None) -> str:
    return f"<think>\n{THOUGHTS}\n</think>\n\n{text or ''}"


DIALECTS = {
    "openai": Dialect("openai", openai_whole, openai_streamed),
    "gemini": Dialect(
        "gemini",
        gemini_whole,
        gemini_streamed,
        call_extra={"extra_content": {"google": {"thought_signature": SIGNATURE}}},
    ),
    "ollama": Dialect("ollama", ollama_whole, ollama_streamed),
    "ollama-bare": Dialect("ollama", ollama_bare_whole, ollama_bare_streamed, keeps_ids=False),
    "vllm": Dialect("vllm", vllm_whole, vllm_streamed),
    "vllm-one-id": Dialect("vllm", one_id(vllm_whole), one_id(vllm_streamed), keeps_ids=False),
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
    assert len(set(ids)) == len(ids) == len(calls)
    assert all(ids)
    if dialect.keeps_ids:
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
    cut = openai_whole([], "<think>\nI wonder").replace(b'"finish_reason":"stop"', b'"finish_reason":"length"')
    async with LoopbackServer() as server:
        server.answer(Answer(headers={"content-type": "application/json"}, body=cut))
        with pytest.raises(OutputTruncated):
            await ask("call", server, DIALECTS["think"])
        assert len(server.requests) == 1
