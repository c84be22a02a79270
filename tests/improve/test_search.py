"""f.improve, end to end on scripted models: what it finds, what it refuses, what it asks, and how it goes on."""

import asyncio
import contextlib
import hashlib
import json
import math
import re
from typing import Literal

import pytest

from SimpleLLMFunc import Confident, ConfigError, UsageError, budget, llm_function, watching
from SimpleLLMFunc.base.events import ReplyReceived
from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.improve.asking import Ledger, function_requests
from SimpleLLMFunc.llm_decorator.decorated import pipeline_of
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import NATIVE, async_decorated, true_answer
from tests.support.server import LoopbackServer
from tests.support.wires import made


def noise(salt, *seen):
    """Return a number from 0 to 1 that looks random, the same for the same texts."""
    text = "\0".join([str(salt), *map(str, seen)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def number_in(request):
    return int(re.search(r"number: (\d+)", request.text)[1])


def shown(request):
    return sum(message["role"] == "assistant" for message in request.messages)


def kind(number):
    return "fizz" if number % 3 == 0 else "plain"


def model(right, salt=0, **options):
    """A model that is right with the probability that `right(request)` says."""

    def reply(request):
        number = number_in(request)
        is_right = noise(salt, number, request.messages[:-1], request.response_format) < right(request)
        wrong = {"fizz": "plain", "plain": "fizz"}[kind(number)]
        schema = (request.response_format or {}).get("json_schema", {}).get("schema", {})
        said = dict.fromkeys(schema.get("properties", {}), "because")  # the reasons, where they are asked for
        return json.dumps({**said, "value": kind(number) if is_right else wrong})

    return ScriptedLLM(reply, repeat=True, profile=NATIVE, **options)


def function(llm):
    @llm_function(llm)
    async def tell(number: int) -> Literal["fizz", "plain"]:
        """Say what kind of number it is."""

    return tell


def cases(count):
    return [(number, kind(number)) for number in range(count)]


def helped_by_examples(request):
    return 0.98 if shown(request) >= 4 else 0.5


WAS = function(ScriptedLLM(profile=NATIVE)).preview(1)


def hurt_by_everything(request):
    is_as_it_was = [request.messages[:-1], request.response_format] == [WAS.messages[:-1], WAS.response_format]
    return 0.8 if is_as_it_was else 0.6


QUIET = {"progress": False}


def rubbish_first(request):
    """Answer right, but only when asked for the second time."""
    if "rubbish" not in str(request.messages[-2:]):
        return "rubbish"
    return json.dumps({"value": kind(int(re.findall(r"number: (\d+)", str(request.messages))[-1]))})


async def interrupted(work, is_far_enough):
    """Run a search until it is far enough, and cancel it; what came of it where it was done before."""
    task = asyncio.create_task(work)
    async with asyncio.timeout(30):
        while not is_far_enough() and not task.done():
            await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task


# --- the three rates ------------------------------------------------------------------------------------------


def searches(count, right, *, size=60, most=180):
    """Return what so many searches came to, each with a model and a split of its own."""

    async def all_of_them():
        return [
            await function(model(right, salt)).improve(cases(size), budget=most, seed=salt, **QUIET)
            for salt in range(count)
        ]

    return asyncio.run(all_of_them())


SOME = pytest.param(8, id="some")
MANY = pytest.param(100, id="many", marks=[pytest.mark.heavy, pytest.mark.timeout(900)])


@pytest.mark.parametrize("count", [SOME, MANY])
def test_on_pure_noise_at_most_5_in_100_searches_claim_a_gain(count):
    found = searches(count, lambda _: 0.6)
    assert sum(each.accepted for each in found) <= 0.05 * count
    # And the score by which the search chose promised one.
    promised = [each.report["choice"]["after"]["mean"] - each.after for each in found]
    assert sum(promised) / count > 0.05


@pytest.mark.parametrize("count", [SOME, MANY])
def test_at_least_90_in_100_of_what_can_be_found_is_found(count):
    found = searches(count, helped_by_examples)
    assert sum(each.accepted for each in found) >= 0.9 * count
    assert all("examples" in {change.what for change in each.changes} for each in found if each.accepted)


@pytest.mark.parametrize("count", [SOME, MANY])
def test_a_change_that_hurts_is_never_taken(count):
    # Everything that can be changed makes it worse.
    found = searches(count, hurt_by_everything)
    assert not any(each.accepted for each in found)
    assert all(each.changes == () for each in found)


# --- what is asked ----------------------------------------------------------------------------------------------


async def test_held_out_cases_are_asked_once_at_the_end_as_it_was_and_as_found(tmp_path):
    llm = model(helped_by_examples)
    tell = function(llm)
    found = await tell.improve(cases(100), budget=300, path=tmp_path / "tell.json", **QUIET)
    report = found.report
    assert report["split"] == {"seed": 0, "train": 30, "choice": 30, "held_out": 40}
    assert sum("logprobs" in call.params for call in llm.calls) == 1  # it gives none: no calibration
    asked = [number_in(call) for call in llm.calls if "logprobs" not in call.params]
    held = set(asked[-80:])
    assert len(held) == 40
    assert sorted(asked[-80:]) == sorted([*held, *held])
    assert not held & set(asked[:-80])
    # Examples come from neither of the two parts that are asked.
    in_prompts = {int(n) for call in llm.calls for text in call.texts[1:-1] for n in re.findall(r"number: (\d+)", text)}
    assert in_prompts
    assert not in_prompts & set(asked)
    assert found.spent.requests == len(llm.calls) == report["spent"]["requests"] <= 300
    # The report, the file and the function say the same.
    assert found.accepted
    assert found.after > found.before
    assert found.interval[0] > 0
    assert found.p_value < 0.05
    assert "held out" in str(found)
    assert "examples: none ->" in str(found)
    assert [path.name for path in tmp_path.iterdir()] == ["tell.json"]
    data = json.loads((tmp_path / "tell.json").read_text())
    assert data["options"] == found.report["options"]
    again = tell.with_options(improvement=str(tmp_path / "tell.json"))
    assert again.preview(500).messages == found.function.preview(500).messages != tell.preview(500).messages
    assert len(again.preview(500).messages) == 2 + 2 * data["options"]["max_examples"]


async def test_same_seed_cases_and_model_give_the_same_result_in_any_order_of_cases(tmp_path):
    given = cases(60)
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path, order in zip(paths, (given, given[::-1]), strict=True):
        await function(model(helped_by_examples)).improve(order, budget=180, seed=3, path=path, **QUIET)
    assert paths[0].read_text() == paths[1].read_text()
    other = await function(model(helped_by_examples)).improve(given, budget=180, seed=4, **QUIET)
    assert other.report["options"] != json.loads(paths[0].read_text())["options"]


def test_a_sync_function_and_a_method_and_a_scorer_of_ones_own():
    class Shop:
        @llm_function(model(helped_by_examples))
        def tell(self, number: int) -> Literal["fizz", "plain"]:
            """Say what kind of number it is."""

    shop = Shop()
    found = shop.tell.improve(
        cases(60), scorer=lambda value, wanted: 0.5 + 0.4 * (value == wanted), budget=180, **QUIET
    )
    assert found.accepted
    assert found.report["held_out"]["test"] == "permutation"
    assert found.function(300) in {"fizz", "plain"}
    assert "gave no score" in shop.tell.improve(cases(60), scorer=lambda value, wanted: None, budget=180, **QUIET).why


# --- the budget -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [34, 60, 61, 100, 150])
async def test_no_request_beyond_the_budget_is_sent_and_the_test_is_whole(limit):
    llm = model(helped_by_examples)
    found = await function(llm).improve(cases(40), budget=limit, **QUIET)
    assert len(llm.calls) <= limit
    assert found.report["held_out"]["cases"] == 16


async def test_a_budget_too_small_names_the_number_that_is_enough():
    llm = model(helped_by_examples)
    with pytest.raises(UsageError, match=r"takes 34 requests at least, and there are 33\. From 56 on"):
        await function(llm).improve(cases(40), budget=33, **QUIET)
    with budget(requests=33), pytest.raises(UsageError, match="takes 34 requests at least, and there are 33"):
        await function(llm).improve(cases(40), budget=300, **QUIET)
    assert llm.calls == []


async def test_re_asks_count_and_a_budget_scope_serves():
    # Every second answer has to be asked for again: twice the requests that were planned.
    llm = ScriptedLLM(rubbish_first, repeat=True, profile=NATIVE)
    with budget(requests=1000) as around:
        found = await function(llm).improve(cases(40), budget=budget(requests=130), **QUIET)
    assert around.requests == len(llm.calls) <= 130
    assert found.report["held_out"]["cases"] == 16
    assert (found.accepted, found.before, found.after) == (False, 1.0, 1.0)
    assert found.function.preview(1) == function(llm).preview(1)


async def test_a_budget_without_limits_serves_too():
    found = await function(model(helped_by_examples)).improve(cases(40), budget={}, **QUIET)
    assert found.report["held_out"]["cases"] == 16


async def test_a_budget_that_ends_in_the_test_accepts_nothing_and_says_so(tmp_path):
    helpful = model(helped_by_examples)
    await function(helpful).improve(cases(40), budget=100, **QUIET)
    held_out = set(map(number_in, helpful.calls[-32:]))

    def reply(request):
        # Nothing in the search told that these have to be asked for twice.
        number = int(re.findall(r"number: (\d+)", str(request.messages))[-1])
        return rubbish_first(request) if number in held_out else json.dumps({"value": kind(number)})

    llm = ScriptedLLM(reply, repeat=True, profile=NATIVE)
    path = tmp_path / "f.json"
    taken: list[int] = []

    def note(_, event):
        taken.extend([event.usage.total_tokens] if isinstance(event, ReplyReceived) else [])

    with watching(note):
        found = await function(llm).improve(cases(40), budget=100, path=path, **QUIET)
    assert len(llm.calls) == 100
    assert found.spent.tokens == sum(taken)
    assert not found.accepted
    assert "within the budget" in found.why
    assert json.loads(path.read_text())["options"] == {}
    with watching(note):
        again = await function(llm).improve(cases(40), budget=250, path=path, **QUIET)
    assert found.spent.tokens < again.spent.tokens <= sum(taken), "what was paid for before is counted, and once"
    assert again.report["held_out"]["cases"] == 16
    assert again.spent.requests <= 250
    assert [each.name for each in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize(
    ("given", "options", "kind", "told"),
    [
        (cases(29), {}, UsageError, "at least 30 cases, but got 29"),
        ([(1, "plain")] * 40, {}, UsageError, "1 different arguments"),
        (cases(40), {"budget": -1}, UsageError, "whole number of requests"),
        (cases(40), {"budget": 0}, UsageError, "and there are 0"),
        (cases(40), {"budget": 90.5}, UsageError, "whole number of requests"),
        (cases(40), {"budget": "5"}, UsageError, "whole number of requests"),
        (cases(40), {"budget": float("inf")}, UsageError, "whole number of requests"),
        (cases(40), {"seed": "a"}, UsageError, "seed is a whole number"),
        (cases(40), {"scorer": "best"}, UsageError, "not a scorer"),
        (cases(40), {"concurrency": 0}, UsageError, "concurrency"),
        (cases(40), {"path": "no/such/f.json"}, ConfigError, "there is no folder"),
    ],
)
async def test_wrong_uses_are_told_before_anything_is_asked(given, options, kind, told):
    llm = model(helped_by_examples)
    with pytest.raises(kind, match=told):
        await function(llm).improve(given, **{"budget": 100, **QUIET, **options})
    assert llm.calls == []


@pytest.mark.parametrize(("fails_as_it_was", "after"), [(True, 1.0), (False, 0.5)])
async def test_a_service_that_fails_for_a_form_scores_0_and_for_the_function_as_it_was_nothing(fails_as_it_was, after):
    def reply(request):
        is_as_it_was = [request.messages[:-1], request.response_format] == [WAS.messages[:-1], WAS.response_format]
        if is_as_it_was == fails_as_it_was and number_in(request) % 2:
            raise ServerUnavailable("m", status=503)
        schema = (request.response_format or {}).get("json_schema", {}).get("schema", {})
        return json.dumps(dict.fromkeys(schema.get("properties", {}), "because") | {"value": kind(number_in(request))})

    found = await function(ScriptedLLM(reply, repeat=True, profile=NATIVE)).improve(cases(60), budget=180, **QUIET)
    assert (found.accepted, found.before) == (False, 1.0)
    assert found.after == pytest.approx(after, abs=0.2)


async def test_a_form_that_always_fails_is_no_gain_on_a_scale_below_0():
    llm = ScriptedLLM(lambda asked: "?" if asked.tools else '{"value": "plain"}', repeat=True, profile=NATIVE)
    found = await function(llm).improve(cases(60), scorer=lambda value, wanted: -2, budget=180, **QUIET)
    assert (found.accepted, found.before, found.after) == (False, -2.0, -2.0)


# --- interrupted ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [3, 40, 90, 130])
async def test_an_interrupted_search_goes_on_without_paying_twice(tmp_path, after):
    whole = model(helped_by_examples)
    at_once = await function(whole).improve(cases(60), budget=180, path=tmp_path / "whole.json", **QUIET)

    first = model(helped_by_examples)
    path = tmp_path / "parts.json"
    work = function(first).improve(cases(60), budget=180, path=path, concurrency=2, **QUIET)
    assert await interrupted(work, lambda: len(first.calls) >= after) is None
    assert not path.exists()
    second = model(helped_by_examples)
    found = await function(second).improve(cases(60), budget=180, path=path, **QUIET)
    # What was on its way when it was cancelled has no answer.
    assert len(whole.calls) <= len(first.calls) + len(second.calls) <= len(whole.calls) + 2
    assert found.spent.requests == len(first.calls) + len(second.calls)
    parts, whole_report = (json.loads((tmp_path / name).read_text()) for name in ("parts.json", "whole.json"))
    assert {**parts, "spent": 0} == {**whole_report, "spent": 0}
    assert at_once.accepted
    assert {each.name for each in tmp_path.iterdir()} == {"whole.json", "parts.json"}


async def test_what_was_asked_for_again_before_a_search_was_interrupted_counts_in_its_budget(tmp_path):
    path, sent = tmp_path / "f.json", []
    for least in (40, 60, 1000):
        llm = ScriptedLLM(rubbish_first, repeat=True, profile=NATIVE)
        work = function(llm).improve(cases(40), budget=130, path=path, concurrency=2, **QUIET)
        found = await interrupted(work, lambda llm=llm, least=least: sum(sent) + len(llm.calls) >= least)
        sent.append(len(llm.calls))
    assert found.spent.requests == sum(sent) <= 130
    assert found.report["held_out"]["cases"] == 16


@pytest.mark.parametrize("text", ["{", "[]", '{"x": 5}', '{"x": ["a", "b", "c"]}'])
def test_a_damaged_account_of_what_was_paid_counts_as_none(tmp_path, text):
    (tmp_path / "f.paid").write_text(text)
    assert Ledger(tmp_path / "f").parts == {}


# --- a calibration ----------------------------------------------------------------------------------------------


def leaning(request):
    """A service that says "true" far too often, with the log-probabilities that show by how much."""
    glad = float(request.body["messages"][-1]["content"].rsplit(" ", 1)[1])
    return true_answer(1 / (1 + math.exp(-12 * glad + 4)))


def glad_of(server, returns):
    return async_decorated(returns, made("chat", server, model="m", profile="llama.cpp"), output_mode="choice")


@pytest.mark.parametrize("returns", [bool, Confident[bool]])
async def test_a_choice_is_calibrated_and_an_interrupted_search_does_not_pay_for_it_twice(tmp_path, returns, recwarn):
    given = [(f"{number} {number * 37 % 100 / 100:.2f}", number * 37 % 100 >= 65) for number in range(100)]
    path = tmp_path / "glad.json"
    async with LoopbackServer(leaning) as server:
        at_once = await glad_of(server, returns).improve(given, budget=170, path=tmp_path / "whole.json", **QUIET)
        whole = at_once.spent.requests
        assert whole == len(server.requests)
        quiet = {"budget": 170, "path": path, "concurrency": 2, **QUIET}
        work = glad_of(server, returns).improve(given, **quiet)
        assert await interrupted(work, lambda: len(server.requests) >= whole + 20) is None
        found = await glad_of(server, returns).improve(given, **quiet)
        # What was on its way when it was cancelled counts, though it may not have arrived.
        assert len(server.requests) - whole <= min(found.spent.requests, whole + 2)
        assert found.spent.requests <= 170
        assert [str(warning.message) for warning in recwarn] == []  # a calibration is no other version of the function
        assert [change.what for change in found.changes] == ["calibration"]
        assert "calibration: none -> fitted on 30 cases" in str(found)
        again = glad_of(server, returns).with_options(improvement=path)
        assert again.calibration == found.function.calibration
        assert pipeline_of(again).metadata.version == pipeline_of(found.function).metadata.version
        value = await again("0 0.40")
        assert (value.value if returns is not bool else value) is False
        assert again.with_options(improvement=None).calibration is None
    assert function_requests(glad_of(server, Confident[bool])) == 1
    assert function_requests(glad_of(server, Confident[bool]).with_options(confidence="votes")) == 5


async def test_a_service_that_is_down_ends_the_search_and_is_asked_again_later(tmp_path):
    llm = model(helped_by_examples)
    down = ScriptedLLM(*[ServerUnavailable("m", status=503)] * 1, repeat=True, profile=NATIVE)
    with pytest.raises(ServerUnavailable):
        await function(down).improve(cases(60), budget=180, path=tmp_path / "f.json", **QUIET)
    found = await function(llm).improve(cases(60), budget=180, path=tmp_path / "f.json", **QUIET)
    assert found.accepted
