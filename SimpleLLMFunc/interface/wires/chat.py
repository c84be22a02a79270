"""The wire ``/chat/completions``, which OpenAI began and most services speak, each in its own way; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import build_body
from SimpleLLMFunc.interface.wires.streams.chunk_reader import INTERRUPTED, ChunkReader
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion


def _problem_of(data: Mapping[str, Any]) -> str:
    """Return why a reply does not fit the protocol, empty if it does."""
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return "it has no choices"
    are_whole = all(isinstance(each, dict) and isinstance(each.get("message"), dict) for each in choices)
    return "" if are_whole else "a choice has no message"


def _completion_of(data: dict[str, Any], _service: str, received: Received) -> ChatCompletion:
    """Return a reply whose form is known to be good.

    Raises:
        AttemptFailed: the service says that it broke off.
    """
    completion = ChatCompletion.from_dict(data, tries=received.tries)
    if completion.finish_reason in INTERRUPTED:
        said = f"it broke off the answer: {completion.finish_reason}"
        raise AttemptFailed(ServerUnavailable(received.model, status=received.status, body=said, tries=received.tries))
    return completion


class ChatCompletionsWire(Wire):
    """The wire ``/chat/completions``.

    A stream is complete when every choice has its finish reason, or ``[DONE]`` came, or the usage came after content.

    Source: https://platform.openai.com/docs/api-reference/chat
    """

    name = "chat"
    request_path = "/chat/completions"
    reader = ChunkReader
    problem_of = staticmethod(_problem_of)
    completion_of = staticmethod(_completion_of)
    asks_again = "never"
    # The last line is not OpenAI's, but of most other services and servers that speak it.
    parameters = frozenset({
        "audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
        "metadata", "modalities", "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
        "safety_identifier", "seed", "service_tier", "stop", "store", "stream_options", "temperature",
        "tool_choice", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
        "min_p", "repetition_penalty", "top_k",
    })  # fmt: skip

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: the model has no such `thinking`.
            UsageError: there is no message, or one is not a message.
        """
        params, thinking = dict(asked.params), asked.params.get("thinking")
        # Else it is a service's own parameter of this name.
        if isinstance(thinking, (str, int)) and not isinstance(thinking, bool):
            del params["thinking"]
            if word := effort_of(thinking, model_name):
                params["reasoning_effort"] = word
        downgrades = leave_out_sampling(params, model_name, params.get("reasoning_effort"))
        body = build_body(model_name, replace(asked, params=params), profile, stream=stream)
        return WireRequest(self.request_path, body, downgrades=downgrades)


CHAT = ChatCompletionsWire()
"""The one of all models: it holds nothing."""
