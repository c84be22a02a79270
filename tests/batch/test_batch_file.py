"""Batch files, out and back: their content, and answers in any order and shape."""

import asyncio
import json
import random

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import budget, llm_function, use_llm
from SimpleLLMFunc.batch.provider_batches import lines as openai_lines
from SimpleLLMFunc.errors import (
    BadReply,
    BadRequest,
    ConfigError,
    ContentBlocked,
    OutputTruncated,
    ResponseParseError,
    RunError,
    ServerUnavailable,
    SignatureError,
    UsageError,
)
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.server import completion


class Review(BaseModel):
    title: str
    stars: int


OPENAI = OpenAICompatible("gpt-4o-mini", wire="chat", api_key="sk-CANARY-of-this-test")


@llm_function(llm_interface=OPENAI, temperature=0.5)
def review(text: str) -> Review:
    """Sum up the review."""


@llm_function(llm_interface=OPENAI)
async def echo(text: str, times: int = 1) -> str:
    """Say it."""


def requests_in(*paths):
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


@pytest.fixture
def requested(tmp_path):
    """Writes rows into a file, and gives its requests."""

    def write(*rows):
        return requests_in(*review.to_batch_file(rows, tmp_path / "r.jsonl"))

    return write


def line(request, body, *, status=200, **more):
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "b", "custom_id": request["custom_id"], "response": response, "error": None, **more}


def answered(request, text, **more):
    return line(request, completion(text, model="gpt-4o-mini", **more))


@pytest.fixture
def answers(tmp_path):
    def write(*lines, name="answers.jsonl"):
        path = tmp_path / name
        texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    return write


def test_a_line_is_the_request_that_a_call_would_send(tmp_path):
    paths = review.to_batch_file(["Wet, but fun.", "好"], tmp_path / "requests.jsonl")
    assert paths == [tmp_path / "requests.jsonl"]
    first, second = requests_in(*paths)
    assert set(first) == {"custom_id", "method", "url", "body"}
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert first["body"] == review.preview("Wet, but fun.").body
    assert (first["body"]["response_format"]["type"], first["body"]["temperature"]) == ("json_schema", 0.5)
    assert "stream" not in first["body"]
    assert "好" in second["body"]["messages"][-1]["content"]
    assert b"CANARY" not in paths[0].read_bytes()


async def test_ids_are_stable_unique_and_tell_rows_and_functions_apart(tmp_path):
    async def ids(function, rows):
        paths = await function.to_batch_file(rows, tmp_path / "r.jsonl")
        return [request["custom_id"] for request in requests_in(*paths)]

    rows = ["a", ("a", 1), {"text": "a", "times": 2}, "a"]
    first = await ids(echo, rows)
    assert first == await ids(echo, iter(rows))
    assert len(set(first)) == 4
    assert all(len(each) <= 64 for each in first)
    # The same request twice has one key, and the place tells the lines apart.
    keys = [each.partition("-")[0] for each in first]
    assert keys[0] == keys[1] == keys[3] != keys[2]
    assert (await ids(echo, ["b", "a"]))[1].startswith(keys[0])
    assert await ids(echo.with_options(temperature=1), rows) != first


def test_long_input_is_split_by_lines_and_by_bytes(tmp_path, monkeypatch):
    def write():
        return review.to_batch_file((f"row {n}" for n in range(10)), tmp_path / "r.jsonl")

    assert (openai_lines.MOST_LINES, openai_lines.MOST_BYTES) == (50_000, 200_000_000)
    monkeypatch.setattr(openai_lines, "MOST_LINES", 4)
    paths = write()
    assert [path.name for path in paths] == ["r-0001.jsonl", "r-0002.jsonl", "r-0003.jsonl"]
    assert [len(requests_in(path)) for path in paths] == [4, 4, 2]
    size = len((tmp_path / "r-0001.jsonl").read_bytes().splitlines()[0]) + 1
    monkeypatch.setattr(openai_lines, "MOST_LINES", 50_000)
    monkeypatch.setattr(openai_lines, "MOST_BYTES", 6 * size)
    paths = write()
    assert [len(requests_in(path)) for path in paths] == [6, 4]
    assert all(path.stat().st_size <= 6 * size for path in paths)
    assert len({request["custom_id"] for request in requests_in(*paths)}) == 10
    monkeypatch.setattr(openai_lines, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match=r"takes \d+ bytes, and a file may have 100") as caught:
        write()
    assert "row 0" in caught.value.__notes__[0]


def test_a_function_with_tools_is_refused_with_the_reason(tmp_path):
    def search(query: str) -> str:
        """Search."""
        return query

    with_tools = review.with_options(toolkit=[search])
    with pytest.raises(UsageError, match="has tools, and a batch file holds one request a row"):
        with_tools.to_batch_file(["a"], tmp_path / "r.jsonl")
    with pytest.raises(UsageError, match="has tools"):
        with_tools.read_batch_file(tmp_path / "r.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_cannot_be_asked_leaves_no_file(tmp_path):
    with pytest.raises(SignatureError) as caught:
        review.to_batch_file(["a", ("b", "c")], tmp_path / "r.jsonl")
    assert "row 1" in caught.value.__notes__[0]
    (tmp_path / "rows.jsonl").write_text('"a"\nbroken\n"b"\n')
    with pytest.raises(UsageError, match=r"rows\.jsonl, line 2"):
        review.to_batch_file(tmp_path / "rows.jsonl", tmp_path / "r.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
    (empty,) = review.to_batch_file([], tmp_path / "empty.jsonl")
    assert empty.read_bytes() == b""
    paths = review.to_batch_file(tmp_path / "rows.jsonl", tmp_path / "r.jsonl", on_error="skip")
    assert [request["custom_id"].rpartition("-")[2] for request in requests_in(*paths)] == ["0", "2"]
    (path,) = review.to_batch_file([{"txet": "a"}, "b"], tmp_path / "r.jsonl", on_error="skip")
    assert len(requests_in(path)) == 1
    with pytest.raises(ConfigError, match="there is no folder"):
        review.to_batch_file(["a"], tmp_path / "no" / "r.jsonl")
    with pytest.raises(UsageError, match="on_error"):
        review.to_batch_file(["a"], tmp_path / "r.jsonl", on_error="keep")  # type: ignore[arg-type]


def test_answers_in_any_order_are_in_the_order_of_the_rows(requested, answers, capsys):
    requests = requested(*(f"row {n}" for n in range(50)))
    lines = [answered(r, json.dumps({"title": f"T{n}", "stars": n})) for n, r in enumerate(requests)]
    random.Random(1).shuffle(lines)
    report = review.read_batch_file(answers(*lines))
    assert [row.value for row in report.rows] == [Review(title=f"T{n}", stars=n) for n in range(50)]
    assert [row.index for row in report.rows] == list(range(50))
    assert report.usage.input_tokens == 250
    assert (report.counts.failed, capsys.readouterr().err) == (0, "")  # nothing is asked: there is no progress to show


def test_several_files_with_errors_gaps_and_strangers(requested, answers, caplog):
    requests = requested(*(f"row {n}" for n in range(5)))
    good = '{"title": "T", "stars": 1}'
    first = answers(answered(requests[3], good), "", "broken{", answered({"custom_id": "mine"}, good), name="a.jsonl")
    second = answers(answered(requests[0], good), answered(requests[0], good), name="b.jsonl")
    errors = answers(
        line(requests[1], {"error": {"message": "no such field"}}, status=400),
        line(requests[4], None, response=None, error={"code": "batch_expired", "message": "not in time"}),
        name="c.jsonl",
    )
    report = review.read_batch_file([first, second, errors])
    found = [row.error for row in report.rows]
    assert [type(error) for error in found] == [type(None), BadRequest, RunError, type(None), ServerUnavailable]
    assert "no such field" in str(found[1])
    assert "no answer for this row" in str(found[2])
    assert "not in time" in str(found[4])
    assert found[1].request_id == "req_1"
    assert "1 line ignored: the custom_id is of another program." in caplog.messages


def test_an_answer_counts_over_an_error_whichever_comes_first(requested, answers):
    (request,) = requested("a")
    bad = line(request, {"error": {"message": "busy"}}, status=503)
    good = answered(request, '{"title": "T", "stars": 1}')
    for lines in ((bad, good), (good, bad)):
        assert review.read_batch_file(answers(*lines)).rows[0].value.stars == 1


@pytest.mark.parametrize(("body", "error"), [
    (completion("I cannot say."), ResponseParseError),
    (completion('{"title": "T", "stars": 4', finish_reason="length"), OutputTruncated),
    (completion("", finish_reason="content_filter"), ContentBlocked), ({"choices": []}, BadReply),
    ({"error": {"message": "oops", "type": "server_error"}}, ServerUnavailable), ("<html>", BadReply), (None, BadReply),
])  # fmt: skip
def test_bad_answers_are_the_errors_of_a_live_call(requested, answers, body, error):
    (request,) = requested("a")
    report = review.read_batch_file(answers(line(request, body)))
    assert type(report.rows[0].error) is error
    with pytest.raises(error):
        review.read_batch_file(answers(line(request, body)), on_error="raise")


def test_answers_are_read_as_a_live_call_reads_them(requested, answers):
    first, second, third = requested("a", "b", "c")
    report = review.read_batch_file(
        answers(
            answered(first, '<think>hm</think>```json\n{"title": "T", "stars": "4 stars",}\n```'),
            line(second, {**completion("x"), "choices": [{"message": {"content": '{"title": "T", "stars": 2}'}}]}),
            answered(third, '{"title": "T", "stars": [4, 5]}'),
        )
    )
    assert [row.value.stars for row in report.rows[:2]] == [4, 2]
    assert isinstance(error := report.rows[2].error, ResponseParseError)
    assert (report.rows[2].usage.input_tokens, error.cached) == (5, True)  # it was paid when the batch ran


async def test_text_is_read_as_text_and_tools_as_tools(tmp_path, answers):
    (request,) = requests_in(*await echo.to_batch_file(["a"], tmp_path / "r.jsonl"))
    assert "-text-" in request["custom_id"]
    report = await echo.read_batch_file(answers(answered(request, '{"value": "a"}')))
    assert report.rows[0].value == '{"value": "a"}'

    by_tool = review.with_options(output_mode="tool")
    (request,) = requests_in(*by_tool.to_batch_file(["a"], tmp_path / "r.jsonl"))
    arguments = '{"title": "T", "stars": 3}'
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": arguments}}
    found = answers(answered(request, None, tool_calls=[call]))
    assert by_tool.read_batch_file(found).rows[0].value.stars == 3
    # The id tells how it was asked: another process may choose another mode.
    assert review.read_batch_file(found).rows[0].value.stars == 3


def test_with_the_rows_answers_are_found_by_what_was_asked(requested, answers):
    requests = requested("a", "b", "b")
    lines = [answered(r, json.dumps({"title": f"T{n}", "stars": n})) for n, r in enumerate(requests)]
    report = review.read_batch_file(answers(*lines), rows=["new", "b", "a"])
    assert [row.row for row in report.rows] == ["new", "b", "a"]
    assert isinstance(report.rows[0].error, RunError)
    assert "as the function is now" in str(report.rows[0].error)
    assert [row.value.title for row in report.rows[1:]] == ["T1", "T0"]
    changed = review.with_options(temperature=1).read_batch_file(answers(*lines), rows=["a"])
    assert isinstance(changed.rows[0].error, RunError)


def test_a_checkpoint_keeps_what_was_read(requested, tmp_path, answers):
    first, second, _ = requested(*"abc")
    checkpoint = tmp_path / "run.sqlite"
    for request, title in ((first, "T"), (second, "U")):  # what one file has no answer for, the next one may have
        good = answers(answered(request, json.dumps({"title": title, "stars": 1})))
        report = review.read_batch_file(good, rows=[*"abc"], checkpoint=checkpoint)
    assert [row.error is None for row in report.rows] == [True, True, False]
    live = ScriptedLLM('{"title": "Live", "stars": 2}', model_name="gpt-4o-mini", profile=OPENAI.profile)
    with use_llm(live):
        report = review.map([*"abc"], checkpoint=checkpoint, retry_errors=True, progress=False)
    assert [row.value.title for row in report.rows] == ["T", "U", "Live"]
    assert len(live.calls) == 1
    with pytest.raises(UsageError, match="Give rows="):
        review.read_batch_file(good, checkpoint=checkpoint)


def test_it_costs_half_and_no_budget_pays_again(requested, answers):
    (request,) = requested("a")
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    found = answers(answered(request, '{"title": "T", "stars": 1}', usage=usage))
    with budget(usd=0.000001, requests=0) as spent:
        report = review.read_batch_file(found)
    full = OPENAI.price(report.usage)
    assert full
    assert report.cost == report.rows[0].usage.cost == pytest.approx(full / 2)
    assert (spent.usd, spent.requests) == (0, 0)


def test_no_file_of_ours(tmp_path, answers):
    with pytest.raises(FileNotFoundError):
        review.read_batch_file(tmp_path / "nope.jsonl")
    for text in ("", "{}", '{"custom_id": "row-1"}', "not json"):
        with pytest.raises(ConfigError, match="holds no answer to a request of to_batch_file"):
            review.read_batch_file(answers(text))
    with pytest.raises(ConfigError, match="no file holds"):
        review.read_batch_file([])


def test_a_far_place_is_a_long_report_and_not_a_large_list(requested, answers):
    last = requested(*(f"{n}" for n in range(200)))[-1]
    report = review.read_batch_file(answers(answered(last, '{"title": "T", "stars": 1}')))
    assert [row.index for row in report.rows] == list(range(200))
    assert (report.counts.failed, report.rows[-1].value.stars) == (199, 1)


async def test_a_very_long_answer_is_read_off_the_loop(tmp_path):
    (request,) = requests_in(*await echo.to_batch_file(["a"], tmp_path / "requests.jsonl"))
    said = "字a " * 1_500_000  # the guard looks
    content = await asyncio.to_thread(json.dumps, answered(request, said))
    await asyncio.to_thread((tmp_path / "answers.jsonl").write_text, content)
    report = await echo.read_batch_file(tmp_path / "answers.jsonl")
    assert len(report.rows[0].value) == len(said)
