"""The scheduler's Calls: a template in, a stream of `CallOutputChunk` out.

`StepExecutor` runs the `Step` objects of a `Task`, one after the other; `fill_slots` and `summarize` are for people without a
scheduler.
"""

from SimpleLLMFunc.calls.call_data import (
    CallIds,
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    DataBase,
    ExecutorBackground,
    ExecutorHistory,
    LanguageType,
)
from SimpleLLMFunc.calls.core import CallNode, CoreCall
from SimpleLLMFunc.calls.executor import StepExecutor
from SimpleLLMFunc.calls.llm import LLM, LLMInput, LLMOutput
from SimpleLLMFunc.calls.run_tool import RunTool
from SimpleLLMFunc.calls.slot import Slot, SlotInput, SlotOutput, SlotProcessor, fill_slots
from SimpleLLMFunc.calls.summary import Summary, SummaryOutput, summarize
from SimpleLLMFunc.calls.task import Step, StepStatus, Task
from SimpleLLMFunc.errors import CallError

__all__ = [
    "LLM", "CallError", "CallIds", "CallInfo", "CallNode", "CallOutputChunk", "CallOutputType", "CallVars",
    "CoreCall", "DataBase", "ExecutorBackground", "ExecutorHistory", "LLMInput", "LLMOutput", "LanguageType",
    "RunTool", "Slot", "SlotInput", "SlotOutput", "SlotProcessor", "Step", "StepExecutor", "StepStatus", "Summary",
    "SummaryOutput", "Task", "fill_slots", "summarize",
]  # fmt: skip
__all__ += ["slot"]  # for other rooms
