"""The pipeline of a function: what the tests of functions and chats do not cover."""

from __future__ import annotations

import pytest

from SimpleLLMFunc import ConfigError, llm_function
from SimpleLLMFunc.testing import ScriptedLLM


async def test_long_arguments_are_written_in_a_thread():
    llm = ScriptedLLM("ok")

    @llm_function(llm)
    async def count(rows: list[dict[str, int]]) -> str:
        """Count."""

    assert await count([{"number": number} for number in range(300_000)]) == "ok"
    assert '{"number": 299999}' in llm.requests[0][-1]["content"]


@pytest.mark.parametrize("seconds", [0, -1, True, float("nan"), "1"])
def test_a_deadline_is_a_number_of_seconds(seconds):
    with pytest.raises(ConfigError, match="deadline must be seconds above 0"):
        llm_function(ScriptedLLM("ok"), deadline=seconds)
