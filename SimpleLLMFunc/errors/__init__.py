"""Every exception of the library.

::

    SimpleLLMFuncError                  .trace_id .func_name .attempts .usage, where known
    ├── UsageError                      your code; fix it, do not retry
    │   ├── ConfigError                 no model, no key, a file that does not parse (also a ValueError)
    │   ├── SignatureError              missing annotation, wrong arguments, unusable type (also a TypeError)
    │   ├── ToolDefinitionError         a tool the model could not be told about
    │   ├── TemplateError               a template with a name we cannot fill
    │   └── SchemaError                 a JSON Schema that is invalid, endless, remote or too large
    ├── ProviderError                   the service; .model .status .request_id .tries
    │   ├── AuthenticationError         a key was refused
    │   ├── BadRequest                  what we sent was not accepted; .body, cut; .problem .param .code .tool
    │   ├── ContextTooLong              .limit tokens, where known
    │   ├── RateLimited                 .retry_after seconds or None; .kind "rate" or "quota"
    │   ├── ServerUnavailable           5xx after the last try
    │   ├── ConnectionFailed            no connection after the last try
    │   ├── BadReply                    a reply that does not fit the protocol; .head .partial
    │   └── StreamInterrupted           the stream ended before the answer did; .partial
    ├── RunError                        the run could not reach an answer; .messages so far
    │   ├── DeadlineExceeded            .seconds allowed, .partial
    │   ├── BudgetExceeded              .limit .spent
    │   ├── RunAborted                  an AbortSignal was set; .reason .partial
    │   ├── EmptyResponseError          (also a ValueError)
    │   ├── OutputTruncated             the model ran out of tokens; .partial
    │   ├── ContentBlocked              refusal or content filter; .reason .partial
    │   ├── ToolCallLimitExceeded       .limit
    │   ├── ToolFailed                  only with on_tool_error="raise"
    │   ├── RunPaused                   a confirmation is waited for elsewhere; .key .pending
    │   └── OutcomeUnknown              a once-tool had begun when the process died; .key .call_id .tool .arguments
    ├── ResponseParseError              .text .expected_type .violations (also a ValueError)
    ├── CheckpointError                 a checkpoint that cannot be trusted; .row
    └── CallError                       a Call could not be carried out; .message .data

The first level answers the one question a caller has: is it my code, their service, this run, or the
answer's shape? An error is built from facts and writes its own text; the text names the next move.
"""

from __future__ import annotations

from SimpleLLMFunc.errors.root import (
    CallError,
    CheckpointError,
    ConfigError,
    ResponseParseError,
    SchemaError,
    SignatureError,
    SimpleLLMFuncError,
    TemplateError,
    ToolDefinitionError,
    UsageError,
    Violation,
)
from SimpleLLMFunc.errors.root import _rebuild as _rebuild  # pickles of 1.0 name it here
from SimpleLLMFunc.errors.run import (
    BudgetExceeded,
    ContentBlocked,
    DeadlineExceeded,
    EmptyResponseError,
    OutcomeUnknown,
    OutputTruncated,
    RunAborted,
    RunError,
    RunPaused,
    ToolCallLimitExceeded,
    ToolFailed,
)
from SimpleLLMFunc.errors.service import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    ProviderError,
    RateLimited,
    ServerUnavailable,
    StreamInterrupted,
)
from SimpleLLMFunc.errors.words import BODY_LIMIT, counted, cut, did_you_mean, mask_messages_with, refuse_constant

__all__ = [
    "AuthenticationError", "BadReply", "BadRequest", "BudgetExceeded", "CallError", "CheckpointError",
    "ConfigError", "ConnectionFailed", "ContentBlocked", "ContextTooLong", "DeadlineExceeded",
    "EmptyResponseError", "OutcomeUnknown", "OutputTruncated", "ProviderError", "RateLimited",
    "ResponseParseError", "RunAborted", "RunError", "RunPaused", "SchemaError", "ServerUnavailable",
    "SignatureError", "SimpleLLMFuncError", "StreamInterrupted", "TemplateError", "ToolCallLimitExceeded",
    "ToolDefinitionError", "ToolFailed", "UsageError", "Violation",
]  # fmt: skip
__all__ += ["BODY_LIMIT", "counted", "cut", "did_you_mean", "mask_messages_with", "refuse_constant"]  # for other rooms

for _name in __all__:
    if isinstance(_error := globals()[_name], type):
        _error.__module__ = __name__  # the place that tracebacks and pickles name
