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

from tests.faults.replies import good, sends
from tests.faults.server import FaultServer
from tests.faults.stream_faults import breaks_after
from tests.support.starved import without_slow_steps

ROOT = Path(__file__).parents[2]

BEGINNING = """
import asyncio, gc, os, signal, sys, threading, warnings
from SimpleLLMFunc import OpenAICompatible
from tests.faults.replies import TEXT
from tests.faults.scenario import WEATHER, Weather
from tests.support import functions

def model(play):
    address = sys.argv[1].replace("PLAY", play)
    return OpenAICompatible("m", base_url=address, api_key="sk-test-12345678", retry_delay=0.01)

def plain(play, returns=Weather):
    return functions.function_of(model(play), returns)

def awaited(play, returns=Weather):
    return functions.async_function_of(model(play), returns)

def plain_chat(play):
    return functions.plain_chat(model(play), stream=True)

def chat(play):
    return functions.chat(model(play), stream=True)
"""


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
    assert not without_slow_steps(err), err


async def slow(exchange):
    await exchange.pause(0.3)
    await good(exchange)


PLAYS = {"good": [good], "slow": [slow], "half": [breaks_after(3, "hold")], "silent": [sends(end="hold")]}

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
    "sync dropped": """
        stream = plain_chat("half")([], "x")
        next(stream)
        del stream
        gc.collect()
        """,
}

ALONE = ("never dropped",)
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
    # A machine that is busy with other things makes any end late: late is what is late three times.
    for _ in range(3):
        seconds = await _seconds_to_the_end(text, "silent" if view == "function" else "half", number)
        if seconds < 1.0:
            break
    assert seconds < 1.0


async def _seconds_to_the_end(text, play, number):
    async with FaultServer(PLAYS) as server, Program(server, text) as program:
        assert await server.until(lambda: bool(server.requests(play)), 20)
        await asyncio.sleep(0.05)
        started = time.monotonic()
        program.process.send_signal(number)
        assert await program.process.stdout.readline() == b"fine\n"
        seconds = time.monotonic() - started
        _, err, code = await program.end()
        assert code == 0
        assert not without_slow_steps(err)
        assert await server.until(lambda: server.open_connections == 0)
    return seconds


# --- 36: loops, threads, forks ---------------------------------------------------------------------------

LOOPS = {
    "one loop after another": """
        report = awaited("good")
        for _ in range(30):
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
    "fork with calls in flight": """
        import time
        report, slow, got = plain("good"), plain("slow"), []
        for _ in range(2):
            # The first time they are the first calls of all, whose imports are under way.
            threads = [threading.Thread(target=lambda: got.append(slow("x"))) for _ in range(10)]
            for thread in threads: thread.start()
            time.sleep(0.05)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            assert report("x") == WEATHER
            assert asyncio.run(awaited("good")("x")) == WEATHER
            assert slow("x") == WEATHER
            if not pid:
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            for thread in threads: thread.join()
        assert got == [WEATHER] * 20
        """,
    "a client of the openai package on many loops": """
        import openai
        client = openai.AsyncOpenAI(api_key="sk-test-12345678", base_url=sys.argv[1].replace("PLAY", "good"))
        llm = OpenAICompatible("m", client=client)
        report, plain_report = (make(llm, Weather) for make in (functions.async_function_of, functions.function_of))
        with asyncio.Runner() as first:
            assert first.run(report("x")) == WEATHER
            for _ in range(5):
                assert asyncio.run(report("x")) == WEATHER
                assert plain_report("x") == WEATHER
            first.run(client.close())  # whoever made it closes it
        """,
}

APART = ("50 threads", "fork", "fork with calls in flight")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("hows", [[how for how in LOOPS if how not in APART], *([how] for how in APART)], ids=", ".join)
async def test_loops_threads_and_forks(hows):
    async with FaultServer(PLAYS) as server:
        await run_well(server, "\n".join(textwrap.dedent(LOOPS[how]) for how in hows) + "\nprint('fine')\n")
        assert await server.until(lambda: server.open_connections == 0)


AT_THE_END = {
    "in one that was registered before the first call": """
        import atexit
        report, talk, awaits = plain("good"), plain_chat("good"), awaited("good")

        def late():
            told = "".join(text for text, _ in talk([], "x"))
            for _ in plain_chat("half")([], "x"):
                break
            say_fine(report("x") == asyncio.run(awaits("x")) == WEATHER and told == TEXT)

        atexit.register(late)
        report("x")
        """,
    "in daemon threads that still wait": """
        import time
        report, silent = plain("good"), plain("silent")

        def again_and_again():
            while True:
                report("x")

        def stream():
            for _ in plain_chat("half")([], "x"):
                pass

        for target in (again_and_again, stream, lambda: silent("x"), lambda: asyncio.run(awaited("silent")("x"))) * 3:
            threading.Thread(target=target, daemon=True).start()
        time.sleep(0.5)
        say_fine(True)
        """,
}

SAY_FINE = """
def say_fine(is_fine, write=sys.stdout.write, flush=sys.stdout.flush):
    write("fine\\n" if is_fine else "wrong\\n")
    flush()
"""


@pytest.mark.parametrize("how", AT_THE_END)
async def test_calls_at_the_end_of_the_interpreter(how):
    async with FaultServer(PLAYS) as server:
        await run_well(server, SAY_FINE + textwrap.dedent(AT_THE_END[how]))
        assert await server.until(lambda: server.open_connections == 0)
