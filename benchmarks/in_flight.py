"""One client of `benchmarks.load`: so many calls in flight at once, in a process of its own, and what they took.

    python -m benchmarks.in_flight CLIENT BASE_URL CALLS

Prints one line of JSON. The bare clients do with aiohttp what one would write by hand: post, read, look into the JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.server import raise_open_files

Ask = Callable[[str], Awaitable[Any]]
Close = Callable[[], Awaitable[None]]
Read = Callable[[Any], str]
"""What in an answer must hold the token that was asked for."""

SYSTEM = "You are the help desk of a large company. Answer the question of the colleague, be brief and polite."


def question(token: str) -> str:
    return f"My printer prints nothing, what can I do? The number of my ticket is <<{token}>>."


def memory(name: str) -> float:
    """Return a field of /proc/self/status in MB; elsewhere only the peak is known."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except FileNotFoundError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1)
    return int(status.split(f"{name}:", 1)[1].split(None, 1)[0]) / 1024


# --- the clients -----------------------------------------------------------------------------------------


async def bare(url: str, *, stream: bool) -> tuple[Ask, Read, Close]:
    import aiohttp

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None, connect=60.0)
    )
    url += "/chat/completions"
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-load"}

    def body(token: str) -> bytes:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question(token)}]
        return json.dumps({"model": "load", "messages": messages, "stream": stream}).encode()

    async def whole(token: str) -> str:
        async with session.post(url, data=body(token), headers=headers) as response:
            response.raise_for_status()
            reply = json.loads(await response.read())
        return str(reply["choices"][0]["message"]["content"])

    async def streamed(token: str) -> str:
        pieces: list[str] = []
        async with session.post(url, data=body(token), headers=headers) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    pieces.append((choices[0]["delta"].get("content") or "") if choices else "")
        return "".join(pieces)

    return (streamed if stream else whole), str, session.close


async def ours(url: str, kind: str) -> tuple[Ask, Read, Close]:
    from pydantic import BaseModel

    from SimpleLLMFunc import Message, OpenAICompatible, llm_chat, llm_function

    logging.getLogger("SimpleLLMFunc").setLevel(logging.ERROR)
    llm = OpenAICompatible("load", base_url=url, api_key="sk-load")

    class Ticket(BaseModel):
        token: str
        subject: str
        urgency: int
        tags: list[str]

    @llm_function(llm_interface=llm)
    async def answer(message: str) -> str:
        """Answer."""
        raise NotImplementedError

    @llm_function(llm_interface=llm)
    async def ticket(message: str) -> Ticket:
        """Make a ticket."""
        raise NotImplementedError

    @llm_chat(llm_interface=llm, stream=True)
    async def chat(history: list[Message], message: str) -> AsyncIterator[tuple[str, list[Message]]]:
        raise NotImplementedError

    for function in (answer, ticket, chat):
        function.__doc__ = SYSTEM

    async def ask_chat(token: str) -> str:
        pieces: list[str] = []
        last: list[Message] = []
        async for piece, history in chat([], question(token)):
            pieces.append(piece)
            last = history
        text = "".join(pieces)
        if last[-1].get("content") != text:
            raise AssertionError("the history does not end with the answer")
        return text

    async def close() -> None:
        """The session closes with the loop."""

    if kind == "text":
        return (lambda token: answer(question(token))), str, close
    if kind == "typed":
        return (lambda token: ticket(question(token))), (lambda value: f"<<{value.token}>>"), close
    return ask_chat, str, close


CLIENTS: dict[str, tuple[str, str, Callable[[str], Awaitable[tuple[Ask, Read, Close]]]]] = {
    "aiohttp": ("answer=echo", "", lambda url: bare(url, stream=False)),
    "aiohttp, streamed": ("answer=echo", "", lambda url: bare(url, stream=True)),
    "llm_function -> str": ("answer=echo", "aiohttp", lambda url: ours(url, "text")),
    "llm_function -> model": ("answer=typed", "aiohttp", lambda url: ours(url, "typed")),
    "llm_chat, streamed": ("answer=echo", "aiohttp, streamed", lambda url: ours(url, "chat")),
}
"""What the server is to answer, whom it is compared with ("" for the bare ones), and how it is made."""


# --- one run ---------------------------------------------------------------------------------------------


async def run(client: str, url: str, calls: int) -> dict[str, Any]:
    """Ask `calls` questions at once and return what came of it."""
    ask, read, close = await CLIENTS[client][2](url)
    errors: Counter[str] = Counter()
    wrong = 0

    async def one(number: int) -> None:
        nonlocal wrong
        token = f"ticket-{number:07}"
        try:
            text = read(await ask(token))
        except Exception as error:  # noqa: BLE001 - counted, whatever it is
            errors[f"{type(error).__name__}: {error}"[:200]] += 1
        else:
            wrong += f"<<{token}>>" not in text

    before = memory("VmRSS")
    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one(number) for number in range(calls)))
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    await close()
    return {
        "client": client,
        "calls": calls,
        "errors": sum(errors.values()),
        "error_texts": errors.most_common(3),
        "wrong": wrong,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "before_mb": before,
        "peak_mb": memory("VmHWM"),
        "garbage_collections": gc.get_stats()[2]["collections"],
    }


if __name__ == "__main__":
    raise_open_files()
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
