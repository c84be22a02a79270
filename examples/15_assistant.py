# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""An assistant with tools, memory, and a search where the model is unsure; all replies are scripted.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import asyncio

from SimpleLLMFunc import tool
from SimpleLLMFunc.assistant import AIAssistant, SqliteMemory, StaticSearch
from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


@tool
def departures(station: str) -> list[str]:
    """List the next trams from a station.

    Args:
        station: its name.
    """
    return [f"{station}: number 9 in 4 minutes", f"{station}: number 3 in 11 minutes"]


llm = ScriptedLLM(
    tool_calls(("departures", {"station": "Zytglogge"})),
    "Your number 9 leaves in four minutes.",
    "I don't know whether there are works on the line.",
    "Yes: the line is closed between Helvetiaplatz and Thunplatz until Friday.",
    "The number 9, as you told me.",
)
news = StaticSearch(
    [{"title": "Works", "url": "https://trams.example/works", "content": "Line 9 is closed at Thunplatz until Friday."}]
)


async def main() -> None:
    memory = SqliteMemory(":memory:", language="en")
    assistant = AIAssistant(llm, news, memory, [departures], "en")
    session = None
    for question in ("I take the 9 from Zytglogge. When does it leave?", "Are there works on the line?"):
        print(f"> {question}")
        async for item in assistant.stream_query(question, session, "ada"):
            match item:
                case str():
                    print(item, end="")
                case ToolCallStarted(call=call):
                    print(f"[{call.function.name} {call.function.arguments}]")
                case ToolCallFinished():
                    pass
                case {"session_id": session, "sources": sources}:
                    print("".join(f"\n  see {source['url']}" for source in sources))
    print("> Which tram do I take from Zytglogge?  (another day, another session)")
    result = await assistant.process_query("Which tram do I take from Zytglogge?", user_id="ada")
    print(result["response"])
    print("what the model was reminded of:")
    print(llm.requests[-1][-2]["content"])
    await assistant.delete_user("ada")
    memory.close()


if __name__ == "__main__":
    asyncio.run(main())
