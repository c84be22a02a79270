"""Shapes of data: messages, replies, usage, multimodal content; and what a return type can ask for beyond its shape."""

from SimpleLLMFunc.type.completion import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatMessage,
    Choice,
    ChoiceDelta,
    ChunkChoice,
    FunctionCall,
    ToolCall,
    ToolCallDelta,
)
from SimpleLLMFunc.type.contents import fields_or_items, holds_multimodal
from SimpleLLMFunc.type.markers import ABSTAIN, QUOTED, Abstain, Abstention, Confident, Quoted, confident_type
from SimpleLLMFunc.type.message import (
    AssistantMessage,
    ChatPair,
    ContentPart,
    Message,
    SystemMessage,
    ToolCallDict,
    ToolMessage,
    ToolSpec,
    UserMessage,
    spec_name,
)
from SimpleLLMFunc.type.multimodal import (
    MAX_FILE_BYTES,
    MULTIMODAL,
    Audio,
    File,
    ImgPath,
    ImgUrl,
    Multimodal,
    Text,
    read_file,
)
from SimpleLLMFunc.type.usage import NO_USAGE, CompletionUsage, Usage
from SimpleLLMFunc.type.wire import (
    content_text,
    count,
    index_of,
    mapping,
    mappings,
    mend,
    text_or_none,
    without_surrogates,
)

__all__ = [
    "ABSTAIN", "Abstain", "Abstention", "AssistantMessage", "Audio", "ChatCompletion", "ChatCompletionChunk",
    "ChatMessage", "ChatPair", "Choice", "ChoiceDelta", "ChunkChoice", "CompletionUsage", "Confident", "ContentPart",
    "File", "FunctionCall", "ImgPath", "ImgUrl", "Message", "Quoted", "SystemMessage", "Text",
    "ToolCall", "ToolCallDelta", "ToolCallDict", "ToolMessage", "ToolSpec", "Usage", "UserMessage",
]  # fmt: skip
__all__ += [
    "MAX_FILE_BYTES",
    "MULTIMODAL",
    "NO_USAGE",
    "QUOTED",
    "Multimodal",
    "confident_type",
    "content_text",
    "count",
    "fields_or_items",
    "holds_multimodal",
    "index_of",
    "mapping",
    "mappings",
    "mend",
    "read_file",
    "spec_name",
    "text_or_none",
    "without_surrogates",
]  # fmt: skip  # for other rooms
