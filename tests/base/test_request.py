"""What a turn sends, and who holds what of it."""

import copy
import json

import pytest

from SimpleLLMFunc.base.events import MessageAppended, RunStarted
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.interface.wires import STATE
from SimpleLLMFunc.testing import SchemaLLM, ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import tool
from tests.support.functions import async_function_of, chat, function_of, weather
from tests.support.server import LoopbackServer

HISTORY = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}, {"role": "assistant", "content": "hi"}]


class Vandal(OpenAICompatible):
    """Changes what it is given before it asks."""

    async def chat(self, messages, **more):
        for message in messages:
            message["content"] = "vandalised"
        messages.append({"role": "user", "content": "more"})
        return await super().chat(messages, **more)


def spoil(trace_id, event):
    """Change all that an event holds."""
    if isinstance(event, RunStarted):
        for message in event.messages:
            message["content"] = "spoilt"
        event.messages.clear()
    elif isinstance(event, MessageAppended):
        event.message["content"] = "spoilt"


async def test_what_an_interface_does_to_the_messages_stays_there():
    async with LoopbackServer() as server:
        llm = Vandal("m", base_url=server.base_url, api_key="k")
        given = copy.deepcopy(HISTORY)
        server.reply("fine")
        async for _, history in chat(llm)(given, "and now?"):
            pass
        assert [message["content"] for message in server.requests[0].body["messages"]] == ["vandalised"] * 4 + ["more"]
        assert given == HISTORY
        told = [message["content"] for message in history[1:]]
        assert told == [HISTORY[0]["content"], "hi", "message: and now?", "fine"]


async def test_who_watches_and_who_reads_the_events_cannot_change_the_run():
    def answer(request):
        return "3" if len(request.body["messages"]) > 2 else "none at all"

    async with LoopbackServer(answer) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, api_key="k")
        count = async_function_of(llm, int)
        for is_watched in (True, False):
            first = len(server.requests)
            if is_watched:
                with watching(spoil):
                    assert await count("Count the words.") == 3
            else:
                async for event in count.events("Count the words."):
                    spoil("", event)
            asked_first, asked_again = (request.body["messages"] for request in server.requests[first:])
            assert asked_again[:2] == asked_first
            assert "Count the words." in str(asked_first)
            assert "spoilt" not in str(asked_again)


async def test_the_history_of_a_chat_is_the_users_own_list_each_time():
    given = copy.deepcopy(HISTORY)
    histories = [history async for _, history in chat(ScriptedLLM("fine"))(given, "and now?")]
    histories[0][1]["content"] = "changed by the user"
    assert histories[-1][1]["content"] == HISTORY[0]["content"]
    assert given == HISTORY


@pytest.mark.parametrize(
    ("llm", "is_strict"),
    [
        (ScriptedLLM("fine", profile=PROFILES["openai"]), True), (ScriptedLLM("fine"), False),
        (SchemaLLM(profile=PROFILES["openai"]), False),
    ],
)  # fmt: skip
def test_tools_are_strict_where_the_service_takes_that_and_a_double_gets_them_as_they_are(llm, is_strict):
    def weather(city: str, days: int = 1) -> str:
        """Tell the weather."""
        return "rain"

    function_of(llm, str, toolkit=[weather])("London")
    (spec,) = llm.calls[0].tools
    assert spec["function"].get("strict", False) is is_strict


@pytest.mark.parametrize(
    ("said", "keeps"),
    [({}, False), ({"tool_calls": []}, True), ({STATE: {}}, True), ({"tool_calls": [], STATE: {}}, True)],
)
def test_the_last_turn_keeps_the_tools_where_the_conversation_holds_calls_or_state(said, keeps):
    spec = {"type": "function"}
    llm = OpenAICompatible("m", base_url="http://127.0.0.1:9/v1", api_key="k", wire="responses")
    messages = [*HISTORY[:1], {**HISTORY[1], **said}]
    sent = ModelRequest(llm, messages, [spec], params={"tool_choice": "required"}).wire(is_last=True)
    assert (sent["tools"], sent.get("tool_choice")) == (([spec], "none") if keeps else (None, None))
    assert ModelRequest(llm, messages).wire(is_last=True)["tools"] is None
    asked = ModelRequest(llm, messages, [spec], params={"tool_choice": "auto"}, answer_tool=spec).wire(is_last=False)
    assert (asked["tools"], asked["tool_choice"]) == ([spec, spec], "auto")


async def test_a_tool_that_is_demanded_has_its_name_of_the_wire():
    llm, own = ScriptedLLM("sun", repeat=True), [tool(name=name)(lambda: "") for name in ("get.weather", "get_weather")]
    options = {"toolkit": own, "tool_choice": {"type": "function", "function": {"name": "get.weather"}}}
    await async_function_of(llm, **options)("?")
    _ = [each async for each in chat(llm, **options)([], "?")]
    assert [call.params["tool_choice"]["function"]["name"] for call in llm.calls] == ["get_weather_2"] * 2


@pytest.mark.parametrize("options", [{}, {"tools": "json"}])
def test_what_a_search_found_is_offered_from_then_on(options):
    def asks(name, **arguments):
        action = json.dumps({"tool": name, "arguments": arguments})
        return action if options else tool_calls((name, arguments))

    def deliver(parcel: str) -> str:
        """Deliver a parcel."""
        return "done"

    llm = ScriptedLLM(asks("find_tools", query="the weather"), asks("weather", city="Oslo"), "sun")
    toolkit = [weather, deliver, *([] if options else [{"type": "web_search"}])]
    assert function_of(llm, toolkit=toolkit, toolkit_search=True, tool_choice="auto", **options)("?") == "sun"
    told = [str(call.tools) + call.messages[0]["content"] for call in llm.calls]
    assert ["weather" in each.partition("find_tools")[2] for each in told] == [False, True, True]
    assert not any("deliver" in each for each in told)
    assert ("tool_choice" in llm.calls[0].params) is not bool(options)
