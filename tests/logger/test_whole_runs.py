"""What a user of the log sees of whole runs: each record one line, and stamped with the run it belongs to."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from SimpleLLMFunc import OpenAICompatible
from SimpleLLMFunc.llm_decorator.steps.common.log_context import log_function_call
from SimpleLLMFunc.logger import app_log, setup_logging
from tests.support.functions import async_function_of
from tests.support.server import LoopbackServer, completion, error_answer

KEY = "sk-CANARY0123456789abcdefCANARY"


@pytest.fixture
def lines(tmp_path):
    """Gives what the log holds so far, each line as data."""
    path = tmp_path / "llm.log"
    handler = setup_logging("DEBUG", json=True, file=path)
    logger = logging.getLogger("SimpleLLMFunc")
    yield lambda: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    handler.close()


def noisy(llm: Any, **options: Any) -> Any:
    def clock(city: str) -> str:
        """Tell the time."""
        app_log("in a thread")
        return "noon\n2026-01-01 ERROR root fake"

    async def broken() -> str:
        """Break."""
        app_log("on the loop")
        raise ValueError("no\nclock")

    return async_function_of(llm, int, toolkit=[clock, broken], **options)


async def test_every_record_of_a_run_is_stamped(lines):
    async with LoopbackServer() as server:
        server.answer(error_answer(503))
        server.reply_tool_calls([("clock", {"city": "Lisbon"}), ("broken", {})])
        server.reply("no number\n\x1b[31m")
        server.reply_json(completion("12"))
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001, api_key=KEY)
        result = await noisy(llm).call("?")
    found = lines()
    told = " ".join(record["message"] for record in found)
    for part in ("'ask' called with arguments", "try 1 failed", "in a thread", "on the loop", "tool broken failed"):
        assert part in told
    assert {record["trace_id"] for record in found} == {result.trace_id}
    assert {record["func_name"] for record in found} == {"ask"}
    counts = [(record["input_tokens"], record["output_tokens"]) for record in found]
    assert counts == sorted(counts), "tokens only grow"
    assert counts[0] == (0, 0)
    asked_again = next(record for record in found if "asks again" in record["message"])
    assert (asked_again["input_tokens"], asked_again["output_tokens"]) == (10, 6)
    assert "CANARY" not in json.dumps(found)


# --- the line with the arguments ---


class Watched:
    """Says whether it was put into words."""

    def __init__(self) -> None:
        self.shown = 0

    def __repr__(self) -> str:
        self.shown += 1
        return "watched"


@pytest.mark.parametrize(("level", "shown"), [("WARNING", 0), ("INFO", 1)])
def test_arguments_are_rendered_only_if_the_level_is_enabled(caplog, level, shown):
    value = Watched()
    with caplog.at_level(level, "SimpleLLMFunc"):
        log_function_call("grade", {"value": value})
    assert value.shown == len(caplog.records) == shown


def test_arguments_are_cut_and_redacted(caplog):
    with caplog.at_level("INFO", "SimpleLLMFunc"):
        log_function_call("grade", {"essay": "x" * 100_000, "api_key": KEY})
        log_function_call("grade", {"key": f"Bearer {KEY}", "picture": b"\x89PNG" + b"0" * 34_000, "line": "a\nb"})
    long, short = (record.getMessage() for record in caplog.records)
    assert len(long) < 2100
    assert "CANARY" not in caplog.text
    assert '"picture": "<image 34 kB>"' in short
    assert "\n" not in short
