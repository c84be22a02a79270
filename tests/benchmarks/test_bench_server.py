"""What the canned server does for the benchmark: it says what it was told to, calls tools, stamps chunks, and counts."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import server as canned
from benchmarks.server import ServerProcess, Watched


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as process:
        yield process


def ask(url: str, **more: Any) -> str:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello <<t1>>"}], **more}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as reply:
        return reply.read().decode()


def message(url: str) -> dict[str, Any]:
    return json.loads(ask(url))["choices"][0]["message"]


def deltas(url: str) -> list[dict[str, Any]]:
    lines = [line[6:] for line in ask(url, stream=True).splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


def test_it_says_what_it_was_told_to_and_forgets_what_it_said_before(server: ServerProcess) -> None:
    server.say("line", "one")
    assert message(server.url("say=line"))["content"] == "one"
    assert "".join(delta.get("content", "") for delta in deltas(server.url("say=line,chunks=3"))) == "one"
    server.say("line", 'two "三"')
    assert message(server.url("say=line"))["content"] == 'two "三"'
    assert "".join(delta.get("content", "") for delta in deltas(server.url("say=line,chunks=3"))) == 'two "三"'


def test_an_answer_as_the_arguments_of_a_tool_that_the_client_names(server: ServerProcess) -> None:
    call = message(server.url("answer=order,tool=return_order"))["tool_calls"][0]["function"]
    assert call["name"] == "return_order"
    assert json.loads(call["arguments"])["customer"] == "Bob Miller"
    (streamed,) = [
        delta["tool_calls"] for delta in deltas(server.url("answer=order,tool=take")) if "tool_calls" in delta
    ]
    assert streamed[0]["function"]["name"] == "take"
    assert message(server.url("answer=tool,tool=find"))["tool_calls"][0]["function"] == {
        "name": "find",
        "arguments": '{"token": "t1"}',
    }


def test_stamped_chunks_bring_the_time_of_their_writing(server: ServerProcess) -> None:
    before = time.monotonic_ns()
    stamps = [int(delta["content"]) for delta in deltas(server.url("stamp=1,chunks=5,pace=2")) if delta.get("content")]
    assert len(stamps) == 5
    assert before < stamps[0] < stamps[4] < time.monotonic_ns()
    assert stamps[4] - stamps[0] >= 4 * 2_000_000 * 0.9


def test_it_counts_what_came_under_a_name(server: ServerProcess) -> None:
    url = server.url("watch=me")
    ask(url)
    ask(url, stream=True)
    ask(server.url("watch=another"), model="other", messages=[{"role": "user"}, {"role": "assistant"}])
    seen = server.watched("me")
    assert (seen["requests"], seen["streams"], seen["models"]) == (2, 1, {"gpt-4o-mini": 2})
    assert seen["messages"] == {"1": 2}
    assert json.loads(seen["last"])["stream"] is True
    assert server.watched("another")["models"] == {"other": 1}
    assert server.watched("another")["messages"] == {"2": 1}
    assert server.watched("nobody")["requests"] == 0
    server.reset()
    assert server.watched("me")["requests"] == 0


@pytest.mark.parametrize("options", ["say=nothing", "shout=1", "answer=perhaps"])
def test_what_it_cannot_do_it_refuses(server: ServerProcess, options: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server.url(options))
    caught.value.close()
    assert caught.value.code == 400


def test_what_is_watched_is_looked_into_when_there_is_much_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "?"}] * 3}).encode()
    monkeypatch.setattr(canned, "_MOST_UNREAD", 2 * len(body))
    watched = Watched()
    for _ in range(4):
        watched.add(body)
    assert len(watched.new) == 1  # three are looked into, and not kept
    told = json.loads(watched.as_json())
    assert told == {
        "requests": 4, "streams": 4, "bytes": 4 * len(body), "models": {"m": 4}, "messages": {"3": 4},
        "last": body.decode(),
    }  # fmt: skip
