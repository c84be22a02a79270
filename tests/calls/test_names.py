"""What the package offers: the contract's names, and nothing that is not there."""

import inspect

from SimpleLLMFunc import CallError, calls

WANTED = """
CoreCall, CallInfo, CallVars, CallIds, CallError, CallOutputChunk, CallOutputType, DataBase, ExecutorBackground, ExecutorHistory,
LanguageType, LLM, LLMInput, LLMOutput, Slot, SlotInput, SlotOutput, SlotProcessor, Summary, SummaryOutput, RunTool, Step, StepStatus,
Task, StepExecutor, fill_slots, summarize
""".replace("\n", " ").split(", ")


def test_everything_listed_is_there() -> None:
    assert {name.strip() for name in WANTED} <= set(calls.__all__)
    assert calls.CallError is CallError


def test_the_methods_of_the_notes() -> None:
    for call, methods in {
        calls.LLM: ("info", "instance", "_prepare_message", "_init", "_exec", "exec", "_llm"),
        calls.Summary: ("info", "instance", "_init", "_exec", "exec"),
        calls.Slot: ("info", "instance", "_init", "_exec", "_llm_slot_fill", "_function_slot_fill", "_json"),
        calls.CoreCall: ("_set_input", "_assemble_call_vars", "_after_exec", "_extract_history_variables"),
        calls.SlotProcessor: ("process_json", "convert_json", "check_json", "add_null_to_basic_types"),
    }.items():
        for method in methods:
            assert callable(getattr(call, method)), method


def test_the_signatures_are_the_contracts() -> None:
    assert list(inspect.signature(calls.StepExecutor).parameters)[:3] == ["task", "step", "llm"]
    assert list(inspect.signature(calls.CallError).parameters) == ["message", "data"]
    assert inspect.signature(calls.CoreCall.info).parameters["language"].default is calls.LanguageType.CHINESE
    assert list(inspect.signature(calls.fill_slots).parameters)[:6] == [
        "schema", "question", "llm", "data", "facts", "history",
    ]  # fmt: skip
    assert list(inspect.signature(calls.summarize).parameters) == ["conversation", "facts", "llm", "language"]
