"""One JSON object from the model: in every output mode, over every refusal."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from SimpleLLMFunc import BadRequest, ResponseParseError, SchemaError
from SimpleLLMFunc.calls.asking import Question
from SimpleLLMFunc.calls.call_data import CallOutputChunk, CallOutputType, DataBase, LanguageType
from SimpleLLMFunc.calls.core import CoreCall
from SimpleLLMFunc.errors import CallError, ConfigError, EmptyResponseError
from SimpleLLMFunc.interface.profile import PROFILES, Profile
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing.scripted import tool_calls
from tests.support.golden import as_text, golden

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "城市名称"}, "days": {"type": "integer"}},
    "required": ["city"],
}
ASKED = [{"role": "system", "content": "You fill forms."}, {"role": "user", "content": "杭州三天"}]
VALUE = {"city": "杭州", "days": 3}
TEXT = json.dumps(VALUE, ensure_ascii=False)

NO_TOOLS = Profile("plain", native=False, tools="json")


async def ask(llm, schema=SCHEMA, *, language=LanguageType.CHINESE, max_reasks=0, **params):
    return await Question("form", ASKED, params, llm, language).json(schema, max_reasks=max_reasks)


# --- the three ways ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["generic", "openai", "openai-compatible", "deepseek", "anthropic"])
async def test_a_model_that_calls_tools_has_the_schema_as_its_only_tool(name):
    llm = ScriptedLLM(tool_calls(("answer", VALUE)), profile=PROFILES[name])
    assert await ask(llm, temperature=0.1) == VALUE
    (asked,) = llm.calls
    (tool,) = asked.tools
    assert tool["function"]["parameters"] == SCHEMA
    assert asked.params["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}
    assert asked.params["temperature"] == 0.1
    assert asked.response_format is None
    assert asked.messages == ASKED


@pytest.mark.parametrize("name", ["local", "ollama", "llama.cpp"])
async def test_a_model_that_cannot_be_made_to_call_is_held_to_the_schema(name):
    llm = ScriptedLLM(TEXT, profile=PROFILES[name])
    assert await ask(llm) == VALUE
    (asked,) = llm.calls
    assert asked.response_format["type"] == "json_schema"
    assert asked.response_format["json_schema"]["schema"]["properties"]["city"]["type"] == "string"
    assert asked.tools is None
    assert asked.messages == ASKED


@pytest.mark.parametrize("language", list(LanguageType))
async def test_a_model_without_either_reads_the_schema(language):
    llm = ScriptedLLM(f"Sure:\n```json\n{TEXT}\n```", profile=NO_TOOLS)
    assert await ask(llm, language=language) == VALUE
    (asked,) = llm.calls
    assert (asked.tools, asked.response_format) == (None, None)
    assert asked.messages[:2] == ASKED
    golden(f"call_json_{language}.txt", as_text(asked.messages))


async def test_the_object_is_what_the_model_wrote_and_not_checked():
    written = {"city": 5, "town": None, "nested": {"list": [1.5, "5"]}}
    assert await ask(ScriptedLLM(tool_calls(("answer", written)))) == written
    assert await ask(ScriptedLLM(tool_calls(("answer", {})))) == {}


@pytest.mark.parametrize("kind", ["array", "string", ["string", "null"]])
async def test_a_schema_of_something_else_is_an_error(kind):
    llm = ScriptedLLM()
    with pytest.raises(SchemaError, match="one JSON object"):
        await ask(llm, {"type": kind})
    assert llm.calls == []


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": ["object", "null"]}, {"properties": {}}, {"$ref": "#/$defs/o", "$defs": {"o": {"type": "object"}}}],
)
async def test_a_schema_that_may_be_an_object_is_one(schema):
    llm = ScriptedLLM("{}")
    assert await ask(llm, schema) == {}
    assert llm.calls[0].tools[0]["function"]["parameters"]["type"] == "object"
    assert not llm.calls[0].stream


# --- answers without an object -----------------------------------------------------------------------------------


async def test_one_request_unless_more_are_allowed():
    llm = ScriptedLLM("I do not know.", TEXT)
    with pytest.raises(ResponseParseError):
        await ask(llm)
    assert len(llm.calls) == 1
    llm = ScriptedLLM("I do not know.", TEXT)
    assert await ask(llm, max_reasks=1) == VALUE
    assert "I do not know." in llm.calls[1].messages[-2]["content"]


async def test_an_empty_answer_is_asked_for_again():
    llm = ScriptedLLM("", TEXT)
    assert await ask(llm) == VALUE
    with pytest.raises(EmptyResponseError):
        await ask(ScriptedLLM("", repeat=True))


# --- refusals of the service ---------------------------------------------------------------------------------


def refusing(*words: str, profile: Profile) -> ScriptedLLM:
    """A model whose service refuses requests that hold one of the words, each once."""

    def reply(asked):
        for word in words:
            if (word == "tools" and asked.tools) or (word == "response_format" and asked.response_format):
                return BadRequest("m", status=400, body=f"{word} is not supported")
        return TEXT

    return ScriptedLLM(reply, repeat=True, profile=profile)


@pytest.mark.parametrize(
    ("profile", "words", "ways"),
    [
        ("openai-compatible", ["tools"], ["tool", "native"]),
        ("openai-compatible", ["tools", "response_format"], ["tool", "native", "prompt"]),
        ("ollama", ["response_format"], ["native", "tool"]),
        ("ollama", ["response_format", "tools"], ["native", "tool", "prompt"]),
        ("generic", ["tools"], ["tool", "prompt"]),
        ("local", ["response_format"], ["native", "prompt"]),
    ],
)
async def test_what_is_refused_is_asked_for_in_another_way_and_remembered(profile, words, ways):
    llm = refusing(*words, profile=PROFILES[profile])

    def way(asked):
        return "tool" if asked.tools else "native" if asked.response_format else "prompt"

    assert await ask(llm) == VALUE
    assert [way(asked) for asked in llm.calls] == ways
    assert await ask(llm) == VALUE
    assert [way(asked) for asked in llm.calls] == [*ways, ways[-1]]


async def test_a_reask_stays_when_the_way_changes():
    refused = BadRequest("m", status=400, body="tools are not supported")
    llm = ScriptedLLM("nothing", refused, TEXT)
    assert await ask(llm, max_reasks=1) == VALUE
    first, *_, last = llm.calls
    assert first.messages == ASKED
    assert last.tools is None
    assert "只输出一个" in last.messages[2]["content"]
    assert last.messages[3]["content"] == "nothing"


# --- as in decorated functions -------------------------------------------------------------------------------


async def test_inside_a_call():
    class Form(CoreCall, input_model=DataBase):
        async def _exec(self, input_data):
            yield CallOutputChunk(CallOutputType.DATA, await self._json(ASKED, SCHEMA, temperature=0))

    llm = ScriptedLLM(TEXT, "no")
    on = SimpleNamespace(llm=llm, task=None, step=None)
    call = await Form.instance(on)
    assert [chunk.content async for chunk in call.exec(on, {})] == [VALUE]
    assert llm.calls[0].params["temperature"] == 0
    with pytest.raises(CallError, match="Form: the answer does not fit") as caught:
        [chunk async for chunk in call.exec(on, {})]
    assert caught.value.data["violations"]


# --- what a Call leaves open ---------------------------------------------------------------------------------


async def test_two_runs_of_one_call_close_only_their_own_questions():
    class Say(CoreCall, input_model=DataBase):
        async def _exec(self, input_data):
            async for piece in self._llm(ASKED, streaming=True):
                yield CallOutputChunk(CallOutputType.TEXT, piece)

    on = SimpleNamespace(llm=ScriptedLLM("one two", "three four", chunk_size=4), task=None, step=None)
    call = await Say.instance(on)
    first, second = call.exec(on, {}), call.exec(on, {})
    assert (await anext(first)).content == "one "
    assert (await anext(second)).content == "thre"
    await second.aclose()
    assert [chunk.content async for chunk in first] == ["two"]


async def test_a_question_that_another_task_reads_is_left_to_it():
    tasks = []

    class Spread(CoreCall, input_model=DataBase):
        async def _exec(self, input_data):
            async def read():
                return [piece async for piece in self._llm(ASKED, streaming=True)]

            tasks.append(asyncio.create_task(read()))
            await started.wait()
            yield CallOutputChunk(CallOutputType.TEXT, "early")

    started, go_on = asyncio.Event(), asyncio.Event()

    async def reply(asked):
        started.set()
        await go_on.wait()
        return "late"

    on = SimpleNamespace(llm=ScriptedLLM(reply), task=None, step=None)
    stream = (await Spread.instance(on)).exec(on, {})
    await anext(stream)
    await stream.aclose()
    go_on.set()
    assert await tasks[0] == ["late"]


# --- what is shown, and who is asked ---------------------------------------------------------------------------


async def test_an_unknown_parameter_is_named():
    llm = ScriptedLLM("a")
    with pytest.raises(ConfigError, match="Did you mean temperature"):
        async for _ in Question("call", ASKED, {"temprature": 0}, llm).text(streaming=False):
            pass
    assert llm.calls == []
