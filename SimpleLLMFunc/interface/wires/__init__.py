"""What goes over the wire and how it is read, pure: no sockets, no clock, no retries.

Each protocol is a module; other modules hold what protocols share: server-sent events, the assembly of streamed deltas,
reasoning in the text, the errors of services.
"""

from SimpleLLMFunc.interface.wires.chat import CHAT, ChatCompletionsWire, build_body
from SimpleLLMFunc.interface.wires.embeddings import MOST_TEXTS, embedding_request, read_embeddings
from SimpleLLMFunc.interface.wires.failures import failure_of, read_error, refused_in, tool_name
from SimpleLLMFunc.interface.wires.families import claude_family, gemini_family
from SimpleLLMFunc.interface.wires.parameters import check_call_params, check_options, extra_headers_of, gives_logprobs
from SimpleLLMFunc.interface.wires.provider_state import STATE, refuses_state, state_key, without_state
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import check_base_url, endpoint, number, schema_of, taken_apart
from SimpleLLMFunc.interface.wires.sources import Citation, ServerTool, citations_in, server_tools_in
from SimpleLLMFunc.interface.wires.streams.delta_assembly import (
    ReplyAssembler,
    assemble_tool_calls,
    chunk_of_reply,
    new_call_id,
    put_right,
    rekeyed,
)
from SimpleLLMFunc.interface.wires.streams.events import EventReader
from SimpleLLMFunc.interface.wires.streams.reasoning_text import ReasoningSplitter, StreamedThoughts, answer_in
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, Received, WireRequest, header_number

__all__ = [
    "CHAT", "MOST_TEXTS", "STATE", "Asked", "ChatCompletionsWire", "Citation", "EventReader", "Kept", "ReasoningSplitter",
    "Received", "ReplyAssembler", "ServerTool", "StreamedThoughts", "Wire", "WireRequest", "answer_in",
    "assemble_tool_calls", "build_body", "check_base_url", "check_call_params", "check_options", "chunk_of_reply",
    "citations_in", "claude_family", "embedding_request", "endpoint", "extra_headers_of", "failure_of",
    "gemini_family", "gives_logprobs", "header_number", "new_call_id", "number", "put_right", "read_embeddings",
    "read_error", "refused_in", "refuses_state", "rekeyed", "schema_of", "server_tools_in", "state_key",
    "taken_apart", "tool_name", "without_state",
]  # fmt: skip
__all__ += ["gemini", "messages", "responses"]  # for other rooms
