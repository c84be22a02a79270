"""Scripts that use the library wrongly, each in its own way, by name; and a server that refuses some of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Final

from tests.support.connections import Recorded
from tests.support.server import Answer, json_answer, serving_in_thread

SERVED: Final = "http://served"

_START = """\
import asyncio
from collections.abc import AsyncIterator, Iterator
from SimpleLLMFunc import *
from SimpleLLMFunc.calls import SlotProcessor, summarize
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


def raise_in_a_tool(n: int) -> str:
    \"\"\"Do something.\"\"\"
    raise LookupError("nothing there")


def count(llm, **options):
    @llm_function(llm_interface=llm, **options)
    def ask(text: str) -> int:
        \"\"\"Count the words.\"\"\"
        return fill()

    return ask


def acount(llm, **options):
    @llm_function(llm_interface=llm, **options)
    async def ask(text: str) -> int:
        \"\"\"Count the words.\"\"\"
        return fill()

    return ask


def served(path, **options):
    return OpenAICompatible("m", api_key="sk-0", base_url=f"http://served/{path}/v1", max_retries=0, **options)


"""

_BODIES: Final = {
    # --- nothing to ask ---
    "no_model": 'count(None)("a b")',
    "no_model_to_preview": 'count(None).preview("a b")',
    "no_key": 'count(OpenAICompatible("gpt-5-mini"))("a b")',
    "unknown_local_model": 'count(LocalModel("no-such-model"))("a b")',
    "bad_provider_file": """
        open("provider.json", "w").write('{"openai": [{"model": 1}]}')
        OpenAICompatible.load_from_json_file("provider.json")
    """,
    # --- what is decorated ---
    "unusable_return_type": """
        class Thing: ...

        @llm_function(llm_interface=ScriptedLLM("1"))
        def ask(text: str) -> list[Thing]:
            \"\"\"Find things.\"\"\"
    """,
    "unresolved_annotation": """
        @llm_function(llm_interface=ScriptedLLM("1"))
        def ask(text: str) -> "dict[":
            \"\"\"Find things.\"\"\"
    """,
    "class_decorated": """
        @llm_function(llm_interface=ScriptedLLM("1"))
        class Ask: ...
    """,
    "bad_option": 'count(ScriptedLLM("1"), max_tool_calls=-1)',
    "bad_option_later": 'count(ScriptedLLM("1")).with_options(repair="hard")("a b")',
    "tool_without_type": """
        @tool
        def find(thing):
            \"\"\"Find it.\"\"\"
    """,
    "no_tool": 'count(ScriptedLLM("1"), toolkit=["search"])',
    "no_file_of_examples": 'count(ScriptedLLM("1"), examples="no-such-file.jsonl")',
    "unknown_template_field": 'count(ScriptedLLM("1"), system_prompt_template="{docstring}")("a b")',
    # --- how it is called ---
    "missing_argument": 'count(ScriptedLLM("1"))()',
    "unknown_argument": 'count(ScriptedLLM("1"))("a b", txt="c")',
    "async_missing_argument": 'asyncio.run(acount(ScriptedLLM("1"))())',
    "no_such_rows": 'count(ScriptedLLM("1")).map("no-such-file.csv")',
    "map_raises": 'count(ScriptedLLM("many", repeat=True)).map(["a b"], on_error="raise")',
    "async_map_raises": """
        async def main():
            await acount(ScriptedLLM("many", repeat=True)).map(["a b"], on_error="raise")

        asyncio.run(main())
    """,
    # --- the service ---
    "unreachable": 'count(OpenAICompatible("m", api_key="sk-0", base_url="http://127.0.0.1:9/v1", max_retries=0))("a b")',
    "async_unreachable": """
        async def main():
            return await acount(OpenAICompatible("m", api_key="sk-0", base_url="http://127.0.0.1:9/v1", max_retries=0))("a b")

        asyncio.run(main())
    """,
    "refused_key": 'count(served("401"))("a b")',
    "not_found": 'count(served("404"))("a b")',
    "not_json": 'count(served("html"))("a b")',
    "stream_refused": """
        for part in count(served("401")).stream("a b"):
            print(part)
    """,
    # --- the answer ---
    "answer_does_not_fit": 'count(ScriptedLLM("many", repeat=True))("a b")',
    "call": 'count(ScriptedLLM("many", repeat=True)).call("a b")',
    "async_call": """
        async def main():
            return (await acount(ScriptedLLM("many", repeat=True)).call("a b")).value

        asyncio.run(main())
    """,
    "stream": 'list(count(ScriptedLLM("many", repeat=True)).stream("a b"))',
    "async_stream": """
        async def main():
            async for value in acount(ScriptedLLM("many", repeat=True)).stream("a b"):
                print(value)

        asyncio.run(main())
    """,
    "events": 'list(count(ScriptedLLM("many", repeat=True)).events("a b"))',
    "items": """
        @llm_function(llm_interface=ScriptedLLM('["a", 2]', repeat=True))
        def ask(text: str) -> Iterator[int]:
            \"\"\"List the numbers.\"\"\"

        for item in ask("a b"):
            print(item)
    """,
    "async_items": """
        @llm_function(llm_interface=ScriptedLLM('["a", 2]', repeat=True))
        async def ask(text: str) -> AsyncIterator[int]:
            \"\"\"List the numbers.\"\"\"

        async def main():
            async for item in ask("a b"):
                print(item)

        asyncio.run(main())
    """,
    "voting": """
        @llm_function(llm_interface=ScriptedLLM("many", repeat=True))
        def ask(text: str) -> Confident[int]:
            \"\"\"Count the words.\"\"\"

        ask("a b")
    """,
    "parsing": 'parse_text("many", int)',
    # --- the run ---
    "script_is_over": 'count(ScriptedLLM())("a b")',
    "tool_raises": """
        replies = ScriptedLLM(tool_calls(("raise_in_a_tool", {"n": 1})))
        count(replies, toolkit=[raise_in_a_tool], on_tool_error="raise")("a b")
    """,
    "budget_spent": """
        with budget(requests=0):
            count(ScriptedLLM("1"))("a b")
    """,
    "aborted": """
        signal = AbortSignal()
        signal.abort("enough")
        count(ScriptedLLM("1"))("a b", _abort_signal=signal)
    """,
    "deadline": 'count(ScriptedLLM("1"), deadline=0.000001)("a b")',
    # --- chats, Calls, the assistant ---
    "chat": """
        @llm_chat(llm_interface=served("401"))
        def chat(history: list[Message], message: str) -> Iterator[ChatPair]:
            \"\"\"Be kind.\"\"\"

        for text, history in chat([], "hello"):
            print(text)
    """,
    "async_chat": """
        @llm_chat(llm_interface=served("401"), stream=True)
        async def chat(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
            \"\"\"Be kind.\"\"\"

        async def main():
            async for text, history in chat([], "hello"):
                print(text)

        asyncio.run(main())
    """,
    "chat_without_arguments": """
        @llm_chat(llm_interface=ScriptedLLM("hello"))
        def chat(history: list[Message], message: str) -> Iterator[ChatPair]:
            \"\"\"Be kind.\"\"\"

        list(chat())
    """,
    "slot_schema": 'SlotProcessor({"type": "text"})',
    "summary_without_model": """
        async def main():
            await summarize([{"role": "user", "content": "hello"}])

        asyncio.run(main())
    """,
    "assistant": 'AIAssistant(ScriptedLLM("hello"), language="fr")',
    "assistant_refused": 'AIAssistant(served("401"), tools=[]).process_query_sync("hello")',
}

USES: Final = {name: f"{_START}{dedent(body).strip()}\n" for name, body in _BODIES.items()}


def _refusal(request: Recorded) -> Answer:
    place = request.path.split("/")[1]
    if place == "html":
        return Answer(headers={"content-type": "text/html"}, body=b"<html>a login page</html>")
    return json_answer({"error": {"message": "no"}}, status=int(place))


@contextmanager
def answering() -> Iterator[str]:
    """Serve refusals, and give the address that stands in the place of `SERVED`."""
    with serving_in_thread(_refusal) as server:
        yield server.base_url.removesuffix("/v1")
