"""Attack 21: one record is one line, whatever stands in it, and nothing in it moves a terminal."""

import io
import json
import logging
import re

import pytest

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import push_error, setup_logging
from SimpleLLMFunc.logger.records import LineFormatter
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from tests.support.functions import chat
from tests.support.server import LoopbackServer, error_answer

PAYLOADS = {
    "line": "ok\n2026-01-01 ERROR root fake", "carriage return": "ok\rfake",
    "crlf": 'ok\r\n{"level": "ERROR", "message": "fake"}', "link": "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "colours": "\x1b[31mred\x1b[0m\x1b[2J\x1b[H", "title": "\x1b]0;owned\x07", "c1": "\x9b31mred\x9d0;owned\x9c",
    "turned": "\u202etxt.exe\u202c \u2066x\u2069 \u200f\u200e", "nul": "a\x00b", "backspace": "safe\b\b\b\bevil\x7f",
    "surrogate": "a\ud800b\udfff", "separators": "a\u2028b\u2029c\x85d\x0be\x0cf", "bom": "\ufeffa\ufff9b\ufffb",
    "format": "%s %d %(x)s {0} {x!r}",
}  # fmt: skip
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def lines_of(path):
    text = path.read_bytes().decode("utf-8")  # strictly: what is no text is no log
    assert text.endswith("\n")
    assert not FORBIDDEN.search(text)
    return text[:-1].split("\n")


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("name", PAYLOADS)
async def test_attack_21_a_record_is_one_line(name, as_json, tmp_path, caplog):
    payload = PAYLOADS[name]
    path = tmp_path / "log"
    handler = setup_logging("DEBUG", json=as_json, file=path)
    said = io.StringIO()
    plain = logging.StreamHandler(said)
    plain.setFormatter(LineFormatter())
    logging.getLogger("SimpleLLMFunc").addHandler(plain)
    records = []
    keep = logging.Handler()
    keep.emit = records.append
    logging.getLogger("SimpleLLMFunc").addHandler(keep)
    try:

        def fail(where: str) -> str:
            """Fail."""
            raise RuntimeError(payload)

        llm = ScriptedLLM(
            calling(("fail", {"where": payload}), (payload, {payload: payload}), ("fail", payload)), payload, payload
        )

        @llm_function(llm, toolkit=[fail], max_reasks=0)
        async def ask(question: str, more: dict) -> dict[str, int]:
            """Answer."""

        talk = chat(llm)
        with pytest.raises(SimpleLLMFuncError):
            await ask(payload, {payload: payload})
        _ = [pair async for pair in talk([{"role": payload, "content": payload}, payload], payload)]
        async with LoopbackServer() as server:
            for _ in range(2):
                server.answer(error_answer(500, payload.encode("utf-8", "replace").decode()))
            with pytest.raises(SimpleLLMFuncError):
                await OpenAICompatible("m", base_url=server.base_url, max_retries=1, retry_delay=0.001).chat(
                    [{"role": "user", "content": "x"}]
                )
        push_error(payload, location=payload)
        logging.getLogger("SimpleLLMFunc.elsewhere").error(
            "by %s", payload, exc_info=RuntimeError(payload), stack_info=True
        )
    finally:
        logging.getLogger("SimpleLLMFunc").removeHandler(plain)
        logging.getLogger("SimpleLLMFunc").removeHandler(keep)
        handler.close()
    lines = lines_of(path)
    assert len(lines) == len(records) > 6
    assert said.getvalue().count("\n") == len(records)
    if as_json:
        for line in lines:
            record = json.loads(line)
            assert {"time", "level", "logger", "message"} <= record.keys()
            assert not any(FORBIDDEN.search(str(value)) or "\n" in str(value) for value in record.values())
            assert record["logger"].startswith("SimpleLLMFunc")
    # What we write is one line before any handler sees it: other people's handlers do not escape.
    ours = [record for record in records if record.name != "SimpleLLMFunc.elsewhere"]
    assert not any(FORBIDDEN.search(record.getMessage()) or "\n" in record.getMessage() for record in ours)
