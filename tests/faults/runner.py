"""Plays a scenario to the library, in each of its views, and judges what came of it.

The oracle: the result is exact, or one of our errors is raised, within the deadline and half a second, with as many
requests as expected, no task, socket or counted key left behind, and no secret in any output.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest import mock

from SimpleLLMFunc import Anthropic, APIKeyPool, Gemini, OpenAICompatible, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import http_model
from SimpleLLMFunc.interface.spending.budget import budget
from SimpleLLMFunc.logger.records import JsonFormatter
from SimpleLLMFunc.runtime import loop_thread, sync
from tests.faults.replies import JSON_TEXT, pieces_of
from tests.faults.scenario import Form, Kind, Scenario
from tests.faults.server import FaultServer
from tests.support.connections import Recorded
from tests.support.functions import async_function_of, chat, function_of, plain_chat
from tests.support.starved import starved
from tests.support.tls import server_context

KEY = "sk-CANARY-0123456789abcdef"
"""The key of every call; it must not be found in any output."""

GRACE = 0.5
"""Seconds after its deadline by which a call has ended."""

LATE = "it took"

BUSY = 0.05
"""Seconds for which this thread was ready to run and was not let, above which a machine counts as busy."""


@dataclass(frozen=True)
class Cell:
    """One square of the matrix."""

    scenario: Scenario
    kind: Kind
    form: Form
    is_async: bool
    client: bool = False
    wire: str = "chat"

    def __str__(self) -> str:
        return f"{self.scenario.name} {self.form} {'async def' if self.is_async else 'def'} {self.kind}"


@dataclass
class Seen:
    """What came of a cell.

    Attributes:
        outcome: "exact", the name of an error of ours, "WRONG", "FOREIGN name" or "HANG".
        requests: how many the server saw.
        problems: everything that is not as it must be; empty where all is well.
    """

    cell: Cell
    outcome: str = "HANG"
    requests: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def cells_of(scenario: Scenario, *, client: bool = False, wire: str = "chat") -> list[Cell]:
    """The squares of one scenario: all on chat completions; on the others the `async def` function and the `def` chat.

    What `def` and `async def` differ in is no matter of the wire.
    """
    return [
        Cell(scenario, kind, form, is_async, client, wire)
        for form in scenario.forms
        for kind in scenario.kinds
        for is_async in (True, False)
        if wire == "chat" or is_async == (kind == "function")
    ]


async def play(scenario: Scenario, *, client: bool = False, wire: str = "chat") -> list[Seen]:
    """Play a scenario in all its views at once, and judge them.

    A machine that is busy with other things makes any call late, and may let its time run out before the request has
    left: what went wrong on such a machine counts if it does so three times.
    """
    scenario = scenario.of(wire)
    for _ in range(3):
        before = starved()
        seen = await _play_once(scenario, client=client, wire=wire)
        problems = [problem for one in seen for problem in one.problems]
        is_busy = starved() - before > BUSY
        if not problems or not (is_busy or all(problem.startswith(LATE) for problem in problems)):
            break
    return seen


async def _play_once(scenario: Scenario, *, client: bool, wire: str) -> list[Seen]:
    tasks, before = asyncio.all_tasks(), sockets()
    with contextlib.ExitStack() as stack:
        if scenario.idle is not None:
            stack.enter_context(mock.patch.object(http_model, "IDLE_SECONDS", scenario.idle))
        stack.enter_context(without_proxies())
        log = stack.enter_context(captured_log())
        cells = cells_of(scenario, client=client, wire=wire)
        # What it takes to make the models is no part of the calls.
        ready = asyncio.Barrier(len(cells))
        seen = await asyncio.gather(*(_play_cell(cell, log, ready) for cell in cells))
    for problem in await leftovers(tasks, before):
        for one in seen:
            one.problems.append(problem)
    return seen


async def _play_cell(cell: Cell, log: io.StringIO, ready: asyncio.Barrier) -> Seen:
    scenario, seen = cell.scenario, Seen(cell)
    plays = {scenario.name: scenario.acts, "elsewhere": scenario.elsewhere}
    async with FaultServer(plays, tls=server_context() if scenario.tls else None) as server:
        place = scenario.address or FaultServer.address
        pool = APIKeyPool([KEY])
        async with _model(cell, place(server, scenario.name), pool) as llm:
            notes: list[Any] = []
            work = _work(cell, llm, notes)
            await ready.wait()
            error, values, spent, seen.seconds = await _outcome(cell, work)
        requests = server.requests(scenario.name)
        seen.requests = len(requests)
        if isinstance(error, TimeoutError):
            seen.problems.append(f"still running {GRACE} s after its deadline")
        else:
            _judge(seen, error, values, requests, notes)
            output = [log.getvalue(), *(_output_of(each) for each in ([error] if error else values))]
            seen.problems += ["a secret in the output" for text in output if KEY in text]
            if spent < len(requests) and not scenario.name.startswith("redirect"):
                seen.problems.append(f"a budget counts {spent} requests")
        if not await server.until(lambda: server.busy == 0, 1.0):
            seen.problems.append("the connection is still open")
        seen.problems += [f"the server failed: {failure!r}" for failure in server.failures]
        if pool.tasks:
            seen.problems.append(f"{pool.tasks} keys are still counted")
        expected = scenario.expects(cell.form, client=cell.client)
        strayed = server.requests("elsewhere")
        if any(KEY in str(request.headers) for request in strayed):
            seen.problems.append("the key went to another host")
        elif strayed and not expected.why:
            seen.problems.append("a request went to another host")
    return seen


def _judge(
    seen: Seen, error: BaseException | None, values: list[Any], requests: list[Recorded], notes: list[Any]
) -> None:
    cell, scenario = seen.cell, seen.cell.scenario
    expected = scenario.expects(cell.form, client=cell.client)
    wanted = scenario.value if cell.kind == "function" else scenario.text
    if error is None:
        seen.outcome = "exact" if values == [wanted] * scenario.calls else "WRONG"
        if seen.outcome == "WRONG" != expected.outcome:
            seen.problems.append(f"the result is {str(values)[:300]}")
    elif isinstance(error, SimpleLLMFuncError):
        seen.outcome = type(error).__name__
    else:
        seen.outcome = f"FOREIGN {type(error).__name__}"
        seen.problems.append("".join(traceback.format_exception(error))[-1500:])
    if seen.outcome != expected.outcome:
        seen.problems.append(f"{seen.outcome} instead of {expected.outcome}: {str(error)[:300]}")
        return
    if seen.requests != expected.requests:
        seen.problems.append(f"{seen.requests} requests instead of {expected.requests}")
    most = scenario.deadline + GRACE if scenario.most is None else scenario.most
    if not scenario.least <= seen.seconds <= most:
        seen.problems.append(f"{LATE} {seen.seconds:.2f} s, not {scenario.least} to {most}")
    if scenario.partial is not None:
        text = JSON_TEXT if cell.kind == "function" else scenario.text
        partial = "".join(pieces_of(text)[: scenario.partial])
        if getattr(error, "partial", None) != partial:
            seen.problems.append(f"partial is {getattr(error, 'partial', None)!r}, not {partial!r}")
    if scenario.check is not None and not expected.why:
        try:
            scenario.check(error, requests, notes)
        except (AssertionError, LookupError, TypeError) as failed:
            seen.problems.append(f"check: {failed!r}"[:600])


def _output_of(item: Any) -> str:
    """Everything that a user may see of a result or an error."""
    if isinstance(item, BaseException):
        return "".join([str(item), repr(item), repr(vars(item)), *traceback.format_exception(item)])
    return repr(item)


# --- the call --------------------------------------------------------------------------------------------


async def _outcome(cell: Cell, work: Callable[[], Any]) -> tuple[BaseException | None, list[Any], int, float]:
    """Run the work; return its error, its values, how many requests a budget counted, and the seconds."""
    scenario = cell.scenario
    values: list[Any] = []
    spent = 0

    async def run() -> None:
        nonlocal spent
        with budget(requests=1000) as counted:
            try:
                for number in range(scenario.calls):
                    await asyncio.sleep(scenario.rest if number else 0)
                    values.append(await (work() if cell.is_async else asyncio.to_thread(work)))
            finally:
                spent = counted.requests
                tokens.append(counted.tokens)

    tokens: list[int] = []
    started = time.monotonic()
    task = asyncio.create_task(run())
    await asyncio.wait({task}, timeout=scenario.deadline * scenario.calls + GRACE + 1)
    seconds = time.monotonic() - started
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=1)
        return TimeoutError(), values, spent, seconds
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None and scenario.usage is not None and tokens != [scenario.usage]:
        values.append(f"usage {tokens}")
    return error, values, spent, seconds


def _work(cell: Cell, llm: Any, notes: list[Any]) -> Callable[[], Any]:
    """Return what makes the call once: a plain function, or one that gives something to await."""
    scenario = cell.scenario
    options = {"deadline": scenario.deadline, **scenario.options}
    if scenario.toolkit is not None:
        options["toolkit"] = scenario.toolkit(notes)
    stream: Callable[[Any], Any]
    join: Callable[[list[Any]], Any]
    if cell.kind == "chat":
        made = (chat if cell.is_async else plain_chat)(llm, stream=cell.form == "stream", **options)
        stream, join = partial(made, []), _said
    else:
        made = (async_function_of if cell.is_async else function_of)(llm, scenario.returns, **options)
        if cell.form == "whole":
            return lambda: made(scenario.argument)
        stream, join = made.stream, "".join if scenario.returns is str else _last
    if cell.is_async:
        return lambda: _joined(stream(scenario.argument), join)
    return lambda: join(list(stream(scenario.argument)))


_last = itemgetter(-1)


async def _joined(stream: AsyncIterator[Any], join: Callable[[list[Any]], Any]) -> Any:
    return join([item async for item in stream])


def _said(pairs: list[Any]) -> str:
    """The text of a chat, if its history ends with it."""
    text = "".join(piece for piece, _ in pairs)
    last = pairs[-1][1][-1]
    return text if last["role"] == "assistant" and last["content"] == text else f"history {pairs[-1][1]!r}"


def views_of(llm: Any, returns: Any = str, *, max_reasks: int = 2, **options: Any) -> dict[str, Callable[[], Any]]:
    """The ways to ask a model, by name; each gives something to await."""
    function, plain = (
        make(llm, returns, max_reasks=max_reasks, **options) for make in (async_function_of, function_of)
    )
    whole, streamed = (chat(llm, stream=stream, **options) for stream in (False, True))
    return {
        "function": lambda: function("x"),
        "def": lambda: asyncio.to_thread(plain, "x"),
        "values": lambda: _joined(function.stream("x"), _last),
        "chat": lambda: _joined(whole([], "x"), _said),
        "pieces": lambda: _joined(streamed([], "x"), _said),
    }


# --- the model -------------------------------------------------------------------------------------------


def model_of(wire: str, address: str, **options: Any) -> Any:
    """A model that is asked on a wire; the address is that of chat completions."""
    if wire == "messages":
        return Anthropic("claude-opus-4-6", base_url=address.removesuffix("/v1"), **options)
    if wire == "gemini":
        return Gemini("gemini-3.1-pro-preview", base_url=address.removesuffix("/v1"), **options)
    # The profile is said, so that a typed function sends its schema: what that server takes is known here.
    return OpenAICompatible("m", base_url=address, wire=wire, profile="openai-compatible", **options)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def _model(cell: Cell, address: str, pool: APIKeyPool) -> AsyncIterator[Any]:
    options: dict[str, Any] = {"retry_delay": 0.01, **cell.scenario.llm}
    if not cell.client:
        yield model_of(cell.wire, address, api_key_pool=pool, **options)
        return
    import openai

    client = openai.AsyncOpenAI(api_key=KEY, base_url=address)
    try:
        yield OpenAICompatible("m", client=client, **options)
    finally:
        # A client belongs to the loop it was used on.
        if cell.is_async:
            await client.close()
        else:
            await asyncio.to_thread(sync.run_sync, client.close())


# --- what is left behind ---------------------------------------------------------------------------------


@contextlib.contextmanager
def without_proxies() -> Iterator[None]:
    """No proxy of the environment stands between a scenario and its address."""
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            del os.environ[name]
        yield


@contextlib.contextmanager
def captured_log() -> Iterator[io.StringIO]:
    """What the library logs meanwhile, at every level."""
    logger, text = logging.getLogger("SimpleLLMFunc"), io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield text
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


async def warm_up() -> None:
    """Start the loop of synchronous calls, whose sockets and tasks are not to be counted."""
    await asyncio.to_thread(sync.run_sync, asyncio.sleep(0))


def sockets() -> int:
    """How many sockets this process has open; 0 where nobody can tell."""
    found = 0
    with contextlib.suppress(FileNotFoundError):
        for place in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                found += str(place.readlink()).startswith("socket:")
    return found


def connections_taken() -> int:
    """How many connections are in use, and not resting in a pool; on all loops."""
    http = sys.modules.get("SimpleLLMFunc.interface.http.session")
    # Another thread may be importing it.
    sessions = getattr(http, "_sessions", None)
    known = [] if sessions is None else [session.connector for session, *_ in sessions.known.values()]
    return sum(len(connector._acquired) for connector in known if connector is not None)


async def leftovers(tasks: set[asyncio.Task[Any]], before: int) -> list[str]:
    """Return what is still there of a call that has ended, on this loop and on that of synchronous calls."""
    until = time.monotonic() + 1.0
    while True:
        thread = loop_thread._running
        late = asyncio.all_tasks() - tasks
        foreign = asyncio.all_tasks(thread._loop) if thread is not None else set()
        more, taken = sockets() - before, connections_taken()
        if not late and not foreign and more <= 0 and not taken:
            return []
        if time.monotonic() > until:
            return [
                *(f"a task is left: {task!r}"[:300] for task in late | foreign),
                *([f"{more} sockets left"] if more > 0 else []),
                *([f"{taken} connections left in use"] if taken else []),
            ]
        await asyncio.sleep(0.005)
