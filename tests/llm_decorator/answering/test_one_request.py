"""`Confident` of a choice in one request, on every wire; `f.calibrate`, its file and its report."""

from __future__ import annotations

import json
import math
import random
from typing import Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import CachedLLM, Confident, budget, errors, use_llm, watching
from SimpleLLMFunc.base.events import RunFinished, RunStarted
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_decorated, true_answer
from tests.support.seen import Seen
from tests.support.server import LoopbackServer, completion, error_answer, json_answer
from tests.support.wires import made

Mood = Literal["glad", "sad", "gladly"]
WIRES = {"chat": ("gpt-4.1", "openai"), "responses": ("gpt-4.1", "openai"), "gemini": ("gemini-3.8-flash", None)}


def places(share):
    """What a service shows of the answer ``{"value":"glad"}``."""
    told = [{'{"value":"': 1.0}, {"glad": share, "sad": 1 - share}, {'"}': 0.8, 'ly"': 0.2}]
    return [(next(iter(shown)), shown) for shown in told]


def reply(wire, share):
    def token(text, part, key="logprob"):
        return {"token": text, key: math.log(part)}

    shown, text = places(share), '{"value":"glad"}'
    content = [
        {**token(one, tops[one]), "top_logprobs": [token(*each) for each in tops.items()]} for one, tops in shown
    ]
    if wire == "chat":
        data = completion(text)
        data["choices"][0]["logprobs"] = {"content": content}
        return json_answer(data)
    if wire == "responses":
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": content}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        about = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-4.1"}
        return json_answer({**about, "output": [item], "usage": usage})
    key = "logProbability"
    result = {
        "chosenCandidates": [token(one, tops[one], key) for one, tops in shown],
        "topCandidates": [{"candidates": [token(*each, key) for each in tops.items()]} for _, tops in shown],
    }
    said = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
    candidate = {**said, "logprobsResult": result}
    return json_answer({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}})


def model(wire, server, **options):
    name, profile = WIRES.get(wire, ("claude-sonnet-4-5", None))
    return made(wire, server, model=name, **({"profile": profile} if profile else {}), **options)


def mood_of(llm, returns=Confident[Mood], **options):
    return async_decorated(returns, llm, **options)


@pytest.mark.parametrize("wire", list(WIRES))
async def test_every_wire_that_has_log_probabilities(wire):
    async with LoopbackServer(lambda _: reply(wire, 0.75)) as server:
        mood = mood_of(model(wire, server))
        seen = Seen()
        with watching(seen):
            result = await mood.call("x")
        plan = mood.preview("x").body
    (request,) = server.requests
    assert plan == request.body
    found = result.value
    assert found.probabilities == pytest.approx({"glad": 0.6, "gladly": 0.15, "sad": 0.25})
    assert (found.value, found.agreement, found.asked, found.votes) == ("glad", {"": pytest.approx(0.6)}, 1, ("glad",))
    assert not found.abstained
    assert result.output_mode == "choice"
    # To those who watch it is a run with one part.
    assert [type(event) for event in seen.of(RunStarted, RunFinished)] == [RunStarted] * 2 + [RunFinished] * 2
    config = request.body.get("generationConfig", {})
    assert 20 in (request.body.get("top_logprobs"), config.get("logprobs"))


async def test_a_map_a_stream_and_a_cache_give_the_same(tmp_path):
    async with LoopbackServer(lambda _: reply("chat", 0.75)) as server:
        mood = mood_of(CachedLLM(model("chat", server), tmp_path / "cache.db"), min_agreement=0.7)
        first = await mood("x")
        again = await mood.map(["x", "y"], checkpoint=tmp_path / "rows.db")
        resumed = await mood.map(["x", "y"], checkpoint=tmp_path / "rows.db")
        shown = [value async for value in mood.stream("x")]
    assert len(server.requests) == 2
    assert first.abstained
    assert [row.value for report in (again, resumed) for row in report.rows] == [first] * 4
    assert shown == [first]


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_service_without_them_is_asked_for_votes_and_that_is_told(refuses):
    def answer(request):
        if refuses and request.body.get("logprobs"):
            return error_answer(400, "logprobs is not supported with this model")
        return json_answer(completion('{"value": "sad"}'))

    async with LoopbackServer(answer) as server:
        llm = model("chat", server)
        results = [await mood_of(llm, votes=None).call("x") for _ in range(2)]
        with pytest.raises(errors.ConfigError, match="gives no log-probabilities"):
            await mood_of(llm, confidence="logprobs")("x")
        assert (await mood_of(llm, confidence="votes")("x")).asked == 5
    for result in results:
        assert (result.value.value, result.value.asked) == ("sad", 5)
        assert result.value.probabilities == {"glad": 0, "sad": 1, "gladly": 0}
        assert [what for what, _ in result.downgrades] == ["confidence: votes instead of one request"]
    assert len(server.requests) == 1 + 5 + 5 + 1 + 5  # the second call knows


async def test_where_no_log_probabilities_can_be_had_votes_are():
    async with LoopbackServer(lambda _: json_answer(completion('{"value": "sad"}'))) as server:
        messages, reasons = model("messages", server), made("chat", server, model="gpt-5.6", profile="openai")
        for llm in (messages, reasons):
            assert "logprobs" not in str(mood_of(llm).preview("x").body)
            with pytest.raises(errors.ConfigError, match="gives none"):
                await mood_of(llm, confidence="logprobs")("x")
        assert mood_of(reasons, thinking="off").preview("x").body["logprobs"] is True
        plain = mood_of(model("chat", server), votes=3)
        assert (await plain("x")).asked == 3  # who names a number of votes wants votes


async def test_a_stronger_model_is_asked_once_too():
    async with LoopbackServer(
        lambda request: reply("chat", 0.99 if request.body["model"] == "gpt-4o" else 0.5)
    ) as server:
        weak, strong = model("chat", server), made("chat", server, model="gpt-4o", profile="openai")
        found = await mood_of(weak, escalate_to=strong)("x")
    assert (found.escalated, found.value, len(server.requests)) == (True, "glad", 2)


class Grade(BaseModel):
    score: int


@pytest.mark.parametrize(
    ("returns", "options", "said"),
    [
        (Confident[Grade], {"confidence": "logprobs"}, "is for a choice"),
        (Mood, {"confidence": "votes"}, r"annotated `-> Confident\[...\]`"),
        (Mood, {"confidence": "maybe"}, "must be one of"),
        (Mood, {"calibration": 3}, "must be what f.calibrate"),
        (Mood, {"calibration": "/nowhere/c.json"}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_told_at_decoration(returns, options, said):
    with pytest.raises(errors.ConfigError, match=said):
        mood_of(ScriptedLLM("x"), returns, **options)


# --- calibrate -------------------------------------------------------------------------------------------


def biased_service(request):
    """A model that says "glad" too often and too surely; the text holds how glad it is."""
    content = request.body["messages"][-1]["content"]
    glad = float(content.rsplit(" ", 1)[1])
    odds = math.log(glad / (1 - glad)) * 3 + 2
    share = min(max(1 / (1 + math.exp(-odds)), 1e-4), 1 - 1e-4)
    return true_answer(share)


def gladness(count, seed=1):
    chance = random.Random(seed)
    texts = [f"{number} {chance.uniform(0.05, 0.95):.3f}" for number in range(count)]
    return texts, [chance.random() < float(text.split()[1]) for text in texts]


def glad_of(server, returns=bool, **options):
    llm = made("chat", server, model="m", profile="llama.cpp")
    return async_decorated(returns, llm, **{"output_mode": "choice", **options})


@pytest.fixture
async def service():
    async with LoopbackServer(biased_service) as server:
        yield server


async def test_a_calibration_makes_probabilities_as_often_right_as_they_say(service, tmp_path):
    texts, right = gladness(150)
    glad, sure = glad_of(service), glad_of(service, Confident[bool])
    for function in (glad, sure):
        found = await function.calibrate(texts, labels=right, path=tmp_path / "glad.json")
        report = found.calibration.report
        assert (report.rows, report.failed) == (150, 0)
        assert report.before.calibration_error.value > 0.15 > 0.1 > report.after.calibration_error.value
        assert report.after.accuracy.value > report.before.accuracy.value
        for side in (report.before, report.after):
            for estimate in (side.accuracy, side.calibration_error, side.coverage):
                assert 0 <= estimate.low <= estimate.high <= 1
        assert "accuracy: " in str(report)
    # From the file, for the plain type as well: the most probable label after it, not the one that was written.
    plain = glad_of(service, calibration=str(tmp_path / "glad.json"))
    result = await plain.call("0 0.450")
    assert (result.value, result.attempts[-1].text, result.output_mode) == (False, "true", "choice")
    confident = await sure.with_options(calibration=tmp_path / "glad.json")("0 0.450")
    assert confident.value is False
    assert confident.probabilities[True] == pytest.approx(0.45, abs=0.12)
    (row,) = (await plain.map(["0 0.450"])).rows
    assert row.value is False
    assert plain.calibration == found.calibration


async def test_without_labels_the_mean_share_is_taken_off(service):
    texts, _ = gladness(60)
    found = await glad_of(service, Confident[bool]).calibrate(texts)
    report = found.calibration.report
    assert report.before.accuracy is report.after.calibration_error is None
    assert found.calibration.temperature == 1
    values = [(await found(text)).value for text in texts]
    assert 20 < sum(values) < 40
    assert str(report).count("\n") == 1


async def test_rows_and_labels_that_cannot_be(service, tmp_path):
    texts, right = gladness(20)
    glad = glad_of(service)
    for rows, labels, said in [
        (texts[:19], None, "at least 20 rows, not 19"), (iter(texts[:3]), None, "at least 20 rows, not 3"),
        (texts, right[:-1], "20 rows and 19 labels"),
        (texts, ["maybe"] * 20, "'maybe' is not one of its labels: true, false"),
    ]:  # fmt: skip
        with pytest.raises(errors.UsageError, match=said):
            await glad.calibrate(rows, labels=labels)
    with pytest.raises(errors.ConfigError, match="no folder"):
        await glad.calibrate(texts, path=tmp_path / "none" / "c.json")
    assert len(service.requests) == 3, "only rows that cannot be counted are asked"
    with pytest.raises(errors.ConfigError, match="for a choice"):
        await glad_of(service, int, output_mode="auto").calibrate(texts)
    with pytest.raises(errors.ConfigError, match=r"calibrate\(\) needs .* gives none"):
        await glad.with_options(llm_interface=model("messages", service)).calibrate(texts)
    with budget(requests=2), pytest.raises(errors.BudgetExceeded):
        await glad.calibrate(texts)
    await glad.calibrate(texts, labels=["true" if each else "false" for each in right], path=tmp_path / "c.json")
    data = json.loads((tmp_path / "c.json").read_text())
    for change, said in [
        ({"function": "other"}, "made for other"), ({"labels": ["yes", "no"]}, "made for the labels yes, no"),
        ({"kind": "else"}, "not a calibration that this version can read"),
        ({"temperature": 1e-320}, "is not a calibration"), ({"biases": "x"}, "is not a calibration"),
    ]:  # fmt: skip
        (tmp_path / "d.json").write_text(json.dumps({**data, **change}))
        with pytest.raises(errors.ConfigError, match=said):
            glad.with_options(calibration=tmp_path / "d.json")
    (tmp_path / "d.json").write_text("[" * 20_000)
    with pytest.raises(errors.ConfigError, match="cannot be read as a calibration"):
        glad.with_options(calibration=tmp_path / "d.json")
    with pytest.raises(errors.ConfigError, match="not votes"):
        glad_of(service, Confident[bool], confidence="votes", calibration=tmp_path / "c.json")


async def test_another_model_is_warned_of_and_the_version_shows_the_calibration(service, caplog):
    texts, right = gladness(20)
    plain = glad_of(service)
    found = await plain.calibrate(texts, labels=right)
    assert found._pipeline.metadata.version != plain._pipeline.metadata.version
    assert found._pipeline.own_version_parts()["calibration"] == found.calibration.digest
    other = made("chat", service, model="other", profile="llama.cpp")
    with use_llm(other):
        await found("0 0.500")
        await found("1 0.500")
    assert caplog.text.count("was made with m, and other is asked") == 1
