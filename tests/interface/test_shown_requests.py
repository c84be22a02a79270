"""The request that a preview, a command and a trace show is the one that goes out, on each wire."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
from typing import Any

import pytest

from SimpleLLMFunc import Anthropic, Gemini, OpenAICompatible, TraceStore, watching
from SimpleLLMFunc.viewer.exports import as_curl
from tests.support.functions import async_function_of
from tests.support.wires import WIRES, wired

OWN = {
    "chat": {"Authorization": "Bearer $OPENAI_API_KEY"},
    "responses": {"Authorization": "Bearer $OPENAI_API_KEY"},
    "messages": {"x-api-key": "$ANTHROPIC_API_KEY", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "$GOOGLE_API_KEY"},
}


def grader(llm: Any) -> Any:
    return async_function_of(llm, dict[str, int], "grade")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", WIRES)
async def test_a_preview_is_the_request_that_goes_out_and_its_command_sends_it(name, stream):
    async with wired(name, *[{"texts": ['{"score": 4}']}] * 2) as (llm, server):
        grade = grader(llm)
        preview = grade._pipeline.preview(("On rain",), {}, stream=stream)
        assert server.requests == []
        assert preview.headers == OWN[name]
        assert preview.model == llm.model_name
        value = [each async for each in grade.stream("On rain")][-1] if stream else await grade("On rain")
        assert value == {"score": 4}
        sent = server.requests[0]
        assert preview.body == sent.body
        assert preview.url.endswith(sent.path)
        [variable] = [value.split("$")[1] for value in preview.headers.values() if "$" in value]
        script = preview.as_curl().replace("curl ", "curl -sS ", 1)
        run = await asyncio.create_subprocess_exec(
            "sh", "-c", script, stdout=subprocess.PIPE, env={**os.environ, variable: "sk-from-the-variable"}
        )
        output, _ = await asyncio.wait_for(run.communicate(), 30)
        again = server.requests[1]
        assert (b"data: " in output) == stream
        assert (again.path, again.body) == (sent.path, sent.body)
        for header, value in OWN[name].items():
            assert again.headers[header.lower()] == value.replace(f"${variable}", "sk-from-the-variable")
            assert "$" in value or sent.headers[header] == value


@pytest.mark.parametrize("name", WIRES)
async def test_a_trace_shows_the_command_of_the_wire(name, tmp_path):
    with TraceStore(tmp_path / "t.sqlite") as store:
        async with wired(name, {"texts": ['{"score": 4}']}) as (llm, server):
            with watching(store):
                await grader(llm)("On rain")
            assert await asyncio.to_thread(store.flush)
            [turn] = store.reader.run(1).turns
            assert turn.url.endswith(server.requests[0].path)
            words = shlex.split(as_curl(turn))
            headers = [word for before, word in zip(words, words[1:], strict=False) if before == "-H"]
            assert headers[:-1] == [f"{header}: {value}" for header, value in OWN[name].items()]
            assert json.loads(words[-1]) == server.requests[0].body


def test_a_key_of_a_function_is_a_token():
    def token() -> str:
        raise AssertionError("a preview asks for no key")

    for llm in (Anthropic("claude-opus-5", api_key=token), Gemini("gemini-3.8-flash", api_key=token)):
        assert grader(llm).preview("?").headers["Authorization"] == "Bearer $API_KEY"
    assert '-H "Authorization: Bearer $API_KEY"' in grader(OpenAICompatible("m", api_key=token)).preview("?").as_curl()


def test_what_the_user_says_in_a_header_is_no_command():
    odd = '$(touch pwned)"; $HOME'
    params = {"betas": ["a", "b"], "extra_headers": {"anthropic-beta": "b0"}}
    llm = Anthropic("claude-opus-5", api_key="k", api_version=odd, api_params=params)
    command = grader(llm).preview("?").as_curl()
    assert {f"anthropic-version: {odd}", "anthropic-beta: b0,a,b"} <= set(shlex.split(command))
    assert "'anthropic-version: $(touch" in command


@pytest.mark.parametrize("name", WIRES)
async def test_the_users_own_headers_are_shown_but_for_their_secrets(name):
    own = {"X-Team": "it's ours", "X-Gateway-Token": "gw-0123456789abcdefghij", "x-home": "$HOME"}
    async with wired(name, {"texts": ['{"score": 4}']}, api_params={"extra_headers": own}) as (llm, server):
        await grader(llm)("On rain")
        preview = grader(llm).preview("On rain")
        assert server.requests[0].headers["x-gateway-token"] == own["X-Gateway-Token"]
    words = shlex.split(preview.as_curl())
    assert "X-Team: it's ours" in words
    assert {"X-Gateway-Token: ***", "x-home: ***"} <= set(words)
