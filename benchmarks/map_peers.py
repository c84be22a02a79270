"""`f.map` beside others who ask for many rows: rate, processor time and memory a row, and what a kill and a rerun pay again.

    python -m benchmarks.map_peers                # the whole field in one run; writes benchmarks/RESULTS-map.md
    python -m benchmarks.map_peers ours aiohttp   # some of it; prints

Each contender runs in an environment of its own under `.bench/`, in a process of its own, against one server that
answers after 200 ms and counts how often each row was asked. Everybody keeps what is finished, in the way of its house:
we with `checkpoint=`, bespokelabs-curator in its working folder, LangChain in its `SQLiteCache`, DSPy in its disk cache.
Bare aiohttp, 20 lines by hand, keeps nothing; it is there for the rate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.in_flight import memory

ROOT = Path(__file__).parent.parent
SYSTEM = "You are the help desk of a large company. Answer the question of the colleague, be brief and polite."
DELAY = 0.2
SAID = "Please switch it off and on again. "


def question(number: int) -> str:
    return f"My printer prints nothing, what can I do? The number of my ticket is <<{number:07}>>."


def answer_to(number: int) -> str:
    return f"{SAID}<<{number:07}>>"


# --- the server --------------------------------------------------------------------------------------------


class Server(asyncio.Protocol):
    """Answers after `DELAY` seconds, and counts the rows."""

    paid: ClassVar[Counter[bytes]] = Counter()
    token = re.compile(rb"<<(\d{7})>>")

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end])
            size = re.search(rb"(?i)content-length: *(\d+)", head)
            whole = end + 4 + (int(size[1]) if size else 0)
            if len(self._buffer) < whole:
                return
            body = bytes(self._buffer[end + 4 : whole])
            del self._buffer[:whole]
            self._answer(head.split()[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/paid":
            self._send(json.dumps({"total": self.paid.total(), "rows": len(self.paid)}).encode())
        elif path == b"/reset":
            self.paid.clear()
            self._send(b"{}")
        else:
            found = self.token.findall(body)
            token = found[-1] if found else b"0000000"
            self.paid[token] += 1
            text = f"{SAID}<<{token.decode()}>>"
            if b"[[ ## answer ## ]]" in body:
                text = f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"
            reply = {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": "bench",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52},
            }
            asyncio.get_running_loop().call_later(DELAY, self._send, json.dumps(reply).encode())

    def _send(self, body: bytes) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=8192)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the contenders, each in its own process -----------------------------------------------------------------

Texts = list[str]


async def ours(url: str, texts: Texts, width: int, place: Path) -> list[str]:
    from SimpleLLMFunc import OpenAICompatible, llm_function

    llm = OpenAICompatible("bench", base_url=url, api_key="sk-bench")

    @llm_function(llm_interface=llm, system_prompt_template=SYSTEM, user_prompt_template="{parameters}")
    async def answer(question: str) -> str:
        """Answer the question."""
        raise NotImplementedError

    report = await answer.map(texts, concurrency=width, checkpoint=place / "run.sqlite", progress=False)
    return [row.value for row in report.rows]


async def aiohttp(url: str, texts: Texts, width: int, place: Path) -> list[str]:  # noqa: ARG001 - it keeps nothing
    import aiohttp as package

    results = [""] * len(texts)
    numbers = iter(range(len(texts)))
    headers = {"content-type": "application/json", "authorization": "Bearer sk-bench"}
    timeout = package.ClientTimeout(total=None, connect=60.0)
    async with package.ClientSession(connector=package.TCPConnector(limit=0), timeout=timeout) as session:

        async def lane() -> None:
            for number in numbers:
                messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": texts[number]}]
                body = json.dumps({"model": "bench", "messages": messages}).encode()
                async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
                    response.raise_for_status()
                    reply = json.loads(await response.read())
                results[number] = reply["choices"][0]["message"]["content"]

        await asyncio.gather(*(lane() for _ in range(width)))
    return results


async def langchain(url: str, texts: Texts, width: int, place: Path) -> list[str]:
    from langchain_community.cache import SQLAlchemyCache
    from langchain_core.globals import set_llm_cache
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI
    from sqlalchemy import create_engine

    # What SQLiteCache does, but that it waits for a busy file: with 1,000 in flight it gives up ("database is locked").
    set_llm_cache(SQLAlchemyCache(create_engine(f"sqlite:///{place / 'langchain.db'}", connect_args={"timeout": 120})))
    llm = ChatOpenAI(model="bench", base_url=url, api_key="sk-bench")
    inputs = [[SystemMessage(SYSTEM), HumanMessage(text)] for text in texts]
    replies = await llm.abatch(inputs, config={"max_concurrency": width})
    return [str(reply.content) for reply in replies]


def dspy(url: str, texts: Texts, width: int, place: Path) -> list[str]:
    import dspy as package

    package.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(place / "dspy"))
    package.configure(lm=package.LM("openai/bench", api_base=url, api_key="sk-bench", cache=True))

    class Answer(package.Signature):
        __doc__ = SYSTEM
        question: str = package.InputField()
        answer: str = package.OutputField()

    predict = package.Predict(Answer)
    pairs = [(predict, {"question": text}) for text in texts]
    return [each.answer for each in package.Parallel(num_threads=width, disable_progress_bar=True)(pairs)]


def curator(url: str, texts: Texts, width: int, place: Path) -> list[str]:
    import tiktoken
    from bespokelabs import curator as package

    class Quarter:
        """Stands in for tables that tiktoken would fetch from the network; faster than they are."""

        def encode(self, text: str, **_: Any) -> range:
            return range(len(text) // 4)

    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_: Quarter()

    class Answer(package.LLM):
        def prompt(self, row: Any) -> Any:
            return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": row["question"]}]

        def parse(self, row: Any, response: Any) -> Any:
            return {"question": row["question"], "answer": response}

    answer = Answer(
        model_name="bench",
        backend="openai",
        backend_params={
            "base_url": url,
            "api_key": "sk-bench",
            "max_concurrent_requests": width,
            "max_requests_per_minute": 10_000_000,
            "max_tokens_per_minute": 10_000_000_000,
        },
    )
    found = answer([{"question": text} for text in texts], working_dir=str(place / "curator"))
    dataset = getattr(found, "dataset", found)
    by_question = {row["question"]: row["answer"] for row in dataset}
    return [by_question[text] for text in texts]


ASKED = {"ours": ours, "aiohttp": aiohttp, "langchain": langchain, "dspy": dspy, "curator": curator}


def work(name: str, url: str, count: int, width: int, place: str) -> None:
    """Ask for all rows, once, and tell what it took; what imports take is left out."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some libraries print
    texts = [question(number) for number in range(count)]
    {
        "ours": lambda: __import__("SimpleLLMFunc.batch.map"),
        "aiohttp": lambda: __import__("aiohttp"),
        "langchain": lambda: (__import__("langchain_openai"), __import__("langchain_community.cache")),
        "dspy": lambda: __import__("dspy"),
        "curator": lambda: __import__("bespokelabs.curator"),
    }[name]()
    before = memory("VmRSS")
    began, cpu = time.perf_counter(), time.process_time()
    asked = ASKED[name](url, texts, width, Path(place))
    answers = asyncio.run(asked) if asyncio.iscoroutine(asked) else asked
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
    wrong = sum(answer_to(number) != answer.strip() for number, answer in enumerate(answers))
    told = {"seconds": seconds, "cpu": cpu, "peak_mb": memory("VmHWM"), "imported_mb": before}
    print(json.dumps({**told, "wrong": wrong + abs(len(answers) - count)}), file=out, flush=True)
    out.close()
    os._exit(0)  # clients that were never closed complain at the end; nothing of theirs is needed


# --- measuring -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """Who is measured."""

    name: str
    title: str
    package: str
    requirements: tuple[str, ...]
    environment: str
    keeps: bool = True


PEERS = (
    Peer("aiohttp", "bare aiohttp", "aiohttp", ("aiohttp", "pydantic"), "aiohttp", keeps=False),
    Peer("ours", "SimpleLLMFunc `f.map`", "SimpleLLMFunc", ("-e", "."), "ours"),
    Peer("curator", "bespokelabs-curator", "bespokelabs-curator", ("bespokelabs-curator",), "curator"),
    Peer(
        "langchain",
        "LangChain `abatch`, SQLiteCache",
        "langchain-openai",
        ("langchain-openai", "langchain-community"),
        "langchain_map",
    ),
    Peer("dspy", "DSPy `Parallel`, disk cache", "dspy", ("dspy",), "dspy"),
)


@dataclass
class Measured:
    """What came of a peer; None where it was not measured."""

    version: str = ""
    rates: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    imported: float = 0.0
    again: int | None = None
    added: int | None = None
    problem: str = ""


class Bench:
    """One server, and a place for what the contenders keep."""

    def __init__(self, python: Path, home: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.map_peers", "serve"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.home = home
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def ask(self, what: str) -> dict[str, int]:
        with self._open(f"http://127.0.0.1:{self.port}/{what}", timeout=60) as reply:
            told: dict[str, int] = json.load(reply)
            return told

    def start(self, peer: Peer, python: Path, rows: int, width: int, place: Path) -> subprocess.Popen[bytes]:
        from benchmarks.workers import environment

        url = f"http://127.0.0.1:{self.port}/v1"
        seen = {
            **environment(self.home),
            "DSPY_CACHEDIR": str(place / "dspy"),
            "TELEMETRY_ENABLED": "0",
            "CURATOR_DISABLE_RICH_DISPLAY": "1",
            "HF_HUB_OFFLINE": "1",
            "no_proxy": "*",
        }
        command = [str(python), "-P", "-m", "benchmarks.map_peers", "work", peer.name, url, str(rows), str(width)]
        log = (self.home / f"map-{peer.name}.log").open("wb")
        with log:
            return subprocess.Popen([*command, str(place)], cwd=place, env=seen, stdout=subprocess.PIPE, stderr=log)

    def finish(self, peer: Peer, process: subprocess.Popen[bytes], seconds: float = 900) -> dict[str, Any]:
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise RuntimeError(f"no end within {seconds:g} s") from None
        if process.returncode or not out:
            lines = (self.home / f"map-{peer.name}.log").read_text("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"ended with {process.returncode}: {lines[-1] if lines else 'not a word'}"[:300])
        told: dict[str, Any] = json.loads(out)
        if told["wrong"]:
            raise RuntimeError(f"{told['wrong']} rows without their answer")
        return told

    def place(self, name: str) -> Path:
        folder = self.home / "map" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def measure_speed(bench: Bench, peer: Peer, python: Path, rows: int, width: int, found: Measured) -> None:
    bench.ask("reset")
    told = bench.finish(peer, bench.start(peer, python, rows, width, bench.place(peer.name)))
    paid = bench.ask("paid")
    if paid["rows"] < rows:
        raise RuntimeError(f"only {paid['rows']} rows reached the server")
    found.rates.append(rows / told["seconds"])
    found.cpus.append(told["cpu"] / rows * 1e6)
    found.peaks.append(told["peak_mb"])
    found.imported = told["imported_mb"]


def measure_kill(bench: Bench, peer: Peer, python: Path, rows: int, width: int, found: Measured) -> None:
    bench.ask("reset")
    place = bench.place(peer.name)
    process = bench.start(peer, python, rows, width, place)
    while process.poll() is None and bench.ask("paid")["total"] < rows // 2:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(2 * DELAY)
    bench.finish(peer, bench.start(peer, python, rows, width, place))
    paid = bench.ask("paid")
    found.again = paid["total"] - paid["rows"]
    bench.finish(peer, bench.start(peer, python, rows + 1, width, place))
    found.added = bench.ask("paid")["total"] - paid["total"] - 1


def run(names: list[str], rows: int, width: int, rounds: int) -> dict[str, Measured]:
    from benchmarks.environments import SERVER, home, installed, prepare
    from benchmarks.field import Contender

    peers = [peer for peer in PEERS if not names or peer.name in names]
    pythons, found = {}, {peer.name: Measured() for peer in peers}
    for peer in peers:
        contender = Contender(peer.environment, peer.title, peer.package, peer.requirements, "")
        pythons[peer.name] = prepare(contender)
        found[peer.name].version = installed(contender)["versions"].get(peer.package, "")
    bench = Bench(prepare(SERVER), home())
    try:
        for each in range(rounds):
            # Who is first in one round is last in another: the machine is not the same all the time.
            for peer in peers[each % len(peers) :] + peers[: each % len(peers)]:
                _tried(measure_speed, bench, peer, pythons[peer.name], rows, width, found[peer.name])
        for peer in peers:
            if peer.keeps:
                _tried(measure_kill, bench, peer, pythons[peer.name], min(rows, 3_000), width, found[peer.name])
    finally:
        bench.close()
    return found


def _tried(measure: Any, bench: Bench, peer: Peer, python: Path, rows: int, width: int, found: Measured) -> None:
    try:
        measure(bench, peer, python, rows, width, found)
        print(f"{measure.__name__} {peer.name}: {found}", file=sys.stderr, flush=True)
    except RuntimeError as error:
        found.problem = str(error)
        print(f"{measure.__name__} {peer.name}: {error}", file=sys.stderr, flush=True)


def table(found: dict[str, Measured], rows: int, width: int) -> str:
    ideal = width / DELAY
    bare = max(found["aiohttp"].rates) if found.get("aiohttp") and found["aiohttp"].rates else None
    titles = ["", "rows a second", "of the ideal rate", "of bare aiohttp's rate", "processor time a row"]
    titles += [
        "peak memory (imported)",
        f"paid again after a kill, of {min(rows, 3_000):,}",
        "paid again for one row more",
    ]
    lines = [f"| {' | '.join(titles)} |", f"| --- {'| ---: ' * (len(titles) - 1)}|"]
    for peer in PEERS:
        one = found.get(peer.name)
        if one is None:
            continue
        title = f"{peer.title} {one.version}".strip()
        if not one.rates:
            lines.append(f"| {title} | {one.problem} | | | | | | |")
            continue
        # The best: what else runs on the machine can only make it worse.
        rate, cpu, peak = max(one.rates), min(one.cpus), min(one.peaks)
        share = "" if bare is None else f"{rate / bare:.2f}"
        kept = ["keeps nothing", ""] if not peer.keeps else [_shown(one.again), _shown(one.added)]
        lines.append(
            f"| {title} | {rate:,.0f} | {rate / ideal:.2f} | {share} | {cpu:,.0f} µs "
            f"| {peak:,.0f} MB ({one.imported:,.0f}) | {kept[0]} | {kept[1]} |"
        )
    return "\n".join(lines)


def _shown(count: int | None) -> str:
    return "not measured" if count is None else f"{count:,}"


def write(found: dict[str, Measured], rows: int, width: int, rounds: int) -> None:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    text = f"""# `f.map` beside others

Written by `python -m benchmarks.map_peers`; all in one run, each in a process and an environment of its own.

{rows:,} rows, {width:,} in flight, a server on the same machine that answers after {DELAY * 1000:g} ms: the ideal rate is
{width / DELAY:,.0f} rows a second. The best of {rounds} rounds. Processor time and rate are those of the map, without imports.
Then, with {min(rows, 3_000):,} rows: the process is killed with SIGKILL when half of the calls have reached the server, and run again
until it is done; the server counts which rows were paid more than once. Then it is run again with one row more.

{table(found, rows, width)}

* {platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}. The load average at the end was
  {load:.1f}: other work ran on the same processors, so rates are lower than on a quiet machine and their ratios rough. Processor
  time a row suffers less.
* Rows in flight when the process dies have to be paid again by everybody: up to {width:,} of them, about half of what was asked in so short a run.
  What is beyond that was finished, and lost.
* Everybody asks the same question in its own prompts: DSPy's are longer. bespokelabs-curator counts tokens with tiktoken, which
  fetches its tables from the network at first use; here a stand-in counts, which takes less time. LangChain's `SQLiteCache` is given
  a longer patience with its file: as it is, it gives up with 1,000 in flight ("database is locked").
"""
    (ROOT / "benchmarks" / "RESULTS-map.md").write_text(text, encoding="utf-8")


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        try:
            import uvloop

            uvloop.run(serve())
        except ImportError:
            asyncio.run(serve())
        return
    if sys.argv[1:2] == ["work"]:
        name, url, rows, width, place = sys.argv[2:]
        work(name, url, int(rows), int(width), place)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="all by default: " + ", ".join(peer.name for peer in PEERS))
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--width", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    found = run(told.names, told.rows, told.width, told.rounds)
    print(table(found, told.rows, told.width))
    if not told.names:
        write(found, told.rows, told.width, told.rounds)


if __name__ == "__main__":
    main()
