"""One structured log on the standard `logging` module; silent until the user asks for it.

`redact` is the function here; its module is to be had by its full name only (``from SimpleLLMFunc.logger.redact import …``).
"""

import logging

from SimpleLLMFunc.logger.context import (
    LogContext,
    async_log_context,
    begin_run,
    count_tokens,
    get_current_context,
    get_current_run_id,
    get_current_trace_id,
    log_context,
)
from SimpleLLMFunc.logger.failures import redacted_cause, shown_error, shown_traceback, with_causes
from SimpleLLMFunc.logger.known import MASK, end_before_growing_secret, end_before_secret, mask_known, remember_secret
from SimpleLLMFunc.logger.records import (
    app_log,
    get_location,
    is_enabled,
    push_debug,
    push_error,
    push_info,
    push_warning,
    setup_logging,
)
from SimpleLLMFunc.logger.redact import (
    HTTP_LOGGERS,
    PlainData,
    data_url_by_size,
    escape_control,
    holds_little,
    looks_secret,
    named_by_size,
    pairs_of,
    redact,
    redact_head,
    redact_logs_of,
    render_arguments,
    shown_data,
    shown_text,
    shown_value,
)
from SimpleLLMFunc.logger.tracebacks import border, is_debugging

__all__ = [
    "LogContext", "app_log", "async_log_context", "count_tokens", "escape_control", "get_current_context",
    "get_current_trace_id", "get_location", "is_enabled", "log_context", "push_debug", "push_error", "push_info",
    "push_warning", "redact", "remember_secret", "render_arguments", "setup_logging", "shown_data", "shown_error",
    "shown_traceback",
]  # fmt: skip
__all__ += [
    "HTTP_LOGGERS", "MASK", "PlainData", "begin_run", "border", "data_url_by_size", "end_before_growing_secret",
    "end_before_secret", "get_current_run_id", "holds_little", "is_debugging", "looks_secret", "mask_known",
    "named_by_size", "pairs_of", "redact_head", "redact_logs_of", "redacted_cause", "shown_text", "shown_value", "with_causes",
]  # for other rooms  # fmt: skip

# Without any handler, Python would print our warnings to stderr by itself; whether they are shown is the user's choice.
logging.getLogger("SimpleLLMFunc").addHandler(logging.NullHandler())
