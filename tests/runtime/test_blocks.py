"""``with`` blocks as decorators: they hold for plain functions, and refuse what they would end before."""

import pytest

from SimpleLLMFunc import BudgetExceeded, UsageError, budget, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, use_cassette
from tests.support.functions import async_function_of, function_of


async def asked():
    pass


def told():
    yield


async def streamed():
    yield


@pytest.mark.parametrize("func", [asked, told, streamed, function_of(None), async_function_of(None)])
@pytest.mark.parametrize(
    "begin", [lambda: budget(usd=1), lambda: use_llm(ScriptedLLM()), lambda: use_cassette("c.json")]
)
def test_what_would_run_after_the_block_is_refused(func, begin):
    with pytest.raises(UsageError, match="Write a with block inside it"):
        begin()(func)


def test_a_plain_function_runs_inside_each_time():
    ask = function_of(ScriptedLLM("a", repeat=True))

    @budget(requests=1)
    def once(times: int) -> list[str]:
        return [ask("x") for _ in range(times)]

    assert once(1) == once(1) == ["a"]
    with pytest.raises(BudgetExceeded):
        once(2)


def test_a_block_serves_one_with_statement():
    with budget(requests=1) as spent, pytest.raises(UsageError, match="Make a new one"):
        with (once := use_llm(ScriptedLLM())), once:
            pass
    assert spent.requests == 0
