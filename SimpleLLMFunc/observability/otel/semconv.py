"""Every name that we give to OpenTelemetry, in one table.

The names of the conventions are those of version 1.41.0. They left the main repository of OpenTelemetry in May 2026 and are
being renamed. This module imports none of their packages, so runs have the same names in every installation.
"""

from __future__ import annotations

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"


class Operation:
    """Values of `gen_ai.operation.name`, which also begin the names of the spans."""

    INVOKE_AGENT: Final = "invoke_agent"
    CHAT: Final = "chat"
    EXECUTE_TOOL: Final = "execute_tool"


class Attribute:
    """Names of attributes."""

    # of every span
    OPERATION: Final = "gen_ai.operation.name"
    ERROR_TYPE: Final = "error.type"

    # of a function
    AGENT_NAME: Final = "gen_ai.agent.name"
    USAGE_COST: Final = "gen_ai.usage.cost"

    # of a model call
    PROVIDER: Final = "gen_ai.provider.name"
    CONVERSATION: Final = "gen_ai.conversation.id"
    REQUEST_MODEL: Final = "gen_ai.request.model"
    REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
    REQUEST_TOP_P: Final = "gen_ai.request.top_p"
    REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
    REQUEST_SEED: Final = "gen_ai.request.seed"
    REQUEST_STOP: Final = "gen_ai.request.stop_sequences"
    REQUEST_STREAM: Final = "gen_ai.request.stream"
    RESPONSE_ID: Final = "gen_ai.response.id"
    RESPONSE_MODEL: Final = "gen_ai.response.model"
    FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
    FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
    INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
    OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
    CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
    CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
    REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
    OUTPUT_TYPE: Final = "gen_ai.output.type"
    SERVER_ADDRESS: Final = "server.address"
    SERVER_PORT: Final = "server.port"
    TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - no password: input or output

    # of a tool
    TOOL_NAME: Final = "gen_ai.tool.name"
    TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
    TOOL_TYPE: Final = "gen_ai.tool.type"
    TOOL_DESCRIPTION: Final = "gen_ai.tool.description"

    # content, only where it is asked for
    SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
    INPUT_MESSAGES: Final = "gen_ai.input.messages"
    OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
    TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
    TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
    TOOL_RESULT: Final = "gen_ai.tool.call.result"

    # not in the conventions; Phoenix, Langfuse and Logfire read them
    INPUT_VALUE: Final = "input.value"
    INPUT_MIME_TYPE: Final = "input.mime_type"
    OUTPUT_VALUE: Final = "output.value"
    OUTPUT_MIME_TYPE: Final = "output.mime_type"
    SESSION: Final = "session.id"
    USER: Final = "user.id"
    SPAN_KIND: Final = "openinference.span.kind"
    PROJECT: Final = "openinference.project.name"
    OPERATION_COST: Final = "operation.cost"

    # our own
    TRACE_ID: Final = "simplellmfunc.trace_id"
    FUNCTION_VERSION: Final = "simplellmfunc.function.version"
    TURN: Final = "simplellmfunc.turn"
    TRIES: Final = "simplellmfunc.tries"
    PAUSE: Final = "simplellmfunc.pause"
    NEXT_MODEL: Final = "simplellmfunc.next_model"
    PATH: Final = "simplellmfunc.path"
    PATHS: Final = "simplellmfunc.paths"
    MESSAGE: Final = "simplellmfunc.message"
    CACHED: Final = "simplellmfunc.cached"
    REPLAYED: Final = "simplellmfunc.replayed"
    RESTARTS: Final = "simplellmfunc.restarts"
    DOWNGRADES: Final = "simplellmfunc.downgrades"


class Event:
    """Names of what happens inside a span."""

    TRY_FAILED: Final = "simplellmfunc.try_failed"
    RE_ASK: Final = "simplellmfunc.re_ask"
    REPAIR: Final = "simplellmfunc.repair"
    ABANDONED: Final = "simplellmfunc.abandoned"


class Metric:
    """Names of the metrics; see the units in the conventions."""

    TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - no password
    OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
    FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"


TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""1 to 67,108,864 tokens, as the conventions advise."""

DURATION_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Seconds, as the conventions advise."""

METRICS: Final = (
    (Metric.TOKEN_USAGE, "{token}", "Tokens of one request.", TOKEN_BUCKETS),
    (Metric.OPERATION_DURATION, "s", "From the request to the end of the reply.", DURATION_BUCKETS),
    (Metric.FIRST_CHUNK, "s", "From the request to the first piece of a streamed reply.", DURATION_BUCKETS),
)
"""Name, unit, description and buckets of what is measured."""

PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "azure-foundry": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Our names of providers under those of the conventions, where they differ."""
