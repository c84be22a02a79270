import asyncio
import json
import pickle
import re
import threading
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import DeadlineExceeded, RateLimited, UsageError
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES, Profile
from SimpleLLMFunc.interface.wires import ReplyAssembler
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest, UnmatchedRequest, answer, tool_calls, when
from SimpleLLMFunc.testing.reply_chunks import split_reply
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

HELLO = [{"role": "user", "content": "hello"}]


async def collected(llm: ScriptedLLM, messages=HELLO, **more) -> list[ChatCompletionChunk]:
    return [chunk async for chunk in llm.chat_stream(messages, **more)]


@pytest.mark.parametrize(
    ("text", "size", "pieces"),
    [
        ("Hello big world", None, ["Hell", "o", " big", " worl", "d"]), ("abcdefg", 3, ["abc", "def", "g"]),
        (["Hel", "lo"], None, ["Hel", "lo"]),
    ],
)  # fmt: skip
async def test_streamed_in_several_pieces(text, size, pieces) -> None:
    chunks = await collected(ScriptedLLM(text, chunk_size=size))
    assert [chunk.text for chunk in chunks if chunk.text] == pieces
    assert ReplyAssembler(chunks).completion().finish_reason == "stop"


@pytest.mark.parametrize("size", [0, -1])
def test_chunk_size_that_cannot_be(size: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        ScriptedLLM("x", chunk_size=size)


async def test_tool_calls() -> None:
    llm = ScriptedLLM(tool_calls(("search", {"q": "雨"}), ("clock", {}), content="Let me look."))
    reply = await llm.chat(HELLO)
    assert reply.finish_reason == "tool_calls"
    assert reply.text == "Let me look."
    called = [(call.function.name, call.function.arguments) for call in reply.tool_calls]
    assert called == [("search", '{"q": "雨"}'), ("clock", "{}")]
    assert len({call.id for call in reply.tool_calls}) == 2
    # A text is sent as it is.
    reply = await ScriptedLLM(tool_calls(("search", '{"q": '))).chat(HELLO)
    assert reply.tool_calls[0].function.arguments == '{"q": '
    assert reply.message.content is None


async def test_whole_reply_as_dict_and_as_object() -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "model": "other"}
    done = ChatCompletion.from_dict(body)
    llm = ScriptedLLM(body, done)
    assert (await llm.chat(HELLO)).model == "other"
    assert await llm.chat(HELLO) is done


async def test_list_of_chunks_as_they_are() -> None:
    reply = ChatCompletion.from_dict({"choices": [{"message": {"content": "as it is"}, "finish_reason": "stop"}]})
    chunks = list(split_reply(reply))
    llm = ScriptedLLM(chunks, chunks)
    assert await collected(llm) == chunks
    assert (await llm.chat(HELLO)).text == "as it is"


async def test_a_stream_that_breaks() -> None:
    seen = []
    with pytest.raises(RateLimited):
        async for chunk in ScriptedLLM(["Hel", RateLimited("m")]).chat_stream(HELLO):
            seen.append(chunk.text)
    assert seen == ["Hel"]


@pytest.mark.parametrize("reply", [RateLimited("m"), ValueError, asyncio.CancelledError()])
@pytest.mark.parametrize("stream", [False, True])
async def test_exceptions_are_raised(reply, stream: bool) -> None:
    llm = ScriptedLLM(reply)
    wanted = reply if isinstance(reply, type) else type(reply)
    with pytest.raises(wanted):
        await (collected(llm) if stream else llm.chat(HELLO))


async def test_an_exception_raised_again_does_not_grow() -> None:
    error = RateLimited("m")
    llm = ScriptedLLM(error, repeat=True)
    depths = []
    for _ in range(3):
        with pytest.raises(RateLimited):
            await llm.chat(HELLO)
        depth, frame = 0, error.__traceback__
        while frame is not None:
            depth, frame = depth + 1, frame.tb_next
        depths.append(depth)
    assert len(set(depths)) == 1


async def test_function_of_the_request() -> None:
    llm = ScriptedLLM(lambda request: f"{request.index}: {request.text}", repeat=True)
    assert (await llm.chat(HELLO)).text == "0: hello"
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "it"}]
    silent = {"role": "assistant", "content": None}
    assert (await llm.chat([{"role": "user", "content": parts}])).text == "1: see it"
    assert (await llm.chat([*HELLO, silent])).text == "2: "

    async def answer(request: ScriptedRequest) -> dict:
        await asyncio.sleep(0)
        return tool_calls(("echo", {"text": request.text}))

    reply = await ScriptedLLM(answer).chat(HELLO)
    assert json.loads(reply.tool_calls[0].function.arguments) == {"text": "hello"}


@pytest.mark.parametrize("reply", [3, None, b"bytes", [1, 2], {"stars": 4}, lambda request: 3])
async def test_a_reply_that_is_none(reply) -> None:
    with pytest.raises(UsageError, match="ScriptedLLM cannot reply with"):
        await ScriptedLLM(reply).chat(HELLO)
    with pytest.raises(UsageError, match="its name and its arguments"):
        tool_calls("search")


async def test_running_out_and_no_replies_at_all() -> None:
    llm = ScriptedLLM("only one")
    await llm.chat(HELLO)
    with pytest.raises(UsageError, match=r"asked 2 times and had 1 reply\. The last message was: 'and now\?'"):
        await llm.chat([*HELLO, {"role": "user", "content": "and now?"}])
    with pytest.raises(UsageError, match="asked once and had 0 replies"):
        await collected(ScriptedLLM(repeat=True))
    with pytest.raises(UsageError, match="no message to send"):
        await ScriptedLLM().chat([])


async def test_repeat_and_what_remains() -> None:
    llm = ScriptedLLM("a", "b", repeat=True)
    assert [(await llm.chat(HELLO)).text for _ in range(5)] == ["a", "b", "a", "b", "a"]
    assert (llm.remaining, ScriptedLLM("a", "b").remaining) == (1, 2)


async def test_requests_are_snapshots() -> None:
    llm = ScriptedLLM("a", "b")
    messages = [{"role": "user", "content": [{"type": "text", "text": "before"}]}]
    tools = [{"type": "function", "function": {"name": "t"}}]
    await llm.chat(messages, tools=tools, response_format={"type": "json_object"}, trace_id="t1", temperature=0.5)
    messages[0]["content"][0]["text"] = "after"
    messages.append({"role": "assistant", "content": "x"})
    tools[0]["function"]["name"] = "changed"
    await collected(llm, messages)
    assert llm.requests[0] == [{"role": "user", "content": [{"type": "text", "text": "before"}]}]
    assert len(llm.requests[1]) == 2
    first, second = llm.calls
    assert (first.params, first.trace_id, first.stream) == ({"temperature": 0.5}, "t1", False)
    assert first.tools == [{"type": "function", "function": {"name": "t"}}]
    assert first.response_format == {"type": "json_object"}
    assert (second.stream, second.tools) == (True, None)


async def test_a_timeout_of_the_function_itself_is_not_the_deadline() -> None:
    async def slow(request: ScriptedRequest) -> str:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await ScriptedLLM(slow).chat(HELLO, deadline=60)


async def test_deadline_between_pieces() -> None:
    llm = ScriptedLLM("some longer text in many pieces")
    stream = llm.chat_stream(HELLO, deadline=0.05)
    await anext(stream)
    await asyncio.sleep(0.06)
    with pytest.raises(DeadlineExceeded):
        await anext(stream)


def test_many_threads_and_loops() -> None:
    llm = ScriptedLLM(*(str(number) for number in range(400)))
    got: list[str] = []

    def ask() -> None:
        for _ in range(50):
            got.append(asyncio.run(llm.chat(HELLO)).text)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(number) for number in range(400)]
    assert [call.index for call in llm.calls] == list(range(400))


async def test_pickle_keeps_replies_and_place() -> None:
    llm = ScriptedLLM("a", "b", model_name="m")
    await llm.chat(HELLO)
    again = pickle.loads(pickle.dumps(llm))
    assert (await again.chat(HELLO)).text == "b"
    assert again.model_name == "m"
    assert llm.remaining == 1


def test_profile_and_repr() -> None:
    assert ScriptedLLM().profile is GENERIC
    for given in ("openai", PROFILES["openai"]):
        assert ScriptedLLM(profile=given).profile is PROFILES["openai"]
    assert repr(ScriptedLLM("a", "b")) == "ScriptedLLM('scripted', replies=2, asked=0)"


# --- typed answers, rules, and unexpected requests ------------------------------------------------------------


class Review(BaseModel):
    title: str
    stars: int = Field(alias="n_stars")


@dataclass
class Point:
    x: int
    y: int


def asking(return_type, llm, mode="auto", **options):
    @llm_function(llm_interface=llm, output_mode=mode, **options)
    def ask(question: str) -> return_type:
        """Answer."""

    return ask


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
@pytest.mark.parametrize(
    ("reply", "return_type", "value"),
    [
        (Review(title="Rain", n_stars=4), Review, Review(title="Rain", n_stars=4)), (Point(1, 2), Point, Point(1, 2)),
        (answer([1, 2]), list[int], [1, 2]), (answer(True), bool, True),
        (answer({"a": Point(1, 2)}), dict[str, Point], {"a": Point(1, 2)}), (answer("7"), str, "7"),
        (lambda request: Point(len(request.messages), 0), Point, Point(2, 0)),
    ],
)  # fmt: skip
def test_a_model_is_the_typed_answer_in_every_mode(mode, reply, return_type, value) -> None:
    result = asking(return_type, ScriptedLLM(reply), mode).call("?")
    assert result.value == value
    assert len(result.attempts) == 1
    if return_type is not str or mode != "prompt":
        assert result.repairs == []


@pytest.mark.parametrize("native", [True, False])
def test_a_model_is_the_answer_beside_json_actions(native) -> None:
    def clock() -> str:
        """Tell the time."""
        return "noon"

    llm = ScriptedLLM(Point(1, 2), profile=Profile(native=native, tools="json"))
    result = asking(Point, llm, toolkit=[clock]).call("?")
    assert result.value == Point(1, 2)
    assert (llm.calls[0].response_format is not None) is native
    assert len(llm.calls) == 1


async def test_rules_answer_in_any_order() -> None:
    llm = ScriptedLLM(
        when("rain", "umbrella"),
        when(re.compile(r"\bsun\b"), "hat", "cream"),
        when(lambda request: request.stream, "streamed"),
        "else",
    )

    async def ask(text):
        return (await llm.chat([{"role": "user", "content": text}])).text

    assert await asyncio.gather(*map(ask, ["the sun", "no rain", "sunny", "rain", "sun", "sun"])) == [
        "hat", "umbrella", "else", "umbrella", "cream", "cream",
    ]  # fmt: skip
    assert llm.remaining == 0
    assert ReplyAssembler(await collected(llm)).text == "streamed"


async def test_a_request_that_no_rule_is_for_is_shown() -> None:
    llm = ScriptedLLM(when("rain", "umbrella"))
    tool = {"type": "function", "function": {"name": "look", "description": "Look out.", "parameters": {}}}
    with pytest.raises(AssertionError) as caught:
        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Will it snow?"}]
        await llm.chat(asked, tools=[tool], temperature=0.2)
    assert isinstance(caught.value, UnmatchedRequest)
    text = str(caught.value)
    assert "none of its 1 rules" in text
    for shown in ("[system] Be brief.", "[user] Will it snow?", "[tool look] Look out.", '"temperature": 0.2'):
        assert shown in text


async def test_an_unmatched_request_shows_no_secret() -> None:
    remember_secret("hidden-in-the-prompt-1")
    with pytest.raises(UnmatchedRequest) as caught:
        await ScriptedLLM().chat([{"role": "user", "content": "key hidden-in-the-prompt-1, sk-abcdefghijklmnop"}])
    assert "hidden-in" not in str(caught.value)
    assert "abcdefgh" not in str(caught.value)


def test_a_rule_without_a_reply() -> None:
    with pytest.raises(UsageError, match="when"):
        when("rain")


@pytest.mark.parametrize("params", [{"stream": True}, {"api_key": "x"}, {"extra_body": {"model": "x"}}])
async def test_it_refuses_what_services_refuse(params):
    llm = ScriptedLLM("a")
    with pytest.raises(UsageError):
        await llm.chat([{"role": "user", "content": "x"}], **params)
    assert llm.calls == []
