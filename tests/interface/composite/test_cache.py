"""Answers kept in a file: over a real server, with real files, threads and processes."""

import asyncio
import copy
import gc
import json
import multiprocessing
import os
import pickle
import sqlite3
import threading
import time
import warnings
from contextlib import aclosing
from pathlib import Path

import pytest

from SimpleLLMFunc import BadRequest, BudgetExceeded
from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded, ServerUnavailable, StreamInterrupted, UsageError
from SimpleLLMFunc.interface.composite import cache as module
from SimpleLLMFunc.interface.composite.answer_store import AnswerStore
from SimpleLLMFunc.interface.composite.cache import CachedLLM
from SimpleLLMFunc.interface.composite.coalescing import _in_flight
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.budget import budget
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.asking import HELLO, ask_either, both_ways, streamed
from tests.support.functions import async_function_of as function_of
from tests.support.server import Answer, LoopbackServer, chunk, completion, sse, text_answer

CANARY = "sk-CANARY0123456789abcdefghij"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


@pytest.fixture
def cached(server, path):
    llm = CachedLLM(model(server), path)
    yield llm
    llm.close()


def model(server, name="m", **options):
    return OpenAICompatible(name, base_url=server.base_url, **{"max_retries": 0, **options})


# --- the same question -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("then", [False, True])
async def test_the_same_question_is_sent_once(server, cached, first, then):
    asked = await ask_either(cached, first)
    assert (asked.text, asked.cached, asked.tries) == ("hello", False, 1)
    again = await ask_either(cached, then)
    assert (again.text, again.cached, again.tries) == ("hello", True, 0)
    assert (again.model, again.finish_reason) == (asked.model, asked.finish_reason)
    assert len(server.requests) == 1


@both_ways
async def test_a_kept_reply_is_the_reply(server, cached, is_streamed):
    reply = completion(None, tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}])
    reply["choices"][0]["message"]["reasoning_content"] = "hm"
    reply["choices"][0]["message"]["extra_content"] = {"signature": "s"}
    reply["system_fingerprint"] = "fp"
    server.reply_json(reply)
    first = await cached.chat(HELLO, tools=[TOOL])
    again = await ask_either(cached, is_streamed, tools=[TOOL])
    assert again.cached
    assert again.choices == first.choices
    assert again.message.extra == {"extra_content": {"signature": "s"}}
    if not is_streamed:
        assert again.raw["system_fingerprint"] == "fp"


async def test_what_makes_another_question(server, cached, path):
    asked = [
        {}, {"temperature": 0}, {"temperature": 1}, {"tools": [TOOL]}, {"response_format": {"type": "json_object"}},
        {"seed": 1}, {"extra_body": {"top_k": 1}},
    ]  # fmt: skip
    for more in asked:
        assert not (await cached.chat(HELLO, **more)).cached
    assert not (await cached.chat([*HELLO, {"role": "assistant", "content": "x"}])).cached
    assert not (await CachedLLM(model(server, "other"), path).chat(HELLO)).cached
    assert not (await CachedLLM(model(server, api_params={"top_p": 0.5}), path).chat(HELLO)).cached
    async with LoopbackServer() as elsewhere:
        assert not (await CachedLLM(model(elsewhere), path).chat(HELLO)).cached
    for more in asked:
        assert (await cached.chat(HELLO, **more)).cached


async def test_what_does_not_and_the_file_can_be_emptied(cached):
    await cached.chat(HELLO, temperature=0.5, seed=1, stop=None, trace_id="a", deadline=50)
    for more in ({"stop": None}, {"trace_id": "b"}, {"deadline": 9}, {"timeout": 7}, {"logit_bias": None}):
        assert (await cached.chat(tuple(HELLO), seed=1, temperature=0.5, **more)).cached
    cached.clear()
    assert not (await cached.chat(HELLO, seed=1, temperature=0.5)).cached


def test_the_key_is_that_of_the_canonical_json():
    assert module.key_of([{"a": 1, "b": [2, "é\ud800"]}]) == module.key_of([{"b": [2, "é\ud800"], "a": 1}])
    assert module.key_of({"a": 1}) != module.key_of({"a": 1.5}) != module.key_of({"a": "1"})
    for odd in (object(), float("nan"), {1: 2, "a": 3}):
        with pytest.raises(UsageError):
            module.key_of(odd)


async def test_a_fallback_is_another_question_than_its_first_member(path):
    first = ScriptedLLM("one", "two", model_name="a")
    llm = CachedLLM(FallbackLLM(first, ScriptedLLM(model_name="b")), path)
    await llm.chat(HELLO)
    assert (await llm.chat(HELLO)).cached
    assert not (await CachedLLM(first, path).chat(HELLO)).cached


# --- what is not kept ------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cut", "length"), ("cut", "content_filter"), ("cut", "something_new"), (None, "stop"), ("", "stop"),
        ("  \n", "stop"),
    ],
)  # fmt: skip
async def test_answers_that_are_cut_or_empty_are_asked_for_again(server, cached, is_streamed, text, reason):
    for _ in range(2):
        server.answer(text_answer(text, finish_reason=reason))
        assert (await ask_either(cached, is_streamed)).finish_reason == reason
    assert len(server.requests) == 2


@both_ways
async def test_refusals_and_errors_are_asked_for_again(server, cached, is_streamed):
    reply = completion("no")
    reply["choices"][0]["message"]["refusal"] = "I will not"
    for _ in range(2):
        server.reply_json(reply)
        await cached.chat(HELLO)
    assert len(server.requests) == 2
    for status, kind in ((503, ServerUnavailable), (400, BadRequest)):
        server.reply_status(status)
        with pytest.raises(kind):
            await ask_either(cached, is_streamed)
    assert (await ask_either(cached, is_streamed)).text == "hello"


async def test_a_stream_is_kept_when_it_is_complete(server, cached):
    server.reply_sse(sse(chunk({"content": "It will"}), done=False), cut=True)
    with pytest.raises(StreamInterrupted):
        await streamed(cached)
    async with aclosing(cached.chat_stream(HELLO)) as stream:
        async for _ in stream:
            break
    server.reply_sse(sse(chunk({"content": "all"}, finish_reason="stop"), done=False), cut=True)
    assert not (await streamed(cached)).cached
    assert (await streamed(cached)).cached


async def test_what_another_cache_has_kept_is_kept_there_only(path, tmp_path):
    inner = CachedLLM(ScriptedLLM("one", "two"), path)
    outer = CachedLLM(inner, tmp_path / "outer.sqlite")
    await inner.chat(HELLO)
    assert (await outer.chat(HELLO)).text == "one"
    inner.clear()
    assert (await outer.chat(HELLO)).text == "two"
    outer.close()
    inner.close()


# --- secrets ---------------------------------------------------------------------------------------------


async def test_no_key_and_no_question_is_in_the_file(server, path):
    llm = CachedLLM(model(server, api_key=CANARY), path)
    messages = [{"role": "system", "content": f"The key is {CANARY}"}, {"role": "user", "content": "the question"}]
    server.reply("the answer")
    await llm.chat(messages)
    assert (await llm.chat(messages)).cached
    await llm.chat([{"role": "user", "content": f"say {CANARY}"}])  # the server echoes it
    assert not (await llm.chat([{"role": "user", "content": f"say {CANARY}"}])).cached
    assert "CANARY" not in repr(llm)
    assert b"CANARY" not in pickle.dumps(llm)
    llm.close()
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"the answer" in content
    assert b"CANARY" not in content
    assert b"the question" not in content
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0


# --- budgets and results ---------------------------------------------------------------------------------


async def test_a_kept_answer_takes_nothing_from_budgets_and_costs_nothing(server, cached):
    ask = function_of(cached)
    with budget(requests=1, tokens=100) as spent:
        paid = await ask.call("x")
        for _ in range(3):
            free = await ask.call("x")
        assert "".join([piece async for piece in ask.stream("x")]) == paid.value
        for new in (ask.call("y"), anext(ask.stream("y"))):
            with pytest.raises(BudgetExceeded):
                await new
    assert (spent.requests, spent.tokens, paid.cached) == (1, 8, False)
    assert (free.value, free.cached, free.tries, free.cost) == (paid.value, True, 0, 0.0)
    assert (free.usage.total_tokens, free.attempts[0].usage.cost) == (8, 0.0)


async def test_tool_rounds_are_answered_from_the_file_and_tools_run_again(path):
    runs = []

    def look(where: str) -> str:
        """Look."""
        runs.append(where)
        return "seen"

    llm = ScriptedLLM(tool_calls(("look", {"where": "here"})), "done")
    ask = function_of(CachedLLM(llm, path), toolkit=[look])
    assert await ask("x") == await ask("x") == "done"
    assert runs == ["here", "here"]
    assert len(llm.calls) == 2


# --- many at once ----------------------------------------------------------------------------------------


async def joined(count):
    """Wait until so many calls wait for the request of another one."""
    while sum(len(request._callbacks or ()) for request in _in_flight.values()) < count:
        await asyncio.sleep(0.005)


async def test_identical_questions_at_once_are_one_request(path):
    held = asyncio.Event()
    handler = lambda request: Answer(
        body=json.dumps(completion(request.body["messages"][0]["content"])).encode(), hold=held
    )
    async with LoopbackServer(handler) as server:
        llm = CachedLLM(model(server), path)
        same = [asyncio.create_task(llm.chat(HELLO)) for _ in range(50)]
        other = asyncio.create_task(llm.chat([{"role": "user", "content": "other"}]))
        await server.received(2)
        held.set()
        replies = await asyncio.gather(*same)
        assert (await other).text == "other"
        assert {reply.text for reply in replies} == {"hello"}
        assert sum(not reply.cached for reply in replies) == 1
        assert sorted(reply.tries for reply in replies) == [0] * 49 + [1]
        assert len(server.requests) == 2
        llm.close()


@pytest.mark.parametrize(("text", "reason"), [("cut", "length"), (f"a {CANARY}", "stop")])
async def test_an_answer_that_is_not_kept_is_not_shared(server, cached, text, reason):
    held = asyncio.Event()
    server.reply(text, finish_reason=reason, hold=held)
    calls = [asyncio.create_task(cached.chat(HELLO)) for _ in range(3)]
    await joined(2)
    held.set()
    texts = sorted(reply.text for reply in await asyncio.gather(*calls))
    assert texts == [text, "hello", "hello"]


async def test_a_stream_that_no_one_reads_on_does_not_hold_others_up(server, cached):
    async with aclosing(cached.chat_stream(HELLO)) as stream:
        await anext(stream)
        assert (await cached.chat(HELLO, deadline=5)).text == "hello"
    assert len(server.requests) == 2


def _ask_in_process(place, number, results):
    llm = CachedLLM(ScriptedLLM(lambda request: f"{number}-{request.text}", repeat=True), place)

    async def ask():
        return [(await llm.chat([{"role": "user", "content": str(row)}])).text for row in range(40)]

    results.put(asyncio.run(ask()))


@pytest.mark.heavy
def test_processes_share_the_file(path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_ask_in_process, args=(path, number, results)) for number in range(3)]
    for process in processes:
        process.start()
    texts = [results.get(timeout=50) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for answers in texts:
        assert [answer.partition("-")[2] for answer in answers] == [str(row) for row in range(40)]
    store = AnswerStore(path, 10**6, None)
    assert len(store) == 40
    store.close()


async def test_the_event_loop_goes_on_while_the_file_is_locked(cached, path):
    await cached.chat(HELLO)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        assert (await cached.chat(HELLO, deadline=1.0)).cached
        asking = asyncio.create_task(cached.chat([{"role": "user", "content": "more"}], deadline=1.0))
        ticks = 0
        while not asking.done():
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            ticks += 1
            assert time.perf_counter() - before < 0.9
        assert ticks > 5
        # What is read is not locked in this mode; what was asked for is given although it could not be kept.
        assert (await asking).text == "more"
    finally:
        holder.execute("ROLLBACK")
        holder.close()


# --- the file --------------------------------------------------------------------------------------------


@pytest.fixture
def store(path):
    stores = []

    def make(max_bytes=10**7, max_age=None, **options):
        stores.append(AnswerStore(path, max_bytes, max_age, **options))
        return stores[-1]

    yield make
    for each in stores:
        each.close()


def key(number):
    return number.to_bytes(32, "big")


def test_nothing_is_written_before_the_first_question(tmp_path):
    CachedLLM(ScriptedLLM(), tmp_path / "new" / "a.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_what_is_put_is_got(store):
    one = store()
    assert one.get(key(1)) is None
    one.put(key(1), b"first")
    one.put(key(1), b"second")
    assert one.get(key(1)) == store().get(key(1)) == b"second"
    assert len(one) == 1
    one.close()
    assert one.get(key(1)) == b"second"
    one.clear()
    assert (len(one), one.get(key(1))) == (0, None)


def test_the_file_stays_within_its_size_and_the_latest_stay(store, path):
    one = store(max_bytes=200_000)
    for number in range(200):
        one.put(key(number), bytes(10_000))
    one.close()
    assert path.stat().st_size < 260_000
    kept = [number for number in range(200) if one.get(key(number)) is not None]
    assert len(kept) >= 10
    assert kept == list(range(200 - len(kept), 200))
    for number, size in ((200, 150_000), (201, 300_000)):  # several have to go, and more than there are
        one.put(key(number), bytes(size))
        assert path.stat().st_size < 260_000 or number == 201
    assert len(one) == 1


def test_what_was_used_goes_later(store):
    now = 0.0
    one = store(max_bytes=200_000, clock=lambda: now)
    for number in range(10):
        one.put(key(number), bytes(10_000))
        now += 1
    now += 7200
    assert one.get(key(0)) is not None
    for number in range(10, 20):
        now += 1
        one.put(key(number), bytes(10_000))
    assert one.get(key(0)) is not None
    assert one.get(key(1)) is None


def test_old_answers_do_not_count(store):
    now = 1000.0
    one = store(max_age=60, clock=lambda: now)
    one.put(key(1), b"old")
    now += 59
    assert one.get(key(1)) == b"old"
    now += 1
    assert one.get(key(1)) is None
    one.put(key(2), b"new")
    assert len(one) == 1


# --- damage ----------------------------------------------------------------------------------------------


def damaged_files(path):
    return [file for file in path.parent.iterdir() if ".damaged-" in file.name]


def filled(store, path, rows=50):
    one = store()
    for number in range(rows):
        one.put(key(number), os.urandom(2000))
    one.close()
    return path.read_bytes()


@pytest.mark.parametrize("cut", [100, 511, 512, 4096, 9000, 50_000])
def test_a_cut_file_is_set_aside(store, path, cut, caplog):
    content = filled(store, path)
    path.write_bytes(content[:cut])
    one = store()
    for number in range(50):
        one.get(key(number))
        one.put(key(number), b"new")
    assert {one.get(key(number)) for number in range(50)} == {b"new"}
    assert len(damaged_files(path)) == 1
    assert "damaged" in caplog.text


def test_a_file_with_garbage_inside_never_gives_a_wrong_answer(store, path):
    content = filled(store, path)
    one = store()
    right = {number: one.get(key(number)) for number in range(50)}
    one.close()
    for start in range(4096, len(content), 4096):
        path.write_bytes(content[: start + 40] + os.urandom(3000) + content[start + 3040 :])
        again = store()
        for number in range(50):
            assert again.get(key(number)) in {None, right[number]}
        again.put(key(1), b"new")
        assert again.get(key(1)) == b"new"
        again.close()
        for file in path.parent.iterdir():
            file.unlink()


@pytest.mark.parametrize("content", [b"my notes", b"SQLite format 3\x00 not really", b"\x00" * 5000])
def test_a_file_of_someone_else_is_left_alone(store, path, content):
    path.write_bytes(content)
    one = store()
    for use in (lambda: one.get(key(1)), lambda: one.put(key(1), b"x")):
        with pytest.raises(ConfigError, match="another path"):
            use()
    assert path.read_bytes() == content
    assert damaged_files(path) == []


def test_a_path_that_cannot_be_is_told(tmp_path, store, path):
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be used"):
        store().get(key(1))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be used"):
        AnswerStore(tmp_path / "file" / "below", 10**6, None).get(key(1))


async def test_the_model_tells_of_it_before_it_asks(server, path):
    path.write_bytes(b"my notes")
    llm = CachedLLM(model(server), path)
    for is_streamed in (False, True):
        with pytest.raises(ConfigError):
            await ask_either(llm, is_streamed)
    assert server.requests == []


def test_a_full_disk_costs_the_place_in_the_cache_and_one_warning(store, caplog):
    one = store()
    one.put(key(1), b"x")
    one._file.connection().execute("PRAGMA max_page_count = 5")
    for number in range(2, 9):
        one.put(key(number), os.urandom(9000))
    assert one.get(key(1)) == b"x"
    assert caplog.text.count("could not be written") == 1
    one._file.connection().execute("PRAGMA max_page_count = 100000")
    one.put(key(3), b"y")
    assert one.get(key(3)) == b"y"


def test_a_store_that_is_dropped_closes_its_file(path):
    one = AnswerStore(path, 10**6, None)
    one.put(key(1), b"x")
    connection = one._file.connection()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del one
        gc.collect()
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_an_answer_that_was_changed_is_asked_for_again(store, caplog):
    one = store()
    one.put(key(1), b"right")
    one.put(key(2), b"other")
    one._file.connection().execute("UPDATE answers SET answer = ? WHERE key = ?", (b"wrong", key(1)))
    one._file.connection().execute("UPDATE answers SET answer = 'text' WHERE key = ?", (key(2),))
    assert (one.get(key(1)), one.get(key(2)), len(one)) == (None, None, 0)
    assert "damaged" in caplog.text


async def test_a_look_or_a_write_that_takes_long_ends_in_time(server, cached, monkeypatch):
    released = threading.Event()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(cached._store, "put", lambda *_: released.wait(20))
            assert (await cached.chat(HELLO, deadline=1.0)).text == "hello"
        monkeypatch.setattr(cached._store, "get", lambda *_: released.wait(20))
        with pytest.raises(DeadlineExceeded, match="cache"):
            await cached.chat(HELLO, deadline=0.1)
    finally:
        released.set()
    assert len(server.requests) == 1


async def test_an_answer_that_is_no_json_is_not_kept(path):
    odd = completion("x")
    odd["choices"][0]["message"]["extra_content"] = object()
    llm = CachedLLM(ScriptedLLM(odd, repeat=True), path)
    for _ in range(2):
        assert not any(reply.cached for reply in await asyncio.gather(llm.chat(HELLO), llm.chat(HELLO)))
    llm.close()


# --- as a model, and as an object ------------------------------------------------------------------------


def test_it_looks_like_its_model(path):
    inner = OpenAICompatible("gpt-5-mini", wire="chat", context_window=4000, api_params={"seed": 1})
    llm = CachedLLM(inner, path)
    for name in ("model_name", "provider", "profile", "context_window", "base_url"):
        assert getattr(llm, name) == getattr(inner, name)
    assert llm.render(HELLO, stream=True, temperature=0) == inner.render(HELLO, stream=True, temperature=0)
    assert repr(llm) == f"CachedLLM({inner!r}, {str(path)!r})"
    assert llm.llm is inner


async def test_a_pickle_finds_its_file(server, cached):
    await cached.chat(HELLO)
    again = pickle.loads(pickle.dumps(cached))
    assert (await again.chat(HELLO)).cached
    assert (again.path, again.max_bytes, again.max_age) == (cached.path, cached.max_bytes, cached.max_age)
    assert cached.max_bytes == 512 * 1024 * 1024
    assert copy.copy(cached) is copy.deepcopy(cached) is cached
    again.close()


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CachedLLM(ScriptedLLM(), "a.sqlite", max_age=0.5).path == tmp_path / "a.sqlite"
    assert CachedLLM(ScriptedLLM(), Path("~/b.sqlite")).path == tmp_path / "b.sqlite"
    assert CachedLLM(ScriptedLLM(), ":memory:").path == tmp_path / ":memory:"


@pytest.mark.parametrize(
    ("llm", "more"), [("x", {}), (ScriptedLLM(), {"max_bytes": 10}), (ScriptedLLM(), {"max_age": 0})]
)
def test_what_cannot_be_is_refused(llm, more):
    with pytest.raises(ConfigError):
        CachedLLM(llm, "x", **more)


async def test_what_json_cannot_say_is_refused(cached, server):
    with pytest.raises(UsageError):
        await cached.chat(HELLO, seed=object())
    assert server.requests == []


@both_ways
async def test_the_deadline_is_told_as_it_was_given(path, is_streamed):
    async with LoopbackServer(lambda request: Answer(hold=asyncio.Event(), body=b"")) as server:
        llm = CachedLLM(OpenAICompatible("m", base_url=server.base_url), path)
        with pytest.raises(DeadlineExceeded, match="deadline of 1 s passed while waiting for the model"):
            await ask_either(llm, is_streamed, deadline=1.0)
