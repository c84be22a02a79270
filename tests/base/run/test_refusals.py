"""A way to ask that a service refused is changed for one function only; what a wire leaves out is told as well."""

import asyncio
import logging
from typing import NamedTuple

import pytest

from SimpleLLMFunc import BadRequest, FallbackLLM, OpenAICompatible, tool
from SimpleLLMFunc.base.events import RunFinished, to_dict
from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import watching
from SimpleLLMFunc.base.run.refusals import downgrades_of, refused_by, refuses_mode, remember_refusal
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_decorated, chat, weather
from tests.support.server import LoopbackServer, completion, error_answer, json_answer, tool_calls_answer
from tests.support.wires import wired

NO_SCHEMA = "Invalid schema for response_format 'Grade': 'oneOf' is not permitted."
NO_TOOLS = "registry.ollama.ai/library/m:latest does not support tools"
TO_TOOL = ("output mode: tool instead of native", NO_SCHEMA)
TO_JSON = ("tools: JSON actions instead of native calls", NO_TOOLS)
LEFT_OUT = ("sampling: temperature is left out", "a model that reasons takes none")


class Grade(NamedTuple):
    stars: int


class Other(NamedTuple):
    count: int


@tool
def broken(city: str) -> str:
    """A tool with a schema that the service does not take."""
    return "never"


def refusing(body):
    """Answer as a service that takes no schema of `Grade`, and no native tools of `broken`."""
    wanted = (body.get("response_format") or {}).get("json_schema", {}).get("name")
    if wanted == "Grade":
        return error_answer(400, NO_SCHEMA)
    if any(each["function"]["name"] == "broken" for each in body.get("tools", ())):
        return error_answer(400, NO_TOOLS)
    if wanted == "Other":
        return json_answer(completion('{"count": 2}'))
    if body.get("tools") and body["tools"][-1]["function"]["name"] == "answer":
        return tool_calls_answer([("answer", {"stars": 4})])
    return json_answer(completion("fine"))


@pytest.fixture
async def server():
    async with LoopbackServer(lambda request: refusing(request.body)) as server:
        yield server


@pytest.fixture
def llm(server):
    return OpenAICompatible("m", base_url=server.base_url, api_key="k")


def grader(llm, returns=Grade, **options):
    return async_decorated(returns, llm, **options)


def ways(server):
    return [
        "native" if "response_format" in each.body else "tools" if "tools" in each.body else "plain"
        for each in server.requests
    ]


def warnings_in(caplog):
    return [each for each in caplog.records if each.levelno == logging.WARNING]


async def test_a_refused_schema_is_told_and_logged_and_costs_no_other_function_anything(server, llm, caplog):
    with caplog.at_level("WARNING", "SimpleLLMFunc"):
        results = await asyncio.gather(grader(llm).call("x"), grader(llm, Other).call("x"))
    assert [one.output_mode for one in results] == ["tool", "native"]
    assert [one.downgrades for one in results] == [[TO_TOOL], []]
    (warning,) = warnings_in(caplog)
    assert NO_SCHEMA in warning.getMessage()
    caplog.clear()
    with caplog.at_level("WARNING", "SimpleLLMFunc"):
        again = [await grader(llm).call("x"), await grader(llm, Other).call("x")]
    assert [one.downgrades for one in again] == [[TO_TOOL], []]
    assert warnings_in(caplog) == []
    assert ways(server)[3:] == ["tools", "native"]


async def test_tools_that_are_refused_are_json_actions_for_these_tools_only(server, llm):
    answers = ['{"tool": "broken", "arguments": {"city": "Paris"}}', '{"answer": "never"}']

    def answer(request):
        refused = refusing(request.body)
        if "tools" in request.body or "response_format" not in request.body:
            return refused
        return json_answer(completion(answers.pop(0)))

    server.handler = answer
    bad, good = (grader(llm, str, toolkit=[each]) for each in (broken, weather))
    one, other = await asyncio.gather(bad.call("x"), good.call("x"))
    assert (one.value, one.downgrades) == ("never", [TO_JSON])
    assert (other.value, other.downgrades) == ("fine", [])
    await good.call("x")
    assert "tools" in server.requests[-1].body


@pytest.mark.parametrize(
    ("said", "code", "param"),
    [
        ("Invalid schema for function 'broken': no", "invalid_function_parameters", "tools[1].function.parameters"),
        ("tools.1.custom.input_schema: JSON schema is invalid.", None, None),
        ("tools[0].function_declarations[1].parameters.type: missing field", None, None),
    ],
)
async def test_one_bad_tool_is_an_error_that_names_it_and_changes_nothing_else(server, llm, said, code, param):
    server.answer(json_answer({"error": {"message": said, "code": code, "param": param}}, status=400))
    server.answer(json_answer(completion("fine")))
    ask = grader(llm, str, toolkit=[weather, broken])
    with pytest.raises(BadRequest, match="did not accept the tool 'broken'") as caught:
        await ask("x")
    assert (caught.value.tool, caught.value.downgrades, len(server.requests)) == ("broken", [], 1)
    assert (await ask.call("x")).downgrades == []
    assert "tools" in server.requests[1].body


@pytest.mark.parametrize(
    "said",
    [
        "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "An assistant message with 'tool_calls' must be followed by tool messages.",
        "Parallel tool calls are not supported by this model",
    ],
)
async def test_the_word_tool_in_an_error_changes_nothing(server, llm, said):
    server.reply_status(400, message=said)
    with pytest.raises(BadRequest):
        await grader(llm, str, toolkit=[weather])("x")
    assert ways(server) == ["tools"]
    server.reply_status(400, message=NO_TOOLS)
    with pytest.raises(BadRequest):
        [pair async for pair in chat(llm)([], "hi")]
    assert ways(server) == ["tools", "plain"], "no tools were offered, so that none can be offered otherwise"


@pytest.mark.parametrize(
    ("mode", "said", "is_meant"),
    [
        ("native", NO_SCHEMA, True), ("native", "max_tokens is too large", False), ("choice", NO_SCHEMA, True),
        ("choice in words", NO_SCHEMA, False), ("prompt", NO_SCHEMA, False),
        ("tool", "Invalid schema for function 'answer': no", True), ("tool", "tools.1.custom.input_schema: no", True),
        ("tool", "tools.0.custom.input_schema: no", False), ("tool", NO_SCHEMA, False),
        ("tool", NO_TOOLS, True),
    ],
)  # fmt: skip
def test_an_error_means_the_way_to_ask_only_where_it_says_so(mode, said, is_meant):
    mode, _, in_words = mode.partition(" ")
    shape = {"type": "json_schema"} if mode in {"native", "choice"} and not in_words else None
    tools = [each.to_openai_tool() for each in (broken, tool(name="answer")(broken.func))]
    answer = tools[1] if mode == "tool" else None
    request = ModelRequest(ScriptedLLM(), [], tools[:1], shape, answer_tool=answer, output_mode=mode)
    assert refuses_mode(BadRequest("m", status=400, body=said), request) is is_meant


def test_of_several_models_the_one_that_refused_is_remembered():
    one, other = (ScriptedLLM(model_name=name) for name in ("one", "other"))
    remember_refusal(BadRequest("other", status=400, body="no"), FallbackLLM(one, other), "native", {})
    assert (refused_by(one, {}), refused_by(other, {})) == ({}, {"native": "no"})
    # What an answer was not held to says nothing of actions that are held to a schema.
    told = [downgrades_of(ModelRequest(other, [], actions=JsonActions([], None, held)), {}) for held in (True, False)]
    assert told == [(), (("tools: JSON actions in words instead of a schema", "no"),)]


async def test_an_error_after_a_change_tells_of_it(server, llm):
    server.reply_status(400, message=NO_SCHEMA)
    server.reply_status(400, message="max_tokens is too large")
    with pytest.raises(BadRequest, match="max_tokens") as caught:
        await grader(llm)("x")
    assert caught.value.downgrades == [TO_TOOL]
    assert caught.value.output_mode == "tool"


async def test_a_tool_choice_of_the_users_own_is_not_changed(server, llm):
    said = "tool_choice 'required' is incompatible with thinking enabled"
    server.reply_status(400, message=NO_SCHEMA)
    server.reply_status(400, message=said)
    with pytest.raises(BadRequest, match="incompatible"):
        await grader(llm, toolkit=[weather], tool_choice="required")("x")


async def test_where_a_tool_cannot_be_demanded_the_prompt_asks(server, llm):
    server.reply_status(400, message=NO_SCHEMA)
    server.reply_status(400, message="tool_choice 'required' is incompatible with thinking enabled")
    server.reply('{"stars": 3}')
    result = await grader(llm).call("x")
    assert result.value.stars == 3
    told = [f"output mode: prompt instead of {mode}" for mode in ("native", "tool")]
    assert [what for what, _ in result.downgrades] == told


async def test_a_mode_that_was_asked_for_is_no_downgrade(server, llm):
    await grader(llm)("x")
    server.reply('{"stars": 3}')
    result = await grader(llm, output_mode="prompt").call("x")
    assert (result.output_mode, result.downgrades) == ("prompt", [])


async def test_a_chat_keeps_its_history_and_is_told_in_the_log(server, llm, caplog):
    talk = chat(llm, toolkit=[broken])

    def answer(request):
        if "tools" in request.body:
            return refusing(request.body)
        return json_answer(completion('{"answer": "hello"}'))

    server.handler = answer
    with caplog.at_level("WARNING", "SimpleLLMFunc"):
        pairs = [pair async for pair in talk([], "hi")]
    assert pairs[0][0] == "hello"
    (warning,) = warnings_in(caplog)
    assert all(told in warning.getMessage() for told in ("m does not take native tool calls for", NO_TOOLS))
    server.reply_status(400, message="max_tokens is too large")
    with pytest.raises(BadRequest) as caught:
        [pair async for pair in talk([], "hi")]
    assert caught.value.downgrades == [TO_JSON]
    assert "tools" not in server.requests[-1].body


async def test_actions_under_a_schema_that_is_refused_are_described_in_words(server, llm):
    server.reply_status(400, message=NO_TOOLS)
    server.reply_status(400, message="response_format is not supported")
    server.reply('{"answer": "hello"}')
    result = await grader(llm, str, toolkit=[weather]).call("x")
    told = ["tools: JSON actions instead of native calls", "tools: JSON actions in words instead of a schema"]
    assert (result.value, [what for what, _ in result.downgrades]) == ("hello", told)


# --- what a wire leaves out -----------------------------------------------------------------------------------


async def test_a_result_tells_each_time_and_the_log_once(caplog):
    async with wired("responses") as (llm, server):
        ask = grader(llm, str, temperature=0)
        with caplog.at_level("WARNING", "SimpleLLMFunc"):
            results = [await ask.call("x"), await ask.call("y"), *await asyncio.gather(ask.call("z"))]
    assert [each.downgrades for each in results] == [[LEFT_OUT]] * 3
    (warning,) = warnings_in(caplog)
    assert "gpt-5.6" in warning.getMessage()
    assert LEFT_OUT[0] in warning.getMessage()
    assert all("temperature" not in each.body for each in server.requests)


async def test_errors_streams_and_chats_tell_it_too():
    finished = []
    async with wired("responses") as (llm, server):
        ask, talk = grader(llm, str, temperature=0), chat(llm, temperature=0, stream=True)
        with watching(lambda _, event: finished.append(event) if isinstance(event, RunFinished) else None):
            assert "".join([piece async for piece in ask.stream("x")]) == "ok"
            assert "".join([text async for text, _ in talk([], "hi")]) == "ok"
        assert [to_dict(each)["downgrades"] for each in finished] == [[list(LEFT_OUT)]] * 2
        server.answer(server.handler.error(400, "no"))
        with pytest.raises(BadRequest) as caught:
            await ask("x")
    assert caught.value.downgrades == [LEFT_OUT]
