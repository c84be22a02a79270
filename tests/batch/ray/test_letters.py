"""Driver, hub and workers of a map on a cluster, and their letters, in one process: a cluster that fails on demand."""

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
    ResponseParseError,
    RunError,
    budget,
    forbid_real_calls,
    use_llm,
)
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.batch.ray import cluster as ray_cluster
from SimpleLLMFunc.batch.ray import engine as ray
from SimpleLLMFunc.batch.ray import hub as ray_hub
from SimpleLLMFunc.batch.ray import limits as ray_limits
from SimpleLLMFunc.batch.ray import worker as ray_worker
from SimpleLLMFunc.batch.ray.hub import Hub
from SimpleLLMFunc.batch.ray.limits import Limiter
from SimpleLLMFunc.batch.ray.worker import RowWorker
from SimpleLLMFunc.interface.attempts import guard
from SimpleLLMFunc.testing import ScriptedLLM
from tests.batch.ray.ray_app import Word, answer_to, read
from tests.support.server import LoopbackServer, text_answer


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class RayActorError(RayError):
    pass


class ActorDiedError(RayActorError):
    pass


class ActorUnavailableError(RayActorError):
    pass


class Method:
    def __init__(self, actor, name) -> None:
        self.actor, self.name = actor, name

    def remote(self, *args):
        return asyncio.ensure_future(self.actor.called(self.name, args))


class Actor:
    """An actor in this process, whose calls fail, or do not answer, on demand."""

    def __init__(self, inner) -> None:
        self.inner = inner
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
        work = getattr(self.inner, name)(*args)
        task = asyncio.get_running_loop().create_task(work, context=Context())  # of the caller's it knows nothing
        self.under_way.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                task.cancel()
                raise
            raise ActorDiedError("it was killed") from None
        finally:
            self.under_way.discard(task)
        if self.lost.get(name):
            self.lost[name] -= 1
            raise ActorUnavailableError("its answer was lost")
        return result

    def kill(self) -> None:
        for task in self.under_way:
            task.cancel()


class Block:
    """What a worker reads of a block of the dataset."""

    def __init__(self, rows) -> None:
        self.rows = rows

    def column(self, name):
        at = {"tickets": 0, "rows": 1}[name]
        return [SimpleNamespace(as_py=lambda: [row[at] for row in self.rows])]


class Worker:
    """An actor of the pool: it dies, is made again, and Ray runs its blocks again."""

    def __init__(self, *told) -> None:
        self.told = told
        self.inner = RowWorker(*told)
        self.blocks: set[asyncio.Task] = set()

    async def run(self, rows):
        while True:
            block = asyncio.get_running_loop().create_task(self.receipts(rows), context=Context())
            self.blocks.add(block)
            try:
                return await block
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling():
                    block.cancel()
                    raise
            finally:
                self.blocks.discard(block)

    async def receipts(self, rows):
        return [receipt async for receipt in self.inner(Block(rows))]

    @property
    def asked(self) -> int:
        return sum(start.done() for start in self.inner._starts.values())

    def die(self) -> None:
        listening = [] if self.inner._listening is None else [self.inner._listening]
        for task in (*self.inner._tasks.values(), *self.blocks, *listening):
            task.cancel()
        self.inner = RowWorker(*self.told)


class Dataset:
    """Ray Data, as far as a map needs it."""

    def __init__(self, cluster) -> None:
        self.cluster = cluster

    async def run(self, hub, told, count, options):
        self.cluster.options = options
        if self.cluster.failure is not None:
            raise self.cluster.failure
        workers = self.cluster.workers = [Worker(hub, *told) for _ in range(count)]
        index = 0
        receipts = []
        while True:
            try:
                rows = await hub.block.remote("run", index)
            except ActorUnavailableError:
                continue  # Ray starts the reader again
            if rows is None:
                break
            # Two are the same as what Ray does with a block whose receipt was lost.
            worker = min(workers, key=lambda each: len(each.blocks))
            receipts.append(asyncio.ensure_future(worker.run(rows)))
            await asyncio.sleep(0)
            index += 1
        return sum(receipt["rows"][0] for each in await asyncio.gather(*receipts) for receipt in each)


class Cluster:
    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.hub: Actor = Actor(None)
        self.failure: Exception | None = None
        self.options: dict = {}


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster()

    def packed(value, reducers=None):
        file = io.BytesIO()
        pickler = pickle.Pickler(file)
        pickler.dispatch_table = ChainMap(dict(reducers or {}), copyreg.dispatch_table)
        pickler.dump(value)
        return file.getvalue()

    names = ("RayError", "RayTaskError", "RayActorError", "ActorDiedError", "ActorUnavailableError")
    package = SimpleNamespace(
        exceptions=SimpleNamespace(**{name: globals()[name] for name in names}),
        kill=lambda actor: actor.kill(),
        cluster_resources=lambda: {"CPU": 2.0},
    )

    @asynccontextmanager
    async def connected(address):
        yield package

    def started(_package, count):
        cluster.hub = Actor(Hub(count))
        return [Actor(Limiter()), cluster.hub, Actor(Dataset(cluster))]

    monkeypatch.setattr(ray, "connected", connected)
    monkeypatch.setattr(ray, "_started", started)
    monkeypatch.setattr(ray_worker, "ray_package", lambda: package)
    monkeypatch.setattr(ray_worker, "Guard", lambda hub: SimpleNamespace(start=lambda: None))
    for module in (ray, ray_worker):
        monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.001)
    for module in (ray, ray_cluster, ray_hub, ray_worker):
        monkeypatch.setattr(module, "packed", packed)
    for module in (ray, ray_hub, ray_worker):
        monkeypatch.setattr(module, "unpacked", pickle.loads)
    return cluster


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
    assert len(cluster.workers) == 2
    assert cluster.hub.calls.count("give") < 60
    assert cluster.hub.calls.count("report") < 100
    assert cluster.hub.calls.count("accept") < 60


async def test_rows_of_a_worker_that_died_are_asked_again_and_no_others(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(30), engine="ray", concurrency=10))
    await model.has(10)
    dying = max(cluster.workers, key=lambda worker: worker.asked)
    held = dying.asked
    dying.die()
    model.go.set()
    report = await running
    assert numbers(report) == list(range(30))
    twice = {text for text in model.asked if model.asked.count(text) == 2}
    assert len(model.asked) == 30 + len(twice)
    assert len(twice) == held >= 5  # what only waited there, and what the other worker had, is not asked again


async def test_what_gets_lost_on_the_way_is_sent_again_and_asked_once(cluster, model) -> None:
    report = asyncio.create_task(read.map(texts(60), engine="ray", concurrency=10))
    await model.has(1)
    cluster.hub.lost = {"give": 3, "take": 3, "accept": 2, "report": 3, "orders": 2, "block": 2}
    assert numbers(await report) == list(range(60))
    assert sorted(model.asked) == sorted(texts(60))
    assert not cluster.hub.lost["take"]
    assert not cluster.hub.lost["report"]


async def test_a_row_that_kills_is_given_up_after_four_deaths(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(1), engine=RayEngine(workers=1)))
    for death in range(1, 5):
        await model.has(death)
        cluster.workers[0].die()
    report = await running
    assert isinstance(report.rows[0].error, RunError)
    assert "died 4 times" in str(report.rows[0].error)
    assert len(model.asked) == 4


async def test_the_first_error_is_raised_where_that_is_wanted(cluster, model) -> None:
    bad = ScriptedLLM("no idea", repeat=True)
    _models.append(bad)
    with use_llm(bad), pytest.raises(ResponseParseError):
        await read.map(texts(9), engine="ray", on_error="raise")


@pytest.mark.parametrize("error", [ActorDiedError("gone"), RayTaskError("a bug")])
async def test_workers_that_cannot_be_started_end_the_map(error, cluster, model) -> None:
    cluster.failure = error
    with pytest.raises(ConfigError, match=f"cannot be started.*{error}"):
        await read.map(texts(3), engine="ray")
    assert not model.asked


async def test_a_function_that_cannot_be_loaded_ends_the_map(cluster, model, monkeypatch) -> None:
    monkeypatch.setattr(ray_worker, "share_limits", lambda *_: 1 / 0)
    with pytest.raises(ConfigError, match=r"cannot be loaded where the workers are.*ZeroDivisionError"):
        await read.map(texts(3), engine="ray")
    assert not model.asked


async def test_a_hub_that_dies_in_the_middle_ends_its_rows(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(40), engine=RayEngine(workers=1), concurrency=4))
    await model.has(4)
    for method in ("give", "take", "orders", "report", "accept", "end"):
        cluster.hub.errors[method] = ActorDiedError("its machine is gone")
    cluster.hub.kill()
    report = await running
    assert {type(row.error) for row in report.rows} == {RunError}
    assert "its machine is gone" in str(report.rows[0].error) or "it was killed" in str(report.rows[0].error)
    assert len(model.asked) == 4
    assert not cluster.workers[0].inner._tasks  # nobody would hear of them


async def test_rows_go_ahead_and_are_asked_when_there_is_a_place(cluster, model) -> None:
    model.go.clear()
    running = asyncio.create_task(read.map(texts(100), engine="ray", concurrency=6))
    await model.has(6)
    while sum(len(worker.inner._tasks) for worker in cluster.workers) < 100:
        await asyncio.sleep(0.001)
    assert [worker.asked for worker in cluster.workers] == [3, 3]  # those that are next are not all with one
    assert len(model.asked) == 6
    model.go.set()
    assert numbers(await running) == list(range(100))
    assert len(model.asked) == 100


async def test_an_endless_source_is_read_no_further_than_needed(cluster, model) -> None:
    read_rows = 0

    def endless():
        nonlocal read_rows
        while True:
            read_rows += 1
            yield f"row number {read_rows}"

    report = await read.map(endless(), engine="ray", concurrency=10, budget={"requests": 300}, checkpoint=None)
    assert isinstance(report.stopped, BudgetExceeded)
    assert len(model.asked) == 300
    assert read_rows < 300 + 1_000
    assert not cluster.hub.inner._open


async def test_what_the_actors_are_told(cluster, model) -> None:
    engine = RayEngine(workers=1, cpus=0.5, options={"resources": {"gpu_box": 1}})
    await read.map(texts(1), engine=engine)
    assert cluster.options == {"num_cpus": 0.5, "resources": {"gpu_box": 1}}


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
            cluster.workers[0].die()
            held.set()
            report = await running
        assert isinstance(report.stopped, BudgetExceeded)
        assert spent.requests == 9
        assert spent._reserved == 0
        assert len(server.requests) <= 9
        answered = sum(row.error is None for row in report.rows)
        assert spent.tokens == answered * 8
    assert 3 <= answered <= 8  # of nine requests, one at least was held when the worker died, and four were under way


async def test_a_budget_of_tokens_is_one_of_all_workers(cluster) -> None:
    async def reply(request):
        said = request.body["messages"][1]["content"].split("text: ", 1)[1].strip()
        return text_answer(answer_to(said))(request)

    async with LoopbackServer(reply) as server:
        model = OpenAICompatible("m", base_url=server.base_url, max_retries=0)
        with use_llm(model), budget(tokens=100) as spent:
            report = await read.map(texts(40), engine=RayEngine(workers=2), concurrency=2)
        assert isinstance(report.stopped, BudgetExceeded)
        assert spent.tokens == len(server.requests) * 8


async def test_a_budget_of_time_ends_what_is_asked(cluster, model) -> None:
    model.go.clear()
    report = await read.map(texts(40), engine="ray", concurrency=4, budget={"seconds": 0.5})
    assert isinstance(report.stopped, BudgetExceeded)
    assert report.stopped.unit == "seconds"
    assert report.counts.unasked == 40


async def test_prices_that_nobody_knows_stop_a_budget_of_money(cluster) -> None:
    with use_llm(OpenAICompatible("nobody-knows", base_url="https://llm.invalid/v1")):
        with pytest.raises(ConfigError, match="price"):
            await read.map(texts(3), engine="ray", budget=0.5)


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
