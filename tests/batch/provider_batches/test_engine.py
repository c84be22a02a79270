"""The engine "openai-batch" against a service of our own, which expires, fails, loses lines and goes away."""

import asyncio
import contextlib
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import Anthropic, Gemini, Usage, budget, forbid_real_calls, llm_function
from SimpleLLMFunc.batch import Checkpoint
from SimpleLLMFunc.batch.checkpoint.row_file import BATCH_TABLES
from SimpleLLMFunc.batch.provider_batches import lines as openai_lines
from SimpleLLMFunc.batch.provider_batches import run as openai_run
from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore, KeptLine
from SimpleLLMFunc.batch.provider_batches.service import BatchService, BatchState
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    BudgetExceeded,
    CheckpointError,
    ConfigError,
    ContentBlocked,
    DeadlineExceeded,
    OutputTruncated,
    ProviderError,
    ResponseParseError,
    ServerUnavailable,
    SignatureError,
    UsageError,
)
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.batch_server import BatchServer, Outcome
from tests.support.server import Answer, completion, error_answer, json_answer

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-CANARY-of-the-batches"
ROWS = [f"row {number}" for number in range(6)]


class Review(BaseModel):
    title: str
    stars: int


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(openai_run, "FIRST_POLL", 0.001)
    monkeypatch.setattr(openai_run, "LONGEST_POLL", 0.002)


@pytest.fixture
async def server():
    async with BatchServer() as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "run.sqlite"


@pytest.fixture
def echo(server):
    return echo_of(OpenAICompatible("gpt-4o-mini", api_key=KEY, base_url=server.base_url, retry_delay=0.001))


def echo_of(llm):
    @llm_function(llm_interface=llm)
    async def echo(text: str) -> str:
        """Say it."""

    return echo


async def mapped(function, rows=ROWS, **options):
    return await function.map(rows, engine="openai-batch", progress=False, **options)


def values(report):
    return [row.value if row.error is None else type(row.error) for row in report.rows]


# --- as it should be ---


async def test_rows_go_out_as_one_batch_and_come_back_in_order(server, echo, capsys):
    report = await mapped(echo)
    assert values(report) == ROWS
    assert (len(server.batches), server.lines, server.live) == (1, 6, [])
    assert sorted(server.paid) == sorted(ROWS)
    assert (report.counts.asked, report.rows[0].usage.input_tokens) == (6, 5)
    assert {request.key for request in server.requests} == {KEY}
    assert capsys.readouterr().err == ""  # no progress was to be shown


async def test_a_batch_of_responses_names_its_endpoint_and_is_read(server):
    llm = OpenAICompatible("gpt-4o-mini", wire="responses", api_key=KEY, base_url=server.base_url, retry_delay=0.001)
    server.outcomes.append(Outcome(line_errors={1: (400, "no")}))
    report = await mapped(echo_of(llm))
    assert values(report) == [ROWS[0], BadRequest, *ROWS[2:]]
    assert [batch["endpoint"] for batch in server.batches.values()] == ["/v1/responses"]
    assert report.rows[0].usage.input_tokens == 3
    assert report.rows[0].usage.cost == pytest.approx(llm.price(Usage(3, 4)) / 2)


@pytest.mark.parametrize("llm", [Anthropic("claude-opus-5", api_key=KEY), Gemini("gemini-3.8-flash", api_key=KEY)])
async def test_other_protocols_have_no_batches_of_openai(llm, tmp_path):
    function = echo_of(llm)
    with pytest.raises(ConfigError, match="without engine="):
        await mapped(function)
    with pytest.raises(ConfigError, match="chat completions and Responses"):
        await function.to_batch_file(ROWS, tmp_path / "r.jsonl")


async def test_identical_rows_are_asked_once_and_bad_ones_not_at_all(server, echo):
    report = await mapped(echo, ["a", ("a",), ("b", "c"), {"text": "a"}, "b"])
    assert values(report) == ["a", "a", SignatureError, "a", "b"]
    assert sorted(server.paid) == ["a", "b"]


async def test_many_rows_are_several_batches(server, echo, monkeypatch):
    monkeypatch.setattr(openai_lines, "MOST_LINES", 4)
    rows = [f"row {number}" for number in range(10)]
    assert values(await mapped(echo, rows)) == rows
    assert len(server.batches) == 3
    monkeypatch.setattr(openai_lines, "MOST_LINES", 50_000)
    size = len(server.files["file-0"]) // 4 + 10
    monkeypatch.setattr(openai_lines, "MOST_BYTES", 2 * size)
    assert values(await mapped(echo, [f"other {number}" for number in range(4)])) == [f"other {n}" for n in range(4)]
    assert len(server.batches) == 5


async def test_sources_that_can_be_read_once(server, echo):
    async def source():
        for row in ROWS:
            yield row

    assert values(await mapped(echo, iter(ROWS))) == ROWS
    assert values(await mapped(echo, source())) == ROWS


async def test_it_costs_half_and_the_repair_costs_all(server, echo):
    server.outcomes.append(Outcome(line_errors={0: (500, "oops")}))
    report = await mapped(echo, ["a", "b"])
    live, batched = (row.usage.cost for row in report.rows)
    assert (live, report.cost) == pytest.approx((2 * batched, 3 * batched))


# --- what a batch does not answer ---


async def test_failed_lines_missing_ones_and_bad_answers_are_asked_live(server, monkeypatch):
    llm = OpenAICompatible("gpt-4o-mini", base_url=server.base_url, retry_delay=0.001)

    @llm_function(llm_interface=llm)
    async def review(text: str) -> Review:
        """Sum up."""

    server.answer_to = lambda body: '{"title": "T", "stars": 3}'
    server.outcomes.append(
        Outcome(
            line_errors={0: (500, "oops"), 1: (429, "slow down")},
            texts={2: "I cannot say.", 3: "", 4: {"choices": []}},
            missing=(5,),
            garbage=(b"broken{", b"{}", b"", b'{"custom_id": "%032x-native-7", "response": {"status_code": 204}}' % 7),
        )
    )
    report = await mapped(review, [f"row {number}" for number in range(7)])
    assert values(report) == [Review(title="T", stars=3)] * 7
    assert len(server.live) == 6
    assert [report.rows[place].usage.input_tokens for place in (2, 3)] == [10, 10]  # the bad answer was paid as well


async def test_what_would_come_again_is_not_asked_live(server, echo):
    cut, blocked = completion('"cut', finish_reason="length"), completion(None, finish_reason="content_filter")
    server.outcomes.append(Outcome(texts={0: cut, 1: blocked}, line_errors={2: (401, "no such key")}))

    @llm_function(llm_interface=echo._pipeline.options.llm_interface)
    async def review(text: str) -> list[str]:
        """Sum up."""

    assert values(await mapped(review, ["a", "b", "c"])) == [OutputTruncated, ContentBlocked, AuthenticationError]
    assert server.live == []


async def test_what_expired_goes_into_another_batch(server, echo, caplog):
    expired = (Outcome("expired", answered=number) for number in (2, 1))
    server.outcomes.extend([*expired, Outcome(line_errors={2: (401, "no")})])
    assert values(await mapped(echo)) == [*ROWS[:5], AuthenticationError]  # what was said of it last
    assert [len(server._requests(batch)) for batch in server.batches.values()] == [6, 4, 3]
    assert [each.message[:8] for each in caplog.records if each.levelname == "WARNING"] == ["batch_0:", "batch_1:"]
    assert (sorted(server.paid), server.live) == (ROWS[:5], [])


async def test_what_expires_again_and_again_is_an_error(server, echo, checkpoint):
    server.outcomes.extend([Outcome("expired", answered=0)] * 4)
    report = await mapped(echo, ["a"], checkpoint=checkpoint)
    assert values(report) == [ServerUnavailable]
    assert "not in time" in str(report.rows[0].error) or "expired" in str(report.rows[0].error)
    assert (len(server.batches), server.live, server.paid) == (4, [], [])
    assert values(await mapped(echo, ["a"], checkpoint=checkpoint, retry_errors=False)) == [ServerUnavailable]
    assert values(await mapped(echo, ["a"], checkpoint=checkpoint)) == ["a"]
    assert (len(server.batches), server.live, server.paid) == (5, [], ["a"])


async def test_columns_that_are_not_the_parameters_are_refused_before_a_file_is_sent(server, echo):
    rows = [{"id": 1, "txet": "a"}, {"id": 2, "txet": "b"}]
    with pytest.raises(UsageError, match="the columns are 'id', 'txet'"):
        await mapped(echo, rows)
    assert (server.batches, server.live) == ({}, [])
    assert values(await mapped(echo, rows, column="txet")) == ["a", "b"]
    assert (len(server.batches), server.live) == (1, [])


async def test_a_batch_that_is_refused_says_why_and_is_not_asked_live(server, echo):
    problem = {"code": "invalid_json_line", "message": "This line is not parseable.", "line": 3}
    server.outcomes.append(Outcome("failed", errors=(problem,)))
    report = await mapped(echo)
    assert values(report) == [BadRequest] * 6
    assert "not parseable. (line 3)" in str(report.rows[0].error)
    assert (server.live, server.paid) == ([], [])


async def test_a_batch_without_room_is_sent_again_and_a_cancelled_one_keeps_what_it_has_answered(server, echo):
    server.outcomes.append(Outcome("failed", errors=({"code": "token_limit_exceeded", "message": "Enqueued limit."},)))
    assert values(await mapped(echo)) == ROWS
    server.outcomes.append(Outcome("cancelled", answered=2))
    assert values(await mapped(echo)) == [*ROWS[:2], *[ServerUnavailable] * 4]
    assert (len(server.batches), server.live) == (3, [])


# --- the service ---


async def test_a_busy_service_is_tried_again_and_one_that_forgot_a_batch_is_sent_another(server, echo):
    for what in ("POST /files", "POST /batches", "GET /batches/", "GET /files/"):
        server.trouble(what, error_answer(429, headers={"retry-after": "0.001"}))
        server.trouble(what, error_answer(503))
    assert values(await mapped(echo)) == ROWS
    assert len(server.batches) == 1
    server.trouble("GET /batches/", error_answer(404, "no such batch"))
    assert values(await mapped(echo)) == ROWS
    assert len(server.batches) == 3


async def test_a_service_that_is_away_for_a_while_is_waited_for(server, echo, monkeypatch, checkpoint):
    for _ in range(7):  # more than the tries of one look
        server.trouble("GET /batches/", error_answer(503))
    for _ in range(7):
        server.trouble("GET /files/", Answer(raw=b"", reset=True))
    assert values(await mapped(echo)) == ROWS
    assert len(server.batches) == 1
    monkeypatch.setattr(openai_run, "LONGEST_OUTAGE", 0.0)
    for _ in range(3):
        server.trouble("GET /batches/", error_answer(503))
    with pytest.raises(ServerUnavailable):
        await mapped(echo, ["new"], checkpoint=checkpoint)
    assert values(await mapped(echo, ["new"], checkpoint=checkpoint)) == ["new"]
    assert len(server.batches) == 2


async def test_a_batch_whose_answer_was_lost_is_found_and_not_made_twice(server, echo):
    server.outcomes.extend([Outcome(), Outcome()])
    for _ in range(3):  # the list has several pages
        await mapped(echo, [os.urandom(4).hex()])
    before = len(server.batches)
    server.trouble("POST /batches", Answer(raw=b"", reset=True), after=True)
    assert values(await mapped(echo)) == ROWS
    assert len(server.batches) == before + 1


@pytest.mark.parametrize(("answer", "error"), [
    (error_answer(401, f"bad key {KEY}"), AuthenticationError), (error_answer(400, "no"), ProviderError),
    *((error_answer(status, "no such endpoint"), BadRequest) for status in (404, 405)),
    (Answer(body=b"<html>", headers={"content-type": "text/html"}), Exception),
])  # fmt: skip
async def test_a_service_that_refuses_is_an_error_of_the_map(server, echo, answer, error):
    server.trouble("POST /files", answer)
    with pytest.raises(error) as caught:
        await mapped(echo)
    assert type(caught.value).__module__ == "SimpleLLMFunc.errors"
    text = "".join([str(caught.value), repr(caught.value.__cause__), *getattr(caught.value, "__notes__", ())])
    assert KEY not in text
    assert ("may have no files or batches" in text) == (error is BadRequest)


async def test_the_file_of_a_batch_that_was_refused_does_not_stay_or_is_named(server, echo, caplog):
    for number, status in enumerate((400, 401, 429), 1):
        for _ in range(3 if status == 429 else 1):
            server.trouble("POST /batches", error_answer(status, "no"))
        with pytest.raises(ProviderError):
            await mapped(echo)
        assert server.files == {}
        assert [request.method for request in server.requests].count("DELETE") == number
    server.trouble("POST /batches", error_answer(400, "no"))
    server.trouble("DELETE /files", error_answer(403, "not yours"))
    with pytest.raises(BadRequest):
        await mapped(echo)
    (file,) = server.files
    assert f"the file {file} with the requests of a batch that never began stays at the service" in caplog.text


@pytest.mark.parametrize("has_begun", [True, False])
async def test_the_file_of_a_batch_that_may_have_begun_is_seen_to_by_the_next_run(server, echo, checkpoint, has_begun):
    for _ in range(3):
        server.trouble("POST /batches", error_answer(503), after=has_begun)
        server.trouble("GET /batches", error_answer(503))
    with pytest.raises(ServerUnavailable) as caught:
        await mapped(echo, checkpoint=checkpoint)
    assert any("the file file-0 stays at the service" in note for note in caught.value.__notes__)
    assert "file-0" in server.files
    server._troubles.clear()
    for _ in range(4):  # the batch is on the third page of the list
        await mapped(echo, [os.urandom(4).hex()])
    seen = len(server.requests)
    assert values(await mapped(echo, checkpoint=checkpoint)) == ROWS
    assert len(server.batches) == 4 + 1
    assert len([request for request in server.requests[seen:] if "/batches?" in request.path]) == 2 + has_begun
    assert ("file-0" in server.files) == has_begun


async def test_who_cannot_is_refused(server, echo):
    def search(query: str) -> str:
        """Search."""

    with pytest.raises(UsageError, match="ScriptedLLM is not asked over HTTP"):
        await mapped(echo_of(ScriptedLLM("x")))
    with pytest.raises(UsageError, match="has tools"):
        await mapped(echo.with_options(toolkit=[search]))
    assert server.requests == []


async def test_forbidden_calls_and_budgets_hold(server, echo):
    with forbid_real_calls(), pytest.raises(UsageError, match="forbid_real_calls"):
        await mapped(echo)
    assert server.requests == []
    for limit in ({"tokens": 10}, {"usd": 1e-9}):
        with budget(**limit):
            assert values(await mapped(echo)) == [BudgetExceeded] * 6
    assert server.requests == []
    with budget(usd=1, tokens=10_000, requests=100) as spent:
        report = await mapped(echo)
    assert values(report) == ROWS
    assert (spent.tokens, spent.usd, spent.requests) == (48, pytest.approx(report.cost), len(server.requests))
    with budget(requests=1):  # enough for the file, but not for the batch
        assert values(await mapped(echo, ["new"])) == [BudgetExceeded]
    with budget(seconds=1.0), pytest.raises(BudgetExceeded):
        server.outcomes.append(Outcome(polls=10**9))
        await mapped(echo, ["newer"])


async def test_a_budget_that_ends_in_the_middle_keeps_what_was_sent(server, echo, monkeypatch):
    monkeypatch.setattr(openai_lines, "MOST_LINES", 2)
    # To fetch what was paid is never refused.
    with budget(requests=2) as spent:
        assert values(await mapped(echo))[:3] == [*ROWS[:2], BudgetExceeded]
    assert spent.requests == len(server.requests)
    with budget(tokens=200):
        report = await mapped(echo)
    assert (values(report)[:2], values(report)[-1]) == (ROWS[:2], BudgetExceeded)
    assert isinstance(report.stopped, BudgetExceeded)


async def test_a_deadline_ends_the_waiting(server, echo, checkpoint, monkeypatch):
    monkeypatch.setattr(openai_run, "LONGEST_POLL", 1.0)
    endless = Outcome(polls=10**9)
    server.outcomes.append(endless)
    with pytest.raises(DeadlineExceeded):
        await mapped(echo, deadline=0.5, checkpoint=checkpoint)
    assert len(server.requests) < 30  # it does not ask without a pause
    endless.polls = 0  # by its own name: on a slow machine the time may be over before there is a batch
    assert values(await mapped(echo, checkpoint=checkpoint)) == ROWS
    assert len(server.batches) == 1


# --- again ---


async def test_arguments_that_are_not_known_again_are_asked_live(server, echo):
    class Opaque:
        pass

    report = await mapped(echo.with_options(check_arguments=False), ["a", Opaque()])
    assert (report.rows[0].value, report.rows[1].error, server.lines, len(server.live)) == ("a", None, 1, 1)


async def test_what_both_the_batch_and_the_repair_took_is_told(server, echo):
    @llm_function(llm_interface=echo._pipeline.options.llm_interface, max_reasks=0)
    async def count(text: str) -> int:
        """Count."""

    server.answer_to = lambda body: "none"
    report = await mapped(count, ["a"])
    assert values(report) == [ResponseParseError]
    assert report.rows[0].usage.input_tokens == report.usage.input_tokens == 10


async def test_a_rerun_sends_only_rows_without_a_value_in_batches_and_live(server, echo, tmp_path, checkpoint):
    await echo.map(ROWS[:2], checkpoint=checkpoint, progress=False)
    await mapped(echo, ROWS[:3], checkpoint=checkpoint)
    report = await mapped(echo, [*ROWS, "new"], checkpoint=checkpoint)
    assert values(report) == [*ROWS, "new"]
    assert report.counts.restored == 3
    assert Checkpoint.status(checkpoint).versions[0].cost == pytest.approx(sum(row.usage.cost for row in report.rows))
    assert (server.lines, len(server.live)) == (5, 2)
    for again in (mapped(echo, checkpoint=checkpoint), echo.map(ROWS, checkpoint=checkpoint, progress=False)):
        assert values(await again) == ROWS
    assert (len(server.batches), len(server.live)) == (2, 2)
    # The files of the answers are closed, and the checkpoint is free.
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))] == ["run.sqlite"]


async def test_cancelled_at_every_request_and_begun_again_nothing_is_asked_twice(server, echo, checkpoint):
    server.outcomes.append(Outcome(polls=3))
    for number in range(1, 12):
        running = asyncio.ensure_future(mapped(echo, checkpoint=checkpoint))
        arrived = asyncio.ensure_future(server.received(len(server.requests) + 1 + number // 3))
        await asyncio.wait((running, arrived), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            break
        running.cancel()
        await asyncio.gather(running, arrived, return_exceptions=True)
    arrived.cancel()
    assert values(await mapped(echo, checkpoint=checkpoint)) == ROWS
    assert sorted(server.paid) == ROWS
    assert len([batch for batch in server.batches.values() if batch["status"] == "completed"]) == 1


async def test_what_a_cancelled_batch_left_is_sent_by_the_next_run(server, echo, checkpoint, monkeypatch):
    monkeypatch.setattr(openai_lines, "MOST_LINES", 3)
    server.outcomes.extend([Outcome("cancelled", answered=0, polls=0), Outcome(polls=10**9)])
    running = asyncio.ensure_future(mapped(echo, checkpoint=checkpoint))
    await server.received(7)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    server._ending["batch_1"].polls = 0
    assert (values(await mapped(echo, checkpoint=checkpoint)), len(server.batches)) == (ROWS, 3)


async def test_a_batch_that_1_0_began_is_waited_for(server, echo, tmp_path, caplog):
    checkpoint, old = tmp_path / "run.sqlite", tmp_path / "run.sqlite-batches"
    server.outcomes.append(Outcome(polls=10**9))
    first = asyncio.ensure_future(mapped(echo, checkpoint=checkpoint))
    await server.received(3)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert "Batches under way at the service: batch_0. The same call" in caplog.text
    with contextlib.closing(sqlite3.connect(checkpoint)) as connection:  # 1.0 kept the same tables in a second file
        connection.execute("ATTACH ? AS old", (str(old),))
        connection.execute(f"PRAGMA old.application_id = {0x534C4242}")
        for statement in BATCH_TABLES:
            connection.execute(re.sub(r"(CREATE (?:TABLE|INDEX)) ", r"\1 old.", statement))
        for table in ("batches", "requests"):
            assert connection.execute(f"INSERT INTO old.{table} SELECT * FROM {table}").rowcount > 0
            connection.execute(f"DELETE FROM {table}")
        connection.commit()
    server._ending["batch_0"].polls = 0
    assert values(await mapped(echo, checkpoint=checkpoint)) == ROWS
    assert len(server.batches) == 1
    assert not old.exists()


async def test_a_damaged_checkpoint_sends_nothing(server, echo, tmp_path, checkpoint):
    (tmp_path / "run.sqlite").write_bytes(b"no checkpoint" * 100)
    with pytest.raises(CheckpointError):
        await mapped(echo, checkpoint=checkpoint)
    (tmp_path / "other.sqlite-batches").write_bytes(b"no such file" * 100)
    with pytest.raises(CheckpointError, match="the file of the batches"):
        await mapped(echo, checkpoint=tmp_path / "other.sqlite")
    assert server.requests == []


def test_an_answer_that_was_changed_on_the_disk_is_not_believed(tmp_path):
    shelf = AnswerStore.temporary(tmp_path)
    shelf.keep([KeptLine(b"k" * 16, "text", 0, is_good=True, line=b"{}")])
    assert shelf.line(b"k" * 16).line == b"{}"
    shelf.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "answers.sqlite")) as connection, connection:
        connection.execute("UPDATE answers SET line = ?", (b"{ }",))
    with pytest.raises(CheckpointError, match="not as it was written"):
        shelf.line(b"k" * 16)
    shelf.close()


PROGRAM = """
import asyncio, sys
from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.batch.provider_batches import lines as openai_lines, run as openai_run

openai_run.FIRST_POLL = openai_run.LONGEST_POLL = 0.02
openai_lines.MOST_LINES = 20


@llm_function(llm_interface=OpenAICompatible("gpt-4o-mini", api_key="sk-test", base_url=sys.argv[1], retry_delay=0.01))
async def echo(text: str) -> str:
    "Say it."


rows = [f"row {n}" for n in range(100)]
report = asyncio.run(echo.map(rows, engine="openai-batch", checkpoint=sys.argv[2], progress=False))
assert [row.value for row in report.rows] == rows
print("done")
"""


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_killed_at_any_instant_and_begun_again_every_row_is_paid_once(server, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), server.base_url, str(tmp_path / "run.sqlite")]
    kills = 0
    while True:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, **pipes)
        # At every second request of a run: while it sends, waits, and fetches.
        seen = len(server.requests)
        arrived = asyncio.ensure_future(server.received(seen + 1 + kills % 7))
        ended = asyncio.ensure_future(process.communicate())
        await asyncio.wait((arrived, ended), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            arrived.cancel()
            out, err = ended.result()
            assert (process.returncode, out.strip()) == (0, b"done"), err.decode()
            break
        process.send_signal(signal.SIGKILL)
        await ended
        kills += 1
        assert kills < 60
    assert kills >= 5
    assert sorted(server.paid) == sorted(f"row {n}" for n in range(100))


def test_lines_are_told_apart(caplog):
    request = f"{'ab' * 16}-native-7"
    data = {"custom_id": request, "response": {"status_code": 204}}
    file = io.BytesIO(b"\n".join([b"{", b"", b"3", json.dumps(data).encode()]))
    foreign, found = openai_lines.answers_in(file, "a.jsonl")
    assert "a.jsonl, line 1: it is not JSON" in caplog.text
    assert foreign is None
    assert (found.key, found.mode, found.place, found.is_good) == (b"\xab" * 16, "native", 7, True)
    for other in ("", "x", f"{'ab' * 16}-native-", f"{'AB' * 16}-native-7", f"{'ab' * 16}-other-7", request + "\n", 7):
        assert openai_lines.RequestId.read(other) is None


# --- files and batches of the service ---


@pytest.fixture
async def service(server):
    service = BatchService(OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001))
    async with service.opened():
        yield service


def test_a_batch_as_the_service_tells_of_it():
    state = BatchState.read(
        {
            "id": "b", "status": "failed", "output_file_id": None, "error_file_id": "f",
            "request_counts": {"total": 5, "completed": 2, "failed": 1},
            "errors": {"data": [{"code": "c", "message": "bad", "line": 2}, {"code": "d"}, None]},
        }
    )  # fmt: skip
    assert (state.files, state.total, state.done, state.has_ended) == (("f",), 5, 3, True)
    assert (state.problem, state.codes) == ("bad (line 2); d", {"c", "d"})
    assert BatchState.read({"request_counts": [], "errors": "x"}) == BatchState("", "")
    assert not BatchState("b", "finalizing").has_ended


async def test_a_download_replaces_what_a_try_left(server, service, tmp_path):
    server.files["f"] = content = os.urandom(1_000_500)
    (tmp_path / "down").write_text("of a try that broke off" * 100_000)
    await service.download("f", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == content


async def test_what_is_no_batch_is_a_bad_reply_and_a_name_leads_nowhere_else(server, service):
    for data in ("text", [], {}, {"id": ""}):
        server.trouble("GET /batches/", json_answer(data))
        with pytest.raises(BadReply):
            await service.retrieve("x")
    server.trouble("GET /batches/", json_answer({"id": 7}))
    assert (await service.retrieve("x")).id == "7"
    with pytest.raises(BadRequest):
        await service.retrieve("../files?x=1")
    assert server.requests[-1].path.endswith("/batches/..%2Ffiles%3Fx%3D1")
