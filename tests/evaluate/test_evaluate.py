"""evaluate: cases, scorers, repeats, reports, comparison; on the map, with its checkpoint and budget."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import CachedLLM, ConfigError, SignatureError, UsageError, llm_function
from SimpleLLMFunc.evaluate import (
    Answered,
    Case,
    EvalReport,
    EvaluationFailed,
    compare,
    evaluate,
    evaluate_async,
    exact,
    fields,
    judge,
    read_cases,
)
from SimpleLLMFunc.evaluate.report import CaseResult, Outcome
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.markers import Confident
from tests.support.functions import NATIVE, async_decorated, decorated


class Bill(BaseModel):
    total: float
    items: list[str] = []


def answering(table, **options):
    """Answers by what stands after `text: `."""

    def reply(request):
        text = re.search(r"text: (.*)", request.text)[1]
        said = table[text]
        return said.pop(0) if isinstance(said, list) else said

    return ScriptedLLM(reply, repeat=True, profile=NATIVE, **options)


def labeller(table, **options):
    return async_decorated(Literal["yes", "no"], answering(table, **options), name="label")


def said(value):
    return json.dumps({"value": value})


RIGHT = {name: said("yes") for name in "abcdefghij"}
CASES = [(name, "yes") for name in "abcdefghij"]


def test_exact_scores_with_an_interval():
    table = {**RIGHT, "b": said("no")}
    report = evaluate(labeller(table), CASES)
    score = report.scores["exact"]
    assert (score.mean, score.cases, score.method) == (0.9, 10, "wilson")
    assert score.low == pytest.approx(0.596, abs=1e-3)
    assert [result.score("exact") for result in report.results][:3] == [1.0, 0.0, 1.0]
    assert report.results[1].outcomes[0].value == "no"
    assert report.results[1].expected == "yes"
    assert report.name == "label"
    assert report.model == "scripted"
    assert report.failed == 0
    assert report.input_tokens > 0


def test_sync_functions_iterators_and_methods():
    letters = decorated(Iterator[str], ScriptedLLM('["a", "b"]', repeat=True))
    assert evaluate(letters, [("x", ["a", "b"])]).scores["exact"].mean == 1.0

    class Shop:
        @llm_function(ScriptedLLM("7000000001", repeat=True))
        def price(self, of: str, *, in_euro: bool = True) -> float:
            """Price."""

    report = evaluate(Shop().price, [({"of": "tea", "in_euro": False}, 7_000_000_001), (("tea",), 7_000_000_000)])
    assert report.scores["exact"].mean == 0.5, "two whole numbers"
    assert evaluate(decorated(int | float, ScriptedLLM("1.5")), [("x", 10**400)]).scores["exact"].mean == 0.0
    with pytest.raises(UsageError, match="llm_function"):
        evaluate(len, [("x", 1)])


def test_an_error_scores_nothing_and_is_told():
    table = {**RIGHT, "a": "rubbish"}
    report = evaluate(labeller(table).with_options(max_reasks=0), CASES[:2], ["exact", lambda value, expected: 1])
    assert report.results[0].outcomes[0].error.startswith("ResponseParseError")
    assert report.results[0].outcomes[0].scores == {"exact": 0.0, "score": 0.0}
    assert report.failed == 1
    assert report.scores["score"].mean == 0.5


def test_fields_by_path():
    table = {"a": '{"total": 3.0, "items": ["tea", "milk"]}', "b": '{"total": 4.0, "items": ["tea"]}'}
    bill = async_decorated(Bill, answering(table))
    cases = [("a", {"total": 3, "items": ["tea", "milk"]}), ("b", {"total": 4.1, "items": ["tea", "milk"]})]
    report = evaluate(bill, cases, [fields(), exact(tolerance=0.05, name="near"), fields("total", name="sum")])
    assert report.scores["fields"].mean == pytest.approx((1 + 1 / 3) / 2)
    assert report.scores["fields.total"].mean == 0.5
    assert report.scores["fields.items[]"].mean == pytest.approx((1 + 0.5) / 2)
    assert report.scores["near"].mean == report.scores["sum"].mean == 0.5
    assert evaluate(bill, cases[1:], fields("total", tolerance=0.05)).scores["fields.total"].mean == 1.0
    for name, near in (("totl", "total'"), ("itemss", "items")):  # an empty list may hold any field
        with pytest.raises(UsageError, match=rf"'{name}'\. Did you mean '{near}"):
            evaluate(bill, [*cases, ("c", {"total": 1, "items": []})], fields(name))


def test_functions_as_scorers(tmp_path):
    async def with_arguments(value, expected, arguments):
        return {"longer": len(arguments["text"]) > 1, "same": value == expected}

    def nothing(value, expected):
        return None

    def alone(value):
        return SimpleNamespace(ndim=0, item=lambda: 3.5)  # as numpy's numbers

    report = evaluate(labeller(RIGHT), [Case("a"), ("b", "no")], [with_arguments, nothing, alone])
    assert report.scores["with_arguments.same"].mean == 0.0
    assert report.scores["with_arguments.longer"].mean == 0.0
    assert report.scores["alone"].mean == 3.5
    assert "nothing" not in report.scores

    for wrong in ("good", 10**400, 1e308, float("nan")):
        with pytest.raises(UsageError, match="Give True or False"):
            evaluate(labeller(RIGHT), CASES, lambda value, expected, wrong=wrong: wrong)
    assert evaluate(labeller(RIGHT), CASES, [exact, fields]).scores.keys() == {"exact", "fields"}
    for scorers in ("close", [], ["exact", "exact"], [3], [judge], fields("typo"), judge("x", name="é" * 125)):
        with pytest.raises(UsageError, match="scorer"):
            evaluate(labeller(RIGHT), CASES, scorers, checkpoint=tmp_path / "run.sqlite")


def test_a_judge_is_a_function_of_its_own(tmp_path):
    replies = ('{"reason": "polite", "passes": true}', '{"reason": "rude", "passes": false}', "?")
    verdicts = ScriptedLLM(*replies, profile=NATIVE)
    polite = judge("The answer is polite: {not a field}.", llm_interface=verdicts, max_reasks=0)
    cases = [("a", "yes"), Case("b"), ("c", "yes")]
    report = evaluate(labeller(RIGHT), cases, polite, checkpoint=tmp_path / "run.sqlite", concurrency=1)
    assert report.scores["judge"].mean == 0.5
    assert report.scores["judge"].cases == 2
    assert sorted(result.outcomes[0].notes["judge"] for result in report.results)[1:] == ["polite", "rude"]
    assert any("ResponseParseError" in result.outcomes[0].notes["judge"] for result in report.results)
    asked = verdicts.requests[0]
    assert "polite: {not a field}" in asked[0]["content"]
    assert "yes" in asked[1]["content"]
    assert (tmp_path / "run.judge.sqlite").exists()

    rating = ScriptedLLM('{"reason": "fine", "rating": 4}', '{"reason": "?", "rating": 9}', profile=NATIVE)
    clear = judge("Clear.", llm_interface=rating, levels=5, name="clear/5")
    report = evaluate(labeller(RIGHT), CASES[:2], clear, checkpoint=tmp_path / "2.sqlite")
    assert report.scores["clear/5"].mean == 0.75
    for options in ({"criteria": " "}, {"criteria": "x", "levels": 1}, {"criteria": "x", "levels": "3"}):
        with pytest.raises(ConfigError):
            judge(**options)


async def test_repeats_are_samples_of_their_own_and_one_case(tmp_path):
    table = {"a": [said("yes"), said("no"), said("yes"), said("yes")], "b": [said("yes")] * 4}
    inner = answering(table)
    label = async_decorated(Literal["yes", "no"], CachedLLM(inner, tmp_path / "cache.sqlite"))
    report = await evaluate_async(label, CASES[:2], repeats=4)
    assert len(inner.calls) == 8
    assert len(report.results) == 2
    assert [len(result.outcomes) for result in report.results] == [4, 4]
    assert report.scores["exact"].mean == 0.875
    assert report.scores["exact"].cases == 2
    again = await evaluate_async(label, CASES[:2], repeats=4)
    assert len(inner.calls) == 8
    assert again.scores == report.scores


async def test_a_checkpoint_pays_once_and_knows_the_plain_map(tmp_path):
    label = labeller(RIGHT)
    llm = label._pipeline.options.llm_interface
    mapped = await label.map(["a", "b"], checkpoint=tmp_path / "run.sqlite")
    mapped.close()
    report = await evaluate_async(label, CASES[:3], repeats=2, checkpoint=tmp_path / "run.sqlite")
    assert len(llm.calls) == 2 + 4
    again = await evaluate_async(label, CASES[:3], repeats=2, checkpoint=tmp_path / "run.sqlite")
    assert len(llm.calls) == 6
    assert again.results == report.results


async def test_a_budget_stops_and_what_was_reached_is_scored():
    report = await evaluate_async(labeller(RIGHT), CASES, budget={"requests": 4}, concurrency=1)
    assert "BudgetExceeded" in report.stopped
    assert len(report.results) == 4
    assert report.scores["exact"].mean == 1.0
    with pytest.raises(EvaluationFailed, match=r"label: stopped before the end \(BudgetExceeded: .*less\)\.$"):
        report.require(exact=0.5)
    judged = ScriptedLLM('{"reason": "ok", "passes": true}', repeat=True, profile=NATIVE)
    polite = judge("ok", llm_interface=judged)
    report = await evaluate_async(labeller(RIGHT), CASES[:3], polite, budget={"requests": 5}, concurrency=1)
    assert (len(judged.calls), report.stopped[:14]) == (2, "BudgetExceeded")  # a judge's questions are questions


def test_confident_answers_are_scored_by_their_value():
    llm = ScriptedLLM(said("yes"), said("no"), said("no"), profile=NATIVE)
    label = async_decorated(Confident[Literal["yes", "no"]], llm, votes=3, min_agreement=0.9)
    report = evaluate(label, [("a", "no")])
    assert report.scores["exact"].mean == 1.0
    assert report.results[0].outcomes[0].notes == {"confident": "abstained"}


# --- cases --------------------------------------------------------------------------------------------------------


def test_cases_from_a_file(tmp_path):
    path = tmp_path / "cases.jsonl"
    lines = [
        {"args": "a", "expected": "yes", "id": "first", "tags": ["easy"]},
        {"args": ["b"], "value": "no", "tags": ["hard", "easy"]},
        {"args": {"text": "c"}},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert [case.id for case in read_cases(path)] == ["first", "", ""]
    report = evaluate(labeller(RIGHT), path)
    assert report.results[0].id == "first"
    assert report.scores["exact"].cases == 2
    tags = report.by_tag()
    assert (tags["easy"]["exact"].mean, tags["hard"]["exact"].mean) == (0.5, 0.0)
    assert evaluate(labeller(RIGHT), lines).results == report.results
    assert evaluate(labeller(RIGHT), read_cases(path)).results == report.results
    first, second = (result.id for result in evaluate(labeller(RIGHT), [("a", "yes"), ("a", "yes")]).results)
    assert second == f"{first}#2"


@pytest.mark.parametrize(
    ("cases", "kind", "told"),
    [
        ([("a", "maybe")], SignatureError, r"cases\[0\]: the value"),
        ([("a", "yes"), (("a", "b", "c"), "yes")], SignatureError, r"cases\[1\]"),
        ([(5, "yes")], SignatureError, "argument 'text'"), ([], UsageError, "no cases"),
        ("no_such.jsonl", ConfigError, "no_such.jsonl"), (["a"], UsageError, "A case is a pair"),
        ([{"expected": "yes"}], UsageError, "args"), ([{"args": "a", "tags": "x"}], UsageError, "tags"),
        ([Case("a", "yes", "one"), Case("b", "yes", "one")], UsageError, "same id|id 'one'"),
        ({"a": "yes"}, UsageError, "list of"), (3, UsageError, "list of"), ([Case("a")], UsageError, "no case has one"),
    ],
)  # fmt: skip
def test_wrong_cases_are_named(cases, kind, told):
    with pytest.raises(kind, match=told):
        evaluate(labeller(RIGHT), cases)


def test_other_arguments_that_cannot_be():
    for options in ({"repeats": 0}, {"repeats": True}, {"confidence": 95}, {"concurrency": 0}, {"engine": "ray"}):
        with pytest.raises(UsageError):
            evaluate(labeller(RIGHT), CASES, **options)


# --- the report ---------------------------------------------------------------------------------------------------


def made(scores, name="exact", **options):
    results = tuple(
        CaseResult(f"c{number}", {"text": "x"}, "yes", tuple(Outcome("yes", scores={name: one}) for one in each))
        for number, each in enumerate(scores)
    )
    return EvalReport("label", "m:label", options.get("version", "v1"), options.get("model", "m"), results)


def test_a_report_that_cannot_be_written_is_one_of_our_errors(tmp_path):
    report = evaluate(labeller({"a": "yes"}), [("a", "yes")])
    (tmp_path / "file").write_text("no folder")
    for write in (report.save, report.plot, report.compare(report).plot):
        with pytest.raises(ConfigError, match="cannot be written"):
            write(tmp_path / "file" / "report")
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing half written is left"


@pytest.mark.parametrize("scorer", [exact(), fields()], ids=["exact", "fields"])
async def test_many_answers_are_scored_beside_the_loop(scorer):
    # The loop guard fails this test where the loop has to wait for it.
    data = {"total": 1.5, "items": [f"item {number}" for number in range(20)]}
    answers = [Answered({"text": "x"}, data, data, data, dict(data)) for _ in range(10_000)]
    grades = await scorer.grade(answers, None)
    assert {each.scores[scorer.name] for each in grades} == {1.0}


def test_it_is_saved_and_loaded_as_it_was(tmp_path):
    report = evaluate(labeller(RIGHT), [*CASES[:3], Case("d", tags=("x",))], repeats=2)
    path = tmp_path / "new" / "report.json"
    report.save(path)
    assert EvalReport.load(path) == report
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["kind"], data["version"]) == ("simplellmfunc-evaluation", report.version)
    assert data["function"].endswith(":label")
    assert data["scores"]["exact"]["mean"] == 1.0
    assert report.version == labeller(RIGHT)._pipeline.metadata.version
    for text in ("{", "[]", "[" * 20_000, '{"kind": "other"}', '{"kind": "simplellmfunc-evaluation", "format": 1}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError):
            EvalReport.load(path)
    with pytest.raises(ConfigError):
        EvalReport.load(tmp_path / "none.json")


def test_require():
    report = made([[1.0]] * 9 + [[0.0]])
    report.require(exact=0.9)
    report.require(at="low", exact=0.55)
    with pytest.raises(EvaluationFailed) as caught:
        report.require(exact=0.95)
    assert caught.value.missed == [("exact", 0.95, 0.9)]
    assert isinstance(caught.value, AssertionError)
    with pytest.raises(EvaluationFailed, match=r"required 0\.900"):
        report.require(at="low", exact=0.9)
    with pytest.raises(EvaluationFailed, match="no score 'fields'"):
        report.require(fields=0.1)
    made([[1.0]], "fields.a").require(fields__a=0.5)
    with pytest.raises(UsageError):
        report.require(at="median", exact=1)


def test_table_and_picture():
    report = made([[1.0], [0.5], [0.0]], "<b>分数&")
    lines = report.table().splitlines()
    assert lines[0].split()[:2] == ["score", "mean"]
    assert "0.500" in lines[2]
    assert report.table(markdown=True).splitlines()[1].startswith("|-")
    picture = ET.fromstring(report.svg())
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>分数&" in texts
    assert "0.500" in texts
    ET.fromstring(made([]).svg())
    assert "3 cases" in str(report)
    assert "<th>&lt;b&gt;分数&amp;</th><td><pre>0.500 (0.000 .. 1.000)" in report._repr_html_()


# --- two of them --------------------------------------------------------------------------------------------------


def test_mcnemar_for_right_and_wrong():
    first = made([[1.0]] * 21 + [[1.0]] * 2 + [[0.0]] * 9 + [[0.0]] * 12)
    second = made([[1.0]] * 21 + [[0.0]] * 2 + [[1.0]] * 9 + [[0.0]] * 12, version="v2")
    comparison = first.compare(second)
    one = comparison.differences["exact"]
    assert (one.test, one.better, one.worse, one.cases) == ("mcnemar", 9, 2, 44)
    assert one.p == pytest.approx(0.06543, abs=5e-6)
    assert one.difference == pytest.approx(7 / 44)
    assert one.low < 7 / 44 < one.high
    assert comparison.got_worse() == []
    assert second.compare(first).got_worse(alpha=0.1) == ["exact"]
    assert "v2" in str(comparison)
    ET.fromstring(comparison.svg())


def test_permutation_for_shares_and_pairing_by_id():
    first = made([[0.2, 0.4], [0.5, 0.5], [0.1, 0.2], [0.3, 0.3], [0.6, 0.6], [0.1, 0.1]])
    second = made([[0.6, 0.8], [0.9, 0.7], [0.5, 0.6], [0.5, 0.3], [0.9, 0.9]])
    comparison = compare(first, second)
    one = comparison.differences["exact"]
    assert (one.test, one.cases, comparison.unpaired) == ("permutation", 5, 1)
    assert one.p == pytest.approx(2 / 32)
    assert one.low > 0
    with pytest.raises(UsageError, match="in common"):
        compare(first, made([[1.0]], "other"))
    with pytest.raises(UsageError, match="in common"):
        compare(first, EvalReport("f", "", "", "", ()))
