"""Driver and worker of a map on a cluster, and the letters between them, in one process: a cluster that fails on demand."""

from __future__ import annotations

import asyncio
import copyreg
import io
import pickle
from collections import ChainMap
from contextlib import asynccontextmanager
from contextvars import Context
from types import SimpleNamespace

import pytest

from SimpleLLMFunc import (
    BudgetExceeded,
    ConfigError,
    OpenAICompatible,
    RunError,
    budget,
    forbid_real_calls,
    use_llm,
)
from SimpleLLMFunc.batch import RayEngine, ray, ray_cluster, ray_limits, ray_worker
from SimpleLLMFunc.batch.ray_limits import Limiter
from SimpleLLMFunc.batch.ray_worker import RowWorker
from SimpleLLMFunc.interface import guard
from SimpleLLMFunc.testing import ScriptedLLM
from tests.batch.ray_app import Word, answer_to, read
from tests.support.server import LoopbackServer, text_answer


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class ActorDiedError(RayError):
    pass


class ActorUnavailableError(RayError):
    pass


class ActorUnschedulableError(RayError):
    pass


class RuntimeEnvSetupError(RayError):
    pass


class Method:
    def __init__(self, actor, name) -> None:
        self.actor, self.name = actor, name

    def remote(self, *args):
        return asyncio.ensure_future(self.actor.called(self.name, args))


class Actor:
    """An actor in this process, which dies and is made again, or does not answer for a while."""

    def __init__(self, kind) -> None:
        self.kind = kind
        self.inner = kind()
        self.deaths = 0
        self.lost: dict[str, int] = {}
        self.errors: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.under_way: set[asyncio.Task] = set()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Method(self, name)

    async def called(self, name, args):
        self.calls.append(name)
        if name in self.errors:
            raise self.errors[name]
        # Arguments and results are copies, as between processes.
        work = getattr(self.inner, name)(*args)
        task = asyncio.get_running_loop().create_task(work, context=Context())  # of the driver's it knows nothing
        self.under_way.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                task.cancel()
                raise
            raise ActorUnavailableError("it died") from None
        finally:
            self.under_way.discard(task)
        if self.lost.get(name):
            self.lost[name] -= 1
            raise ActorUnavailableError("its answer was lost")
        return result

    def die(self) -> None:
        self.deaths += 1
        for task in (*self.inner._tasks.values(), *self.under_way):
            task.cancel()
        self.inner = self.kind()


@pytest.fixture
def cluster(monkeypatch):
    actors: list[Actor] = []

    def packed(value, reducers=None):
        file = io.BytesIO()
        pickler = pickle.Pickler(file)
        pickler.dispatch_table = ChainMap(dict(reducers or {}), copyreg.dispatch_table)
        pickler.dump(value)
        return file.getvalue()

    names = ("RayError", "RayTaskError", "ActorDiedError", "ActorUnavailableError")
    names += ("ActorUnschedulableError", "RuntimeEnvSetupError")
    package = SimpleNamespace(
        exceptions=SimpleNamespace(**{name: globals()[name] for name in names}),
        kill=lambda actor: actor.die() if actor.kind is RowWorker else None,
        cluster_resources=lambda: {"CPU": 2.0},
    )

    @asynccontextmanager
    async def connected(address):
        yield package

    def started(_package, _engine, count):
        actors.extend(Actor(RowWorker) for _ in range(count))
        return [Actor(Limiter), *actors]

    monkeypatch.setattr(ray, "connected", connected)
    monkeypatch.setattr(ray, "_started", started)
    monkeypatch.setattr(ray, "_PAUSE_SECONDS", 0.001)
    for module in (ray, ray_cluster, ray_worker):
        monkeypatch.setattr(module, "packed", packed)
    for module in (ray, ray_worker):
        monkeypatch.setattr(module, "unpacked", pickle.loads)
    return actors


class Model:
    """Answers when it is let; counts."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.asked: list[str] = []
        self.came = asyncio.Condition()
        self.llm = ScriptedLLM(self._reply, repeat=True)

    async def _reply(self, request):
        text = request.text.split("text: ", 1)[1].strip()
        self.asked.append(text)
        async with self.came:
            self.came.notify_all()
        await self.go.wait()
        return answer_to(text)

    async def has(self, count) -> None:
        async with self.came:
            await self.came.wait_for(lambda: len(self.asked) >= count)


@pytest.fixture
def model(monkeypatch):
    model = Model()
    # The worker is in this process: it asks the very model, not one that was pickled.
    monkeypatch.setattr(ScriptedLLM, "__reduce__", lambda self: (_the_model, ()), raising=False)
    _models.append(model.llm)
    with use_llm(model.llm):
        yield model
    _models.clear()


_models: list[ScriptedLLM] = []


def _the_model():
    return _models[-1]


def texts(count):
    return [f"row number {number}" for number in range(count)]


def numbers(report):
    return [row.value.number for row in report.rows]


async def test_many_rows_take_few_letters(cluster, model) -> None:
    report = await read.map(texts(300), engine="ray", concurrency=100)
    assert numbers(report) == list(range(300))
    assert isinstance(report.rows[0].value, Word)
    assert sorted(model.asked) == sorted(texts(300))
    assert len(cluster) == 2
    assert all(actor.calls.count("give") < 30 for actor in cluster)


async def test_rows_of_a_worker_that_died_are_asked_again_and_no_others(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(30), engine="ray", concurrency=10))
    await model.has(10)
    dying = max(cluster, key=lambda actor: len(actor.inner._tasks))  # who was there first may have most of them, or all
    held = len(dying.inner._tasks)
    dying.die()
    model.go.set()
    report = await running
    assert numbers(report) == list(range(30))
    twice = {text for text in model.asked if model.asked.count(text) == 2}
    assert len(model.asked) == 30 + len(twice)
    assert len(twice) == held >= 5  # what the other worker had is not asked again


async def test_what_gets_lost_on_the_way_is_sent_again_and_asked_once(cluster, model) -> None:
    report = asyncio.create_task(read.map(texts(60), engine="ray", concurrency=10))
    await model.has(1)
    for actor in cluster:
        actor.lost = {"give": 3, "take": 3, "hello": 2}
    assert numbers(await report) == list(range(60))
    assert sorted(model.asked) == sorted(texts(60))
    assert not any(actor.lost["take"] for actor in cluster)


async def test_a_row_that_kills_is_given_up_after_four_deaths(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(1), engine=RayEngine(workers=1)))
    for death in range(1, 5):
        await model.has(death)
        cluster[0].die()
    report = await running
    assert isinstance(report.rows[0].error, RunError)
    assert "died 4 times" in str(report.rows[0].error)
    assert len(model.asked) == 4


@pytest.mark.parametrize("error", [ActorDiedError("gone"), ActorUnschedulableError("no room"), RayTaskError("a bug")])
async def test_workers_that_cannot_be_started_end_the_map(error, cluster, model, monkeypatch) -> None:
    def broken(_package, _engine, count):
        actors = [Actor(RowWorker) for _ in range(count)]
        for actor in actors:
            actor.errors["hello"] = error
        return [Actor(Limiter), *actors]

    monkeypatch.setattr(ray, "_started", broken)
    with pytest.raises((ConfigError, RunError), match=str(error)):
        await read.map(texts(3), engine="ray", on_error="raise")
    assert not model.asked


async def test_a_worker_that_fails_in_the_middle_ends_its_rows(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(4), engine=RayEngine(workers=1), concurrency=4))
    await model.has(4)
    cluster[0].errors["give"] = cluster[0].errors["take"] = RayTaskError("a bug")
    model.go.set()
    report = await running
    assert {type(row.error) for row in report.rows} <= {RunError, type(None)}


async def test_a_budget_is_asked_before_each_request_and_settled_when_a_worker_dies(cluster, monkeypatch) -> None:
    monkeypatch.setattr(guard, "_in_force", set())  # what a worker forbids holds in its own process only
    went = asyncio.Event()
    held = asyncio.Event()

    async def reply(request):
        if len(server.requests) >= 4:
            went.set()
            await held.wait()
        said = request.body["messages"][1]["content"].split("text: ", 1)[1].strip()
        return text_answer(answer_to(said))(request)

    async with LoopbackServer(reply) as server:
        with use_llm(OpenAICompatible("m", base_url=server.base_url, max_retries=0)), budget(requests=9) as spent:
            running = asyncio.create_task(read.map(texts(40), engine=RayEngine(workers=1), concurrency=4))
            await went.wait()
            cluster[0].die()
            held.set()
            report = await running
        assert isinstance(report.stopped, BudgetExceeded)
        assert spent.requests == 9
        assert spent._reserved == 0
        assert len(server.requests) <= 9
        answered = sum(row.error is None for row in report.rows)
        assert spent.tokens == answered * 8
    assert 3 <= answered <= 8  # of nine requests, one at least was held when the worker died, and four were under way


async def test_a_retry_asks_the_budget_too(cluster, monkeypatch) -> None:
    async with LoopbackServer() as server:
        for _ in range(2):
            server.reply_status(503)
        with use_llm(OpenAICompatible("m", base_url=server.base_url, max_retries=2, retry_delay=0.001)):
            report = await read.map(texts(1), engine=RayEngine(workers=1), budget={"requests": 2})
        assert isinstance(report.stopped, BudgetExceeded)
        assert len(server.requests) == 2


async def test_a_forbidden_call_is_forbidden_there(cluster, monkeypatch) -> None:
    forbidden: list[bool] = []
    monkeypatch.setattr(ray_worker, "forbid_real_calls", lambda: forbidden.append(True))
    with use_llm(OpenAICompatible("m", base_url="http://127.0.0.1:1/v1")), forbid_real_calls():
        with pytest.raises(Exception, match="forbid_real_calls"):
            await read.map(texts(1), engine=RayEngine(workers=1))
    assert forbidden == [True]


async def test_the_gate_lets_nothing_through_without_a_question() -> None:
    asked: list[tuple] = []

    async def ask(*needed):
        asked.append(needed)

    gate = ray_limits.Gate(ask)
    await gate.let_question(40, 0.5)
    await gate.let_question(30, 0.25)  # another one of the same row, at the same time
    await gate.let_try()  # each is paid with its question
    await gate.let_try()
    await gate.let_try()
    assert asked == [(1, 40, 0.5), (1, 30, 0.25), (1, 0, 0.0)]
