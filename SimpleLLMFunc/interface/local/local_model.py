"""LocalModel: a model inside this process, no key, no network (extra: local)."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, ContextTooLong, DeadlineExceeded
from SimpleLLMFunc.interface.composite import current_sample
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local.bounded_schema import bounded, compact_grammar, is_ended_by_bound
from SimpleLLMFunc.interface.local.server import ServerOptions, reads_guidance, require_llama, running_server
from SimpleLLMFunc.interface.local.weights import KNOWN_WEIGHTS, SMOLLM2_135M, Weights, fetch_weights
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import Asked, build_body, schema_of
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, ToolSpec, spec_name

DEFAULT_MAX_TOKENS = 1024
"""Tokens a text may have where the call sets no limit: a small model may repeat itself until it is stopped."""

MOST_TOKENS_OF_A_VALUE = 2048
"""Tokens a JSON answer may have where the call sets no limit."""

REPEAT_PENALTY = 0.2
"""Lowers the odds of a token by how often it occurred in the last 64 tokens.

It adds up over repetitions, and one copy of a word from the question costs little. llama.cpp's `repeat_penalty`, which
punishes the first copy most, makes a small model misread numbers.
"""

_LENGTH_PARAMS = ("max_tokens", "max_completion_tokens", "n_predict")
_REPEAT_PARAMS = ("frequency_penalty", "presence_penalty", "repeat_penalty", "dry_multiplier")


class LocalModel(LLM_Interface):
    """A model that runs inside this process, through llama.cpp.

    It needs no key, and a network only once, to fetch the default weights. All that ask for the same file with the
    same options share one server, which starts at the first question and can be reached from this process only.

    Where a call does not say otherwise, `temperature` is 0, repetition is penalised, and `max_tokens` is 1,024 for a text
    and 2,048 for a typed answer. In a typed answer, strings and lists without a limit get one. An answer that reaches it counts as
    truncated.

    Args:
        model: a name (`smollm2-135m` or `gemma3-270m`, fetched at first use) or the path of a .gguf file.
        threads: processors to compute on; None takes half of them, for contended ones make it slower.
        context_window: tokens it reads and writes together.
        seed: where a call gives a `temperature` above 0, makes the same question get the same answer; None is chance.
    """

    provider = "local"
    profile = PROFILES["local"]
    pays_requests = True

    @border
    def __init__(
        self,
        model: str | os.PathLike[str] = SMOLLM2_135M.name,
        *,
        threads: int | None = None,
        context_window: int = 4096,
        seed: int | None = None,
    ) -> None:
        given: dict[str, object] = {"threads": threads, "context_window": context_window}
        for name, value in given.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"LocalModel: {name} is {value!r}; it must be a whole number of at least 1.")
        self._model = os.fspath(model)
        self._threads = threads
        self.seed = seed
        self.context_window = self._room = context_window
        known = self._weights
        self.model_name = known.name if known else Path(self._model).stem

    @property
    def _weights(self) -> Weights | None:
        return KNOWN_WEIGHTS.get(self._model)

    def __repr__(self) -> str:
        options = {"context_window": self.context_window, "threads": self._threads, "seed": self.seed}
        given = "".join(f", {name}={value}" for name, value in options.items() if value is not None)
        return f"LocalModel({self._model!r}{given})"

    async def chat(self, messages: Sequence[Message], *, deadline: float | None = None, **asked: Any) -> ChatCompletion:
        """Ask once and return the whole reply; takes what `LLM_Interface.chat` does. The first question starts the model.

        Raises:
            ConfigError: the weights cannot be had, or are damaged; the extra "local" is missing.
            ContextTooLong: the messages do not fit into `context_window`.
            ProviderError: the model failed.
            DeadlineExceeded: `deadline` passed, the start included.
        """
        client, clock = await self._client(deadline)
        with self._as_asked(clock):
            reply = await client.chat(messages, deadline=clock.left(), **self._given(**asked))
        return _told_if_cut(reply, reply.text) if schema_of(asked.get("response_format")) else reply

    async def chat_stream(
        self, messages: Sequence[Message], *, deadline: float | None = None, **asked: Any
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Ask once and yield the reply in pieces; errors as in `chat`."""
        is_bounded, text = schema_of(asked.get("response_format")) is not None, ""
        client, clock = await self._client(deadline)
        with self._as_asked(clock):
            async with aclosing(client.chat_stream(messages, deadline=clock.left(), **self._given(**asked))) as stream:
                async for chunk in stream:
                    text += chunk.text
                    yield _told_if_cut(chunk, text) if is_bounded else chunk

    async def embed(self, texts: Sequence[str], *, deadline: float | None = None, **params: Any) -> list[list[float]]:
        """Return a vector for each text, from a second server of the same weights that gives embeddings (``--embeddings``).

        Give the path of weights that were made for embeddings. Of the models known by name, which write, it is the mean
        over the tokens: enough to try things out.

        Raises:
            ConfigError: the weights cannot be had, or are damaged; the extra "local" is missing.
            ProviderError: the model failed.
            DeadlineExceeded: `deadline` passed, the start included.
        """
        client, clock = await self._client(deadline, embeddings=True)
        with self._as_asked(clock):
            return await client.embed(texts, deadline=clock.left(), **params)

    def render(self, messages: Sequence[Message], *, stream: bool = False, **asked: Any) -> dict[str, Any]:
        """Return the body as llama.cpp will get it; takes what `LLM_Interface.render` does."""
        if own := [spec_name(tool) for tool in asked.get("tools") or () if "function" not in tool]:
            raise ConfigError(f"{', '.join(own)}: a local model has no server tools. Leave it out, or ask a service.")
        return build_body(self.model_name, Asked.of(messages, **self._given(**asked)), self.profile, stream=stream)

    def _given(
        self, *, tools: Sequence[ToolSpec] | None = None, response_format: dict[str, Any] | None = None, **params: Any
    ) -> dict[str, Any]:
        """Return what the client is given: the arguments, bounds, and a grammar for the schema where llama.cpp takes one."""
        schema = schema_of(response_format)
        filled: dict[str, Any] = {"tools": tools, **params}
        if all(filled.get(name) is None for name in _LENGTH_PARAMS):
            filled["max_tokens"] = min(MOST_TOKENS_OF_A_VALUE if schema is not None else DEFAULT_MAX_TOKENS, self._room)
        # Where several answers to one question are wanted, as for a vote, they may differ.
        if filled.get("temperature") is None and not current_sample():
            filled["temperature"] = 0
        # With a grammar the answer has bounds, and its words may repeat those of the question.
        if all(filled.get(name) is None for name in (*_REPEAT_PARAMS, "grammar")):
            filled["frequency_penalty"] = REPEAT_PENALTY
        if self.seed is not None and filled.get("seed") is None:
            filled["seed"] = self.seed
        if schema is None:
            return {"response_format": response_format or None, **filled}
        schema = bounded(schema)
        # llama.cpp takes no grammar together with tools.
        if not tools and filled.get("grammar") is None and reads_guidance() and (grammar := compact_grammar(schema)):
            return {**filled, "response_format": None, "grammar": grammar}
        shape = dict(response_format or {})
        shape["json_schema"] = {**shape["json_schema"], "schema": schema}
        return {"response_format": shape, **filled}

    async def _client(self, seconds: float | None, *, embeddings: bool = False) -> tuple[OpenAICompatible, Deadline]:
        """Return the client of the server, and the deadline of the call."""
        deadline = Deadline.after(seconds).stricter(current_deadline())
        deadline.check("starting the local model")
        options = ServerOptions(self.model_name, self._path(), self._threads or default_threads(), self._room)
        if embeddings:
            options = replace(options, embeddings="mean" if self._weights else "own")
        server = await deadline.wait(running_server(options, self._prepare), "starting the local model")
        return server.client, deadline

    @contextmanager
    def _as_asked(self, deadline: Deadline) -> Iterator[None]:
        """Let errors name the limit of the context, and the deadline that the caller gave instead of what was left of it."""
        try:
            yield
        except ContextTooLong as error:
            if error.limit is not None:
                raise
            raise ContextTooLong(
                self.model_name, limit=self._room, status=error.status, body=error.body, tries=error.tries
            ) from error
        except DeadlineExceeded as error:
            raise DeadlineExceeded(deadline.seconds, partial=error.partial, doing="the local model wrote") from error

    def _path(self) -> Path:
        weights = self._weights
        return weights.path() if weights else file_path(self._model, "model").absolute()

    def _prepare(self, stop: threading.Event) -> None:
        weights = self._weights
        if weights is not None:
            require_llama()  # before a download that would be of no use
            fetch_weights(weights, cancelled=stop)
        elif not self._path().exists() and not self._model.endswith(".gguf"):
            raise ConfigError(
                f"no model is called {self._model!r} and there is no such file. Known by name: "
                f"{', '.join(KNOWN_WEIGHTS)}. Give LocalModel one of them, or the path of a .gguf file."
            )


_Reply = TypeVar("_Reply", ChatCompletion, ChatCompletionChunk)


def _told_if_cut(reply: _Reply, text: str) -> _Reply:
    """Return the reply; its finish reason is "length" where our bounds ended a string or a list of the answer."""
    if not any(choice.finish_reason == "stop" for choice in reply.choices) or not is_ended_by_bound(text):
        return reply
    return replace(reply, choices=tuple(replace(choice, finish_reason="length") for choice in reply.choices))


def default_threads() -> int:
    """Return half of the processors that this process may use, at least one."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, there // 2)
