"""Running from the page: only what was named, with the arguments of the form, watched as it goes."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import types

import httpx
import pytest

from SimpleLLMFunc import AIAssistant, ImgPath, Message, llm_chat, llm_function, tool
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.viewer import serve_page, viewer_app
from SimpleLLMFunc.viewer.offered import offered_of
from tests.support.functions import async_function_of, function_of
from tests.viewer import shop
from tests.viewer.served import HEADERS, LOOPBACK, TOKEN, app_of, client_of, text_of

POST = {"origin": LOOPBACK}


def client_for(store, *offered):
    return client_of(app_of(store, allow_run=offered), **POST)


@pytest.fixture
def client(store):
    store.reader.seq()
    return client_for(store, shop)


def lines(reply):
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert reply.headers["cache-control"] == "no-store"
    return [json.loads(line) for line in reply.text.splitlines()]


def play(client, name, /, **arguments):
    return lines(client.post(f"/api/play/{name}", json={"arguments": arguments}))


def guide_of(*replies, **options):
    """A chat."""

    @llm_chat(llm_interface=ScriptedLLM(*replies), **options)
    async def guide(history: list[Message], message: str):
        """Guide."""

    return guide


# --- off unless allowed ---


def test_nothing_runs_unless_it_was_named(store):
    client = client_of(app_of(store), **POST)
    assert client.get("/api/info").json()["can_run"] is False
    assert client.get("/api/play").status_code == 404
    assert client.get("/api/chats").status_code == 404
    for path in ("play/mood", "play/mood/preview", "chats/clerk"):
        reply = client.post(f"/api/{path}", json={"arguments": {"text": "x"}, "message": "x"})
        assert reply.status_code in {404, 405}, path


def test_what_was_not_named_does_not_run(store):
    client = client_for(store, shop.mood)
    assert [each["name"] for each in client.get("/api/play").json()["functions"]] == ["mood"]
    assert client.post("/api/play/describe", json={"arguments": {"item": "x"}}).status_code == 404
    assert client.post("/api/chats/clerk", json={"message": "x"}).status_code == 404
    for odd in ("__init__", "mood.__call__", "shop.mood", "..", "mood%2F..%2Fdescribe", "os.system"):
        assert client.post(f"/api/play/{odd}", json={"arguments": {}}).status_code in {404, 405}


# --- the playground ---


def test_functions_are_offered_with_their_forms(client):
    offered = {each["name"]: each for each in client.get("/api/play").json()["functions"]}
    assert set(offered) == {"read_order", "mood", "describe", "adjectives", "size", "clerk_agent"}
    order = offered["read_order"]
    assert order["docstring"].startswith("Read the order out")
    assert order["schema"]["properties"]["letter"]["description"] == "As it came."
    assert order["schema"]["required"] == ["letter"]
    assert order["defaults"]["language"] == "English"
    assert order["tools"] == ["stock"]
    assert order["version"] == shop.read_order._pipeline.metadata.version
    assert offered["mood"]["module"] == "tests.viewer.shop"


def test_a_function_is_run_and_watched(client, store):
    told = play(client, "read_order", letter=shop.LETTER)
    done = told[-1]
    assert (told[0]["type"], done["type"]) == ("RunStarted", "done")
    assert [line["turn"] for line in told if line["type"] == "TurnStarted"] == [1, 2, 3]
    asked = [line["arguments"] for line in told if line["type"] == "ToolCallStarted"]
    assert asked == ['{"item": "teapot"}', '{"item": "tray"}']
    answered = {line["content"] for line in told if line["type"] == "ToolCallFinished"}
    assert answered == {"7 on the shelf, 12 on the way", "31 on the shelf"}
    assert done["value"]["lines"][0] == {"item": "teapot", "quantity": 2, "price": 24.5}
    assert done["repairs"] == [["", "JSON found in the text"], ["lines[0].price", "number taken from '24.50 EUR'"]]
    assert [len(attempt["violations"]) for attempt in done["attempts"]] == [1, 0]
    assert done["cost"] > 0
    assert store.flush()
    kept = store.reader.run(done["trace_id"])
    assert kept is not None, "it is a run like any other"
    assert kept.summary.function == "read_order"


def test_text_arrives_in_pieces(client):
    told = play(client, "describe", item="teapot")
    assert [line["type"] for line in told].count("text") > 5
    assert text_of(told) == "The teapot holds one litre and keeps tea warm for an hour." == told[-1]["value"]


def test_sync_functions_and_streams_run_too(client):
    assert play(client, "mood", text="x", scale=5)[-1]["value"] == {"label": "happy", "confidence": 0.92}
    assert play(client, "adjectives", item="x")[-1]["value"] == ["small", "green", "round"]


@pytest.mark.parametrize(
    "arguments", [{}, {"text": 3}, {"text": "x", "scale": "many"}, {"text": "x", "more": 1}, {"text": "x", "_abort_signal": 1}, {"text": "x", "self": 1}], ids=str
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_before_anything_is_asked(client, store, arguments):
    reply = client.post("/api/play/mood", json={"arguments": arguments})
    assert reply.status_code == 422
    assert "do not fit" in reply.json()["error"]
    store.flush()
    assert store.reader.runs().runs == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"3", b'"x"', b"\xff", b"[" * 100_000], ids=lambda body: repr(body[:4])
)
def test_a_body_that_is_no_object_is_refused(client, body):
    reply = client.post("/api/play/mood", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400


def test_a_run_that_fails_says_why(store):
    failing = shop.mood.with_options(llm_interface=ScriptedLLM("no idea", repeat=True), max_reasks=1)
    last = play(client_for(store, failing), "mood", text="x")[-1]
    assert (last["type"], last["error"]) == ("error", "ResponseParseError")
    assert last["violations"]
    assert "expected Mood" in last["message"]


def test_a_fault_of_the_users_own_is_shown_redacted(store):
    @tool
    def leak() -> str:
        """Fail."""
        raise RuntimeError("postgres://u:pw-secret-pw@h/db")

    function = function_of(ScriptedLLM(tool_calls(("leak", {}))), toolkit=[leak], on_tool_error="raise")
    reply = client_for(store, function).post("/api/play/ask", json={"arguments": {"text": "x"}})
    assert lines(reply)[-1]["error"] == "ToolFailed"
    assert "pw-secret-pw" not in reply.text


def test_the_preview_sends_nothing(client, store):
    shown = client.post("/api/play/mood/preview", json={"arguments": {"text": "Hm."}}).json()
    assert "Hm." in shown["messages"][-1]["content"]
    assert shown["input_tokens"] > 10
    assert shown["output_mode"] == "prompt"
    assert shown["curl"].startswith("curl ")
    store.flush()
    assert store.reader.runs().runs == []


def test_the_preview_of_a_function_without_a_model_says_so(store):
    client = client_for(store, async_function_of(None))
    preview = client.post("/api/play/ask/preview", json={"arguments": {"text": "y"}}).json()
    assert preview["failed"]["error"] == "ConfigError"
    assert play(client, "ask", text="y")[-1]["error"] == "ConfigError"


def test_who_leaves_ends_the_run(store):
    """Over a real connection: the model is asked, the browser goes, and the call is cancelled."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def forever(_request):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    app = app_of(store, allow_run=[shop.describe.with_options(llm_interface=ScriptedLLM(forever))])

    async def leave():
        address = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve_page(app, announce=address.set_result))
        base = (await address).partition("/#")[0]
        async with httpx.AsyncClient(headers={**HEADERS, "origin": base}) as client:
            body = {"arguments": {"item": "x"}}
            async with client.stream("POST", f"{base}/api/play/describe", json=body) as reply:
                assert reply.status_code == 200
                await asked.wait()
        await asyncio.wait_for(ended.wait(), 10)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(leave())
    assert store.flush()
    assert [run.status for run in store.reader.runs().runs] == ["cancelled"]


# --- chats ---


def say(client, name, message, session=None):
    return lines(client.post(f"/api/chats/{name}", json={"message": message, "session": session}))


def test_a_chat_remembers_what_was_said(client, store):
    offered = {each["name"]: each["kind"] for each in client.get("/api/chats").json()["chats"]}
    assert offered == {"clerk": "chat", "helper": "assistant"}
    first = say(client, "clerk", "When do you open?")
    session = first[-1]["session"]
    assert text_of(first).startswith("Answer number 1")
    assert text_of(say(client, "clerk", "And on Sundays?", session)).startswith("Answer number 2")
    other = say(client, "clerk", "Hello")
    assert other[-1]["session"] != session
    assert text_of(other).startswith("Answer number 1")
    assert client.post("/api/chats/helper", json={"message": "x", "session": session}).status_code == 409, "of one chat"
    store.flush()
    assert {run.kind for run in store.reader.runs().runs} == {"chat"}


def test_the_assistant_can_be_talked_to(client):
    told = say(client, "helper", "Who are you?")
    assert text_of(told) == "I am the assistant of the shop."
    assert told[-1]["type"] == "done"
    assert say(client, "helper", "Really?", told[-1]["session"])[-1]["session"] == told[-1]["session"]


def test_tools_of_a_chat_are_shown(store):
    @tool
    def clock() -> str:
        """Say the time."""
        return "noon"

    guide = guide_of(tool_calls(("clock", {})), "It is noon.", toolkit=[clock])
    told = say(client_for(store, guide), "guide", "What time is it?")
    assert [line["type"] for line in told if line["type"].startswith("Tool")] == ["ToolCallStarted", "ToolCallFinished"]
    assert told[-1]["type"] == "done"


@pytest.mark.parametrize(("body", "status"), [
    *(({"message": said}, 400) for said in (None, "", "  ", 3, "x" * 300_000)),
    *(({"message": "x", "session": session}, 404) for session in ("unknown", 3, ["x"], "")),
], ids=lambda each: str(each)[:30])  # fmt: skip
def test_something_has_to_be_said_in_a_conversation_that_is_kept(client, body, status):
    assert client.post("/api/chats/clerk", json=body).status_code == status


def test_a_chat_that_fails_can_go_on(store):
    client = client_for(store, guide_of(ConnectionError("gone"), "Back again."))
    failed = say(client, "guide", "Hello?")
    assert failed[-1]["type"] == "error"
    assert say(client, "guide", "Hello?", failed[-1]["session"])[-1]["type"] == "done"


def test_one_answer_at_a_time_in_a_conversation_and_who_leaves_early_blocks_nothing(store):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_request):
        begun.set()
        await go_on.wait()
        return "At nine."

    async def talk():
        app = app_of(store, allow_run=[guide_of("Hello.", slowly, "At ten.", slowly, "Then.")])
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=LOOPBACK, headers={**HEADERS, **POST}) as client:
            first = lines(await client.post("/api/chats/guide", json={"message": "Hi"}))
            session = {"session": first[-1]["session"]}
            waiting = asyncio.ensure_future(client.post("/api/chats/guide", json={"message": "When?", **session}))
            await begun.wait()
            assert (await client.post("/api/chats/guide", json={"message": "Well?", **session})).status_code == 409
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            again = lines(await client.post("/api/chats/guide", json={"message": "When?", **session}))
            assert again[-1]["type"] == "done"
            assert text_of(again) == "At ten."
            go_on.set()
            asked = [client.post("/api/chats/guide", json={"message": "Both?", **session}) for _ in "ab"]
            both = [lines(each)[-1]["type"] for each in await asyncio.gather(*asked)]
            assert sorted(both) == ["done", "error"]

    asyncio.run(talk())


def test_old_conversations_make_room(client, monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.viewer.running._MOST_SESSIONS", 2)
    sessions = [say(client, "clerk", "Hello")[-1]["session"] for _ in range(3)]
    assert client.post("/api/chats/clerk", json={"message": "x", "session": sessions[0]}).status_code == 404
    assert say(client, "clerk", "x", sessions[2])[-1]["type"] == "done"


# --- what is offered ---


def test_a_module_offers_what_is_its_own():
    module = types.ModuleType("my_module")
    module.mine = module._hidden = _written_in("my_module")
    module.theirs = shop.mood
    module.helper = AIAssistant(ScriptedLLM(), tools=())
    offered = offered_of([module])
    assert set(offered.functions) == {"mine"}
    assert set(offered.chats) == {"helper"}
    module.__all__ = ["theirs"]
    assert set(offered_of(module).functions) == {"theirs"}


def _written_in(name):
    def function(x: str) -> str:
        """Answer."""

    function.__module__ = name
    return llm_function(llm_interface=ScriptedLLM())(function)


@pytest.mark.parametrize("given", [[types.ModuleType("empty")], [len], ["shop"], [3]], ids=str)
def test_what_cannot_be_run_is_said_at_the_start(given):
    with pytest.raises(ConfigError):
        offered_of(given)


def test_two_of_one_name_are_told_apart():
    other = types.ModuleType("other_shop")
    other.mood = _written_in("other_shop")
    offered = offered_of([shop, other])
    assert {"mood", "other_shop.mood"} <= set(offered.functions)
    with pytest.raises(ConfigError, match="twice"):
        offered_of([shop, shop, shop])


def test_a_page_names_no_file(store):
    @llm_function(llm_interface=ScriptedLLM("a cat", repeat=True))
    def see(picture: ImgPath | None = None) -> str:
        """See."""

    client = client_for(store, see)
    (offered,) = client.get("/api/play").json()["functions"]
    assert "path of a file" in offered["problem"]
    assert client.post("/api/play/see", json={"arguments": {"picture": "/etc/passwd"}}).status_code == 404


def test_methods_without_an_instance_and_odd_chats_are_shown_with_the_reason(store):
    class Keeper:
        @llm_function(llm_interface=ScriptedLLM("x"))
        def greet(self, name: str) -> str:
            """Greet."""

    @llm_chat(llm_interface=ScriptedLLM("x"))
    def no_history(message: str):
        """Forget."""

    @llm_chat(llm_interface=ScriptedLLM("x"))
    def two(history: list[Message], message: str, mood: str):
        """Two."""

    raw = guide_of("x", return_mode="raw")
    offered = offered_of([Keeper.greet, raw, no_history, two])
    assert "without an instance" in offered.functions["greet"].problem
    assert len(offered.chats) == 3
    assert all(chat.problem for chat in offered.chats.values())
    assert client_for(store, raw).post("/api/chats/guide", json={"message": "x"}).status_code == 404
    bound = Keeper().greet
    assert not offered_of([bound]).functions["greet"].problem
    assert play(client_for(store, bound), "greet", name="Ann")[-1]["value"] == "x"


def test_the_extra_that_is_missing_is_named(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ConfigError, match=re.escape(install_line("view"))):
        viewer_app(store, token=TOKEN)


def test_without_a_store_of_its_own_a_run_is_still_run(store):
    store.reader.seq()
    client = client_of(viewer_app(store.reader, token=TOKEN, allow_run=[shop.mood]), **POST)
    assert play(client, "mood", text="x")[-1]["type"] == "done"
    store.flush()
    assert store.reader.runs().runs == []
