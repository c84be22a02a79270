"""What the pages, the reference and the examples of 1.0 name is still there, under the path that they show."""

import importlib

import pytest

IMPORTS = {
    "assistant": "AIAssistant Phrasebook SqliteMemory StaticSearch builtin_tools explain is_uncertain",
    "base.events": "AnswerReviewed MessageAppended ReplyDelta ReplyReceived RunFinished RunStarted ToolCallFinished "
    "ToolCallProgress ToolCallStarted TurnStarted",
    "base.output_mode": "choose_output_mode compile_output",
    "base.partial": "PartialReader",
    "base.post_process": "parse_text",
    "base.type_resolve": "build_type_description_json generate_example_object",
    "batch": "Checkpoint MapReport MapRow RayEngine RowSource",
    "calls": "LLM CallError CallOutputChunk CallOutputType CallVars CoreCall DataBase ExecutorBackground ExecutorHistory "
    "RunTool Slot Step StepExecutor StepStatus Summary Task fill_slots summarize",
    "cli.main": "main",
    "errors": "RateLimited ResponseParseError ServerUnavailable SignatureError SimpleLLMFuncError",
    "evaluate": "EvaluationFailed evaluate export_examples judge wilson_interval",
    "interface.current": "resolve_llm",
    "interface.profile": "PROFILES",
    "lock": "check_lock lock_of read_lock write_lock",
    "logger": "redact setup_logging",
    "observability.metrics": "Dimension MetricRow metrics",
    "observability.otel": "SpanSink",
    "observability.reader": "TraceReader",
    "observability.reader_rows": "Changes FunctionSummary FunctionVersion Review RunDetail RunPage RunQuery RunStatus "
    "RunSummary StoredToolCall StoredTry StoredTurn",
    "observability.setup": "setup_tracing",
    "observability.store": "TraceStore TraceStoreWarning",
    "serve.http": "http_app serve_functions",
    "serve.http_callers": "CallerEntry Callers hash_of new_key",
    "sync": "iterate_sync run_sync",
    "testing": "SchemaLLM ScriptedLLM ScriptedRequest UnmatchedRequest answer tool_calls use_cassette when",
    "testing.scripted": "ScriptedRequest",
    "tools": "ToolRegistry",
    "tools.mcp": "tools_from_mcp",
    "type": "ABSTAIN Abstention Confident Quoted",
    "viewer": "viewer_app",
}


@pytest.mark.parametrize("module", IMPORTS)
def test_the_path_leads_there(module: str) -> None:
    found = importlib.import_module(f"SimpleLLMFunc.{module}")
    assert not [name for name in IMPORTS[module].split() if not hasattr(found, name)]
