"""Rows, budgets, limits, keys and the circuit around the calls of each wire."""

from __future__ import annotations

from typing import Any

import pytest

from SimpleLLMFunc import APIKeyPool, budget
from SimpleLLMFunc.errors import BudgetExceeded
from tests.support.asking import HELLO
from tests.support.connections import Recorded
from tests.support.functions import async_function_of
from tests.support.server import LoopbackServer, json_answer
from tests.support.wires import SERVICES, WIRES, last_text, made, wired


@pytest.mark.parametrize("name", WIRES)
async def test_three_hundred_rows_and_a_budget(name):
    async with wired(name, answer=lambda body: str(len(last_text(body)))) as (llm, server):
        size = async_function_of(llm, int)
        report = await size.map(["x" * number for number in range(1, 301)], progress=False)
        values = [row.value for row in report.rows]
        assert [value - values[0] for value in values] == list(range(300))
        assert len(server.requests) == 300
        assert report.usage.input_tokens == 900
        with budget(requests=2):
            await size("a")
            await size("b")
            with pytest.raises(BudgetExceeded):
                await size("c")
        assert len(server.requests) == 302


async def test_a_key_that_gemini_calls_invalid_with_400_rests_and_another_one_answers():
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details}

    def answer(request: Recorded) -> Any:
        is_bad = request.headers["x-goog-api-key"] == "sk-refused-key"
        return json_answer({"error": error}, status=400) if is_bad else service(request)

    service = SERVICES["gemini"]()
    async with LoopbackServer(answer) as server:
        pool = APIKeyPool(["sk-refused-key", "sk-accepted-key"])
        llm = made("gemini", server, api_key=None, api_key_pool=pool, max_retries=1)
        assert [(await llm.chat(HELLO)).text for _ in range(4)] == ["ok"] * 4
        assert len(server.requests) == 5
