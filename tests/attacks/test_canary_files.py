"""Attack 19: a planted key is in no byte of any file: checkpoints, batches, memories, recordings, traces, while they are
written and after."""

import asyncio
import json
from urllib.parse import quote

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import AIAssistant, OpenAICompatible, SimpleLLMFuncError
from SimpleLLMFunc.assistant import SqliteMemory
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.batch.provider_batches import run as openai_run
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing.cassette import Cassette
from tests.support.batch_server import BatchServer, Outcome
from tests.support.canary import CANARIES, Outputs, dressed
from tests.support.functions import async_function_of, chat, drained
from tests.support.server import LoopbackServer, completion, error_answer, json_answer


class Note(BaseModel):
    text: str
    tags: list[str]


SOME = [
    pytest.param(canary, id=canary.name, marks=[pytest.mark.heavy] * (canary.name != "plain")) for canary in CANARIES
]
"""One of them with every change."""


@pytest.fixture(params=SOME)
def canary(request):
    return request.param


@pytest.fixture
def outputs(tmp_path, canary):
    """What a test has seen; none of it, and no file, may hold the canary at its end."""
    kept = Outputs(tmp_path)
    with kept.watching():
        yield kept
    kept.files()
    assert "\n".join(kept.leaks(canary)) == ""


def telling(key):
    """A service that repeats the key, in every way it can be asked."""
    ways = [*dressed(key).values()]

    def answer(request):
        number = len(request.body["messages"][-1]["content"]) % len(ways) if request.body else 0
        said = f"your key is {ways[number]}"
        if "fail" in str(request.body):
            return error_answer(400, said)
        if "response_format" in (request.body or {}):
            said = json.dumps({"text": said, "tags": ways})
        return said if request.stream else json_answer(completion(said))

    return answer


def model(server, key, **options):
    return OpenAICompatible(
        "m",
        api_key=key,
        base_url=f"{server.base_url}?code={quote(key, safe='')}",
        api_params={"extra_headers": {"X-Gateway-Key": key}},
        max_retries=0,
        **options,
    )


def functions(llm, **options):
    kinds = {"say": str, "note": Note, "count": int}
    return [async_function_of(llm, kind, name, max_reasks=0, **options) for name, kind in kinds.items()]


def rows_of(key):
    return ["plain", *(f"mine is {text}" for text in dressed(key).values()), f"fail {key}", f"fail {key} again"]


async def test_attack_19_no_checkpoint_of_a_map_holds_a_key(canary, outputs):
    key = canary.key
    async with LoopbackServer(handler=telling(key)) as server:
        llm = model(server, key)
        for number, function in enumerate(functions(llm)):
            path = outputs.folder / f"run{number}.sqlite"
            seen = []

            def look(event, seen=seen):
                outputs.files()  # while it is written: the log of SQLite too
                seen.append(repr(event))

            report = await function.map(rows_of(key), checkpoint=path, progress=look)
            assert report.counts.rows == len(rows_of(key))
            outputs.add("report", f"{report!r} {report.counts!r} {report.errors!r}")
            for error in [row.error for row in report.rows if row.error is not None]:
                outputs.add("error", f"{error!s} {error!r}")
            again = await function.map(rows_of(key), checkpoint=path, retry_errors=True)
            assert again.counts.rows == report.counts.rows
            assert seen
        outputs.object(llm)
    outputs.files()
    assert any(where == "file .sqlite" for where, _ in outputs.kept)


@pytest.mark.parametrize("ends_well", [True, False])
async def test_attack_19_nor_does_what_is_kept_of_batches(canary, outputs, ends_well, monkeypatch):
    monkeypatch.setattr(openai_run, "FIRST_POLL", 0.001)
    monkeypatch.setattr(openai_run, "LONGEST_POLL", 0.002)
    key = canary.key
    async with BatchServer(lambda body: f"your key is {key}") as server:
        server.outcomes.append(
            Outcome(
                status="completed" if ends_well else "failed",
                garbage=(key.encode(), json.dumps({"custom_id": key, "error": {"message": key}}).encode()),
                line_errors={0: (400, f"no: {key}")} if ends_well else {},
                errors=() if ends_well else ({"code": key, "message": f"no: {key}"},),
                polls=3,
            )
        )
        say, _, _ = functions(model(server, key))
        try:
            report = await say.map(
                rows_of(key)[:4],
                engine="openai-batch",
                checkpoint=outputs.folder / "run.sqlite",
                progress=lambda _: outputs.files(),
            )
        except SimpleLLMFuncError as error:
            outputs.error(error)
        else:
            for row in report.rows:
                if row.error is not None:
                    outputs.add("error", f"{row.error!s} {row.error!r}")
        assert server.batches


async def test_attack_19_nor_does_the_file_of_a_batch(canary, outputs):
    async with LoopbackServer() as server:
        say, note, _ = functions(model(server, canary.key), extra_body={"user": "u"})
        for number, function in enumerate((say, note)):
            await function.to_batch_file(["a", "b"], outputs.folder / f"requests{number}.jsonl")
    assert len(list(outputs.folder.glob("*.jsonl"))) == 2


async def test_attack_19_the_memory_of_the_assistant_holds_no_key(canary, outputs):
    """What a user says is remembered as it was said, but for the secrets of this process."""
    key = canary.key
    async with LoopbackServer(handler=telling(key)) as server:
        memory = SqliteMemory(outputs.folder / "memory.sqlite", extract_every=2, summarize_every=2)
        assistant = AIAssistant(llm=model(server, key), memory=memory)
        for text in dressed(key).values():
            await assistant.process_query(f"my key is {text}", user_id=f"user {key}", session_id=f"session {key}")
            outputs.files()
        await memory.settle()
        outputs.add("repr", f"{memory!r} {assistant!r}")
        recalled = await memory.recall(f"user {key}", "my key", "other")
        assert "my key is" in recalled
        outputs.add("recalled", recalled)
        memory.close()


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_attack_19_no_recording_holds_a_key(canary, outputs, is_streamed):
    key = canary.key
    path = outputs.folder / "cassette.json"
    async with LoopbackServer(handler=telling(key)) as server:
        llm = model(server, key)
        for _ in range(2):  # recorded, and replayed
            cassette = Cassette(path)
            with cassette.inserted():
                for function in functions(llm, user=key):
                    for text in rows_of(key):
                        try:
                            await (drained(function.stream(text)) if is_streamed else function(text))
                        except SimpleLLMFuncError as error:
                            outputs.error(error, holds_content=True)
            await asyncio.to_thread(cassette.save)
            outputs.add("repr", repr(cassette))
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("content", [True, False])
async def test_attack_19_no_trace_holds_a_key(canary, outputs, content):
    key = canary.key
    path = outputs.folder / "runs.sqlite"
    async with LoopbackServer(handler=telling(key)) as server:
        llm = model(server, key)
        talk = chat(llm, stream=True)
        with TraceStore(path, content=content, interval=0.01) as store:
            with watching(store, session_id=f"session {key}", user_id=f"user {key}"):
                for ask in (*functions(llm), lambda text: drained(talk([], text))):
                    for text in rows_of(key):
                        try:
                            await ask(text)
                        except SimpleLLMFuncError as error:
                            outputs.error(error, holds_content=True)
            assert await asyncio.to_thread(store.flush)
            outputs.files()  # while it is open: the log of SQLite too
            runs = (await asyncio.to_thread(store.reader.runs)).runs
            assert len(runs) > 20
            for run in runs:
                outputs.add("run", f"{run!r} {await asyncio.to_thread(store.reader.run, run.id)!r}")
            outputs.add("repr", repr(store))


def test_the_service_of_these_tests_tells_the_key(canary, outputs):
    """Else all of the above would pass for nothing."""

    async def ask():
        async with LoopbackServer(handler=telling(canary.key)) as server:
            say, note, _ = functions(model(server, canary.key))
            return [await say(text) for text in rows_of(canary.key)[:7]], await note("x")

    texts, made = asyncio.run(ask())
    assert sum(bool(canary.found_in(text)) for text in texts) == len(texts)
    assert all(canary.found_in(tag) for tag in made.tags)
