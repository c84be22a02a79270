"""`f.map`: many rows, in order, each once, however they end."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pandas
import polars
import pyarrow
import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    AbortSignal,
    BudgetExceeded,
    ConfigError,
    DeadlineExceeded,
    ImgPath,
    OpenAICompatible,
    ResponseParseError,
    RunAborted,
    SignatureError,
    UsageError,
    budget,
    durable,
    llm_function,
    use_llm,
)
from SimpleLLMFunc.batch import local
from SimpleLLMFunc.batch.checkpoint import store
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.server import LoopbackServer, error_answer, text_answer

ROOT = Path(__file__).resolve().parents[2]


class Grade(BaseModel):
    score: int
    why: str


def text_of(request) -> str:
    """The argument `text` of a request."""
    return request.text.split("text: ", 1)[1].split("\n  - ")[0].strip()


def echo(request) -> str:
    return text_of(request).upper()


@llm_function(ScriptedLLM(echo, repeat=True))
async def shout(text: str) -> str:
    """Shout the text."""


@llm_function(ScriptedLLM(echo, repeat=True))
def shout_sync(text: str) -> str:
    """Shout the text."""


@llm_function
async def show(thing: object) -> str:
    """Show it."""


def graded(request) -> str:
    text = text_of(request)
    return "no idea" if text.startswith("bad") else f'{{"score": {len(text)}, "why": "{text}"}}'


@llm_function(ScriptedLLM(graded, repeat=True))
async def grade(text: str, strict: bool = False) -> Grade:
    """Grade the text."""


class Gate:
    """A model that answers when it is told to, and knows how many wait."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[None]] = {}
        self.most = 0
        self.came = asyncio.Event()
        self.llm = ScriptedLLM(self._reply, repeat=True)

    async def _reply(self, request) -> str:
        text = text_of(request)
        future = self.waiting[text] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.waiting))
        self.came.set()
        try:
            await future
        finally:
            del self.waiting[text]
        return text.upper()

    async def until(self, wanted: int | Callable[[], bool]) -> None:
        """Return when so many rows wait, or when it is as wanted."""
        while not (wanted() if callable(wanted) else len(self.waiting) >= wanted):
            self.came.clear()
            await self.came.wait()

    def let(self, *texts: str) -> None:
        for text in texts or list(self.waiting):
            if not self.waiting[text].done():
                self.waiting[text].set_result(None)


# --- rows in, rows out ---------------------------------------------------------------------------------------------


async def test_the_results_have_the_order_of_the_rows() -> None:
    gate = Gate()
    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.map(["a", "b", "c"], concurrency=3))
        await gate.until(3)
        for text in "cab":
            gate.let(text)
            await asyncio.sleep(0)
        report = await mapping
    assert [row.value for row in report.rows] == ["A", "B", "C"]


async def test_a_row_that_does_not_fit_the_parameters_fails_alone_and_is_not_sent() -> None:
    with use_llm(ScriptedLLM(graded, repeat=True)) as llm:
        report = await grade.map(["ok", ("a", True, "too many"), {"strict": True}])
    assert report.rows[0].value.score == 2
    for row in report.rows[1:]:
        assert isinstance(row.error, SignatureError)
    assert "too many positional" in str(report.rows[1].error)
    assert "'text'" in str(report.rows[2].error)
    assert len(llm.calls) == 1
    assert (report.counts.asked, report.counts.invalid, report.counts.failed) == (1, 2, 2)
    assert report.errors == {"SignatureError": 2}


async def test_the_failure_of_a_row_is_its_result() -> None:
    def reply(request) -> str:
        if text_of(request) == "ended":
            raise asyncio.CancelledError
        return 1 / 0 if text_of(request) == "broken" else graded(request)

    with use_llm(ScriptedLLM(reply, repeat=True)):
        report = await grade.with_options(max_reasks=0).map(["a", "bad", "ended", "broken"])
    errors = [row.error for row in report.rows]
    assert [type(error) for error in errors] == [type(None), ResponseParseError, RunAborted, ZeroDivisionError]
    with pytest.raises(ResponseParseError):
        _ = report.rows[1].value
    assert report.errors == {"ResponseParseError": 1, "RunAborted": 1, "ZeroDivisionError": 1}
    assert "3 failed" in str(report)
    assert report.rows[1].usage.total_tokens > 0
    assert errors[3].__traceback__ is None  # it would hold what its functions held
    with use_llm(ScriptedLLM("ok", ConfigError("closed"), "ok")):  # it stops no map in which a row was answered
        assert (await shout.map(["a", "b", "c"], concurrency=1)).errors == {"ConfigError": 1}


async def test_methods_and_streams_map() -> None:
    class Teacher:
        @llm_function
        async def each(self, text: str) -> AsyncIterator[int]:
            """Give numbers."""

        @llm_function
        def every(self, text: str) -> Iterator[int]:
            """Give numbers."""

    with use_llm(ScriptedLLM("[1, 2]", repeat=True)):
        assert [row.value for row in (await Teacher().each.map(["a"])).rows] == [[1, 2]]
        assert [row.value for row in Teacher().every.map(["a", "b"]).rows] == [[1, 2], [1, 2]]
        with pytest.raises(UsageError, match="method"):
            await Teacher.each.map(["a"])


async def test_the_rows_are_a_sequence() -> None:
    rows = (await shout.map([f"r{number}" for number in range(600)])).rows
    assert (len(rows), rows[-1].value) == (600, "R599")
    assert [row.value for row in rows[10:13]] == ["R10", "R11", "R12"]
    assert [row.value for row in rows[10:20][::-3]] == ["R19", "R16", "R13", "R10"]
    assert rows[10:13][1].index == 11
    assert [row.index for row in rows] == list(range(600))
    assert next(reversed(rows)).value == "R599"
    with pytest.raises(IndexError):
        _ = rows[600]
    assert "R3" in repr(rows[3])


async def test_usage_and_cost_are_those_of_all_rows() -> None:
    async with LoopbackServer(handler=lambda request: text_answer("hm")) as server:
        asked = shout.with_options(llm_interface=OpenAICompatible("m", base_url=server.base_url))
        several, none = await asked.map(["a", "b"]), await asked.map([])
    assert (several.usage.input_tokens, several.usage.output_tokens) == (10, 6)
    assert sum((row.usage for row in several.rows[1:]), several.rows[0].usage).input_tokens == 10
    assert (len(none.rows), none.counts.rows, none.cost) == (0, 0, 0)
    assert several.cost is None  # a model called "m" has no price


# --- identical rows ------------------------------------------------------------------------------------------------


async def test_identical_rows_are_asked_once_in_flight_and_after() -> None:
    gate = Gate()
    with use_llm(gate.llm), budget(seconds=20):  # to take in a piece of rows takes no second
        mapping = asyncio.create_task(shout.map(["a", ("a",), "b", {"text": "a"}, *["c"] * 4000], concurrency=2))
        await gate.until(2)
        assert set(gate.waiting) == {"a", "b"}
        gate.let("a")
        await gate.until(lambda: "c" in gate.waiting)
        gate.let()
        report = await mapping
    assert (len(gate.llm.calls), report.counts.asked, report.counts.duplicates) == (3, 3, 4001)
    assert [row.value for row in report.rows[:5]] == ["A", "A", "B", "A", "C"]
    assert report.usage.total_tokens == sum(
        row.usage.total_tokens for row in (report.rows[0], *report.rows[2:3], report.rows[4])
    )


async def test_what_looks_alike_and_is_not_is_asked_for_itself() -> None:
    class Thing:
        pass

    with use_llm(ScriptedLLM("ok", repeat=True)) as llm:
        await show.map([1, 1.5, True, "1", None, "None", [1], {1: 2}, {"1": 2}, {(1, 2): 3}, b"1", {1, 2}, {2, 1}])
        assert len(llm.calls) == 11  # the two sets are one, and a model reads {1: 2} as {"1": 2}
        report = await show.map([Thing(), Thing()])  # never recognised
    assert (len(llm.calls), report.counts.failed) == (13, 0)


async def test_pictures_are_known_by_what_they_show(tmp_path) -> None:
    png = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
    for name, more in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / f"{name}.png").write_bytes(png + more)
    llm = ScriptedLLM("ok", repeat=True)

    @llm_function(llm)
    async def look(picture: ImgPath) -> str:
        """Look."""

    report = await look.map([ImgPath(tmp_path / f"{name}.png") for name in "abc"], checkpoint=tmp_path / "run.sqlite")
    assert (len(llm.calls), report.counts.duplicates) == (2, 1)
    assert b"iVBOR" not in (tmp_path / "run.sqlite").read_bytes()  # no base64 of it
    assert report.rows[0].row.path == tmp_path / "a.png"


# --- bounded, streamed ---------------------------------------------------------------------------------------------


async def test_no_more_rows_are_in_flight_than_allowed() -> None:
    gate = Gate()
    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.map([f"r{number}" for number in range(20)], concurrency=4))
        for _ in range(5):
            await gate.until(4)
            gate.let()
            await asyncio.sleep(0)
        await mapping
    assert gate.most == 4


async def test_a_source_without_end_is_read_no_faster_than_asked() -> None:
    numbers = itertools.count()
    report = await shout.map((f"r{number}" for number in numbers), concurrency=2, budget={"requests": 50})
    assert (report.counts.asked, type(report.stopped)) == (50, BudgetExceeded)
    assert next(numbers) < 2000
    assert (report.rows[49].row, report.rows[49].value) == ("r49", "R49")
    assert [row.row for row in report.rows[50:]] == [f"r{number}" for number in range(50, len(report.rows))]


async def test_a_row_of_a_slow_source_is_asked_before_the_next_one_comes() -> None:
    gate, more = Gate(), asyncio.Event()

    async def rows() -> AsyncIterator[str]:
        yield "a"
        await more.wait()
        yield "b"
        for _ in range(100):  # rounds until the answer is kept
            await asyncio.sleep(0)
        yield "a"

    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.map(rows()))
        await gate.until(1)
        gate.let("a")
        more.set()
        await gate.until(lambda: "b" in gate.waiting)
        gate.let("b")
        report = await mapping
    assert [(row.row, row.value) for row in report.rows] == [("a", "A"), ("b", "B"), ("a", "A")]
    assert (report.counts.duplicates, report.counts.restored) == (1, 0)


async def test_a_blocking_generator_does_not_block_the_loop_nor_wake_it(monkeypatch) -> None:
    gate, more, waits = Gate(), threading.Event(), Mock(wraps=asyncio.wait)
    monkeypatch.setattr(asyncio, "wait", waits)

    def rows() -> Iterator[str]:
        yield "a"
        yield "b"
        assert more.wait(30)
        yield "c"

    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.map(rows()))
        await gate.until(2)
        await asyncio.sleep(0.3)
        assert waits.call_count < 10
        more.set()
        await gate.until(3)
        gate.let()
        assert len((await mapping).rows) == 3


async def test_a_generator_may_ask_a_model_itself() -> None:
    report = await shout.map(shout_sync(text) for text in ("a", "b"))
    nested = shout_sync.map(shout_sync(text) for text in ("a", "b"))
    assert [row.value for row in (*report.rows, *nested.rows)] == ["A", "B"] * 2


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("failure", [OSError("the disk is gone"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_what_was_read_before_the_source_failed_is_asked_and_kept(failure, is_async, tmp_path) -> None:
    def rows() -> Iterator[str]:
        yield from ("a", "b")
        if is_async and isinstance(failure, asyncio.CancelledError):
            asyncio.current_task().cancel()
        raise failure

    raised = RunAborted if isinstance(failure, asyncio.CancelledError) else type(failure)
    with use_llm(ScriptedLLM(echo, repeat=True)) as llm, pytest.raises(raised):
        await shout.map(_one_by_one(rows()) if is_async else rows(), checkpoint=tmp_path / "run.sqlite")
    assert len(llm.calls) == 2
    with use_llm(llm):
        assert (await shout.map(["a", "b"], checkpoint=tmp_path / "run.sqlite")).counts.restored == 2


async def test_many_rows_go_to_a_temporary_file_that_is_gone_in_the_end(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(store, "MOST_IN_MEMORY", 20)
    monkeypatch.setattr(store, "AT_ONCE", 7)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write, sizes = store.RowFile.write, []
    monkeypatch.setattr(store.RowFile, "write", lambda *given: sizes.append(len(given[1])) or write(*given))
    texts = [f"r{number % 60}" for number in range(100)]
    with use_llm(ScriptedLLM(graded, repeat=True)) as llm:
        report = await grade.map((text for text in texts), concurrency=7)
    assert [row.value.why for row in report.rows] == texts
    assert [row.row for row in report.rows] == texts
    assert (len(llm.calls), report.counts.asked, report.counts.duplicates) == (60, 60, 40)
    assert (sizes[:3], max(sizes)) == ([7, 7, 6], 7)
    assert list(tmp_path.iterdir())
    del report
    async with asyncio.timeout(10):  # a thread may still hold its last piece of work
        while gc.collect() is not None and list(tmp_path.iterdir()):
            await asyncio.sleep(0.01)


async def test_rows_of_any_text_pass_through_a_file(tmp_path) -> None:
    texts = ["\ud800 lone", "nul \x00 in it", "emoji 🎉", "", " ", "\x85\u2028", "'quoted' \"twice\""]
    with use_llm(ScriptedLLM(lambda request: "got it", repeat=True)) as llm:
        for _ in range(2):
            report = await shout.map(iter(texts), checkpoint=tmp_path / "run.sqlite")
            assert [row.error for row in report.rows] == [None] * len(texts)
            assert [row.row for row in report.rows] == texts
    assert len(llm.calls) == len(texts)


# --- stopping ------------------------------------------------------------------------------------------------------


async def test_raise_stops_the_others_and_keeps_what_is_finished(tmp_path) -> None:
    gate = Gate()

    async def reply(request) -> str:
        if await gate._reply(request) == "BAD":
            raise ValueError("bad row")
        return "ok"

    with use_llm(ScriptedLLM(reply, repeat=True)):
        mapping = asyncio.create_task(
            shout.map(["a", "bad", "c", "d"], concurrency=3, on_error="raise", checkpoint=tmp_path / "run.sqlite")
        )
        await gate.until(3)
        gate.let("a")
        await gate.until(lambda: "d" in gate.waiting)  # the place of "a" is given to the next one
        gate.let("bad")
        with pytest.raises(ValueError, match="bad row"):
            await mapping
    assert not gate.waiting
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with use_llm(ScriptedLLM(echo, repeat=True)) as llm:
        report = await shout.map(["a", "bad", "c", "d"], checkpoint=tmp_path / "run.sqlite")
    assert report.counts.restored == 1  # the row that failed is asked again, too
    assert len(llm.calls) == 3


@pytest.mark.parametrize("limit", [{"requests": 3}, budget(requests=3)])
async def test_a_budget_stops_before_the_request_that_would_break_it(limit, tmp_path, caplog) -> None:
    llm = ScriptedLLM(echo, repeat=True)
    texts = [f"r{number}" for number in range(10)]
    with use_llm(llm):
        report = await shout.map(texts, budget=limit, concurrency=2, checkpoint=tmp_path / "run.sqlite")
        assert len(llm.calls) == 3
        assert isinstance(report.stopped, BudgetExceeded)
        assert (report.counts.asked, report.counts.unasked, len(report.rows)) == (3, 7, 10)
        assert [row.error is None for row in report.rows].count(True) == 3
        assert isinstance(report.rows[9].error, BudgetExceeded)
        assert report.errors == {"BudgetExceeded": 7}
        assert "They are kept in" in caplog.text
        again = await shout.map(texts, checkpoint=tmp_path / "run.sqlite")
    assert (again.counts.restored, again.counts.asked, again.stopped) == (3, 7, None)
    assert len(llm.calls) == 10


async def test_a_budget_around_the_map_counts_as_well_and_raise_raises_it() -> None:
    with budget(requests=2) as spent:
        report = await shout.map([f"r{number}" for number in range(1000)], concurrency=1)  # it reads not all of them
        assert (report.counts.unasked, type(report.rows[-1].error)) == (998, BudgetExceeded)
        with pytest.raises(BudgetExceeded):
            await shout.map(["d"], on_error="raise")
    assert spent.requests == 2


async def test_a_deadline_ends_the_map_and_what_waits_for_rows(monkeypatch) -> None:
    gate = Gate()

    async def rows(*texts: str) -> AsyncIterator[str]:
        for text in texts:
            yield text
        await asyncio.Event().wait()

    with use_llm(gate.llm):
        report = await shout.map(rows("a"), deadline=0.5)
        nothing = await shout.map(rows(), budget={"seconds": 0.1})
        monkeypatch.setattr(local, "_differing", lambda _: time.sleep(0.5))  # it ends while rows are looked at
        same = [{"text": "a", "n": number} for number in range(3)]
        assert [row.row for row in (await shout.map(iter(same), deadline=0.1)).rows] == same
    assert [type(error) for error in (report.stopped, report.rows[0].error)] == [DeadlineExceeded] * 2
    assert (report.counts.unasked, type(nothing.stopped)) == (1, BudgetExceeded)
    assert (nothing.counts.rows, nothing.counts.failed) == (0, 0)


async def test_the_deadline_of_one_call_is_the_failure_of_its_row() -> None:
    with use_llm(Gate().llm):
        report = await shout.with_options(deadline=0.3).map(["a", "b"])
    assert (report.stopped, report.errors, report.counts.asked) == (None, {"DeadlineExceeded": 2}, 2)


async def test_an_abort_signal_ends_the_map() -> None:
    gate, abort = Gate(), AbortSignal()
    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.with_options(abort_signal=abort).map(["a", "b", "c"], concurrency=2))
        await gate.until(2)
        abort.abort("enough")
        report = await mapping
    assert (type(report.stopped), report.counts.unasked) == (RunAborted, 3)


async def test_cancelling_leaves_nothing_behind_and_says_how_to_go_on(tmp_path, caplog) -> None:
    gate = Gate()
    before = asyncio.all_tasks()
    with use_llm(gate.llm):
        mapping = asyncio.create_task(shout.map([*"abcde"], concurrency=2, checkpoint=tmp_path / "run.sqlite"))
        await gate.until(2)
        gate.let("a")
        await gate.until(lambda: set(gate.waiting) == {"b", "c"})
        mapping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mapping
    for _ in range(5):  # places that become free would be given to others in the next rounds of the loop
        await asyncio.sleep(0)
    assert (len(gate.llm.calls), gate.waiting) == (3, {})
    assert asyncio.all_tasks() == before
    assert "after 1 of 5 rows. They are kept in" in caplog.text
    assert "run.sqlite" in caplog.text
    assert not (tmp_path / "run.sqlite.lock").exists()
    report = await shout.map([*"abcde"], checkpoint=tmp_path / "run.sqlite")
    assert (report.counts.restored, report.counts.asked) == (1, 4)


INTERRUPTED = """
import asyncio, sys, time
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

async def reply(request):
    text = request.text.split("text: ", 1)[1].strip()
    if int(text) >= 20:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    return text

llm = ScriptedLLM(reply, repeat=True)

@llm_function(llm)
def read(text: str) -> int:
    "Read."

@llm_function(llm)
async def aread(text: str) -> int:
    "Read."

import atexit
atexit.register(lambda: print(time.monotonic(), flush=True))  # the last, for it is the first
asked = {"rows": [str(number) for number in range(30)], "checkpoint": sys.argv[2], "concurrency": 5, "progress": True}
try:
    read.map(**asked) if sys.argv[1] == "sync" else asyncio.run(aread.map(**asked))
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
    raise
"""


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_ctrl_c_stops_within_a_second_and_says_how_to_go_on(kind, tmp_path) -> None:
    path = tmp_path / "run.sqlite"
    command = [sys.executable, "-c", INTERRUPTED, kind, str(path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(5):
        assert process.stdout.readline() == "waiting\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=30)
    stopped, ended = (float(word) for word in out.split())  # of the clock that all processes share
    assert stopped - began < 1
    assert ended - began < 1.5  # with what the interpreter does at its end
    assert process.returncode != 0
    assert "KeyboardInterrupt" in told
    assert "after 20 of 30 rows" in told
    assert "the same call again goes on from there" in told

    @llm_function(ScriptedLLM(text_of, repeat=True))
    def read(text: str) -> int:
        """Read."""

    report = read.map([str(number) for number in range(30)], checkpoint=path)
    assert (report.counts.restored, report.counts.asked) == (20, 10)
    assert [row.value for row in report.rows] == list(range(30))


# --- what cannot be asked at all -----------------------------------------------------------------------------------


async def test_without_a_model_or_its_price_nothing_begins(tmp_path) -> None:
    with pytest.raises(ConfigError, match="SIMPLELLMFUNC_MODEL"):
        await show.map(["a"], checkpoint=tmp_path / "run.sqlite")
    assert not (tmp_path / "run.sqlite").exists()
    llm = OpenAICompatible("no-such-model", base_url="https://api.example.com/v1", api_key="sk-not-a-key-at-all")
    with pytest.raises(ConfigError, match="price"):
        await shout.with_options(llm_interface=llm).map(["a", "b"], budget=1.0, checkpoint=tmp_path / "run.sqlite")
    with durable(tmp_path / "journal.sqlite", "k"), pytest.raises(UsageError, match="a journal does not keep maps"):
        await shout.map(["a"])


@pytest.mark.parametrize(("options", "problem"), [
    ({"concurrency": 0}, "concurrency"), ({"on_error": ["raise"]}, "on_error"),
    ({"retry_errors": [1]}, "retry_errors is None, True or False"), ({"budget": {"euros": 3}}, "euros"),
    ({"budget": -1}, "budget"), ({"progress": "yes"}, "progress"), ({"engine": "cloud"}, "engine"),
    ({"deadline": "soon"}, "deadline"), ({"checkpoint": ""}, "checkpoint"), ({"checkpoint": 3}, "checkpoint"),
    ({"concurency": 3}, "no option 'concurency'. Did you mean 'concurrency'"),
    ({"rows_at_a_time": 3}, "Known: concurrency, checkpoint, "),
])  # fmt: skip
async def test_arguments_that_cannot_be(options, problem) -> None:
    with pytest.raises(UsageError, match=problem):
        await shout.map(["a"], **options)


# --- progress, concurrency -----------------------------------------------------------------------------------------


async def test_progress_tells_a_function_how_it_goes_and_ends_no_map_where_it_cannot(caplog) -> None:
    seen = []
    first = await grade.with_options(max_reasks=0).map(["a", "a", "bad", "b", "bad"], progress=seen.append)
    report = await grade.map(["a"], progress=lambda state: 1 / 0)
    last = seen[-1]
    assert (last.name, last.done, last.asked, last.failed, last.total, last.in_flight) == ("grade", 5, 3, 2, 5, 0)
    assert 0 <= last.seconds <= first.seconds < time.monotonic()  # since the map began, not since the machine did
    assert report.rows[0].value.score == 1
    assert "ZeroDivisionError" in caplog.text


async def test_auto_holds_back_when_the_service_refuses() -> None:
    flying, most, refused, is_fit, tried = 0, 0, 0, True, set()

    async def handler(request):
        nonlocal flying, most, refused
        flying, most = flying + 1, max(most, flying + 1)
        try:
            if flying > 12 or not (is_fit or str(request.body) in tried):
                tried.add(str(request.body))
                refused += 1
                return error_answer(503, "too many at a time")
            await asyncio.sleep(0.005)
            return text_answer("ok")
        finally:
            flying -= 1

    async with LoopbackServer(handler=handler) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.005, max_retries=20)
        report = await shout.with_options(llm_interface=llm).map([f"r{number}" for number in range(400)])
        assert most > 12  # it grew until something was refused
        assert (report.counts.failed, refused < 200) == (0, True)
        most, is_fit = 0, False  # from now on each row takes a second try
        await shout.with_options(llm_interface=llm).map([f"s{number}" for number in range(60)])
    assert most <= 8


async def test_rows_that_are_long_texts_do_not_hold_up_the_loop() -> None:
    # What a piece of such rows takes to be recognised is more than others should wait; the guard looks.
    rows = [f"{number} " + "字" * 200_000 for number in range(128)]
    with use_llm(ScriptedLLM("ok", repeat=True)):
        report = await shout.map(rows, concurrency=4)
    assert report.counts.asked == 128


async def test_a_report_closes_its_file_at_the_end_of_a_block(tmp_path) -> None:
    with await shout.map(["a", "b"], checkpoint=tmp_path / "run.sqlite") as report:
        assert report.rows[0].value == "A"
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]  # no log of an open file
    assert report.rows[1].value == "B"  # it opens again where a row is read after all
    report.close()
    with shout_sync.map(["a"]) as report:
        assert [row.value for row in report.rows] == ["A"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
async def test_a_map_over_a_file_knows_how_much_is_left(name, tmp_path, caplog) -> None:
    path, seen = tmp_path / name, []
    lines = [f'"line\n{number}"' for number in range(300)] if name == "rows.csv" else [f'"{n}"' for n in range(300)]
    path.write_text("\n".join(["text", *lines] if name == "rows.csv" else lines))
    counted = asyncio.Event()

    async def reply(request) -> str:
        await counted.wait()
        return "ok"

    def watch(state) -> None:
        seen.append(state)
        if state.total is not None:
            counted.set()

    with use_llm(ScriptedLLM(reply, repeat=True)):
        await shout.map(path, progress=watch, concurrency=2)
    first = next(state for state in seen if state.total is not None)
    assert (first.total, first.done, first.share, seen[-1].share) == (300, 0, 0.0, 1.0)
    with use_llm(Gate().llm):
        await shout.map(path, checkpoint=tmp_path / "run.sqlite", deadline=2.0)
    assert "after 0 of 300 rows" in caplog.text


# --- columns -----------------------------------------------------------------------------------------------


def _misspelt(kind: str, folder: Path) -> object:
    """Three rows whose column is called otherwise than the parameter."""
    columns = {"id": [1, 2, 3], "txet": ["a", "b", "c"]}
    frame, table = pandas.DataFrame(columns), pyarrow.table(columns)
    records = table.to_pylist()
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    tables = {"pandas": frame, "polars": polars.DataFrame(columns), "arrow": table}
    iterables = {"list": records, "generator": iter(records), "async": _one_by_one(records)}
    return (tables | iterables).get(kind, folder / f"rows.{kind}")


async def _one_by_one(rows: Iterable[object]) -> AsyncIterator[object]:
    for row in rows:
        yield row


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "pandas", "polars", "arrow", "list", "generator", "async"])
async def test_columns_that_are_not_the_parameters_are_refused_before_anything_is_asked(kind, tmp_path) -> None:
    with use_llm(ScriptedLLM(echo, repeat=True)) as llm, pytest.raises(UsageError) as refused:
        await shout.map(_misspelt(kind, tmp_path), checkpoint=tmp_path / "run.sqlite")
    assert "no column for 'text'; the columns are 'id', 'txet', and shout() takes 'text'" in str(refused.value)
    assert "column='txet'" in str(refused.value)
    assert not llm.calls
    with use_llm(llm):
        report = await shout.map(_misspelt(kind, tmp_path), column="txet")
    assert [row.value for row in report.rows] == ["A", "B", "C"]
    # The rows keep the names that they came with.
    assert [row.row["txet"] for row in report.rows] == ["a", "b", "c"]


async def test_the_first_row_that_can_be_read_decides_and_a_later_one_fails_alone(tmp_path) -> None:
    path, llm = tmp_path / "rows.jsonl", ScriptedLLM(echo, repeat=True)
    path.write_text('broken\n{"txet": "a"}\n{"text": "b"}\n')
    with use_llm(llm):
        with pytest.raises(UsageError, match="line 2: no column for 'text'"):
            await shout.map(path)
        assert not llm.calls
        report = await shout.map([{"text": "a"}, {"txet": "b"}, {"text": "c", "id": 1}])
    assert [row.value for row in (report.rows[0], report.rows[2])] == ["A", "C"]
    assert "row 1: no column for 'text'; the columns are 'txet'" in str(report.rows[1].error)
    assert (len(llm.calls), type(report.rows[1].error)) == (2, UsageError)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_half_of_the_descriptors_are_for_calls(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (100, 100))
    assert local._most_sockets() == 50
