"""CachedLLM: answers kept in a file, so that the same question is paid once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded, UsageError
from SimpleLLMFunc.interface.attempts import Downgrades, noting_downgrades, tell_downgrade
from SimpleLLMFunc.interface.body_json import decode, encode
from SimpleLLMFunc.interface.composite.answer_store import AnswerStore
from SimpleLLMFunc.interface.composite.coalescing import share_request
from SimpleLLMFunc.interface.composite.in_front import ModelInFront
from SimpleLLMFunc.interface.composite.question import chunks_of, current_sample, reply_of
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.interface.spending import Deadline, charge_unkept, current_deadline
from SimpleLLMFunc.interface.wires import ReplyAssembler, chunk_of_reply, number
from SimpleLLMFunc.logger import border, redact
from SimpleLLMFunc.runtime import Worker
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message
from SimpleLLMFunc.utils import Uncopied

T = TypeVar("T")

_FORMAT = 1
"""Changes when what is kept, or what it is kept by, changes."""

_DOWNGRADES = "SimpleLLMFunc.downgrades"
_DEFAULT_BYTES = 512 * 1024 * 1024
_SMALLEST_BYTES = 64 * 1024

_ENDS = frozenset({"stop", "tool_calls", "function_call", "eos", "end_turn", "stop_sequence", "tool_use"})
"""Finish reasons of answers that are whole; an answer that ended otherwise is not kept."""


class CachedLLM(Uncopied, ModelInFront):
    """A model whose answers are kept in a SQLite file; the same question is sent once.

    The same question: the same body on the wire (messages, tools, schema, parameters, model), the same address, the
    same version of this library. A stream and a whole reply are the same question. Errors are never kept, nor are
    answers that are empty, truncated, blocked or refused, nor one that holds a key.

    A kept reply says ``cached=True`` and ``tries=0``; its usage is what it took when it was paid, at a cost of 0, and
    takes nothing from budgets. Identical questions asked at the same time on one event loop wait for the first one (a
    stream that is being read is not waited for).

    The file may be shared by processes. It holds answers, no questions. A damaged one is set aside with a warning.

    Args:
        llm: the model that is asked for what is not kept.
        path: of the file; made at the first question.
        max_bytes: of the file, about; beyond that the answers that were not used for longest go.
        max_age: seconds after which an answer is asked for again; None keeps it.

    Raises:
        ConfigError: `llm` is no model, or a limit cannot be.
    """

    keeps_answers = True

    @border
    def __init__(
        self,
        llm: LLM_Interface,
        path: str | PathLike[str],
        *,
        max_bytes: int = _DEFAULT_BYTES,
        max_age: float | None = None,
    ) -> None:
        given: object = llm
        if not isinstance(given, LLM_Interface):
            raise ConfigError(f"CachedLLM takes a model (OpenAICompatible, LocalModel …), not {type(given).__name__}.")
        super().__init__(llm)
        self.path = file_path(path).absolute()
        self.max_bytes = int(number("max_bytes", max_bytes, least=_SMALLEST_BYTES))
        self.max_age = None if max_age is None else number("max_age", max_age, above=0)
        self._store = AnswerStore(self.path, self.max_bytes, self.max_age)
        self._worker = Worker()  # the store does one thing at a time

    # --- asking ------------------------------------------------------------------------------------------

    async def chat(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> ChatCompletion:
        """Return the kept reply, or ask and keep what comes; takes what `LLM_Interface.chat` does.

        Raises:
            ProviderError: the service failed or refused.
            DeadlineExceeded: `deadline` passed.
            ConfigError: the file cannot be used.
        """
        clock = self._clock(deadline)
        body = self._asked(messages, options)
        key, reply = await self._in_time(clock, lambda: self._look_up(body))
        if reply is None:

            async def ask() -> tuple[ChatCompletion, bool]:
                # Another call may have written it since the look into the file.
                kept = await self._in_time(clock, lambda: self._kept(key))
                if kept is not None:
                    return kept, True
                charge_unkept()
                try:
                    with noting_downgrades() as noted:
                        fresh = await reply_of(self.llm, messages, trace_id=trace_id, deadline=clock.left(), **options)
                except DeadlineExceeded as error:
                    raise clock.retold(error) from error.__cause__
                fresh = _with_downgrades(fresh, noted)
                return fresh, await self._keep(key, fresh, clock)

            reply, is_anothers = await share_request((self.path, key), ask, clock)
            if not is_anothers and not reply.cached:
                return reply
            reply = _as_kept(reply)
        _tell_downgrades(reply)
        return reply

    async def chat_stream(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the kept reply, or ask and keep what came when it is complete; errors as in `chat`."""
        clock = self._clock(deadline)
        body = self._asked(messages, options)
        key, reply = await self._in_time(clock, lambda: self._look_up(body))
        if reply is not None:
            _tell_downgrades(reply)
            yield chunk_of_reply(reply)
            return
        charge_unkept()
        assembler = ReplyAssembler()
        source = chunks_of(self.llm, messages, trace_id=trace_id, deadline=clock.left(), **options)
        with noting_downgrades() as noted:
            try:
                async with aclosing(source):
                    async for chunk in source:
                        assembler.add(chunk)
                        yield chunk
            except DeadlineExceeded as error:
                raise clock.retold(error) from error.__cause__
        if assembler.is_complete:
            await self._keep(key, _with_downgrades(assembler.completion(), noted), clock)

    async def embed(self, texts: Sequence[str], *, deadline: float | None = None, **params: Any) -> list[list[float]]:
        """Return the kept vectors, and ask for those that are not kept; errors as in `chat`."""
        clock = self._clock(deadline)
        asked = answering_models(self.llm)[0]
        about = ["embed", asked.provider, asked.base_url, asked.model_name, params]
        keys = {text: key_of([*about, text]) for text in texts}
        found = await self._in_time(clock, lambda: {text: self._store.get(key) for text, key in keys.items()})
        missing = [text for text, kept in found.items() if kept is None]
        if missing:
            fresh = await self.llm.embed(missing, deadline=clock.left(), **params)
            new = {text: encode(vector) for text, vector in zip(missing, fresh, strict=True)}
            found |= new
            with suppress(DeadlineExceeded):  # the vectors are there, though they are still being written
                await self._in_time(clock, lambda: self._store.put_all({keys[text]: new[text] for text in new}))
        return [decode(found[text] or b"[]") for text in texts]

    def _clock(self, deadline: float | None) -> Deadline:
        clock = Deadline.after(deadline).stricter(current_deadline())
        clock.check("looking into the cache")
        return clock

    # --- what is kept, and by what -----------------------------------------------------------------------

    def _asked(self, messages: Sequence[Message], options: Mapping[str, Any]) -> list[Any]:
        """Return what the question is, as data: each model that may answer it, with its address and its body."""
        sample = current_sample()
        return [
            *([["sample", sample]] if sample else []),
            *(
                [
                    part.provider,
                    part.base_url,
                    {name: value for name, value in part.render(messages, **options).items() if value is not None},
                    # Chat completions is not named: 1.0 knew no other wire, and what it kept is still found.
                    *([] if part.wire_name == "chat" else [part.wire_name, part.url()]),
                ]
                for part in answering_models(self.llm)
            ),
        ]

    def _look_up(self, body: list[Any]) -> tuple[bytes, ChatCompletion | None]:
        key = key_of(body)
        return key, self._kept(key)

    def _kept(self, key: bytes) -> ChatCompletion | None:
        data = self._store.get(key)
        if data is None:
            return None
        try:
            reply = ChatCompletion.from_dict(decode(data))
        except (ValueError, AttributeError):  # checked by its checksum, so it was written so
            return None
        return _as_kept(reply)

    async def _keep(self, key: bytes, reply: ChatCompletion, clock: Deadline) -> bool:
        """Keep a reply if it may be kept; return whether."""
        if not _may_be_kept(reply):
            return False
        try:
            return await self._in_time(clock, lambda: self._write(key, reply))
        except DeadlineExceeded:
            return False  # the answer is there: that it is still being written is no reason to fail

    def _write(self, key: bytes, reply: ChatCompletion) -> bool:
        try:
            told = {**reply.raw, **reply.to_dict()}
            data = encode(told)
            # Log-probabilities repeat the text piece by piece, under the name "token".
            text = encode({**told, "choices": [{**each, "logprobs": None} for each in told["choices"]]}).decode()
        except UsageError:  # a double with something in it that is no JSON
            return False
        if redact(text) != text:  # what looks like a key stays in no file
            return False
        self._store.put(key, data)
        return True

    async def _in_time(self, clock: Deadline, work: Callable[[], T]) -> T:
        """Return what `work` gives in a worker thread; another process may hold the file for seconds.

        Raises:
            DeadlineExceeded: that took too long.
        """
        return await clock.wait(self._worker.run(work), "looking into the cache")

    def clear(self) -> None:
        """Let all answers in the file go."""
        self._store.clear()

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        self._store.close()

    # --- as an object ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm!r}, {redact(str(self.path))!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return cached_llm_again, (type(self), self.llm, self.path, self.max_bytes, self.max_age)


def key_of(body: Any) -> bytes:
    """Return the key of a question: the sha256 of its canonical JSON.

    Raises:
        UsageError: it holds something JSON cannot say.
    """
    # The version that wrote the first keys, and not this one: a new version loses no answer.
    question = {"library": "1.0.0", "format": _FORMAT, "asked": body}
    try:
        text = json.dumps(question, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the request cannot be written as JSON: {error}. Give plain data.") from error
    return hashlib.sha256(text.encode()).digest()


def _may_be_kept(reply: ChatCompletion) -> bool:
    """Whether the reply would be as good an answer the next time."""
    if reply.cached or not reply.choices:
        return False
    for choice in reply.choices:
        message = choice.message
        if choice.finish_reason is not None and choice.finish_reason.lower() not in _ENDS:
            return False
        if message.refusal or not ((message.content or "").strip() or message.tool_calls):
            return False
    return True


def _with_downgrades(reply: ChatCompletion, noted: Downgrades) -> ChatCompletion:
    """Return the reply with what was asked for in another way, which is kept with it."""
    return replace(reply, raw={**reply.raw, _DOWNGRADES: list(noted.told)}) if noted.told else reply


def _tell_downgrades(reply: ChatCompletion) -> None:
    """Tell the run what a kept reply was not asked for."""
    for what, said in reply.raw.get(_DOWNGRADES) or ():
        tell_downgrade(what, said)


def _as_kept(reply: ChatCompletion) -> ChatCompletion:
    return replace(reply, usage=reply.usage and replace(reply.usage, cost=0.0), tries=0, cached=True)


def cached_llm_again(
    cls: type[CachedLLM], llm: LLM_Interface, path: Path, max_bytes: int, max_age: float | None
) -> CachedLLM:
    """Return a `CachedLLM` as it comes out of a pickle."""
    return cls(llm, path, max_bytes=max_bytes, max_age=max_age)
