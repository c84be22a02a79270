# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Four steps of one task: a slot finds the parameters, a tool runs with them, the model answers, and sums up.

Every step reads what the steps before it have put out. The prompts are Chinese; `language="en"` makes them English.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import asyncio

from SimpleLLMFunc.calls import (
    LLM,
    CallOutputType,
    ExecutorBackground,
    RunTool,
    Slot,
    Step,
    StepExecutor,
    StepStatus,
    Summary,
    Task,
)
from SimpleLLMFunc.testing import ScriptedLLM

# What the model does here, written down.
# A real one: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    '{"city": "杭州", "days": 2}',
    "杭州这两天都是晴天，最高气温31度，出门记得防晒。",
    "用户在2024年5月计划去杭州出行，询问了当地两天的天气。",
)


def weather(city: str, days: int = 1) -> dict[str, object]:
    """Look up the weather.

    Args:
        city: 城市名称
        days: 查询的天数
    """
    return {"city": city, "forecast": [{"day": day + 1, "sky": "晴", "high": 31} for day in range(days)]}


steps = [
    Step("slot", "找出查询天气的参数", Slot, {"current_schema": RunTool(func=weather).input_schema()}),
    Step("weather", "查询天气", RunTool, {"func": weather, "arguments": "slot/slot_data"}),
    Step("answer", "回答用户", LLM, {"temperature": 0.3}),
    Step("summary", "总结背景", Summary, {"to_user": True}),
]


async def main() -> None:
    task = Task(
        "那边接下来两天天气怎么样？",
        background=ExecutorBackground(
            conversation=[
                {"role": "user", "content": "下周我想去杭州玩。"},
                {"role": "assistant", "content": "好主意！"},
            ],
            facts=["对话发生在2024年5月"],
        ),
    )
    print(f"> {task.question}")
    for step in steps:
        executor = StepExecutor(task, step, llm=llm)
        await executor.init()
        print(f"\n[{step.name}]")
        async for chunk in executor.run():
            print(chunk.content, end="" if chunk.type is CallOutputType.TEXT else "\n", flush=True)
        if executor.status is not StepStatus.SUCCESS:
            print(f"the task stops here: {executor.status}, missing: {executor.remaining_schema}")
            return
    print(f"\n\nkept for the next question: {task.runtime.reasoning}")
    print(f"history: {[step.step_name for step in task.history]}")


if __name__ == "__main__":
    asyncio.run(main())
