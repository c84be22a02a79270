"""Rows 34 to 36: streams that are left, signals, loops, threads and forks; each in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.faults.acts import breaks_after
from tests.faults.replies import LAST, STREAM_HEAD, TEXT, events_of, good, sends
from tests.faults.server import FaultServer, in_chunk

ROOT = Path(__file__).parents[2]

BEGINNING = """
import asyncio, gc, os, signal, sys, threading, warnings
from collections.abc import AsyncIterator, Iterator
from SimpleLLMFunc import ChatPair, OpenAICompatible, llm_chat, llm_function
from tests.faults.replies import TEXT
from tests.faults.scenario import WEATHER, Weather

def model(play):
    return OpenAICompatible("m", base_url=sys.argv[1].replace("PLAY", play), api_key="sk-test-12345678", retry_delay=0.01)

def plain(play, returns=Weather):
    def report(place: str):
        "Report."
    report.__annotations__["return"] = returns
    return llm_function(model(play))(report)

def awaited(play, returns=Weather):
    async def report(place: str):
        "Report."
    report.__annotations__["return"] = returns
    return llm_function(model(play))(report)

def plain_chat(play):
    def chat(history: list, message: str) -> Iterator[ChatPair]:
        "Talk."
    return llm_chat(model(play), stream=True)(chat)

def chat(play):
    async def chat(history: list, message: str) -> AsyncIterator[ChatPair]:
        "Talk."
    return llm_chat(model(play), stream=True)(chat)
"""

NOISE = ("was never awaited", "was never retrieved", "Task was destroyed", "Exception ignored", "Traceback", "Warning")


def complaints(err):
    return [line for line in err.splitlines() if any(word in line for word in NOISE)]


class Program:
    """A program in a process of its own, against a server in this one."""

    def __init__(self, server, text, *options):
        self.server = server
        self.options = options or ("-X", "dev", "-W", "error")
        self.text = BEGINNING + textwrap.dedent(text)

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *self.options, "-c", self.text, self.server.address("PLAY"),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    async def end(self):
        out, err = await asyncio.wait_for(self.process.communicate(), 40)
        return out.decode(), err.decode(), self.process.returncode


async def run_well(server, text):
    """The program ends without a word of complaint, and says "fine"."""
    async with Program(server, text) as program:
        out, err, code = await program.end()
    assert (out, code) == ("fine\n", 0), err
    assert not complaints(err), err


PLAYS = {"good": [good], "half": [breaks_after(3, "hold")], "silent": [sends(end="hold")]}

# --- 34: streams that nobody reads to their end ----------------------------------------------------------

LEFT = {
    "break": """
        async def main():
            async for _ in chat("half")([], "x"):
                break
            async for _ in awaited("half", str).stream("x"):
                break
        asyncio.run(main())
        """,
    "aclose": """
        async def main():
            for stream in chat("half")([], "x"), awaited("half", str).stream("x"), awaited("half").events("x"):
                await anext(stream)
                await stream.aclose()
                await stream.aclose()
        asyncio.run(main())
        """,
    "dropped": """
        async def main():
            for stream in chat("half")([], "x"), awaited("half", str).stream("x"):
                await anext(stream)
            del stream
            gc.collect()
            await asyncio.sleep(0.05)
        asyncio.run(main())
        """,
    "never dropped": """
        kept = []
        async def main():
            kept.extend([chat("half")([], "x"), awaited("half", str).stream("x"), chat("half")([], "never begun")])
            for stream in kept[:2]:
                await anext(stream)
        asyncio.run(main())
        """,
    "sync break": """
        for _ in plain_chat("half")([], "x"):
            break
        for _ in plain("half", str).stream("x"):
            break
        """,
    "sync close": """
        for stream in plain_chat("half")([], "x"), plain("half", str).stream("x"):
            next(stream)
            stream.close()
            stream.close()
        """,
    "sync dropped": """
        stream = plain_chat("half")([], "x")
        next(stream)
        del stream
        gc.collect()
        """,
    "sync never dropped": """
        stream = plain_chat("half")([], "x")
        next(stream)
        other = plain_chat("half")([], "never begun")
        """,
    "two ends": """
        async def main():
            stream = chat("half")([], "x")
            await anext(stream)
            task = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.05)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            await stream.aclose()
        asyncio.run(main())
        """,
}

ALONE = ("never dropped", "sync never dropped")
"""What the end of the interpreter has to tidy up; the others share a process."""


@pytest.mark.parametrize("hows", [[how for how in LEFT if how not in ALONE], *([how] for how in ALONE)], ids=", ".join)
async def test_a_stream_that_is_left_closes_its_connection_without_a_word(hows):
    async with FaultServer(PLAYS) as server:
        await run_well(server, "\n".join(textwrap.dedent(LEFT[how]) for how in hows) + "\nprint('fine')\n")
        assert len(server.requests("half")) >= len(hows)
        assert await server.until(lambda: server.open_connections == 0)


# --- 35: signals -----------------------------------------------------------------------------------------

WAITING = {
    "function": 'plain("silent")("x")',
    "values": 'list(plain("half", str).stream("x"))',
    "chat": 'list(plain_chat("half")([], "x"))',
}


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("view", WAITING)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
async def test_a_signal_ends_a_synchronous_call_within_a_second(number, view):
    text = f"""
        class Stop(BaseException):
            pass

        def stop(*_):
            raise Stop

        if {number == signal.SIGTERM}:
            signal.signal(signal.SIGTERM, stop)
        try:
            {WAITING[view]}
        except (KeyboardInterrupt, Stop):
            print("fine", flush=True)
        """
    async with FaultServer(PLAYS) as server, Program(server, text) as program:
        play = "silent" if view == "function" else "half"
        assert await server.until(lambda: bool(server.requests(play)), 20)
        await asyncio.sleep(0.05)
        started = time.monotonic()
        program.process.send_signal(number)
        assert await program.process.stdout.readline() == b"fine\n"
        assert time.monotonic() - started < 1.0
        _, err, code = await program.end()
        assert code == 0
        assert not complaints(err)
        assert await server.until(lambda: server.open_connections == 0)


# --- 36: loops, threads, forks ---------------------------------------------------------------------------

LOOPS = {
    "one loop after another": """
        llm = model("good")

        @llm_function(llm)
        async def report(place: str) -> Weather:
            "Report."

        for _ in range(5):
            assert asyncio.run(report("x")) == WEATHER
        """,
    "many loops at once": """
        report, failed = awaited("good"), []

        def ask():
            for _ in range(3):
                if asyncio.run(report("x")) != WEATHER:
                    failed.append(1)

        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not failed
        """,
    "50 threads": """
        report, talk, said = plain("good"), plain_chat("good"), []

        def ask():
            said.append(report("x"))
            said.append("".join(text for text, _ in talk([], "x")))

        threads = [threading.Thread(target=ask) for _ in range(50)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(said) == 100 and said.count(WEATHER) == 50
        """,
    "inside a running loop": """
        async def main():
            assert plain("good")("x") == WEATHER  # as in a notebook
            assert [text async for text, _ in chat("good")([], "x")]
            assert await awaited("good")("x") == WEATHER
            assert "".join(text for text, _ in plain_chat("good")([], "x"))

        asyncio.run(main())
        """,
    "a loop closed without ceremony": """
        report = awaited("good")
        for _ in range(3):
            loop = asyncio.new_event_loop()
            assert loop.run_until_complete(report("x")) == WEATHER
            loop.close()
        """,
    "at the end of the interpreter": """
        import atexit
        report = plain("good")
        report("x")
        atexit.register(lambda: sys.stdout.write("fine\\n") if report("x") == WEATHER else None)
        """,
    "fork": """
        report, talk = plain("good"), plain_chat("good")
        assert report("x") == WEATHER
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of threads
            pid = os.fork()
        assert report("x") == WEATHER
        assert "".join(text for text, _ in talk([], "x"))
        assert asyncio.run(awaited("good")("x")) == WEATHER
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        else:
            sys.stdout.flush()
            sys.exit(0)
        """,
}

APART = ("50 threads", "at the end of the interpreter", "fork")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("hows", [[how for how in LOOPS if how not in APART], *([how] for how in APART)], ids=", ".join)
async def test_loops_threads_and_forks(hows):
    async with FaultServer(PLAYS) as server:
        ending = "" if "at the end of the interpreter" in hows else "\nprint('fine')\n"
        await run_well(server, "\n".join(textwrap.dedent(LOOPS[how]) for how in hows) + ending)
        assert await server.until(lambda: server.open_connections == 0)


FORK_IN_STREAM = """
stream = plain_chat("slow")([], "x")
said = [next(stream)[0]]
pid = os.fork()
if not pid:
    %s
    assert plain("good")("x") == WEATHER
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert plain("go_on")("x") == WEATHER
said += [text for text, _ in stream]
assert "".join(said) == TEXT, said
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("does", ["pass", "stream.close()", "del stream; gc.collect()"])
async def test_a_child_leaves_the_stream_of_its_parent_alone(does):
    forked = asyncio.Event()

    async def slow(exchange):
        first, *rest = map(in_chunk, events_of(TEXT))
        await exchange.send(STREAM_HEAD, first, rest.pop(0))
        await forked.wait()
        await exchange.send(*rest, LAST)

    async def told(exchange):
        forked.set()
        await good(exchange)

    async with FaultServer({"slow": [slow], "good": [good], "go_on": [told]}) as server:
        # Without -X dev: what a child inherits in the middle of its work is finalized unclosed, which that tells.
        async with Program(server, FORK_IN_STREAM % does, "-W", "default") as program:
            out, err, code = await program.end()
        assert (out, code) == ("fine\n", 0), err
