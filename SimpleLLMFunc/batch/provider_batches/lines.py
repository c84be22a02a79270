"""The lines of an OpenAI batch file: a request out of a row, and an answer back into a value.

An answer is read by the one engine, as if it had just come: the status, the reply, the review of a live call.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args

from pydantic_core import from_json, to_json

from SimpleLLMFunc.base.metadata import RunMetadata
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import Answer, AnswerReview, Run, generate_trace_id
from SimpleLLMFunc.batch.provider_batches.answer_store import KeptLine
from SimpleLLMFunc.batch.relayed import Decorated
from SimpleLLMFunc.batch.rows.feed import Feed
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.errors import BadReply, BadRequest, ConfigError, ProviderError, ServerUnavailable, UsageError
from SimpleLLMFunc.interface.body_json import encode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import paid_already
from SimpleLLMFunc.interface.wires import CHAT, Received, Wire
from SimpleLLMFunc.interface.wires.responses import ResponsesWire
from SimpleLLMFunc.logger import async_log_context, push_warning, redact_head
from SimpleLLMFunc.runtime import in_thread, off_loop_if_large
from SimpleLLMFunc.storage import KEY_BYTES
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatCompletionChunk, Usage, mapping, text_or_none
from SimpleLLMFunc.utils import get_last_item_of_async_generator

R = TypeVar("R")

_DISCOUNT = 0.5
"""The share of the usual price that a batch costs."""

_WIRES: tuple[Wire, ...] = (CHAT, ResponsesWire())

MOST_LINES = 50_000
MOST_BYTES = 200_000_000
"""What a file of requests may have at most, by OpenAI's rules."""

_MODES = get_args(OutputMode)
_ID = re.compile(rf"([0-9a-f]{{{2 * KEY_BYTES}}})-({'|'.join(_MODES)})-(\d{{1,9}})\Z")


@dataclass(frozen=True, slots=True)
class RequestId:
    """The ``custom_id`` of a request: the same row of the same function has the same one.

    Attributes:
        key: hash of the row and of all that its answer depends on.
        mode: how the answer is asked for, which is how it is read.
        index: place of the row in the input, from 0.
    """

    key: bytes
    mode: OutputMode
    index: int

    def __str__(self) -> str:
        return f"{self.key.hex()}-{self.mode}-{self.index}"

    @classmethod
    def read(cls, text: object) -> RequestId | None:
        """Return the id in a text, None if we did not write it."""
        found = _ID.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            return None
        mode: Any = found[2]
        return cls(bytes.fromhex(found[1]), mode, int(found[3]))


def check_single_shot(function: Decorated[Any]) -> None:
    """Return if one request is all that a row of this function takes.

    Raises:
        UsageError: it has tools, or the model cannot be asked for its answer in one request.
    """
    if function.has_tools:
        raise UsageError(
            f"{function.name!r} has tools, and a batch file holds one request a row: no process can run a tool "
            "and ask again. Use f.map() without engine=, or take the toolkit away: f.with_options(toolkit=None)."
        )


def endpoint_of(llm: LLM_Interface) -> str:
    """Return where the service of a batch asks a model.

    Raises:
        ConfigError: OpenAI's batches do not speak the model's protocol.
    """
    for wire in _WIRES:
        if wire.name == llm.wire_name:
            return f"/v1{wire.path(llm.model_name, stream=False)}"
    raise ConfigError(
        f"{llm.model_name} is asked by {llm.wire_name}, and OpenAI's batches hold chat completions and Responses. "
        "Use f.map() without engine=, or an OpenAICompatible at an address that has batches."
    )


@dataclass(frozen=True, slots=True)
class RequestLine:
    """A request in a file.

    Attributes:
        line: with the newline.
        tokens: that it will probably read.
    """

    id: RequestId
    line: bytes
    tokens: int


def request_line(
    function: Decorated[Any], key: bytes, index: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> RequestLine:
    """Return the request of a row.

    Raises:
        UsageError: it cannot be written as JSON, or is too long for any file.
    """
    preview = function.preview(args, kwargs)
    request = RequestId(key, preview.output_mode, index)
    line = encode({"custom_id": str(request), "method": "POST", "url": endpoint_of(function.llm), "body": preview.body})
    if len(line) >= MOST_BYTES:
        raise UsageError(f"the request takes {len(line)} bytes, and a file may have {MOST_BYTES}. Shorten it.")
    return RequestLine(request, line + b"\n", preview.input_tokens)


class RequestFile:
    """A new file of requests in a folder, with at most `MOST_LINES` of them and `MOST_BYTES`.

    Attributes:
        modes: how each of the requests is asked, by its key.
        tokens: that all of them will probably read.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{secrets.token_hex(8)}.jsonl"
        self.modes: dict[bytes, OutputMode] = {}
        self.tokens = 0
        self._lines = 0

    def add(self, requests: Sequence[RequestLine]) -> Sequence[RequestLine]:
        """Write as many requests as there is room for, and return the others; waits for the disk."""
        with self.path.open("ab") as file:
            for number, request in enumerate(requests):
                if self._lines >= MOST_LINES or file.tell() + len(request.line) > MOST_BYTES:
                    return requests[number:]
                file.write(request.line)
                self._lines += 1
                self.modes[request.id.key] = request.id.mode
                self.tokens += request.tokens
        return ()


async def request_files(
    feed: Feed, requests_of: Callable[[Sequence[InputRow], Collection[bytes]], Sequence[RequestLine]], folder: Path
) -> AsyncGenerator[RequestFile, None]:
    """Yield files with the requests of all rows, each when it is full.

    Args:
        feed: the rows.
        requests_of: returns the requests of some rows, given the keys in the file under way; called in a thread.
        folder: for the files.
    """
    file: RequestFile | None = None
    async with aclosing(feed.pieces()) as pieces:
        async for piece in pieces:
            requests = await in_thread(requests_of, piece, file.modes if file is not None else {})
            while requests:
                file = file or RequestFile(folder)
                requests = await in_thread(file.add, requests)
                if requests:  # the rest found no room
                    yield file
                    file = None
    if file is not None:
        yield file


def answers_in(file: BinaryIO, name: str) -> Iterator[KeptLine | None]:
    """Yield the answers in a file, None for the ``custom_id`` of another program; a line that is no JSON is passed over."""
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            data = from_json(line)
        except ValueError:
            push_warning(f"{name}, line {number}: it is not JSON, so its row has no answer.")
            continue
        request = RequestId.read(mapping(data).get("custom_id"))
        status = mapping(mapping(data).get("response")).get("status_code")
        is_good = isinstance(status, int) and 200 <= status < 300
        yield None if request is None else KeptLine(request.key, request.mode, request.index, is_good, line)


def problem_code(line: bytes) -> str:
    """Return the code by which the service says why a request has no response; empty where it has one."""
    return text_or_none(mapping(mapping(from_json(line)).get("error")).get("code")) or ""


async def answer_of(function: Decorated[R], line: KeptLine) -> Answer[R]:
    """Return the answer of a function in a line of a file of answers.

    Raises:
        SimpleLLMFuncError: what a live call with this reply raises, but that nothing is asked again.
    """
    run = Run(function.name, generate_trace_id(function.name), about=RunMetadata(function.metadata))
    answer_tool = function.output.answer_tool() if line.mode == "tool" else None
    request = ModelRequest(_Told(line.line, function.llm), [], answer_tool=answer_tool, output_mode=line.mode)
    review = AnswerReview(run, retry_times=0, spec=function.output, repair=function.repair, max_reasks=0)
    with paid_already():
        async with async_log_context(run.trace_id, run.func_name), run:
            await get_last_item_of_async_generator(react_events(request, None, review, run))
    assert run.parsed is not None, "an accepted answer was parsed"
    assert run.reply is not None, "a finished run has a reply"
    return Answer(run.parsed.value, run.reply.text, line.mode, run.usage)


class _Told(LLM_Interface):
    """A model that has answered already: it gives the answer in a line."""

    provider = "batch"

    def __init__(self, line: bytes, llm: LLM_Interface) -> None:
        self._line = line
        self._llm = llm
        self.model_name = llm.model_name

    async def chat(self, *_: Any, **__: Any) -> ChatCompletion:  # it was asked long ago
        """Give the answer."""
        try:
            reply = await off_loop_if_large(len(self._line), lambda: _reply_in(self._line, self.model_name))
        except AttemptFailed as failed:
            error = failed.error
        else:
            # As from a cache: it was paid when the batch ran, and is no request of now.
            return replace(reply, cached=True)
        raise error

    def chat_stream(self, *_: Any, **__: Any) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Raise: a file of answers holds no streams."""
        raise UsageError("a batch file holds whole answers")

    def price(self, usage: Usage, model: str = "") -> float | None:
        """Return the price of a batch."""
        return batch_price(self._llm, usage, model)


def batch_price(llm: LLM_Interface, usage: Usage, model: str = "") -> float | None:
    """Return what a usage costs in a batch; None when unknown."""
    cost = llm.price(usage, model)
    return None if cost is None else cost * _DISCOUNT


def usage_in(line: bytes, llm: LLM_Interface) -> Usage:
    """Return what the answer in a line took; nothing where it is no reply."""
    usage, model = NO_USAGE, ""
    with suppress(AttemptFailed, ProviderError):
        reply = _reply_in(line, llm.model_name)
        usage, model = (NO_USAGE if reply.usage is None else reply.usage.tokens), reply.model
    return replace(usage, cost=batch_price(llm, usage, model))


def _reply_in(line: bytes, model: str) -> ChatCompletion:
    """Return the reply in the answer of a line.

    Raises:
        AttemptFailed: it is broken, or the status is that of a failure.
        ProviderError: the service says that it has no answer.
    """
    try:
        data = from_json(line)
    except ValueError:
        data = None
    response, error = mapping(mapping(data).get("response")), mapping(data).get("error")
    status, body, request_id = response.get("status_code"), response.get("body"), response.get("request_id")
    if isinstance(status, int):
        headers = {"x-request-id": request_id} if isinstance(request_id, str) else {}
        received = Received(model, status=status, headers=headers)
        wire = _WIRES[isinstance(body, Mapping) and "output" in body]
        if not 200 <= status < 300:
            raise wire.error(to_json(body), received)
        return wire.reply(to_json(body), received)
    said = error.get("message") or error.get("code") if isinstance(error, Mapping) else error
    if said and problem_code(line) == "batch_failed":
        raise BadRequest(model, body=redact_head(f"the batch was not accepted: {said}", 500))
    if said:
        raise ServerUnavailable(model, body=redact_head(f"the batch did not answer this request: {said}", 500))
    head = redact_head(line[:2000].decode("utf-8", "replace"), 500)
    raise BadReply(model, problem="the line has no response", head=head)
