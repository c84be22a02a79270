# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""The same ten functions on four wires: chat completions, Responses, Messages, generateContent.

No key is needed: one server on this machine plays all four services. The functions do not know which one answers.

Model: four, each a server of this program. For real ones change their `base_url=` and `api_key=`.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from SimpleLLMFunc import (
    Anthropic,
    ChatPair,
    Confident,
    Gemini,
    Message,
    OpenAICompatible,
    llm_chat,
    llm_function,
    use_llm,
)

# --- ten functions ----------------------------------------------------------------------------------------


@dataclass
class City:
    name: str
    people: int


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"rain in {city}"


@llm_function()
def greet(name: str) -> str:
    """Greet someone."""
    raise NotImplementedError


@llm_function()
def count(text: str) -> int:
    """Count the words."""
    raise NotImplementedError


@llm_function()
def city(text: str) -> City:
    """Find the city."""
    raise NotImplementedError


@llm_function()
def colours(text: str) -> list[str]:
    """List the colours."""
    raise NotImplementedError


@llm_function()
def rivers(country: str) -> Iterator[str]:
    """Name rivers, one by one."""
    raise NotImplementedError


@llm_function(toolkit=[weather])
def umbrella(place: str) -> bool:
    """Is an umbrella needed?"""
    raise NotImplementedError


@llm_function(toolkit=[weather])
def compare(one: str, other: str) -> str:
    """Compare the weather of two cities."""
    raise NotImplementedError


@llm_chat(stream=True)
def talk(message: str, history: list[Message]) -> Iterator[ChatPair]:
    """You are a friendly guide."""
    raise NotImplementedError


@llm_function()
def mood(review: str) -> Confident[Literal["good", "bad"]]:
    """Tell the mood."""
    raise NotImplementedError


def ask_all() -> list[Any]:
    """Call the ten, and return what they gave."""
    given: list[Any] = [
        greet("Ada"),
        count("one two three"),
        city("Uppsala has 177000 people."),
        colours("red and blue"),
        list(rivers("Sweden")),
        list(city.stream("Uppsala has 177000 people."))[-1],  # the value grows; this is the last one
        umbrella("Paris"),
        compare("Paris", "Oslo"),
    ]
    history: list[Message] = []
    for message in ("Hello!", "And now?"):
        pairs = list(talk(message, history))
        history = pairs[-1][1]
    given.append([message["role"] for message in history])
    sure = mood("I laughed all week.")
    return [*given, (sure.value, sure.agreement)]


# --- a server that plays four services --------------------------------------------------------------------

ANSWERS: dict[str, Any] = {  # by what is in the request; a list is a turn of tool calls before the answer
    "Greet someone": "Hello, Ada!",
    "Count the words": "3",
    "Find the city": '{"name": "Uppsala", "people": 177000}',
    "List the colours": '["red", "blue"]',
    "Name rivers": '["Dalälven", "Torne"]',
    "umbrella needed": (["Paris"], "true"),
    "Compare the weather": (["Paris", "Oslo"], "Both are wet."),
    "friendly guide": "Nice to meet you.",
    "Tell the mood": '"good"',
}


def chat(text: str, cities: list[str]) -> tuple[Any, list[Any]]:
    calls = [
        {"index": at, "id": f"call_{at}", "type": "function", "function": {"name": "weather", "arguments": arguments}}
        for at, arguments in enumerate(json.dumps({"city": each}) for each in cities)
    ]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop"}
    return {"choices": [{**choice, "message": message}]}, [{"choices": [{**choice, "delta": message}]}]


def responses(text: str, cities: list[str]) -> tuple[Any, list[Any]]:
    items: list[Any] = [
        {"type": "function_call", "call_id": f"call_{each}", "name": "weather", "arguments": json.dumps({"city": each})}
        for each in cities
    ]
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    events: list[Any] = []
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", "output_index": index, "delta": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    reply = {"id": "resp_1", "object": "response", "status": "completed", "output": items}
    return reply, [*events, {"type": "response.completed", "response": reply}]


def messages(text: str, cities: list[str]) -> tuple[Any, list[Any]]:
    blocks: list[Any] = [
        {"type": "tool_use", "id": f"toolu_{each}", "name": "weather", "input": {"city": each}} for each in cities
    ]
    if text:
        blocks.append({"type": "text", "text": text})
    reply = {"type": "message", "role": "assistant", "stop_reason": "tool_use" if cities else "end_turn"}
    usage = {"input_tokens": 3, "output_tokens": 4}
    events: list[Any] = [{"type": "message_start", "message": {**reply, "content": [], "usage": usage}}]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": usage})
    return {**reply, "content": blocks, "usage": usage}, [*events, {"type": "message_stop"}]


def generate_content(text: str, cities: list[str]) -> tuple[Any, list[Any]]:
    parts: list[Any] = [{"functionCall": {"name": "weather", "args": {"city": each}}} for each in cities]
    if text:
        parts.append({"text": text})
    reply = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}
    return reply, [reply]


SERVICES = {"/chat/completions": chat, "/responses": responses, "/messages": messages, ":": generate_content}
RESULTS = ('"role": "tool"', "function_call_output", "tool_result", "functionResponse")


class Services(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer by the words in the request, in the form of the wire it came by."""
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        body = json.loads(asked)
        told = json.dumps(body)
        answer = next(each for words, each in ANSWERS.items() if words in told)
        cities, text = answer if isinstance(answer, tuple) else ([], answer)
        is_done = not cities or any(mark in told for mark in RESULTS)
        reply = next(make for path, make in SERVICES.items() if path in self.path)
        whole, events = reply(text, []) if is_done else reply("", cities)
        is_stream = body.get("stream") or "stream" in self.path
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) if is_stream else json.dumps(whole)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("content-length", str(len(data.encode())))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(data.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    models = [
        OpenAICompatible("some-model", base_url=f"{here}/v1"),
        OpenAICompatible("gpt-5.6", base_url=f"{here}/v1", wire="responses"),
        Anthropic("claude-sonnet-5-5", base_url=here),
        Gemini("gemini-3.8-flash", base_url=here),
    ]
    given = []
    for llm in models:
        with use_llm(llm):
            given.append(ask_all())
        print(f"{llm.wire_name:10} {llm.url().removeprefix(here)}")
    for value in given[0]:
        print(" ", value)
    assert all(each == given[0] for each in given)
    print("The ten gave the same on all four wires.")
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
