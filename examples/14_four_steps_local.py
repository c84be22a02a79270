# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[local]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""The same four steps with a real model and without a key: the small one inside this process.

A model of this size finds few values by itself, and invents some: the types of `weather` hold it to cities that
there are. What it does not find is asked of the user; here that is written down. The weights (93 MB) are fetched at
the first run, once.

Model: the small `LocalModel`, inside this process. For another one change the line `llm = LocalModel(…`.
"""

import asyncio
from typing import Literal

from SimpleLLMFunc import LocalModel
from SimpleLLMFunc.calls import LLM, CallOutputType, RunTool, Slot, Step, StepExecutor, StepStatus, Summary, Task

llm = LocalModel()


def weather(city: Literal["Rome", "Oslo", "Hangzhou"], days: Literal[1, 2, 3] = 1) -> dict[str, object]:
    """Look up the weather.

    Args:
        city: name of the city
        days: how many days
    """
    return {"city": city, "days": days, "sky": "sunny", "high": 31}


# `enable_filling` puts another slot in front of a step, for what its parameters leave open.
steps = [
    Step("slot", "looks up the weather", Slot, {"current_schema": RunTool(func=weather).input_schema()}),
    Step(
        "weather",
        "looks up the weather",
        RunTool,
        {"func": weather, "arguments": "slot/slot_data", "enable_filling": True},
    ),
    Step("answer", "answers the user", LLM, {"temperature": 0.0}),
    Step("summary", "sums up what was said", Summary, {"to_user": True}),
]


async def main() -> None:
    task = Task(
        "What will the weather be like in Rome?",
        language="en",
        background={"conversation": [{"role": "user", "content": "I will be in Rome on Monday."}], "facts": []},
    )
    print(f"> {task.question}  ({llm.model_name})")
    for step in steps:
        executor = StepExecutor(task, step, llm=llm)
        await executor.init()
        print(f"\n[{step.name}]")
        chunks = executor.run()
        while True:
            async for chunk in chunks:
                print(chunk.content, end="" if chunk.type is CallOutputType.TEXT else "\n", flush=True)
            if executor.status is not StepStatus.PARAM:
                break
            print(f"missing: {executor.remaining_schema['required']}; the user says: Rome")
            chunks = executor.resume({"city": "Rome"})
        if executor.status is not StepStatus.SUCCESS:
            return
    print(f"\n\nkept for the next question: {task.runtime.reasoning[:60]!r}…")
    print(f"history: {[step.step_name for step in task.history]}")


if __name__ == "__main__":
    asyncio.run(main())
