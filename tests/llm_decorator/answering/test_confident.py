"""`-> Confident[T]`: several runs, a vote by field, escalation; budget, deadline, cache and map hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial

import pytest
from pydantic import BaseModel, model_validator
from pydantic_core import core_schema

from SimpleLLMFunc import AbortSignal, CachedLLM, OpenAICompatible, budget, errors, llm_function, use_llm, watching
from SimpleLLMFunc.base.events import ReplyDelta, RunFinished, RunStarted
from SimpleLLMFunc.interface.local import LocalModel
from SimpleLLMFunc.llm_decorator.answering.votes import comparable, decide
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.markers import Confident, Quoted
from SimpleLLMFunc.type.usage import NO_USAGE
from tests.support.functions import NATIVE, async_decorated, never
from tests.support.server import LoopbackServer


class Line(BaseModel):
    name: str
    price: Decimal


class Grade(BaseModel):
    score: int
    why: str = ""
    lines: list[Line] = []


def said(**fields):
    return json.dumps(fields)


scripted = partial(ScriptedLLM, profile=NATIVE)
grader = partial(async_decorated, Confident[Grade])


# --- the vote itself ------------------------------------------------------------------------------------------


def test_fields_are_voted_on_by_themselves():
    answers = [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    decision = decide(answers, 3)
    assert decision.data == {"a": 2, "b": "x"}
    assert decision.agreement == {"a": pytest.approx(2 / 3), "b": pytest.approx(2 / 3)}
    assert decision.nearest == 1


def test_a_missing_vote_agrees_with_no_one_and_the_first_of_equals_wins():
    assert decide([3, 3], 4).agreement == {"": 0.5}
    assert decide(["b", "a"], 2).data == "b"
    assert decide([True, 1, 1], 3).data == 1  # true is not one
    assert decide([1.0, 1], 2).agreement == {"": 1.0}
    assert decide(["Rain  today", "rain today"], 2).agreement == {"": 1.0}


def test_lists_of_objects_by_item_of_the_common_length_and_plain_lists_as_a_whole():
    lines = [[{"p": 1}, {"p": 2}], [{"p": 1}, {"p": 3}], [{"p": 1}], [{"p": 1}, {"p": 3}]]
    decision = decide(lines, 4)
    assert decision.data == [{"p": 1}, {"p": 3}]
    assert decision.agreement == {"[0].p": 0.75, "[1].p": 0.5}
    assert decide([["a", "b"], ["b", "a"], ["a", "b"]], 3).agreement == {"": pytest.approx(2 / 3)}
    assert comparable(["b", "a"], {"a", "b"}) == ["a", "b"]
    assert decide([[], [], [{"p": 1}]], 3).data == []


def test_other_branches_of_a_union_have_no_vote_inside():
    answers = [{"kind": "cat", "lives": 9}, {"kind": "dog", "name": "Rex"}, {"kind": "cat", "lives": 9}]
    assert decide(answers, 3).data == {"kind": "cat", "lives": 9}


def test_only_the_named_fields_count_and_the_rest_comes_from_one_answer():
    answers = [{"score": 4, "why": "a"}, {"score": 5, "why": "b"}, {"score": 5, "why": "c"}]
    decision = decide(answers, 3, ["score"])
    assert decision.data == {"score": 5, "why": "b"}
    assert list(decision.agreement) == ["score"]


# --- as a function --------------------------------------------------------------------------------------------


async def test_value_agreement_and_votes():
    llm = scripted(*[said(score=score, why="same") for score in (4, 4, 5, 4, 1)])
    result = await grader(llm).call("x")
    confident = result.value
    assert confident.value == Grade(score=4, why="same")
    assert confident.agreement == {"score": 0.6, "why": 1.0, "lines": 1.0}
    assert (confident.abstained, confident.asked, len(confident.votes), confident.escalated) == (False, 5, 5, False)
    assert len(llm.calls) == 5
    assert len(result.attempts) == 5
    assert result.usage.output_tokens == sum(attempt.usage.output_tokens for attempt in result.attempts) > 0
    assert result.source == "model"
    assert (await grader(scripted(said(score=1), repeat=True))("x")).value == Grade(score=1)


async def test_under_the_threshold_it_abstains():
    replies = [said(score=score) for score in (1, 2, 3)]
    confident = await grader(scripted(*replies), votes=3)("x")
    assert confident.abstained
    assert confident.value_or(None) is None
    assert not (await grader(scripted(*replies), votes=3, min_agreement=0.3)("x")).abstained
    assert (await grader(scripted(*replies), votes=3, min_agreement=0.3)("x")).value_or(None) == Grade(score=1)


async def test_a_vote_that_cannot_be_used_counts_against_all():
    result = await grader(scripted(said(score=4), "no", said(score=4), "no"), votes=4, max_reasks=0).call("x")
    assert result.value.agreement["score"] == 0.5
    assert result.value.abstained
    assert len(result.value.votes) == 2
    assert len(result.attempts) == 4
    with pytest.raises(errors.ResponseParseError) as caught:
        await grader(scripted("no", repeat=True), votes=3, max_reasks=0)("x")
    assert caught.value.usage.output_tokens == 3


async def test_it_escalates_to_the_stronger_model_only_when_it_abstains():
    weak = scripted(*[said(score=score) for score in (1, 2, 3)], model_name="weak")
    strong = scripted(said(score=7), repeat=True, model_name="strong")
    result = await grader(weak, votes=3, escalate_to=strong).call("x")
    assert result.value.value == Grade(score=7)
    assert result.value.escalated
    assert not result.value.abstained
    assert (len(weak.calls), len(strong.calls), len(result.attempts)) == (3, 3, 6)
    sure = scripted(said(score=1), repeat=True)
    with use_llm(sure):
        assert not (await grader(weak, votes=3, escalate_to=strong)("x")).escalated
    assert len(strong.calls) == 3


async def test_votes_are_not_served_from_one_flight_of_a_cache(tmp_path):
    inner = scripted(*[said(score=score) for score in (1, 2, 2)])
    grade = grader(CachedLLM(inner, tmp_path / "cache.sqlite"), votes=3, min_agreement=0.5)
    first = await grade("x")
    assert len(inner.calls) == 3
    assert sorted(vote.score for vote in first.votes) == [1, 2, 2]
    again = await grade.call("x")
    assert len(inner.calls) == 3  # each vote has its own place in the cache
    assert again.value.value == first.value
    assert again.cached


async def test_a_seed_is_another_one_for_each_vote():
    llm = scripted(said(score=1), repeat=True)
    await grader(llm, votes=3, seed=40)("x")
    assert sorted(call.params["seed"] for call in llm.calls) == [40, 41, 42]


async def test_the_seed_of_the_model_itself_counts_too(tmp_path, monkeypatch):
    async with LoopbackServer() as server:
        for number in range(3):
            server.reply(said(score=number))
        llm = OpenAICompatible("m", api_key="sk-test-12345678", base_url=server.base_url, api_params={"seed": 7})
        await grader(CachedLLM(llm, tmp_path / "cache.sqlite"), votes=3)("x")
        assert sorted(request.body["seed"] for request in server.requests) == [7, 8, 9]
    local, double = LocalModel(seed=7), scripted(said(score=1), repeat=True)
    monkeypatch.setattr(local, "chat", double.chat)
    await grader(local, votes=3, output_mode="prompt")("x")
    assert [call.params.get("seed") for call in double.calls] == [None, 8, 9]  # 7 is added by the model itself


async def test_budget_and_deadline_hold_over_all_votes():
    with budget(requests=2) as spent:
        with pytest.raises(errors.BudgetExceeded) as caught:
            await grader(scripted(said(score=1), repeat=True), votes=5)("x")
        assert spent.requests == 2
    assert caught.value.usage is not None

    llm = scripted(said(score=1), never, said(score=1))
    with pytest.raises(errors.DeadlineExceeded):
        await grader(llm, votes=3, deadline=0.2)("x")
    assert len(asyncio.all_tasks()) == 1


async def test_an_error_of_the_service_ends_the_call_and_leaves_nothing_behind():
    with pytest.raises(errors.RateLimited):
        await grader(scripted(never, errors.RateLimited("m"), never), votes=3)("x")
    assert len(asyncio.all_tasks()) == 1
    task = asyncio.create_task(grader(scripted(never, never), votes=2)("x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(asyncio.all_tasks()) == 1


async def test_fields_that_do_not_go_together_give_the_nearest_whole_answer():
    class Span(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def ordered(self):
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    span = async_decorated(
        Confident[Span], scripted(*[said(low=a, high=b) for a, b in ((1, 2), (1, 2), (5, 6), (5, 7), (5, 2 + 6))])
    )
    confident = await span("x")  # low: 5 (3 of 5), high: 2 (2 of 5)
    assert confident.value == Span(low=5, high=6)
    assert confident.agreement == {"low": 0.6, "high": 0.2}
    assert confident.abstained


async def test_the_other_views():
    grade = grader(scripted(said(score=1), repeat=True), votes=2)
    assert [value.value.score async for value in grade.stream("x")] == [1]
    events = [event async for event in grade.events("x")]
    assert sum(isinstance(event, RunStarted) for event in events) == 2
    assert sum(isinstance(event, RunFinished) for event in events) == 2
    assert any(isinstance(event, ReplyDelta) for event in events)
    assert grade.preview("x").response_format["json_schema"]["name"] == "Grade"
    stream = grade.events("x")
    await anext(stream)
    await stream.aclose()
    assert len(asyncio.all_tasks()) == 1


async def test_a_map_keeps_what_was_decided(tmp_path):
    llm = scripted(*[said(score=score) for score in (1, 2, 2, 3, 3, 3)])
    grade = grader(llm, votes=3)
    report = await grade.map(["x", "y"], checkpoint=tmp_path / "run.sqlite", concurrency=1)
    values = [row.value for row in report.rows]
    assert [value.value.score for value in values] == [2, 3]
    report.close()
    again = await grade.map(["x", "y"], checkpoint=tmp_path / "run.sqlite")
    assert [row.value for row in again.rows] == values
    assert len(llm.calls) == 6
    again.close()
    other = grade.with_options(votes=1, llm_interface=scripted(said(score=9), repeat=True))
    with pytest.warns(UserWarning, match="with other prompt"):
        report = await other.map(["x"], checkpoint=tmp_path / "run.sqlite")
    assert report.rows[0].value.value.score == 9  # another function: asked anew
    report.close()


async def test_a_value_that_json_does_not_give_back_is_kept_too(tmp_path):
    when = async_decorated(
        Confident[dict[str, "float | str"]], ScriptedLLM('{"when": "2024-01-02"}', '{"when": "2024-01-02"}'), votes=2
    )
    report = await when.map(["x"], checkpoint=tmp_path / "run.sqlite")
    assert report.rows[0].value.value == {"when": "2024-01-02"}
    output = when._answered_by().voting.output
    kept = json.dumps({"asked": 3, "escalated": True, "answers": [["prompt", '{"when": 1}']] * 2})
    again = output.parse(kept).value
    assert again == Confident({"when": 1}, {"when": pytest.approx(2 / 3)}, False, ({"when": 1},) * 2, 3, True)
    report.close()


def test_examples_of_it_are_values_not_votes():
    grade = grader(ScriptedLLM(said(score=1), repeat=True), votes=2, examples=[("a", {"score": 3})])
    assert '"score": 3' in grade.preview("x").messages[2]["content"]
    with pytest.raises(errors.SignatureError):
        grade.with_options(examples=[("a", Confident(Grade(score=1)))])


def test_what_cannot_be_is_said_at_decoration():
    def plain(text: str) -> int:
        """Plain."""

    def alone(text: str) -> Confident:  # type: ignore[type-arg]
        """Alone."""

    def inside(text: str) -> list[Confident[int]]:
        """Inside."""

    def each(text: str) -> Iterator[Confident[int]]:
        """Each."""

    with pytest.raises(errors.ConfigError, match="Confident"):
        llm_function(votes=3)(plain)
    with pytest.raises(errors.ConfigError, match="escalate_to"):
        llm_function(escalate_to=ScriptedLLM())(plain)
    with pytest.raises(errors.SignatureError, match="Confident alone"):
        llm_function()(alone)
    for func in (inside, each):
        with pytest.raises(errors.SignatureError, match=r"inside another type\. .* `-> Confident\[list\[int\]\]`\.$"):
            llm_function()(func)
    for options in ({"votes": 0}, {"votes": True}, {"min_agreement": 2}, {"escalate_to": "gpt"}, {"vote_on": "score"}):
        with pytest.raises(errors.ConfigError):
            llm_function(**options)
    with pytest.raises(errors.ConfigError, match="votes"):
        llm_function(ScriptedLLM())(plain).with_options(votes=3)
    with pytest.raises(errors.ConfigError, match=r"vote_on names 'scor', and the fields are .*score"):
        grader(ScriptedLLM(), vote_on=["score", "scor"])


async def test_fields_that_no_answer_has_decide_nothing():
    ask = async_decorated(Confident[dict[str, int]], ScriptedLLM('{"a": 1}', repeat=True), votes=2, vote_on=["b"])
    assert (await ask("x")).abstained


async def test_values_without_a_json_form_cannot_be_voted_on():
    class Plate:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_):
            return core_schema.no_info_after_validator_function(lambda _: cls(), core_schema.str_schema())

    with pytest.raises(errors.UsageError, match=r"JSON form .*Plate.*serializer"):
        await async_decorated(Confident[Plate], ScriptedLLM("B 7", repeat=True), votes=2)("x")


def test_zero_temperature_is_warned_of(caplog):
    grader(ScriptedLLM(), temperature=0)
    assert "all votes the same" in caplog.text


# --- as those who watch see it --------------------------------------------------------------------------------


async def test_a_vote_is_a_run_of_which_the_votes_are_parts():
    seen = {}
    grade = grader(scripted(said(score=1), said(score=1), said(score=2)), votes=3)
    with watching(lambda trace_id, event: seen.setdefault(trace_id, []).append(event)):
        result = await grade.call("x")
    began = {trace_id: events[0] for trace_id, events in seen.items()}
    assert all(isinstance(event, RunStarted) for event in began.values())
    parents = [event.run.parent_trace_id for event in began.values()]
    assert sorted(parents) == ["", *[result.trace_id] * 3]
    whole = seen[result.trace_id]
    assert [type(event) for event in whole] == [RunStarted, RunFinished]
    assert whole[0].run.arguments == {"text": "x"}
    assert whole[-1].value == result.value
    assert json.loads(whole[-1].reply.text)["score"] == 1
    assert whole[-1].usage == NO_USAGE  # that of the votes is told with them


async def test_quotes_are_voted_on_with_an_abort_signal_too():
    find = async_decorated(Confident[Quoted], scripted('{"value": "rain"}', repeat=True), votes=2)
    found = await find("the rain", _abort_signal=AbortSignal())
    assert found.value == "rain"


async def test_long_answers_are_compared_off_the_loop():
    numbers = json.dumps({"value": list(range(100_000))})
    count = async_decorated(Confident[list[int]], scripted(numbers, repeat=True), votes=2)
    assert len((await count("x")).value) == 100_000
