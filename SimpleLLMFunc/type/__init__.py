"""Shapes of data: messages, replies, usage, multimodal content; and what a return type can ask for beyond its shape."""

from SimpleLLMFunc.type.completion import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatMessage,
    Choice,
    ChoiceDelta,
    ChunkChoice,
    CompletionUsage,
    FunctionCall,
    ToolCall,
    ToolCallDelta,
)
from SimpleLLMFunc.type.markers import ABSTAIN, Abstain, Abstention, Confident, Quoted
from SimpleLLMFunc.type.message import (
    AssistantMessage,
    ChatPair,
    ContentPart,
    Message,
    MessageList,
    SystemMessage,
    ToolCallDict,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from SimpleLLMFunc.type.multimodal import Audio, File, ImgPath, ImgUrl, Text
from SimpleLLMFunc.type.usage import Usage

__all__ = [
    "ABSTAIN",
    "Abstain",
    "Abstention",
    "AssistantMessage",
    "Audio",
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChatMessage",
    "ChatPair",
    "Choice",
    "ChoiceDelta",
    "ChunkChoice",
    "CompletionUsage",
    "Confident",
    "ContentPart",
    "File",
    "FunctionCall",
    "ImgPath",
    "ImgUrl",
    "Message",
    "MessageList",
    "Quoted",
    "SystemMessage",
    "Text",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallDict",
    "ToolMessage",
    "ToolSpec",
    "Usage",
    "UserMessage",
]
