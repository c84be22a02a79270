"""Wrote the files beside it, once, with SimpleLLMFunc 1.0.0: ``python -m tests.files_of_1_0.write``.

Kept so that a reader sees what is in them. Do not run it with a later version: what later versions write is not what
they have to be able to read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import re
from pathlib import Path

import SimpleLLMFunc
from SimpleLLMFunc import (
    APIKeyPool,
    CachedLLM,
    Confident,
    FallbackLLM,
    ImgUrl,
    LocalModel,
    OpenAICompatible,
    Quoted,
    RateLimited,
    ResponseParseError,
    Text,
    TokenBucket,
    ToolFailed,
    TraceStore,
    Usage,
    use_llm,
    watching,
)
from SimpleLLMFunc.assistant import SqliteMemory
from SimpleLLMFunc.evaluate import evaluate
from SimpleLLMFunc.lock import lock_of, write_lock
from SimpleLLMFunc.testing import ScriptedLLM, use_cassette
from tests.files_of_1_0 import shop
from tests.support.server import LoopbackServer

HERE = Path(__file__).parent
ROWS = [f"tea {number}" for number in range(20)]
NAMES = ("summary", "line_of", "advise", "points", "mood", "sure", "excerpt", "lines", "anything", "talk")


def line(request):
    """Answer with a line that is named after the number in the question; what is said of tea 13 is none."""
    number = re.search(r"tea (\d+)", str(request.body["messages"][-1]["content"]))[1]
    return "not a line" if number == "13" else json.dumps({"name": number, "price": 2.5, "mood": "bad"})


async def main() -> None:
    async with FixedServer(handler=line) as server:
        report = await shop.line_of.with_options(max_reasks=0).map(ROWS, checkpoint=HERE / "checkpoint.sqlite")
        assert [row.error is None for row in report.rows].count(False) == 1
        await shop.line_of.with_options(llm_interface=CachedLLM(shop.llm, HERE / "cache.sqlite"))("tea 1")
        with TraceStore(HERE / "traces.sqlite", max_age=None) as store, watching(store, session_id="s", user_id="u"):
            await shop.line_of("tea 1")
            server.reply_tool_calls([("weather", {"city": "Paris"})])
            server.reply('{"value": "coat"}')
            await shop.advise("Paris")
            with contextlib.suppress(ResponseParseError):
                await shop.line_of.with_options(max_reasks=0)("tea 13")
            async for _ in shop.talk([], "tea 5"):
                pass
        with use_cassette(HERE / "cassette.json"):
            await shop.line_of("tea 1")
            server.reply_tool_calls([("weather", {"city": "Paris"})])
            server.reply('{"value": "coat"}')
            await shop.advise("Paris")
        cases = [("tea 1", {"name": "1", "price": 2.5, "mood": "bad"}), ("tea 2", {"name": "?", "price": 2.5})]
        (await asyncio.to_thread(evaluate, shop.line_of, cases)).save(HERE / "evaluation.json")
    with use_llm(ScriptedLLM("A guide to tea.", '{"memories": []}')):
        memory = SqliteMemory(HERE / "memory.sqlite", extract_every=0, summarize_every=0)
        await memory.remember("u", "我喜欢绿茶", "好的", "s")
        await memory.remember("u", "Where is Hangzhou?", "In Zhejiang.", "s")
        await memory.add_memory("u", "likes green tea 绿茶")
        memory.close()
    write_lock(HERE / "llm.lock", lock_of(shop), ["tests.files_of_1_0.shop"])
    facts = {name: getattr(shop, name)._core.facts.version for name in NAMES}
    facts["Shop.name"] = shop.Shop().name._core.facts.version
    (HERE / "versions.json").write_text(
        json.dumps({"__all__": SimpleLLMFunc.__all__, "functions": facts}, indent=1) + "\n"
    )
    folder = HERE / "pickles"
    folder.mkdir(exist_ok=True)
    result = await shop.summary.with_options(llm_interface=ScriptedLLM("rain")).call("It rains.")
    for name, thing in things(result).items():
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(thing, protocol=4))


def things(result):
    open_ai = OpenAICompatible("m", api_key="k" * 20, base_url="https://example.org/v1", api_params={"seed": 1})
    caught = RateLimited("m", retry_after=2.5)
    caught.with_run(func_name="f", trace_id="t", usage=Usage(1, 2))
    return {
        "APIKeyPool": APIKeyPool(["k" * 20], "p"),
        "CachedLLM": CachedLLM(open_ai, "/nowhere/cache.sqlite"),
        "Confident": Confident(3, {"": 1.0}, False, (3,), 1, False),
        "FallbackLLM": FallbackLLM(open_ai, OpenAICompatible("n", base_url="http://127.0.0.1:9/v1")),
        "ImgUrl": ImgUrl("https://example.org/a.png", detail="low"),
        "LocalModel": LocalModel(),
        "OpenAICompatible": open_ai,
        "Quoted": Quoted("rain"),
        "RateLimited": caught,
        "ResponseParseError": ResponseParseError("x", int, [("", "int", "'x'")]),
        "Result": result,
        "Text": Text("rain"),
        "TokenBucket": TokenBucket(5, 1.0),
        "ToolFailed": ToolFailed("t", "ValueError: no"),
        "Usage": Usage(1, 2, 3, 4, 0.5),
    }


class FixedServer(LoopbackServer):
    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 47113)
        self.port, self.base_url = 47113, shop.ADDRESS
        return self


if __name__ == "__main__":
    asyncio.run(main())
