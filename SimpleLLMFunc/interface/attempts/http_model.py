"""A model behind HTTP: a question in, one try after another, a reply or its pieces out."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from SimpleLLMFunc.errors import AuthenticationError, BadRequest, ConfigError, RateLimited
from SimpleLLMFunc.interface.attempts.circuit import Circuit
from SimpleLLMFunc.interface.attempts.credentials import Credentials
from SimpleLLMFunc.interface.attempts.guard import check_real_call_allowed
from SimpleLLMFunc.interface.attempts.listener import tell_downgrade, tell_failed_try
from SimpleLLMFunc.interface.attempts.rate_limits import Limits
from SimpleLLMFunc.interface.attempts.reply_reader import check_status, read_chunks, read_reply, read_vectors
from SimpleLLMFunc.interface.attempts.retry import decide, now, pause_before_retry
from SimpleLLMFunc.interface.body_json import encode, text_size
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Address, Exchange, Headers, Hidden, HttpReply, HttpRequest, TryTimeout
from SimpleLLMFunc.interface.http.openai_client import ClientExchange, ClientPerLoop
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline, charge_try, current_deadline, estimate_tokens
from SimpleLLMFunc.interface.wires import (
    Asked,
    Kept,
    Wire,
    WireRequest,
    check_call_params,
    endpoint,
    refused_in,
    refuses_state,
    state_key,
    taken_apart,
    without_state,
)
from SimpleLLMFunc.logger import MASK, push_warning
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, CompletionUsage, Message

T = TypeVar("T")

IDLE_SECONDS = 60.0
_MOST_WARNED = 1_000
_MOST_REFUSED = 10_000


@dataclass(slots=True)
class Call:
    """One question and its tries so far.

    Attributes:
        asked: what the body says.
        spoken: the wire that the body is in, which reads the reply too.
        path, headers, kept: of the wire.
        body: what goes out, the same for each try, unless the service wants it otherwise.
        tokens: an estimate, 0 where there is no limit of tokens.
        key, ticket: of the latest try; no ticket where the circuit was open.
        block: ends with the latest try, and gives back what that took.
        has_new_key: the key was refused, and asked for again.
        failures: so far, by the kind of error; those without a request too, because the circuit was open.
    """

    asked: Asked
    spoken: Wire
    deadline: Deadline
    stream: bool
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: float = 0.0
    tokens: int = 0
    key: str = field(default="", repr=False)
    tries: int = 0
    ticket: int | None = None
    block: AsyncExitStack = field(default_factory=AsyncExitStack)
    failures: Counter[type[Exception]] = field(default_factory=Counter)
    kept: Kept = field(default_factory=Kept)
    has_new_key: bool = False


class HttpModel(LLM_Interface):
    """A model whose calls go over HTTP, and share its keys, its limits and its circuit.

    A subclass brings a wire, and sets what stands here.

    Attributes:
        wire: the protocol.
        api_params: go out with every request; what a call gives comes before it.
        timeout, deadline, max_retries, retry_delay: as of `OpenAICompatible`.
    """

    pays_requests = True
    takes_extra_body = True
    wire: Wire
    api_params: dict[str, Any]
    timeout: float
    deadline: float | None
    max_retries: int
    _address: Address
    _keys: Credentials
    _limits: Limits
    _client: ClientPerLoop | None  # the user's own, which sends the requests instead
    _whose: Headers  # go out with every request, as do those of the user:
    _extra_headers: Headers
    _guarded: bool  # whether real calls can be forbidden
    _lost: list[str]  # what a pickle did not hold, and is missing

    def __init__(self, retry_delay: float) -> None:
        self.retry_delay = retry_delay
        self._circuit = Circuit(retry_delay)
        self._warned: set[tuple[str, str]] = set()
        self._refused: dict[str, str] = {}  # state that the service does not take, and its words
        self._standing: tuple[tuple[str, str], ...] = ()  # downgrades of every request from now on

    # --- asking ------------------------------------------------------------------------------------------

    async def chat(self, messages: Sequence[Message], **asked: Any) -> ChatCompletion:
        """Ask once and return the whole reply; takes what `LLM_Interface.chat` does, with openai's `timeout` and `extra_body`.

        Raises:
            ProviderError: the service failed or refused.
            DeadlineExceeded: `deadline` passed.
            ConfigError: there is no key.
            UsageError: a parameter that cannot be given with a call, or real calls are forbidden.
        """
        call = await self._begin(Asked.of(messages, **asked), stream=False)
        completion = await self._answered(call, lambda reply: read_reply(reply, call.spoken, call.kept))
        self._limits.settle(call.tokens, completion.usage)
        return completion

    async def _answered(self, call: Call, read: Callable[[HttpReply], Awaitable[T]]) -> T:
        """Return what `read` gives of the first reply that it can read."""
        while True:
            try:
                try:
                    return await read(await self._send(call))
                finally:
                    await call.block.aclose()
            except AttemptFailed as failed:
                await self._pause(call, failed)

    async def chat_stream(self, messages: Sequence[Message], **asked: Any) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Ask once and yield the reply in pieces as they arrive; closing the generator closes the connection at once.

        A stream that breaks before it has shown any text is asked for again; the chunks of the new one carry a higher
        `tries`, and what came before is void.

        Raises:
            ProviderError: as `chat`; `StreamInterrupted` when the stream ends before the answer does.
        """
        call = await self._begin(Asked.of(messages, **asked), stream=True)
        while True:
            usage: CompletionUsage | None = None
            try:
                # No generator holds what is given back: a loop that shuts down closes its generators all at once,
                # the inner ones under the feet of the outer ones.
                try:
                    pieces = read_chunks(await self._send(call), call.spoken, call.kept)
                    try:
                        async for piece in pieces:
                            for chunk in piece:
                                usage = chunk.usage or usage
                                yield chunk
                    finally:
                        await pieces.aclose()
                finally:
                    await call.block.aclose()
            except AttemptFailed as failed:
                await self._pause(call, failed)
            else:
                self._limits.settle(call.tokens, usage)
                return

    async def _vectors(
        self, path: str, body: dict[str, Any], count: int, tokens: int, clock: Deadline
    ) -> tuple[list[list[float]], int | None]:
        """Return the vectors of one request for embeddings, and the tokens that they took."""
        call = Call(Asked([], None, None, {}), self.wire, clock, stream=False, path=path, timeout=self.timeout)
        call.body, call.tokens = encode(body), tokens
        return await self._answered(call, lambda reply: read_vectors(reply, count))

    def render(self, messages: Sequence[Message], *, stream: bool = False, **asked: Any) -> dict[str, Any]:
        """Return the body that goes out on the wire; takes what `LLM_Interface.render` does."""
        question = Asked.of(messages, **asked)
        check_call_params(question.params)
        return self._request(question, stream=stream)[0].body

    @property
    def wire_name(self) -> str:
        """The protocol that it is asked by."""
        return self.wire.name

    def shown_headers(self, messages: Sequence[Message], *, stream: bool = False, **asked: Any) -> Mapping[str, str]:
        """Return the headers of the wire and the user's own, with the name of a variable in place of the key."""
        request, _ = self._request(Asked.of(messages, **asked), stream=stream)
        own = Headers({**self._whose, **self._extra_headers})
        # What looks like the name of a variable would be one to a shell.
        hidden = {*own.secrets, *self._whose, *(name for name, value in own.items() if value.startswith("$"))}
        shown = {name: MASK if name in hidden else value for name, value in own.items()}
        return {**self._auth(f"${self._keys.variable}"), **shown, **request.headers}

    def url(self, *, stream: bool = False) -> str:
        """Return where requests go, without secrets."""
        return self._endpoint(self.wire.path(self.model_name, stream=stream)).shown

    def _endpoint(self, path: str) -> Address:
        return Address(endpoint(self._address, path))

    def _request(self, asked: Asked, *, stream: bool) -> tuple[WireRequest, float | None]:
        """Return what goes out, and the time limit of a try where the call gives one."""
        rest, extra, timeout = taken_apart(asked.params, self.api_params)
        asked = replace(asked, params=rest)
        said = ""
        if self._refused and (known := [key for each in asked.messages if (key := state_key(each)) in self._refused]):
            # Refused once, it would be refused at each turn of the conversation.
            said = self._refused[known[0]]
            asked = replace(asked, messages=without_state(asked.messages, known))
        request = self.wire.request(asked, self.model_name, self.profile, stream=stream)
        request.body.update(extra)  # unchanged, on every wire
        if (beta := "anthropic-beta") in request.headers and beta in self._extra_headers:
            both = f"{self._extra_headers[beta]},{request.headers[beta]}"
            request = replace(request, headers={**request.headers, beta: both})
        if said:
            told = [*request.downgrades, ("provider state: what was refused is left out", said)]
            request = replace(request, downgrades=told)
        return request, timeout

    async def _begin(self, asked: Asked, *, stream: bool) -> Call:
        self._check_whole()
        check_call_params(asked.params)
        call = Call(asked, self.wire, self._clock(asked.deadline), stream)
        await self._write(call)
        return call

    def _check_whole(self) -> None:
        if self._lost:
            raise ConfigError(
                f"{self.model_name} came out of a pickle, and secrets are never in a pickle: {', '.join(self._lost)}. "
                "Make a new model, or load it from its provider file."
            )

    async def _write(self, call: Call) -> None:
        """Write what is asked on the wire of the model."""
        asked, spoken = call.asked, self.wire

        def written() -> tuple[WireRequest, float | None, tuple[bytes, int]]:
            request, timeout = self._request(asked, stream=call.stream)
            return request, timeout, self._written(request.body, asked)

        request, timeout, (call.body, call.tokens) = await off_loop_if_large(text_size(asked.messages), written)
        self._tell((*self._standing, *request.downgrades))
        call.spoken, call.path, call.headers, call.kept = spoken, request.path, request.headers, request.kept
        call.timeout = timeout or self.timeout

    def _tell(self, downgrades: Iterable[tuple[str, str]]) -> None:
        """Tell the run, and once the log, of what is not asked for as it was wanted."""
        for what, said in downgrades:
            if (what, said) not in self._warned:
                if len(self._warned) >= _MOST_WARNED:
                    self._warned.clear()
                self._warned.add((what, said))
                push_warning(f"{self.model_name}: {what}: {said}")
            tell_downgrade(what, said)

    def _clock(self, seconds: float | None) -> Deadline:
        """Return the deadline of a call that is given so many seconds; the strictest around it counts."""
        return Deadline.after(seconds).stricter(Deadline.after(self.deadline)).stricter(current_deadline())

    def _written(self, body: dict[str, Any], asked: Asked) -> tuple[bytes, int]:
        """Return the body as bytes, and about how many tokens it takes; 0 where no limit counts them."""
        counts = self._limits.counts_tokens
        return encode(body), estimate_tokens(asked.messages, asked.tools, asked.response_format) if counts else 0

    def lent_client(self) -> AbstractAsyncContextManager[Any] | None:
        """Lend a client of the openai package for what is no chat, such as files and batches; None where that is unknown."""
        return None

    # --- one try ---

    async def _send(self, call: Call) -> HttpReply:
        """Send the request once and return the reply, its status checked; what that takes, `call.block` gives back."""
        if self._guarded:
            check_real_call_allowed(self.model_name)
        call.deadline.check("waiting to send the request")
        call.ticket = None
        await self._limits.wait(self.model_name, call.tokens, call.deadline)
        try:
            ticket, reply = await self._reply_to(call)
        finally:
            self._limits.landed(call.tokens)
        # With several keys, the limits may be those of any; a refusal says elsewhere how long to wait.
        if self._keys.is_single and reply.status < 400:
            self._limits.learn(reply.headers, now())
        await check_status(reply, call.spoken)
        self._circuit.passed(ticket)
        return reply

    async def _reply_to(self, call: Call) -> tuple[int, HttpReply]:
        """Return the ticket of the circuit, and the reply when its head has come."""
        call.ticket = ticket = await self._circuit.enter(call.deadline, call.tries)
        call.block.callback(self._circuit.forget, ticket)
        if self._client is None:
            call.key = await call.deadline.wait(self._keys.take(call.block), "waiting for the key")
        charge_try()
        call.tries += 1
        timeout = TryTimeout(call.deadline, first_byte=call.timeout, idle=IDLE_SECONDS)
        request = HttpRequest(self._endpoint(call.path), call.body, self._headers(call), self.model_name, call.tries)
        exchange = (
            Exchange(request, timeout)
            if self._client is None
            else ClientExchange(self._client.here(), call.path, request, timeout)
        )
        return ticket, await call.block.enter_async_context(exchange)

    async def _pause(self, call: Call, failed: AttemptFailed) -> None:
        """Wait before the next try.

        Raises:
            ProviderError: there shall be none.
        """
        if call.ticket is not None:
            self._note_failure(call.key, call.ticket, failed)
        if self._keys.asked is not None and isinstance(failed.error, AuthenticationError) and not call.has_new_key:
            call.has_new_key = True  # it may just have expired: ask once more, also with max_retries=0
            return
        if isinstance(failed.error, BadRequest) and await self._asks_otherwise(call, failed.error):
            tell_failed_try(failed.error, tries=call.tries, pause=0.0, model=self.model_name)
            return
        kind = type(failed.error)
        earlier = call.failures[kind]
        call.failures[kind] += 1
        pause = decide(
            failed,
            call.failures.total(),
            self.max_retries,
            left=call.deadline.left(),
            retry_delay=self.retry_delay,
            longest_wait=call.timeout,
            earlier=earlier,
        )
        was_sent = call.ticket is not None
        if pause is not None and was_sent:
            tell_failed_try(failed.error, tries=call.tries, pause=pause, model=self.model_name)
        await pause_before_retry(failed, pause, tries=call.tries if was_sent else None, trace_id=call.asked.trace_id)

    async def _asks_otherwise(self, call: Call, error: BadRequest) -> bool:
        """Write the request in another way where the service has said that it wants one; return whether."""
        if not call.asked.messages:
            return False  # embeddings
        states = [key for message in call.asked.messages if (key := state_key(message)) and key not in self._refused]
        if refuses_state(error) and states:
            if len(self._refused) > _MOST_REFUSED:
                self._refused.clear()
            self._refused.update(dict.fromkeys(states, error.body))
        elif refused_in(error) != "wire" or not self._changes_wire(call, error):
            return False
        await self._write(call)
        return True

    def _changes_wire(self, call: Call, error: BadRequest) -> bool:  # noqa: ARG002
        """Speak another wire from now on, if the service says that it wants one and the user has not said which."""
        return False

    def _note_failure(self, key: str, ticket: int, failed: AttemptFailed) -> None:
        """Tell the keys and the circuit of a request that failed."""
        self._keys.spare(key, failed)
        if isinstance(failed.error, (AuthenticationError, RateLimited)) and not self._keys.is_single:
            # The key is limited or refused, not the model: another key may go at once, else the first one that is ready.
            failed.retry_after = self._keys.ready_in()
            failed.again = failed.again if failed.retry_after else "always"
        if failed.retry_after != 0 or not isinstance(failed.error, RateLimited):
            self._circuit.failed(ticket, failed)

    def _headers(self, call: Call) -> Hidden[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if call.stream else "application/json",
        }
        if call.key:
            headers.update(self._auth(call.key))
        return Hidden({**headers, **self._whose, **self._extra_headers, **call.headers})

    def _auth(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry a key; what a function gives is a token, such as a cloud's."""
        return self.wire.auth(key) if self._keys.asked is None else {"Authorization": f"Bearer {key}"}
