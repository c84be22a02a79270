"""A map on a cluster that is all in this process: which workers it has, who asks which row, and what is left of it."""

from __future__ import annotations

import asyncio
import contextvars
import copyreg
import pickle
import re
import sys
from functools import partial
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import pytest

from SimpleLLMFunc import BudgetExceeded, ConfigError, RunError, SignatureError, budget, forbid_real_calls, use_llm
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.batch.ray.cluster import RowWorker
from SimpleLLMFunc.errors import ResponseParseError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.testing import ScriptedLLM
from tests.batch.ray.ray_app import answer_to, inner, read

HELD: dict[str, asyncio.Event] = {}


class LostError(Exception):
    cause = None


class DiedError(LostError):
    cause = OSError("killed\nby the kernel\nout of memory")


async def reply(request):
    text = request.text.split("text: ", 1)[1].strip()
    if text in HELD:
        await HELD[text].wait()
    return "no idea" if text.startswith("bad") else answer_to(text)


class Worker:
    """An actor, which knows nothing of what is around the map."""

    def __init__(self, ray, *given) -> None:
        self._ray, self._number, self._actor = ray, len(ray.workers), RowWorker(*given)
        self.given, self.texts = given, []
        ray.workers.append(self)

    def __getattr__(self, name):
        async def work(*args):
            which = pickle.loads(args[0])[0][0] if args else self._number
            self.texts += [which] if args else []
            if which in self._ray.fails:
                raise self._ray.fails[which]
            return await getattr(self._actor, name)(*args)

        loop = asyncio.get_running_loop()
        return SimpleNamespace(remote=lambda *args: loop.create_task(work(*args), context=contextvars.Context()))


@pytest.fixture
def cluster(monkeypatch):
    """What a map uses of Ray."""
    kinds = SimpleNamespace(RayError=LostError, RayActorError=DiedError)
    ray = MagicMock(exceptions=kinds, workers=[], fails={}, is_there=False)
    ray.is_initialized.side_effect = lambda: ray.is_there
    ray.init.side_effect = lambda **_: setattr(ray, "is_there", True)
    ray.shutdown.side_effect = lambda: setattr(ray, "is_there", False)
    ray.cluster_resources.return_value = {"CPU": 3.0}
    ray.remote.return_value.options.return_value.remote.side_effect = partial(Worker, ray)
    pickler = type("Pickler", (pickle.Pickler,), {"dispatch_table": copyreg.dispatch_table})
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.cloudpickle", SimpleNamespace(Pickler=pickler, loads=pickle.loads))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    HELD.clear()
    with use_llm(ScriptedLLM(reply, repeat=True)):
        yield ray


TEXTS = [f"row number {number}" for number in range(6)]


async def numbers(texts=TEXTS, engine="ray", **options):
    report = await read.map(texts, engine=engine, **options)
    return [row.value.number if row.error is None else type(row.error) for row in report.rows]


@pytest.mark.parametrize(("engine", "options", "resources", "count", "most"), [
    (RayEngine(), {}, {"CPU": 3.0}, 3, 1000), (RayEngine(cpus=1.5), {}, {"CPU": 3.0}, 2, 1000),
    (RayEngine(cpus=8), {}, {"CPU": 3.0}, 1, 1000), (RayEngine(), {}, {}, 1, 1000),
    (RayEngine(workers=4), {}, {"CPU": 3.0}, 4, 1000), (RayEngine(), {"concurrency": 2000}, {"CPU": 2.0}, 2, 2000),
    (RayEngine(cpus=0), {"concurrency": 2}, {"CPU": 3.0}, 2, 1000),
])  # fmt: skip
async def test_there_are_as_many_workers_as_there_is_room_for(cluster, engine, options, resources, count, most) -> None:
    cluster.cluster_resources.return_value = resources
    assert await numbers(engine=engine, **options) == [*range(6)]
    assert (len(cluster.workers), cluster.workers[0].given[1:]) == (count, (count, False))
    told = {"num_cpus": engine.cpus, "max_restarts": -1, "max_task_retries": 3, "max_concurrency": most}
    cluster.remote.return_value.options.assert_called_once_with(**told)
    assert cluster.kill.call_args_list == [call(worker) for worker in cluster.workers]


async def test_a_cluster_that_a_map_began_ends_with_the_last_map_and_another_one_stays(cluster, monkeypatch) -> None:
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "warning"}
    HELD[TEXTS[1]] = asyncio.Event()
    longer = asyncio.create_task(numbers(TEXTS[:2]))
    assert await numbers(TEXTS[2:]) == [2, 3, 4, 5]
    assert cluster.is_there
    HELD.pop(TEXTS[1]).set()
    assert await longer == [0, 1]
    assert not cluster.is_there
    cluster.init.assert_called_once_with(
        address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet
    )
    await numbers(engine=RayEngine(address="there:1"))
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere:1")
    await numbers()
    assert cluster.init.call_args_list[1:] == [call(address="there:1", **quiet), call(address="auto", **quiet)]
    cluster.init()
    await numbers()
    assert cluster.is_there
    cluster.shutdown()
    monkeypatch.delenv("RAY_ADDRESS")
    cluster.init.side_effect = ConnectionError("no answer")
    for engine, where in ((RayEngine(), "on this machine"), (RayEngine(address="there:1"), "at 'there:1'")):
        with pytest.raises(ConfigError, match=f"no Ray cluster can be had {where}: no answer"):
            await numbers(engine=engine)


async def test_the_worker_with_the_fewest_rows_has_the_next_one(cluster) -> None:
    HELD.update({text: asyncio.Event() for text in (TEXTS[1], TEXTS[5])})
    report = asyncio.create_task(numbers([*TEXTS, "the last 6"], RayEngine(workers=2), concurrency=2))
    while not cluster.workers or TEXTS[5] not in cluster.workers[0].texts:
        await asyncio.sleep(0)
    assert cluster.workers[1].texts == TEXTS[1:2]
    HELD[TEXTS[1]].set()
    while sum(len(worker.texts) for worker in cluster.workers) < 7:
        await asyncio.sleep(0)
    assert cluster.workers[1].texts == [TEXTS[1], "the last 6"]
    HELD[TEXTS[5]].set()
    assert await report == [*range(7)]


async def test_a_function_asks_its_own_model_outside_of_use_llm(cluster) -> None:
    report = await asyncio.create_task(inner.map(["a"], engine="ray"), context=contextvars.Context())
    assert report.rows[0].value == "asked by its own model"
    assert (await numbers([]), len(cluster.workers)) == ([], 3)  # no rows, no workers


async def test_what_goes_wrong_with_a_row_is_its_error(cluster, caplog) -> None:
    remember_secret("CANARY-0123456789-abcdefghij")
    cluster.fails |= {"a 7": DiedError("died"), "b 7": LostError("the node\nis gone"), "c 7": LostError()}
    texts = ["a 7", "b 7", "c 7", "bad", "CANARY-0123456789-abcdefghij 7", TEXTS[3]]
    rows = (await read.with_options(max_reasks=0).map(texts, engine="ray")).rows
    kinds = [RunError, RunError, RunError, ResponseParseError, SignatureError, type(None)]
    assert [type(row.error) for row in rows] == kinds
    said = ["died 4 times", "lost on the cluster: LostError: the node … is gone", "lost on the cluster: LostError: $"]
    for row, text in zip(rows, [*said, "", "it holds a key"], strict=False):
        assert re.search(text, str(row.error))
    assert str(rows[0].error).endswith("OSError: killed … out of memory")
    assert rows[3].usage.total_tokens > 0
    assert rows[5].value.number == 3


async def test_a_worker_that_cannot_be_made_leaves_the_rows_to_the_others(cluster, caplog) -> None:
    cluster.fails[2] = LostError("no room")
    assert await numbers() == [*range(6)]
    assert [len(worker.texts) for worker in cluster.workers] == [3, 3, 0]
    assert "a worker of the map of 'read' cannot help the others: the workers of the map" in caplog.text
    cluster.fails = dict.fromkeys(range(9), LostError("no room"))
    with pytest.raises(ConfigError, match="the workers of the map of 'read' cannot be started: LostError: no room"):
        await numbers()


async def test_a_budget_is_kept_by_all_workers_together(cluster) -> None:
    with budget(requests=3) as spent:
        assert await numbers() == [0, 1, 2, *[BudgetExceeded] * 3]
    assert spent.requests == 3
    with pytest.raises(BudgetExceeded) as caught, budget(tokens=1):
        await read(TEXTS[0])
    with budget(tokens=10**6) as spent:
        await numbers(TEXTS[:1])
    # One part is too small for a row, so they go one after the other.
    assert await numbers(TEXTS[:2], budget={"tokens": caught.value.needed + spent.tokens}) == [0, 1]
    report = await read.map(TEXTS[:1], engine="ray", budget={"tokens": 1})
    assert (report.stopped.limit, report.stopped.needed) == (1, caught.value.needed)


async def test_what_is_forbidden_here_is_forbidden_there(cluster, monkeypatch) -> None:
    monkeypatch.setattr("SimpleLLMFunc.batch.ray.cluster.forbid_real_calls", forbidden := MagicMock())
    await numbers()
    assert not forbidden.called
    with forbid_real_calls():
        await numbers()
    assert forbidden.call_count == 3


async def test_an_actor_for_a_dataset_of_ones_own_asks_for_each_row_of_a_batch(cluster) -> None:
    async def answered(batch, **options):
        actor = read.with_options(max_reasks=0).as_ray_actor(**options)()
        return [each async for each in actor(batch)]

    batch = {"id": [7, 8, 9], "comment": [TEXTS[2], "bad", TEXTS[4]]}
    (found,) = await answered(batch, columns={"comment": "text"}, actors=0)
    assert found.pop("error")[1].startswith("ResponseParseError")
    words = [["w2", TEXTS[2][::-1]], None, ["w4", TEXTS[4][::-1]]]
    assert found == {**batch, "number": [2, None, 4], "words": words}
    assert await answered({"text": TEXTS[:1]}, concurrency=1) == [
        {"text": TEXTS[:1], "number": [0], "words": [["w0", TEXTS[0][::-1]]], "error": [None]}
    ]
    assert await answered({}) == [{"number": [], "words": [], "error": []}]
    with pytest.raises(ResponseParseError):
        await answered({"text": ["bad"]}, on_error="raise")
