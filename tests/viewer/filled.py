"""A trace store and a checkpoint as a working week leaves them; real runs, of which only the dates are set back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

from SimpleLLMFunc import OpenAICompatible
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import tool_calls
from tests.support.server import LoopbackServer, completion, json_answer
from tests.viewer import shop

DAY = 86400.0

LETTERS = [
    "Two teapots, please, and a tray. Ines, Porto.", "Dear shop, I'd like one tray (18 euros). Not urgent. Yours, Tom",
    "你好，请给我寄三个茶壶和一个托盘。王芳，上海", "Six teapots for the café by Friday!! – Marta",
]  # fmt: skip
MOODS = ["Thank you so much!", "This is the third time I ask.", "It arrived.", "壶盖碎了，我很失望。", "Lovely, again."]


async def slow_answer(seconds: float, answer: Any) -> Any:
    await asyncio.sleep(seconds)
    return answer


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


async def showpiece(store: TraceStore, pace: float) -> str:
    """One run with everything in it: a refused try, tools, an answer that is sent back, a repair. Return its trace id."""
    calls = tool_calls(("stock", {"item": "teapot"}), ("stock", {"item": "tray"}))["tool_calls"]
    calls = [{"id": f"call_{at}", **call} for at, call in enumerate(calls)]
    busy = {"error": {"message": "Too many requests."}}
    fenced = "Here is the order:\n```json\n" + shop.order_json("24.50 EUR") + "\n```"
    replies = iter(
        [
            (0.25, json_answer(busy, status=429, headers={"retry-after": f"{0.3 * pace:g}"})),
            (0.9, json_answer(completion(None, tool_calls=calls, usage=_usage(412, 38), model="gpt-5-mini"))),
            (1.4, json_answer(completion(shop.order_json("a lot"), usage=_usage(498, 71), model="gpt-5-mini"))),
            (1.1, json_answer(completion(fenced, usage=_usage(611, 84), model="gpt-5-mini"))),
        ]
    )

    def handler(_request: Any) -> Any:
        seconds, answer = next(replies)
        return slow_answer(seconds * pace, answer)

    async with LoopbackServer(handler) as server:
        llm = OpenAICompatible("gpt-5-mini", api_key="none", base_url=server.base_url, retry_delay=0.3 * pace)
        with watching(store):
            result = await shop.read_order.with_options(llm_interface=llm).call(shop.LETTER)
    return result.trace_id


async def ordinary(store: TraceStore, count: int) -> None:
    """`count` runs of all functions, some of which fail."""
    chance = random.Random(7)
    with watching(store):
        for at in range(count):
            version = [*shop.OLDER_READ_ORDER, shop.read_order][min(at * 3 // count, 2)]
            pick = chance.random()
            with contextlib.suppress(SimpleLLMFuncError):
                if pick < 0.45:
                    await _order(version, chance, wrong=0.16 - 0.05 * min(at * 3 // count, 2))
                elif pick < 0.75:
                    await asyncio.to_thread(shop.mood, chance.choice(MOODS))
                elif pick < 0.9:
                    await shop.describe(chance.choice(["teapot", "tray", "cup"]))
                else:
                    history: list[Any] = []
                    for message in ("When do you open?", "And on Sundays?"):
                        async for _, history in shop.clerk(history, message):
                            pass


async def _order(version: Any, chance: random.Random, wrong: float) -> None:
    if chance.random() < wrong:
        llm = shop.PricedLLM("I cannot read that.", model_name="gpt-5-mini", repeat=True)
    elif version is shop.read_order:
        llm = shop.order_llm()
    else:
        lines = [{"item": "teapot", "quantity": chance.randint(1, 6), "price": 24.5}]
        llm = shop.PricedLLM(json.dumps({"customer": "Tom", "lines": lines}), model_name="gpt-5-mini", repeat=True)
    await version.with_options(llm_interface=llm)(chance.choice(LETTERS))


def set_back(path: Path, days: float, keep: str) -> None:
    """Spread the runs over the last `days`, with times and prices as a service has them; `keep` stays as it was."""
    chance = random.Random(11)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        statement = "SELECT id, function, version, output_tokens FROM runs WHERE trace_id != ? ORDER BY id"
        runs = connection.execute(statement, (keep,)).fetchall()
        newest: dict[str, float] = {}
        for at, (number, function, version, tokens) in enumerate(runs):
            started = time.time() - days * DAY * (1 - (at + 1) / len(runs)) - 240
            seconds = chance.lognormvariate(0, 0.35) * (0.25 + tokens * 0.018)
            connection.execute("UPDATE runs SET started = ?, seconds = ? WHERE id = ?", (started, seconds, number))
            turn = "UPDATE turns SET started = 0.01, seconds = ? WHERE run = ? AND number = 1"
            connection.execute(turn, (seconds * 0.9, number))
            if version not in newest:
                newest[version] = started
                seen = "UPDATE versions SET first_seen = ? WHERE version = ? AND function = ?"
                connection.execute(seen, (started, version, function))


async def mapped(checkpoint: Path, rows: int) -> None:
    """A map of which some rows fail."""
    chance = random.Random(3)

    def reply(_request: Any) -> str:
        pick = chance.random()
        if pick < 0.06:
            return "no idea"
        if pick < 0.08:
            return ""
        label = chance.choice(["happy", "neutral", "angry"])
        return json.dumps({"label": label, "confidence": round(chance.uniform(0.5, 1), 2)})

    llm = shop.PricedLLM(reply, model_name="gpt-5-nano", repeat=True)
    function = shop.mood.with_options(llm_interface=llm, max_reasks=0, retry_times=0)
    given = [{"text": f"{MOODS[at % len(MOODS)]} (letter {at + 1})"} for at in range(rows)]
    await asyncio.to_thread(function.map, given, checkpoint=checkpoint, concurrency=20)
    with contextlib.closing(sqlite3.connect(checkpoint)) as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (rows,)


def fill(
    folder: Path, *, runs: int = 240, rows: int = 400, days: float = 6, pace: float = 1.0
) -> tuple[Path, Path, str]:
    """Return the paths of a store and a checkpoint, and the trace id of the run with everything in it."""
    path, checkpoint = folder / "runs.sqlite", folder / "moods.sqlite"
    store = TraceStore(path)
    asyncio.run(ordinary(store, runs))
    trace_id = asyncio.run(showpiece(store, pace))
    store.close()
    set_back(path, days, trace_id)
    with TraceStore(path) as store, watching(store, session_id="letters-7", user_id="Ines"):
        asyncio.run(shop.clerk_agent("Look at the letters of today, and say how large the pot is."))
    asyncio.run(mapped(checkpoint, rows))
    return path, checkpoint, trace_id
