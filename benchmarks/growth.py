"""How a call's processor time and memory grow with what it has to carry: linear, or there is something to mend.

    python -m benchmarks.growth                    # all kinds; writes GROWTH.md, growth.json and growth.svg
    python -m benchmarks.growth --kinds messages,tools --no-write

Each point is measured in a process of its own. The exponent of the growth between the two largest sizes is 1 where
twice as much takes twice as long, and 2 where it takes four times as long; costs that do not depend on the size, as
those of the call itself, pull it towards 0.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.contenders._worker import ORDER, memory
from benchmarks.server import ServerProcess, raise_open_files

ROOT, FOLDER = Path(__file__).parent.parent, Path(__file__).parent
SENTENCE = "It rains, and it will go on raining until the evening, says the forecast of the canned server.\n"


@dataclass(frozen=True)
class Kind:
    """One way to grow.

    Attributes:
        key: its name.
        title: for a reader.
        sizes: that are measured.
        options: of the server for a size; `SAY` stands for the name of what it says.
        says: the text that it says for a size, "" for none.
    """

    key: str
    title: str
    sizes: tuple[int, ...]
    options: Callable[[int], str] = lambda _: "answer=text"
    says: Callable[[int], str] = lambda _: ""


def _nested(depth: int) -> str:
    return '{"name":"leaf","child":' * depth + "null" + "}" * depth


def _orders(size: int) -> str:
    one = json.dumps(ORDER)
    return f'{{"value":[{",".join([one] * max(size // (len(one) + 1), 1))}]}}'


KINDS: tuple[Kind, ...] = (
    Kind("messages", "messages of the history", (2, 100, 500, 1_000, 2_000)),
    Kind("tools", "tools offered", (1, 10, 50, 100, 200)),
    Kind(
        "text",
        "bytes of a text answer",
        (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        lambda _: "say=SAY",
        lambda size: SENTENCE * (size // len(SENTENCE)),
    ),
    Kind(
        "typed",
        "bytes of a typed list",
        (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        lambda _: "say=SAY",
        _orders,
    ),
    Kind(
        "chunks",
        "chunks of a streamed answer",
        (100, 1_000, 10_000, 100_000),
        lambda size: f"say=SAY,chunks={size}",
        lambda size: "abcd " * size,
    ),
    Kind(
        "items",
        "items of a streamed list of models",
        (10, 100, 1_000, 10_000),
        lambda size: f"say=SAY,chunks={size * 10}",
        lambda size: _orders(size * 150),
    ),
    Kind("nesting", "depth of a nested answer", (1, 10, 50, 100, 150), lambda _: "say=SAY", _nested),
    Kind("flight", "calls in flight", (1, 10, 100, 1_000, 10_000), lambda size: f"hold={size}"),
)
BY_KEY = {kind.key: kind for kind in KINDS}


# --- one point, in a process of its own ------------------------------------------------------------------


def caller(kind: str, size: int, url: str) -> Callable[[], Awaitable[Any]]:
    """Return what makes one call of that size."""
    from SimpleLLMFunc import OpenAICompatible, llm_chat, llm_function
    from SimpleLLMFunc.tools import Tool

    llm = OpenAICompatible("bench", base_url=url, api_key="sk-bench", profile="openai")
    tools = [
        Tool(func=lambda place: place, name=f"look_{number}", description="Look at a place.", parameters=_PLACE)
        for number in range(size if kind == "tools" else 0)
    ]

    @llm_function(llm_interface=llm, toolkit=tools)
    async def text(question: str) -> str:
        """Answer briefly."""
        raise NotImplementedError

    if kind == "typed":
        return lambda: llm_function(llm_interface=llm)(_orders_function())("What was ordered?")
    if kind == "nesting":
        return lambda: llm_function(llm_interface=llm)(_nested_function())("What is inside?")
    if kind == "items":
        read = llm_function(llm_interface=llm)(_items_function())

        async def count() -> int:
            return len([item async for item in read("What was ordered?")])

        return count
    if kind == "chunks":

        async def drain() -> int:
            return len([piece async for piece in text.stream("What will the weather be like?")])

        return drain
    if kind == "messages":

        @llm_chat(llm_interface=llm)
        async def chat(history: list[Any], message: str) -> AsyncIterator[tuple[str, list[Any]]]:
            """Answer briefly."""
            raise NotImplementedError

        history = [{"role": ("user", "assistant")[number % 2], "content": SENTENCE} for number in range(size)]

        async def talk() -> list[Any]:
            return [pair async for pair in chat(history, "And tomorrow?")]

        return talk
    if kind == "flight":

        async def storm() -> list[Any]:
            return await asyncio.gather(*(text("What will the weather be like?") for _ in range(size)))

        return storm
    return lambda: text("What will the weather be like?")


_PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def _orders_function() -> Any:
    from benchmarks.contenders._order import Order

    async def read(question: str) -> list[Order]:
        """Read the orders."""
        raise NotImplementedError

    read.__annotations__["return"] = list[Order]
    return read


def _items_function() -> Any:
    from benchmarks.contenders._order import Order

    async def read(question: str) -> AsyncIterator[Order]:
        """Read the orders."""
        raise NotImplementedError

    read.__annotations__["return"] = AsyncIterator[Order]
    return read


def _nested_function() -> Any:
    from pydantic import create_model

    node = create_model("Node", name=(str, ...), child=("Node | None", ...))

    async def read(question: str) -> Any:
        """Read the tree."""
        raise NotImplementedError

    read.__annotations__["return"] = node
    return read


async def point(kind: str, size: int, small_url: str, url: str, seconds: float) -> dict[str, float]:
    """Return processor time per call, in µs, and the memory that the calls took on top, in MB."""
    # Imports, connections and compiled types belong to no size.
    small = caller(kind, BY_KEY[kind].sizes[0], small_url)
    await small()
    call = caller(kind, size, url)
    gc.collect()
    before, cpu, calls = memory("VmRSS"), 0.0, 0
    while cpu < seconds and (calls < 3 or cpu < seconds / 3):
        begun = time.process_time()
        await call()
        cpu += time.process_time() - begun
        calls += 1
    peak = memory("VmHWM")
    return {"us": cpu / calls * 1e6, "mb": max(peak - before, 0.0), "calls": calls}


# --- all points ------------------------------------------------------------------------------------------

Points = dict[str, dict[int, dict[str, Any]]]


def measure(
    kinds: Sequence[Kind], *, sizes: Sequence[int] | None = None, seconds: float = 0.5, rounds: int = 3
) -> Points:
    """Measure every point; the least time of some rounds counts, a neighbour can only make it longer."""
    points: Points = {}
    with ServerProcess() as server:
        for kind in kinds:
            wanted = sizes or kind.sizes
            for size in {kind.sizes[0], *wanted}:
                if text := kind.says(size):
                    server.say(f"{kind.key}{size}", text)
            for size in wanted:
                tries = [_point(server, kind, size, seconds) for _ in range(rounds)]
                right = [told for told in tries if "error" not in told]
                told = min(right, key=lambda told: told["us"]) if right else tries[0]
                points.setdefault(kind.key, {})[size] = told
                print(f"{kind.title:42} {size:>10,}  {_said(told)}", file=sys.stderr, flush=True)
    return points


def _said(told: dict[str, Any]) -> str:
    return told["error"] if "error" in told else f"{told['us']:14,.0f} µs {told['mb']:8.1f} MB"


def _point(server: ServerProcess, kind: Kind, size: int, seconds: float) -> dict[str, Any]:
    def url(of: int) -> str:
        return server.url(kind.options(of).replace("SAY", f"{kind.key}{of}"))

    command = [sys.executable, "-m", "benchmarks.growth", "--point", kind.key, str(size)]
    try:
        done = subprocess.run(
            [*command, url(kind.sizes[0]), url(size), str(seconds)],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": "no end within 300 s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["not a word"])[-1][:300]}
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def exponent(points: dict[int, dict[str, Any]], what: str) -> float | None:
    """Return the exponent of the growth between the two largest sizes, None where they cannot be compared."""
    sizes = sorted(size for size, told in points.items() if told.get(what, 0) > 0)[-2:]
    if len(sizes) < 2:
        return None
    first, second = (points[size][what] for size in sizes)
    return math.log(second / first) / math.log(sizes[1] / sizes[0])


def page(points: Points) -> str:
    """Return GROWTH.md."""
    lines = [
        "# How the cost of a call grows",
        "",
        "Made by `python -m benchmarks.growth`; do not edit. Processor time of the client per call, and the memory that",
        "it took on top; of all calls together in the last rows. The exponent is that of the growth between the two",
        "largest sizes: 1 is linear, 2 is quadratic.",
        "",
        "![Growth](growth.svg)",
        "",
        "| | size | µs | exponent | MB | exponent |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in KINDS:
        of_kind = points.get(kind.key, {})
        for size, told in of_kind.items():
            if "error" in told:
                lines.append(f"| {kind.title} | {size:,} | {told['error'].replace('|', '/')} | | | |")
                continue
            shown = [
                f"{value:.2f}" if size == max(of_kind) and (value := exponent(of_kind, what)) is not None else ""
                for what in ("us", "mb")
            ]
            lines.append(
                f"| {kind.title} | {size:,} | {told['us']:,.0f} | {shown[0]} | {told['mb']:.1f} | {shown[1]} |"
            )
    return "\n".join([*lines, ""])


# --- the plot: a small one for each kind, both scales logarithmic ------------------------------------------

WIDE, HIGH, ACROSS = 250, 190, 4


def plot(points: Points) -> str:
    """Return an SVG: time and memory against size, with a grey line of slope 1 through the largest time."""
    kinds = [kind for kind in KINDS if points.get(kind.key)]
    width, height = ACROSS * WIDE, ((len(kinds) + ACROSS - 1) // ACROSS) * HIGH + 36
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<text x="12" y="20" font-size="14" font-weight="bold">Cost of a call against its size, logarithmic</text>',
        '<text x="380" y="20" fill="#d62728">processor time</text>',
        '<text x="480" y="20" fill="#1f77b4">memory on top</text>',
        '<text x="580" y="20" fill="#999">linear</text>',
    ]
    for number, kind in enumerate(kinds):
        x, y = number % ACROSS * WIDE, number // ACROSS * HIGH + 36
        out.append(f'<g transform="translate({x} {y})">{"".join(_panel(kind, points[kind.key]))}</g>')
    return "\n".join([*out, "</svg>", ""])


def _panel(kind: Kind, points: dict[int, dict[str, Any]]) -> list[str]:
    sizes = sorted(size for size, told in points.items() if "error" not in told)
    left, right, top, bottom = 20, WIDE - 50, 26, HIGH - 34
    out = [
        f'<text x="{left}" y="14" font-weight="bold">{escape(kind.title)}</text>',
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="none" stroke="#ccc"/>',
    ]
    if len(sizes) < 2:
        return out
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: float) -> float:
        return left + (math.log10(size) - low) / (high - low) * (right - left)

    out += [
        f'<text x="{x(size):.0f}" y="{bottom + 14}" text-anchor="middle">{size:,}</text>'
        for size in (sizes[0], sizes[-1])
    ]
    for what, color in (("us", "#d62728"), ("mb", "#1f77b4")):
        values = {size: max(points[size][what], 1e-3 if what == "us" else 0.1) for size in sizes}
        least, most = math.log10(min(values.values())), math.log10(max(values.values()))
        # As many decades upwards as sideways, so that a linear growth has the slope of the grey line.
        span = max(most - least, high - low)

        def y(value: float, most: float = most, span: float = span) -> float:
            return top + (most - math.log10(value)) / span * (bottom - top)

        if what == "us":
            begin = y(10 ** (most - (high - low)))
            out.append(
                f'<line x1="{left}" y1="{begin:.1f}" x2="{right}" y2="{top}" stroke="#bbb" stroke-dasharray="3"/>'
            )
        path = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in values.items())
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        label = _time(values[sizes[-1]]) if what == "us" else f"{values[sizes[-1]]:.0f} MB"
        out.append(f'<text x="{right + 3}" y="{top + (8 if what == "us" else 22)}" fill="{color}">{label}</text>')
    return out


def _time(us: float) -> str:
    return f"{us:.0f} µs" if us < 1e3 else f"{us / 1e3:.0f} ms" if us < 1e6 else f"{us / 1e6:.1f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="How costs grow.")
    parser.add_argument("--kinds", default=",".join(BY_KEY), help="by their keys")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one point")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-write", action="store_true", help="only print")
    parser.add_argument("--point", nargs=5, metavar=("KIND", "SIZE", "SMALL_URL", "URL", "SECONDS"), help="for itself")
    given = parser.parse_args(arguments)
    if given.point:
        raise_open_files()
        kind, size, small_url, url, seconds = given.point
        print(json.dumps(asyncio.run(point(kind, int(size), small_url, url, float(seconds)))))
        return 0
    points = measure(
        [kind for kind in KINDS if kind.key in given.kinds.split(",")], seconds=given.seconds, rounds=given.rounds
    )
    print(page(points))
    if not given.no_write:
        (FOLDER / "growth.json").write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
        (FOLDER / "growth.svg").write_text(plot(points), encoding="utf-8")
        (FOLDER / "GROWTH.md").write_text(page(points), encoding="utf-8")
    return 1 if any("error" in told for of_kind in points.values() for told in of_kind.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
