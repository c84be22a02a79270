# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""An agent of agents: decorated functions are tools of another one, under one budget, watched from outside.

Model: three, with answers written down (`ScriptedLLM`). For real ones change the lines `for_… = …`.
"""

import asyncio

from SimpleLLMFunc import ReActEvent, budget, llm_function, watching
from SimpleLLMFunc.base.events import RunFinished, RunStarted, ToolCallStarted
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

# What three models do here, written down.
# A real one, for all three: from SimpleLLMFunc import OpenAICompatible; … = OpenAICompatible("gpt-5-mini")
for_research = ScriptedLLM("Tides follow the moon.", "Spring tides come at full moon.")
for_checking = ScriptedLLM("true")
for_editing = ScriptedLLM(
    tool_calls(("research", {"topic": "tides"}), ("research", {"topic": "spring tides"})),
    tool_calls(("check", {"claim": "Tides follow the moon."})),
    "Tides follow the moon, and are highest when it is full.",
)


@llm_function(llm_interface=for_research)
async def research(topic: str) -> str:
    """Find out one fact about the topic."""
    raise NotImplementedError


@llm_function(llm_interface=for_checking)
async def check(claim: str) -> bool:
    """Say whether the claim is right."""
    raise NotImplementedError


@llm_function(llm_interface=for_editing, toolkit=[research.as_tool(), check.as_tool()], deadline=60)
async def write(about: str) -> str:
    """Write one sentence. Have the facts found, and check them."""
    raise NotImplementedError


def show(trace_id: str, event: ReActEvent) -> None:
    """Print what happens in any of the runs; the id of an inner run ends with the id of the run around it."""
    name = trace_id.partition("_")[0]
    indent = "    " if "_write_" in trace_id else ""
    match event:
        case RunStarted():
            print(f"{indent}{name} begins")
        case ToolCallStarted(call=call):
            print(f"{indent}  asks {call.function.name}({call.function.arguments})")
        case RunFinished(reply=reply):
            print(f"{indent}  says {reply.text!r}")
        case _:
            pass


async def main() -> None:
    # The limits hold for all of them together: what an inner agent spends, the outer one has spent.
    with watching(show), budget(requests=10, tokens=20_000) as spent:
        await write("tides")
    print(f"{spent.requests} requests, {spent.tokens} tokens")


asyncio.run(main())
