"""What a trace store keeps of a run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    AbortSignal,
    ConfigError,
    ImgUrl,
    OpenAICompatible,
    ResponseParseError,
    llm_chat,
    llm_function,
    tool,
    watching,
)
from SimpleLLMFunc.base.run.sinks import defaults
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.observability.store.trace_store import TraceStore, from_environment
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from tests.support.functions import async_function_of, function_of
from tests.support.server import LoopbackServer


class Grade(BaseModel):
    title: str
    stars: int


@pytest.fixture
def store(tmp_path):
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as made:
        yield made


def kept(store, run=1):
    assert store.flush()
    return store.reader.run(run)


@tool
def look(q: str) -> str:
    """Look it up."""
    if q == "bad":
        raise ValueError("no such thing")
    return f"about {q}"


def test_a_run_with_tools_and_a_reask_is_kept_whole(store):
    llm = ScriptedLLM(
        calling(("look", {"q": "rain"}), ("look", {"q": "bad"})), "no idea", '{"title": "Rain", "stars": "4"}'
    )

    @llm_function(llm_interface=llm, toolkit=[look], temperature=0.5)
    def grade(text: str, strict: bool = False) -> Grade:
        """Grade the text."""

    with watching(store, session_id="s1", user_id="u1"):
        grade("Wet, but fun.")
    detail = kept(store)
    summary = detail.summary
    assert (summary.function, summary.kind, summary.status, summary.model) == ("grade", "function", "ok", "scripted")
    assert (summary.session, summary.user, summary.parent, summary.parent_call) == ("s1", "u1", "", "")
    assert (summary.turns, summary.tool_calls, summary.failed_tool_calls) == (3, 2, 1)
    assert (summary.reasks, summary.repairs, summary.failed_tries) == (1, 1, 0)
    assert summary.question == "text=Wet, but fun., strict=false"
    assert summary.answer == '{"title": "Rain", "stars": "4"}' == detail.answer
    assert summary.seconds > 0
    assert not summary.streamed
    assert detail.arguments == {"text": "Wet, but fun.", "strict": False}
    assert detail.value == {"title": "Rain", "stars": 4}
    assert detail.output_mode == "prompt"
    assert not detail.incomplete

    roles = [message["role"] for message in detail.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert [turn.turn for turn in detail.turns] == [1, 2, 3]
    assert detail.turns[0].request["temperature"] == 0.5
    assert detail.turns[0].request["tools"][0]["function"]["name"] == "look"
    assert detail.turns[0].request["messages"] == detail.messages[:2]
    assert "no idea" in json.dumps(detail.turns[2].request)
    assert detail.turns[2].reply["choices"][0]["message"]["content"] == detail.answer
    assert sum(turn.input_tokens for turn in detail.turns) == summary.input_tokens > 0
    first, second = detail.tool_calls
    assert (first.name, json.loads(first.arguments)) == ("look", {"q": "rain"})
    assert (first.content, first.failed, second.failed) == ("about rain", False, True)
    assert "no such thing" in second.content
    assert first.seconds is not None
    rejected, accepted = detail.reviews
    assert (rejected.accepted, rejected.text, rejected.turn) == (False, "no idea", 2)
    assert rejected.violations[0][2] == "'no idea'"
    assert accepted.accepted
    assert accepted.repairs == [["stars", "number taken from '4'"]]
    version = detail.function_version
    assert (version.docstring, version.place) == ("Grade the text.", f"{__name__}:{grade.__qualname__}")
    assert version.signature == "(text: str, strict: bool = False) -> Grade"
    assert version.schema["properties"]["stars"]["type"] == "integer"
    assert version.tools[0]["function"]["name"] == "look"
    assert version.prompts == [detail.messages[0]]
    json.dumps(dataclasses.asdict(detail))


def test_the_last_rejected_answer_was_not_asked_for_again(store):
    with watching(store), pytest.raises(ResponseParseError):
        function_of(ScriptedLLM("x", "y", "z"), int, max_reasks=2)("?")
    detail = kept(store)
    assert (detail.summary.status, detail.summary.error) == ("error", "ResponseParseError")
    assert (detail.summary.reasks, len(detail.reviews)) == (2, 3)
    assert detail.error_text.startswith(detail.summary.error_text[:50])
    assert detail.answer == "z"
    assert detail.value is None


def test_runs_inside_of_runs_know_each_other(store):
    inner = function_of(ScriptedLLM("inner answer"), name="inner")
    llm = ScriptedLLM(calling(("inner", {"text": "x"})), "done")
    with watching(store):
        function_of(llm, toolkit=[inner.as_tool()])("go")
    assert store.flush()
    (top,) = store.reader.runs(RunQuery(parent="")).runs
    detail = store.reader.run(top.trace_id)
    (child,) = detail.children
    assert (child.function, child.parent) == ("inner", top.trace_id)
    assert child.parent_call == detail.tool_calls[0].call_id
    assert store.reader.run(child.id).parent_run.id == top.id
    assert [run.id for run in store.reader.runs(RunQuery(parent=top.trace_id)).runs] == [child.id]


async def test_tries_of_a_service_are_kept(store):
    async with LoopbackServer() as server:
        server.reply_status(503)
        server.reply("fine")
        llm = OpenAICompatible("m", base_url=f"{server.base_url}?key=hush-hush-1234567", retry_delay=0.001)
        with watching(store):
            assert await async_function_of(llm)("x") == "fine"
    await asyncio.to_thread(store.flush)
    detail = await asyncio.to_thread(store.reader.run, 1)
    (failed,) = detail.tries
    assert (failed.error, failed.status, failed.turn) == ("ServerUnavailable", 503, 1)
    assert failed.pause >= 0
    assert (failed.model, failed.next_model) == ("m", "m")
    (turn,) = detail.turns
    assert (turn.tries, detail.summary.failed_tries) == (2, 1)
    assert turn.url.startswith(server.base_url.rstrip("/"))
    assert "hush" not in turn.url


async def test_a_streamed_run_tells_its_first_chunk(store):
    @llm_chat(llm_interface=ScriptedLLM("a longer answer in pieces"), stream=True)
    async def chat(history: list, message: str):
        """Talk."""

    with watching(store):
        async for _ in chat([], "hello"):
            pass
    await asyncio.to_thread(store.flush)
    detail = await asyncio.to_thread(store.reader.run, 1)
    assert (detail.summary.kind, detail.summary.streamed) == ("chat", True)
    assert 0 <= detail.turns[0].first_chunk_seconds <= detail.turns[0].seconds
    assert 0 <= detail.summary.first_chunk_seconds <= detail.summary.seconds
    assert detail.value == "a longer answer in pieces"


async def test_runs_that_end_otherwise_are_told_apart(store):
    begun, signal = asyncio.Event(), AbortSignal()

    async def wait(request):
        begun.set()
        await asyncio.Event().wait()

    never = async_function_of(ScriptedLLM(wait), name="never")
    broken = async_function_of(ScriptedLLM(RuntimeError("broken")), name="broken")
    left = async_function_of(ScriptedLLM("one two three four"), name="left")
    aborted = async_function_of(ScriptedLLM(wait), name="aborted", abort_signal=signal)
    with watching(store):
        task = asyncio.create_task(never("x"))
        await begun.wait()
        await asyncio.to_thread(store.flush)
        (going,) = (await asyncio.to_thread(store.reader.runs, RunQuery(status="running"))).runs
        assert (going.function, going.seconds, going.question) == ("never", None, "x")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(RuntimeError):
            await broken("x")
        stream = left.events("x")
        async for event in stream:
            if type(event).__name__ == "ReplyDelta":
                break
        await stream.aclose()
        begun.clear()
        task = asyncio.create_task(aborted("x"))
        await begun.wait()
        signal.abort("enough")
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(store.flush)
    page = await asyncio.to_thread(store.reader.runs)
    ended = {run.function: (run.status, run.error) for run in page.runs}
    cancelled = dict.fromkeys(("never", "left", "aborted"), ("cancelled", ""))
    assert ended == {**cancelled, "broken": ("error", "RuntimeError")}
    assert not store._fold.runs


def test_later_changes_of_arguments_do_not_change_the_store(store):
    @llm_function(llm_interface=ScriptedLLM('{"found": [1, 2]}'))
    def read(rows: list[dict[str, int]], grade: Grade) -> dict[str, list[int]]:
        """Read."""

    rows, grade = [{"a": 1}], Grade(title="before", stars=1)
    with watching(store), store._file.opened():  # nothing is written meanwhile
        value = read(rows, grade)
        rows[0]["a"] = 2
        rows.append({"b": 3})
        grade.title = "after"
        value["found"].clear()
    detail = kept(store)
    assert detail.arguments == {"rows": [{"a": 1}], "grade": {"title": "before", "stars": 1}}
    assert detail.value == {"found": [1, 2]}


def test_images_are_named_by_size_and_long_texts_are_cut(tmp_path):
    data = f"data:image/png;base64,{'QUJD' * 1000}"
    with TraceStore(tmp_path / "r.sqlite", max_text=100) as store:

        @llm_function(llm_interface=ScriptedLLM("x" * 1000))
        def describe(text: str, picture: ImgUrl) -> str:
            """Describe."""

        with watching(store):
            describe("y" * 1000, ImgUrl(data))
        detail = kept(store)
    assert "<image 3 kB>" in json.dumps(detail.turns[0].request)
    assert detail.arguments["picture"] == "<image 3 kB>"
    assert detail.arguments["text"] == "y" * 100 + "…"
    assert detail.answer == "x" * 100 + "…"
    assert b"QUJDQUJD" not in (tmp_path / "r.sqlite").read_bytes()


def test_odd_values_are_kept_somehow(store):
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

        def __str__(self):
            return "odd"

    deep = []
    for _ in range(200):
        deep = [deep]

    @llm_function(llm_interface=ScriptedLLM("half \ud83d of it"))
    def odd(a: object, b: object, c: object, d: object, e: object) -> str:
        """Odd."""

    with watching(store):
        odd(Odd(), {1, 2}, float("nan"), deep, {"x\udc80": 1 << 5000})
    detail = kept(store)
    assert detail.summary.status == "ok"
    assert detail.arguments["a"] == "<Odd>"
    assert detail.arguments["c"] == "nan"
    assert detail.arguments["b"] in ([1, 2], [2, 1])
    assert "half" in detail.answer
    assert store.dropped == 0


def test_without_content_there_are_sizes_and_hashes_only(tmp_path):
    @tool
    def fetch(what: str) -> str:
        """Fetch."""
        return "sesame-result"

    llm = ScriptedLLM(calling(("fetch", {"what": "sesame-argument"})), "sesame-wrong", '["sesame-answer"]')

    with TraceStore(tmp_path / "r.sqlite", content=False) as store:
        with watching(store):
            function_of(llm, list[str], toolkit=[fetch])("sesame-question")
            with pytest.raises(RuntimeError):
                function_of(ScriptedLLM(RuntimeError("sesame-error")))("sesame-question")
        detail = kept(store)
        other = store.reader.run(2)
        assert store.reader.runs(RunQuery(text="fetch")).runs[0].id == 1
        shown = json.dumps([dataclasses.asdict(detail), dataclasses.asdict(other)])
    assert "sesame" not in shown
    assert all(b"sesame" not in path.read_bytes() for path in tmp_path.iterdir())
    assert detail.arguments["text"]["omitted"]["chars"] == len("sesame-question")
    assert len(detail.arguments["text"]["omitted"]["sha256"]) == 64
    assert detail.answer["omitted"]["chars"] == len('["sesame-answer"]')
    assert detail.summary.question == detail.summary.answer == other.error_text == ""
    assert other.summary.error == "RuntimeError"
    assert detail.reviews[0].violations[0][2] == ""
    assert [message["role"] for message in detail.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert detail.tool_calls[0].name == "fetch"
    assert detail.summary.input_tokens > 0
    assert detail.function_version.docstring == "Answer."


def test_without_content_the_keys_that_a_model_chose_are_not_kept(tmp_path):
    class Scores(BaseModel):
        points: dict[str, int]

    llm = ScriptedLLM('{"points": {"sesame-key": "many"}}', '{"points": {"sesame-key": "3 points"}}')

    with TraceStore(tmp_path / "r.sqlite", content=False) as store:
        with watching(store):
            function_of(llm, Scores)("x")
        first, second = kept(store).reviews
    assert first.violations[0][0] == second.repairs[0][0] == "points.*"
    assert all(b"sesame" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_prompt_is_kept_once_for_a_version(store):
    @llm_function(llm_interface=ScriptedLLM("1", repeat=True))
    def ask(text: str) -> str:
        """Ask for {what}."""

    with watching(store):
        for what in ("this", "this", "that"):
            ask(what, _template_params={"what": what})
    assert store.flush()
    (version,) = store.reader.versions("ask")
    assert ["Ask for that." in prompt["content"] for prompt in version.prompts] == [True, False]
    assert "Ask for this." in store.reader.run(1).messages[0]["content"]
    with store._file.opened() as connection:
        assert connection.execute("SELECT count(*) FROM prompts").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM messages WHERE prompt IS NOT NULL").fetchone() == (3,)


# --- the store as an object -------------------------------------------------------------------------------


def test_a_store_opens_nothing_before_the_first_event_and_travels_by_its_path_and_settings(tmp_path):
    store = TraceStore(tmp_path / "deep" / "r.sqlite", content=False, max_age=None, queue_size=7)
    assert repr(store) == f"TraceStore({str(tmp_path / 'deep' / 'r.sqlite')!r}, content=False)"
    assert not (tmp_path / "deep").exists()
    assert store._thread is None
    again = pickle.loads(pickle.dumps(store))
    assert (again.path, again.content, again._settings) == (store.path, False, store._settings)


@pytest.mark.parametrize(
    "wrong",
    [{"max_age": 0}, {"max_age": "7d"}, {"max_bytes": 10}, {"max_text": -1}, {"queue_size": 0}, {"interval": 0}],
)
def test_settings_that_cannot_be_are_refused(tmp_path, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        TraceStore(tmp_path / "r.sqlite", **wrong)


def test_the_environment_names_a_store(tmp_path, monkeypatch):
    assert from_environment() is None
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", "~/runs.sqlite")
    monkeypatch.setenv("HOME", str(tmp_path))
    store = from_environment()
    assert (store.path, store.content) == (tmp_path / "runs.sqlite", True)
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE_CONTENT", "off")
    assert not from_environment().content


def test_a_run_is_kept_once_however_often_its_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", str(path))
    defaults.forget()

    ask = function_of(ScriptedLLM("yes", repeat=True))
    try:
        with (
            TraceStore(path) as store,
            TraceStore("runs.sqlite") as same,
            TraceStore(tmp_path / "other.sqlite") as other,
        ):
            with watching(store), watching(store), watching(same, other):
                ask("?")
            with watching(store, store):
                ask("!")
            assert all(each.flush() for each in (store, same, other))
            assert [run.question for run in store.reader.runs().runs] == ["!", "?"]
            assert [len(store.reader.run(number).messages) for number in (1, 2)] == [3, 3]
            assert [run.question for run in other.reader.runs().runs] == ["?"]
    finally:
        defaults.forget()


def test_an_interface_that_cannot_render_is_no_reason_to_keep_nothing(store):
    class Strange(ScriptedLLM):
        def render(self, *args, **kwargs):
            raise RuntimeError("no")

    with watching(store):
        function_of(Strange("fine"), temperature=0.3)("x")
    request = kept(store).turns[0].request
    assert request["temperature"] == 0.3
    assert request["messages"][-1]["content"].endswith("x")
