"""Runs that are killed: ``python -m tests.support.crashing FOLDER RUNS KILLS``.

Children of this process work through the runs, each six rounds of tools, and are killed: at random, or by themselves at a
moment before, in or after a transaction, or between what a tool does and the record of it. What was asked and done is
written beside, one line each; the last line tells how many kills there were.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from SimpleLLMFunc import ABSTAIN, OutcomeUnknown, ToolContext, durable, llm_function, tool, use_llm
from SimpleLLMFunc.journal import RUN_AGAIN, answer, log_file
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

ROUNDS = 6
FOLDER, RUNS, KILLS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
JOURNAL, NOTES = FOLDER / "runs.sqlite", FOLDER / "notes"
notes = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
fuse = [0]


def note(*words: object) -> None:
    os.write(notes, (" ".join(map(str, words)) + "\n").encode())


def moment() -> None:
    """A moment at which this process may kill itself."""
    fuse[0] -= 1
    if fuse[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def transaction(connection, plain=log_file.transaction):
    moment()
    with plain(connection):
        yield
        moment()
    moment()


def noted(self, count, plain=log_file.StepCounts.note):
    plain(self, count)
    moment()


@tool
async def look(run: int, step: int, context: ToolContext) -> str:
    """Look."""
    note("look", run, step, context.idempotency_key)
    moment()
    return f"seen {step}"


def receipt(context: ToolContext) -> object:
    key = context.idempotency_key
    found = any(line.startswith("pay") and line.endswith(f" {key}") for line in NOTES.read_text().splitlines())
    return f"paid {key[:4]}" if found else ABSTAIN


@tool(once=True, recover=receipt)
def pay(run: int, step: int, context: ToolContext) -> str:
    """Pay."""
    note("pay", run, step, context.idempotency_key)
    moment()
    return f"paid {context.idempotency_key[:4]}"


def reply(request):
    done = sum(message["role"] == "tool" for message in request.messages)
    run = int(request.messages[1]["content"].split()[-1])
    note("reply", run, done)
    moment()
    if done == ROUNDS:
        results = [str(message["content"]).split()[0] for message in request.messages if message["role"] == "tool"]
        return f"{run}: {' '.join(results)}"
    return tool_calls(("pay" if done % 2 else "look", {"run": run, "step": done}))


@llm_function(toolkit=[look, pay], max_tool_calls=ROUNDS, check_arguments=False)
async def work(run: int) -> str:
    """Work."""


async def one(run: int) -> None:
    for _ in range(3):
        try:
            with use_llm(ScriptedLLM(reply, repeat=True)), durable(JOURNAL, key=f"run {run}"):
                note("answer", await work(run))
            note("end", run)
            return
        except OutcomeUnknown as error:
            answer(JOURNAL, error.key, error.call_id, RUN_AGAIN)
    raise AssertionError("its outcome was told")


async def child(runs: list[int]) -> None:
    for run in runs:
        await one(run)


def main() -> None:
    chance = random.Random(RUNS)
    log_file.transaction, log_file.StepCounts.note = transaction, noted
    asyncio.run(child([0]))  # what is loaded at the first call need not be loaded by each child
    began, fuse[0] = time.monotonic(), 0
    asyncio.run(child([1]))
    seconds, moments = (2 * each * RUNS / KILLS for each in (time.monotonic() - began, -fuse[0]))
    killed = 0
    while True:
        ended = {int(line.split()[1]) for line in NOTES.read_text().splitlines() if line.startswith("end")}
        left = [run for run in range(RUNS) if run not in ended]
        if not left:
            break
        by_clock = not killed % 2
        # The fuse burns in each of them: by the clock alone a quick machine after a slow start has few kills.
        fuse[0] = 0 if killed >= KILLS else int(moments) if by_clock else chance.randrange(1, int(moments))
        pid = os.fork()
        if pid == 0:
            asyncio.run(child(left))
            os._exit(0)
        if fuse[0] and by_clock:
            time.sleep(chance.uniform(0.0, seconds))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif status:
            sys.exit(1)
    note("killed", killed)


if __name__ == "__main__":
    main()
