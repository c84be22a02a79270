"""A map on a Ray cluster: a real one on this machine, two workers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    BudgetExceeded,
    ConfigError,
    DeadlineExceeded,
    OpenAICompatible,
    RunAborted,
    RunError,
    UsageError,
    budget,
    forbid_real_calls,
    llm_function,
    tool,
    use_llm,
)
from SimpleLLMFunc.base.run.abort import AbortSignal
from SimpleLLMFunc.batch import RayEngine
from SimpleLLMFunc.batch.ray import engine as ray
from SimpleLLMFunc.testing import ScriptedLLM
from tests.batch.ray.ray_app import Word, answer_to, dangerous, look, read, where
from tests.support.server import LoopbackServer, error_answer, text_answer, tool_calls_answer

ONE, TWO = RayEngine(workers=1), RayEngine(workers=2)
QUIET_AND_QUICK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
"""Ray's workers step back behind every other process: next to other tests they would get no time."""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def cluster():
    package = pytest.importorskip("ray", reason='takes pip install "SimpleLLMFunc[ray]"')
    patch = pytest.MonkeyPatch()
    for name, value in QUIET_AND_QUICK.items():
        patch.setenv(name, value)
    patch.delenv("RAY_ADDRESS", raising=False)
    package.init(
        address="local", num_cpus=3, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False
    )
    try:
        yield package
    finally:
        package.shutdown()
        patch.undo()


def text_of(request) -> str:
    asked = next(message["content"] for message in request.body["messages"] if message["role"] == "user")
    return asked.split("text: ", 1)[1].strip()


class Server(LoopbackServer):
    """Answers every row, after `delay` seconds, and counts."""

    def __init__(self, delay: float = 0.02) -> None:
        super().__init__(self._reply)
        self.delay = delay
        self.paid: Counter[str] = Counter()
        self.times: list[float] = []
        self.waits: list[tuple[int, asyncio.Event]] = []

    async def _reply(self, request):
        text = text_of(request)
        self.paid[text] += 1
        self.times.append(time.monotonic())
        for count, event in self.waits:
            if self.paid.total() >= count:
                event.set()
        await asyncio.sleep(self.delay)
        return self.answer_to(text, request)

    def answer_to(self, text, request):
        return text_answer(answer_to(text))(request)

    async def asked(self, count: int) -> None:
        event = asyncio.Event()
        self.waits.append((count, event))
        if self.paid.total() < count:
            await event.wait()

    @property
    def model(self) -> OpenAICompatible:
        return OpenAICompatible("m", base_url=self.base_url, max_retries=0)


def texts(count: int) -> list[str]:
    return [f"row number {number}" for number in range(count)]


WORKER = b"ray::RowWorker"


def processes(package, names=WORKER) -> dict[int, str]:
    """The processes of this cluster that have one of these names."""
    session = package._private.worker._global_node.get_session_dir_path()
    found = {}
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdecimal() and (command := (process / "cmdline").read_bytes()).startswith(names):
                parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
                if session.encode() in Path("/proc", parent, "cmdline").read_bytes():
                    found[int(process.name)] = command.rstrip(b"\0 ").decode()
    return found


async def nothing_stays(package) -> None:
    """Return when no process works for a map any more: at once, or soon."""
    try:
        async with asyncio.timeout(60):
            while await asyncio.to_thread(processes, package):
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"these stay: {processes(package)}")


async def test_workers_ask_and_the_report_is_as_ever(cluster, tmp_path) -> None:
    async with Server() as server:
        with use_llm(server.model):
            report = await read.map([*texts(60), "row number 3"], engine=TWO, checkpoint=tmp_path / "run.sqlite")
        assert [row.value.number for row in report.rows] == [*range(60), 3]
        assert isinstance(report.rows[7].value, Word)
        assert report.rows[7].value.words == ["w0", "7 rebmun wor"]
        assert (report.counts.asked, report.counts.duplicates) == (60, 1)
        assert report.usage.input_tokens == 60 * 5
        assert report.rows[7].usage.output_tokens == 3
        assert set(server.paid.values()) == {1}


async def test_each_worker_gets_its_part_of_the_rows(cluster) -> None:
    report = await where.map(texts(1500), engine=TWO, concurrency=4)
    shares = Counter(row.value for row in report.rows[-200:])  # both are there by then
    assert len(shares) == 2
    assert min(shares.values()) > 50


async def test_what_is_finished_is_not_asked_again_and_takes_no_cluster(cluster, tmp_path, monkeypatch) -> None:
    async with Server() as server:
        with use_llm(server.model):
            await read.map(texts(10), engine=TWO, checkpoint=tmp_path / "run.sqlite")
            report = await read.map(texts(12), engine="local", checkpoint=tmp_path / "run.sqlite")
            assert (report.counts.restored, report.counts.asked) == (10, 2)
            monkeypatch.setattr(ray, "connection", None)
            report = await read.map(texts(12), engine=TWO, checkpoint=tmp_path / "run.sqlite")
        assert [row.value.number for row in report.rows] == list(range(12))
        assert report.counts.restored == 12
        assert server.paid.total() == 12


async def test_a_worker_that_is_killed_in_the_middle_costs_what_it_had_under_way(cluster, tmp_path) -> None:
    concurrency = 40
    async with Server(delay=0.1) as server:
        with use_llm(server.model):
            running = asyncio.create_task(
                read.map(texts(400), engine=TWO, concurrency=concurrency, checkpoint=tmp_path / "run.sqlite")
            )
            await server.asked(150)
            before = list(await asyncio.to_thread(processes, cluster))
            assert before
            os.kill(before[0], signal.SIGKILL)
            report = await running
        assert [row.value.number for row in report.rows] == list(range(400))
        assert len(server.paid) == 400
        again = server.paid.total() - 400
        assert again <= concurrency
        assert max(server.paid.values()) <= 2
        # What the checkpoint holds is the same, and whole.
        with use_llm(server.model):
            restored = await read.map(texts(400), checkpoint=tmp_path / "run.sqlite")
        assert restored.counts.restored == 400
        assert server.paid.total() == 400 + again


async def test_a_row_that_kills_its_worker_is_given_up(cluster) -> None:
    die = tool_calls_answer([("die", {"now": True})])
    async with Server() as server:
        server.answer_to = lambda text, request: (die if text == "poison" else text_answer(text.upper()))(request)
        with use_llm(server.model):
            report = await dangerous.map(["poison", "fine"], engine=ONE, concurrency=1)
    poison, fine = report.rows
    assert isinstance(poison.error, RunError)
    assert "died 4 times" in str(poison.error)
    assert fine.value == "FINE"
    assert server.paid == {"poison": 4, "fine": 1}


class Local(BaseModel):
    number: int


@llm_function(toolkit=[look])
async def read_aloud(text: str) -> str:
    """Look the text up."""


async def test_a_function_of_no_module_travels_without_its_keys(cluster, monkeypatch) -> None:
    canary = "sk-canary-0123456789abcdefghij"
    sent: list[bytes] = []
    shipped = ray.shipped

    def spy(value, *more):
        sent.append(shipped(value, *more))
        return sent[-1]

    monkeypatch.setattr(ray, "shipped", spy)
    async with Server() as server:
        model = OpenAICompatible("m", base_url=server.base_url, api_key=canary, max_retries=0)

        @llm_function(llm_interface=model)
        async def local(text: str) -> Local:
            """Read the text."""
            print(canary)  # the body does not travel
            raise NotImplementedError

        changed = local.with_options(temperature=0.5)
        report = await changed.map(texts(20), engine=ONE)
        assert [row.value.number for row in report.rows] == list(range(20))
        assert type(report.rows[0].value) is Local
        request = server.requests[-1]
        assert request.body["temperature"] == 0.5
        assert "Read the text." in request.body["messages"][0]["content"]
        assert request.key != canary  # the worker has none, and this address needs none
    assert any(b"Read the text." in data for data in sent)
    assert any(b"row number 7" in data for data in sent)
    assert not [data for data in sent if canary.encode() in data]
    session = Path(cluster._private.worker._global_node.get_session_dir_path())
    logs = [file.read_bytes() for file in session.rglob("*") if file.is_file() and not file.is_symlink()]
    assert logs
    assert not any(canary.encode() in text for text in logs)


async def test_a_tool_that_holds_a_key_does_not_travel(cluster) -> None:
    key = "sk-held-by-a-tool-0123456789"
    model = OpenAICompatible("m", base_url="http://127.0.0.1:1/v1", api_key=key)

    @tool
    def look(word: str) -> str:
        """Look it up."""
        return f"{word} {key}"

    @llm_function(llm_interface=model, toolkit=[look])
    async def local(text: str) -> str:
        """Read the text."""

    with pytest.raises(UsageError, match="keys are not sent to workers"):
        await local.map(texts(3), engine=TWO)


async def test_errors_are_results(cluster) -> None:
    bad = {"row number 3": text_answer("no idea"), "row number 5": lambda _: error_answer(500, "broken")}
    async with Server() as server:
        server.answer_to = lambda text, request: bad.get(text, text_answer(answer_to(text)))(request)
        with use_llm(server.model):
            report = await read.map(texts(8), engine=ONE, concurrency=1, budget={"requests": 10})
            errors = {row.index: type(row.error).__name__ for row in report.rows if row.error is not None}
            assert errors == {3: "ResponseParseError", 5: "ServerUnavailable"}
            assert report.rows[3].error.violations
            assert report.rows[3].usage.input_tokens == 15  # with two re-asks


class SecondTry(Server):
    """Every row needs two requests."""

    def answer_to(self, text, request):
        return text_answer("no idea" if self.paid[text] == 1 else answer_to(text))(request)


async def test_a_budget_holds_over_all_workers_and_re_asks(cluster) -> None:
    async with SecondTry() as server:
        with use_llm(server.model), budget(requests=100) as around:
            report = await read.map(texts(40), engine=TWO, concurrency=6, budget={"requests": 21})
        assert isinstance(report.stopped, BudgetExceeded)
        assert server.paid.total() == 21
        assert around.requests == 21
        assert around.tokens == 21 * 8
        assert report.counts.unasked
        assert 5 <= report.counts.asked <= 10


async def test_a_budget_that_just_suffices_does(cluster) -> None:
    async with SecondTry() as server:
        with use_llm(server.model), budget(requests=60) as spent:
            report = await read.map(texts(30), engine=TWO, concurrency=30)
        assert report.stopped is None
        assert spent.requests == 60 == server.paid.total()


async def test_rows_whose_part_of_the_budget_is_too_small_wait_for_a_larger_one(cluster) -> None:
    async with Server() as server:
        with use_llm(server.model):
            with pytest.raises(BudgetExceeded) as caught, budget(tokens=1):
                await read(texts(6)[5])
            needed = int(caught.value.needed)
            report = await read.map(texts(6), engine=ONE, concurrency=6, budget={"tokens": 6 * 8 + needed})
        assert report.stopped is None
        assert report.counts.asked == 6


@pytest.mark.parametrize("limit", [{"budget": {"seconds": 5}}, {"deadline": 5}])
async def test_a_budget_of_time_and_a_deadline_end_what_is_asked(cluster, limit) -> None:
    async with Server(delay=60) as server:
        with use_llm(server.model):
            # The cluster is there; workers take a second or two to start.
            report = await read.map(texts(40), engine=ONE, concurrency=4, **limit)
    assert isinstance(report.stopped, DeadlineExceeded if "deadline" in limit else BudgetExceeded)
    assert getattr(report.stopped, "unit", "seconds") == "seconds"
    assert report.counts.unasked == 40


async def test_abort_ends_the_map(cluster) -> None:
    signal_ = AbortSignal()
    async with Server(delay=60) as server:
        with use_llm(server.model):
            running = asyncio.create_task(read.with_options(abort_signal=signal_).map(texts(9), engine=ONE))
            await server.asked(4)
            signal_.abort("enough")
            report = await running
    assert isinstance(report.stopped, RunAborted)
    assert report.stopped.reason == "enough"


async def test_a_cancelled_map_leaves_no_worker_and_goes_on_from_its_checkpoint(cluster, tmp_path) -> None:
    options = {"engine": TWO, "concurrency": 20, "checkpoint": tmp_path / "run.sqlite"}
    async with Server(delay=0.05) as server:
        with use_llm(server.model), budget(requests=1_000):  # as many are under way as without
            running = asyncio.create_task(read.map(texts(200), **options))
            await server.asked(80)
            server.delay = 60
            await server.asked(90)
            server.delay = 0.05
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await nothing_stays(cluster)
            report = await read.map(texts(200), **options)
        assert report.counts.restored >= 60
        assert report.counts.failed == 0
        assert server.paid.total() <= 220


async def test_a_map_that_is_cancelled_while_its_workers_start_leaves_none(cluster) -> None:
    async with Server(delay=60) as server:
        with use_llm(server.model):
            running = asyncio.create_task(read.map(texts(40), engine=TWO, concurrency=4))
            while not list(await asyncio.to_thread(processes, cluster)):
                await asyncio.sleep(0.02)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        await nothing_stays(cluster)


async def test_rates_hold_for_all_workers_together(cluster) -> None:
    async with Server() as server:
        model = OpenAICompatible(
            "m", base_url=server.base_url, max_retries=0, rate_limit_capacity=1, rate_limit_refill_rate=10
        )
        with use_llm(model):
            report = await read.map(texts(90), engine=TWO, concurrency=30)
    assert report.counts.failed == 0
    # 8.9 s from the first to the last; if each worker had the whole rate, half of it. The margin is for first requests
    # that wait for their connection on a busy machine.
    assert max(server.times) - min(server.times) > 5.5


async def test_what_is_forbidden_here_is_forbidden_there(cluster) -> None:
    async with Server() as server:
        with use_llm(server.model), forbid_real_calls(), pytest.raises(UsageError, match="forbid_real_calls"):
            await read.map(texts(3), engine=ONE)
        assert not server.paid


async def test_a_function_that_is_not_there_is_named(cluster, monkeypatch) -> None:
    module = type(sys)("nowhere_else")
    vars(module).update(model=ScriptedLLM("x", repeat=True), llm_function=llm_function)
    exec("@llm_function(model)\nasync def lost(text: str) -> str:\n 'Shorten.'", vars(module))
    monkeypatch.setitem(sys.modules, "nowhere_else", module)
    with pytest.raises(ConfigError, match=r"nowhere_else:lost.*runtime_env"):
        await module.lost.map(texts(2), engine=ONE)


@pytest.mark.parametrize("options", [{"no_such_option": 1}, {"runtime_env": {"conda": "no-such-environment"}}])
async def test_workers_that_cannot_be_made_are_an_error(options, cluster) -> None:
    async with Server() as server:
        with use_llm(server.model), pytest.raises(ConfigError, match="cannot be started"):
            await read.map(texts(3), engine=RayEngine(workers=1, options=options))
        assert not server.paid


@pytest.mark.filterwarnings(r"ignore:.* is deprecated:DeprecationWarning:ray\..*")  # Ray reads its own old options
async def test_a_dataset_of_ones_own(cluster) -> None:
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    async with Server() as server:
        server.answer_to = lambda text, request: text_answer("no idea" if text.endswith(" 13") else answer_to(text))(
            request
        )
        with use_llm(server.model):
            actor = read.as_ray_actor(columns={"comment": "text"}, concurrency=20, actors=2)

        def work():
            rows = [{"id": number, "comment": f"row number {number}"} for number in range(60)]
            dataset = ray.data.from_items(rows, override_num_blocks=4)
            return dataset.map_batches(actor, concurrency=2, batch_size=15).take_all()

        found = sorted(await asyncio.to_thread(work), key=lambda row: row["id"])
        assert [row["id"] for row in found] == list(range(60))
        assert [row["number"] for row in found if row["id"] != 13] == [n for n in range(60) if n != 13]
        assert found[8]["comment"] == "row number 8"
        assert list(found[8]["words"]) == ["w1", "8 rebmun wor"]
        assert found[8]["error"] is None
        assert found[13]["number"] is None
        assert "ResponseParseError" in found[13]["error"]
        assert server.paid.total() == 62
