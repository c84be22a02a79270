"""Tools that a service has and runs by itself go in as its own dictionaries; what they did, and where an answer comes from, is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from SimpleLLMFunc import ConfigError, Gemini
from SimpleLLMFunc.base.events import RunFinished
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.interface.wires import citations_in, server_tools_in
from tests.interface.wires.test_recordings import DATA
from tests.support.functions import async_decorated, chat, weather
from tests.support.server import Answer, LoopbackServer, json_answer
from tests.support.wires import made, wired

OWN: dict[str, dict[str, Any]] = {
    "chat": {"type": "web_search", "web_search": {"enable": True}}, "responses": {"type": "web_search"},
    "messages": {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "gemini": {"googleSearch": {}},
}  # fmt: skip


def asker(llm: Any, *toolkit: Any, **options: Any) -> Any:
    return async_decorated(str, llm, toolkit=list(toolkit), **options)


def recorded(file: str) -> Answer:
    data = json.loads((DATA / file).read_text())
    return json_answer(data.get("response", data))


@pytest.mark.parametrize("name", OWN)
async def test_they_go_out_as_they_are_next_to_the_users_own(name):
    own = OWN[name]
    async with wired(name, {"calls": [("weather", {"city": "Rome"})]}, {"texts": ["sun"]}) as (llm, server):
        ask = asker(llm, weather, own)
        result = await ask.call("Rome?")
        assert (result.value, [call.function.name for call in result.tool_calls]) == ("sun", ["weather"])
        assert own.get("type", "googleSearch") in ask.preview("Rome?")._repr_html_()
        shown = ask.preview("Rome?").body["tools"]
        assert ("'includeServerSideToolInvocations': True" in str(server.requests[0].body)) is (name == "gemini")
    for tools in (shown, *(request.body["tools"] for request in server.requests)):
        users, sent = tools
        assert "weather" in json.dumps(users)
        assert {key: value for key, value in sent.items() if key != "cache_control"} == own


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("chat", {"googleSearch": {}}), ("responses", {"googleSearch": {}}), ("messages", {"type": "web_search"}),
        ("gemini", {"type": "web_search"}),
    ],
)  # fmt: skip
async def test_one_that_the_wire_does_not_know_is_refused_before_anything_is_sent(name, unknown):
    async with wired(name) as (llm, server):
        with pytest.raises(ConfigError, match="not a server tool of this service"):
            await asker(llm, weather, unknown)("x")
        assert server.requests == []
    with pytest.raises(ConfigError, match="server tools or functions, not both"):
        asker(Gemini("gemini-2.5-flash", api_key="k"), weather, OWN["gemini"]).preview("x")


def test_a_description_of_a_function_is_no_tool():
    with pytest.raises(ToolDefinitionError, match="tool 'f': it is a dictionary without something to call"):
        asker(None, {"type": "function", "function": {"name": "f"}}).preview("x")


async def test_a_model_that_is_offered_json_actions_gets_them_too():
    async with wired("responses", {"texts": ['{"answer": "sun"}']}) as (llm, server):
        assert await asker(llm, weather, OWN["responses"], tools="json")("Rome?") == "sun"
    assert server.requests[0].body["tools"] == [OWN["responses"]]


async def test_a_chat_describes_its_functions_only():
    async with wired("messages", {"texts": ["hello"]}) as (llm, server):
        talk = chat(llm, toolkit=[OWN["messages"], weather])
        assert "".join([text async for text, _ in talk([], "hi")]) == "hello"
    assert "web_search:" not in json.dumps(server.requests[0].body["system"])
    assert "weather:" in json.dumps(server.requests[0].body["system"])


def streamed(file: str) -> Answer:
    """A recorded reply as its service streams it."""
    data = json.loads((DATA / file).read_text())
    data, events = data.get("response", data), []
    if file.startswith("responses"):
        done = [{"output_index": at, "item": item} for at, item in enumerate(data["output"])]
        events = [{"type": "response.output_item.done", **each} for each in done]
        events.append({"type": "response.completed", "response": {**data, "output": []}})
    elif file.startswith("messages"):
        events = [{"type": "message_start", "message": {**data, "content": []}}]
        for at, block in enumerate(data["content"]):
            begun = {**block, "text": "", "citations": []} if block["type"] == "text" else block
            events.append({"type": "content_block_start", "index": at, "content_block": begun})
            deltas = [{"type": "citations_delta", "citation": each} for each in block.get("citations") or ()]
            deltas.append({"type": "text_delta", "text": block.get("text", "")})
            events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events += [{"type": "message_delta", "delta": {"stop_reason": data["stop_reason"]}}, {"type": "message_stop"}]
    else:
        (candidate,) = data["candidates"]
        texts = [{"content": {"parts": [part]}} for part in candidate["content"]["parts"]]
        last = {name: value for name, value in candidate.items() if name != "content"}
        events = [{**data, "candidates": [each]} for each in (*texts, last)]
    return Answer(
        headers={"content-type": "text/event-stream"},
        body=b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events),
    )


@pytest.mark.parametrize(
    ("file", "kinds", "url", "count"),
    [
        ("messages/web-search-citations.json", ["web_search"] * 2, "https://acecomments.mu.nu/?post=411647", 3),
        ("responses/web-search.json", ["web_search_call"] * 3, "https://www.theverge.com/podcast/838932/", 10),
        ("responses/file-search.json", ["file_search_call"], "", 1),
        ("gemini/grounding.json", ["googleSearch"], "https://vertexaisearch.cloud.google.com/", 3),
        ("gemini/url-context.json", ["urlContext"], "https://berkshirehathaway.com", 4),
    ],
)
async def test_a_result_and_a_stream_tell_what_the_service_did_and_cited(file, kinds, url, count):
    async with LoopbackServer() as server:
        ask = asker(made(file.split("/")[0], server))
        server.answer(recorded(file))
        result = await ask.call("x")
        server.answer(streamed(file))
        events = [event async for event in ask.events("x") if isinstance(event, RunFinished)]
    tools, cited = result.server_tools, result.citations
    assert [each.type for each in tools] == kinds
    assert (cited[0].url.startswith(url), len(cited)) == (True, count)
    assert all(each.title or each.url for each in cited)
    for messages in (result.messages, events[0].messages):
        answer = json.loads(json.dumps(messages[-1]))
        assert (server_tools_in([answer]), citations_in(answer)) == (tools, cited)
        kept = json.dumps({**answer, "content": ""})
        own = json.dumps(json.loads((DATA / file).read_text()))
        assert all(0 < kept.count(each.url) <= own.count(each.url) for each in cited)  # once
    assert f"{len(cited)} citation" in result._repr_html_()
