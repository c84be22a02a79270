"""What a `Result` and a `Preview` show of themselves."""

from __future__ import annotations

from dataclasses import replace

from SimpleLLMFunc import OpenAICompatible
from SimpleLLMFunc.base.run.result import curl_command
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import function_of


def test_a_request_is_a_shell_command_without_the_key() -> None:
    keyed = '-H "Authorization: Bearer $OPENAI_API_KEY"'
    inside = function_of(ScriptedLLM("yes")).preview("?").as_curl()
    assert inside.startswith(f'curl "$BASE_URL/chat/completions" \\\n  {keyed}')
    service = OpenAICompatible("m", api_key="k-1", base_url="https://e.org/a b", wire="chat")
    assert function_of(service).preview("?").as_curl().startswith("curl 'https://e.org/a b/chat/completions'")
    own = curl_command("https://e.org", {"x-key": "$KEY", "x-app": "it's"}, {"a": "é"})
    assert "OPENAI" not in own
    assert own.endswith("-H 'Content-Type: application/json' \\\n  -d '{\"a\": \"é\"}'")


def test_a_result_shows_what_is_not_as_usual() -> None:
    shown = repr(replace(function_of(ScriptedLLM("yes")).call("?"), seconds=1.23456))
    assert shown.startswith("Result(value='yes', usage=Usage(")
    assert "seconds=1.235, trace_id=" in shown
    shown = repr(replace(function_of(ScriptedLLM("yes")).call("?"), value="§" * 300, thinking="¶" * 300))
    assert (shown.count("§"), shown.count("¶")) == (198, 78)
