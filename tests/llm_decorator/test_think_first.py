"""`think_first=True`: the reasons stand in a field before the value, and in `Result.thinking`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

import pytest

from SimpleLLMFunc import Confident, ConfigError, LocalModel
from tests.support.functions import async_decorated
from tests.support.server import LoopbackServer, completion, json_answer
from tests.support.wires import made


def summed(llm, returns=int, **options):
    return async_decorated(returns, llm, **{"think_first": True, **options})


def said(request):
    """Answer with reasons, in the form that was asked for; a service's own thoughts come before."""
    answer = json.dumps({"reasons": "2 and 3 are 5", "value": 5})
    data = completion(answer)
    data["choices"][0]["message"]["reasoning_content"] = "hm"
    return json_answer(data)


@pytest.mark.parametrize("profile", ["openai", "groq"])
async def test_the_reasons_come_before_the_value_and_are_kept_apart(profile, tmp_path):
    async with LoopbackServer(said) as server:
        total = summed(made("chat", server, model="gpt-4.1", profile=profile), examples=[("1 and 1", 2)])
        result = await total.call("2 and 3")
        assert [value async for value in total.stream("2 and 3")] == [5]
        for _ in range(2):
            assert [row.value for row in (await total.map(["2 and 3"], checkpoint=tmp_path / "rows.db")).rows] == [5]
        sure = await summed(made("chat", server, model="gpt-4.1", profile=profile), Confident[int], votes=3)("x")
    assert (result.value, result.thinking) == (5, "hm\n2 and 3 are 5")
    assert (sure.value, sure.agreement) == (5, {"": 1.0})
    body = server.requests[0].body
    assert [each["content"] for each in body["messages"] if each["role"] == "assistant"] == ['{"value": 2}']
    if profile == "openai":
        assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == ["reasons", "value"]
    else:
        assert body["messages"][0]["content"].index('"reasons"') < body["messages"][0]["content"].index('"value"')


@pytest.mark.parametrize(
    ("returns", "options"),
    [
        (str, {}),
        (None, {}),
        (Iterator[int], {}),
        (bool, {"output_mode": "choice"}),
        (int, {"output_mode": "text"}),
        (Confident[bool], {"confidence": "logprobs"}),
        (int, {"think_first": "yes"}),
    ],
)
def test_where_no_reasons_can_stand(returns, options):
    with pytest.raises(ConfigError, match="think_first"):
        summed(LocalModel(), returns, **options)


def test_it_makes_the_function_another_one_and_a_literal_is_no_choice_then():
    mood = summed(LocalModel(), Literal["glad", "sad"])
    assert mood.preview("x").output_mode == "native"
    assert mood._pipeline.metadata.version != mood.with_options(think_first=False)._pipeline.metadata.version
