"""Requests over HTTP: the caller, the arguments, the response."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.events import ReActEvent, RunFinished, RunStarted
from SimpleLLMFunc.base.run import Result, watching
from SimpleLLMFunc.errors import SchemaError, SimpleLLMFuncError, UsageError, cut
from SimpleLLMFunc.interface.spending import deadline_scope
from SimpleLLMFunc.journal import answer, paused, told_answer
from SimpleLLMFunc.llm_decorator.decorated import Chat
from SimpleLLMFunc.logger import push_error, push_info, push_warning
from SimpleLLMFunc.runtime import THIS_MACHINE, in_thread, off_loop_if_large, unless_gone
from SimpleLLMFunc.serve.browser import PROTOCOLS, BrowserStream
from SimpleLLMFunc.serve.http_about import PAGE_POLICY, openapi_document, page_of
from SimpleLLMFunc.serve.http_callers import Caller, Callers
from SimpleLLMFunc.serve.http_responses import SSE_HEADERS, Events, Problem, json_response, problem_of
from SimpleLLMFunc.serve.offer import Offer
from SimpleLLMFunc.tools import ArgumentsError
from SimpleLLMFunc.tools.schemas import SchemaValidation
from SimpleLLMFunc.type import Confident
from SimpleLLMFunc.utils import refuse_constant

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(eq=False, repr=False)
class Api:
    """The endpoints of the server.

    Attributes:
        offers: the functions, by name.
        chats: the chats, by name.
        callers: who may call.
        journal: whose waiting runs are shown, or None.
        deadline: seconds for a call, or None.
        max_body: bytes that a request may bring.
        title: of the page and of the OpenAPI document.
    """

    offers: Mapping[str, Offer]
    chats: Mapping[str, Chat]
    callers: Callers
    journal: Path | None
    deadline: float | None
    max_body: int
    title: str

    def __post_init__(self) -> None:
        facts = {"needs_key": bool(self.callers), "shows_waiting": self.journal is not None}
        self.openapi = openapi_document(self.offers, title=self.title, **facts)
        self._journal = self.journal or Path()  # asked only where there is one
        self._validations = {name: _validation(offer) for name, offer in self.offers.items()}
        functions = {name: offer.function for name, offer in self.offers.items()}
        self._for_pages: Mapping[str, Mapping[str, Any]] = {"chats": self.chats, "functions": functions}

    async def health(self, _: Request) -> Response:
        """Say that the server runs."""
        return json_response(json.dumps({"status": "ok"}))

    async def page(self, request: Request) -> Response:
        """Return a page that describes the functions; callers without a key read only how to call."""
        from starlette.responses import HTMLResponse

        status, offers, headers = 200, self.offers, {"content-security-policy": PAGE_POLICY}
        try:
            self._admitted(request)
        except Problem as problem:
            if problem.status != 401:
                raise
            status, offers, headers = 401, {}, headers | problem.headers
        shown = page_of(offers, self.title, str(request.base_url), needs_key=bool(self.callers))
        return HTMLResponse(shown, status, headers)

    async def document(self, request: Request) -> Response:
        """Give the OpenAPI document."""
        self._admitted(request)
        return json_response(json.dumps(self.openapi))

    async def call(self, request: Request) -> Response:
        """Return the whole answer."""
        began = time.monotonic()
        offer, caller, args, kwargs = await self._asked(request)
        task = asyncio.create_task(self._whole(offer, args, kwargs), context=caller.context())
        try:
            if not await unless_gone(task, request.receive):
                return json_response("{}", 499)  # the client has left
            text = task.result()
        except (Problem, asyncio.CancelledError) as error:
            problem = error if isinstance(error, Problem) else problem_of(error)
            self._log(offer.name, caller, began, problem.status)
            raise problem from None
        self._log(offer.name, caller, began, 200)
        return json_response(text)

    async def stream(self, request: Request) -> Events:
        """Return the answer as server-sent events."""
        began = time.monotonic()
        offer, caller, args, kwargs = await self._asked(request)
        log = partial(self._log, offer.name, caller, began)
        return Events(self._pieces(offer, args, kwargs), caller.context, log, SSE_HEADERS)

    async def browser(self, request: Request) -> Events:
        """Return the answer in the web page's protocol, which the path names."""
        began = time.monotonic()
        caller = self._admitted(request)
        kind, name, protocol = (request.path_params[each] for each in ("kind", "name", "protocol"))
        known = self._for_pages.get(kind, {})
        if name not in known or protocol not in PROTOCOLS:
            raise Problem(
                404, f"There is no {cut(name, 100)!r} for {cut(protocol, 20)}. There are: {', '.join(known)}."
            )
        await caller.take()
        body = _parsed(await self._body(request))
        try:
            stream = BrowserStream(known[name], body, protocol)
        except (UsageError, ValueError, RecursionError) as error:
            raise Problem(422, str(error), "ArgumentsError") from None
        return Events(self._unnamed(stream), caller.context, partial(self._log, name, caller, began), stream.headers)

    async def waiting(self, request: Request) -> Response:
        """Return what waits in the journal, whose file need not be there yet."""
        await self._admit(request)
        try:
            found = await in_thread(paused, self._journal) if self._journal.exists() else []
        except SimpleLLMFuncError as error:
            raise _journal_problem(error) from error
        return json_response(json.dumps({"waiting": found}))

    async def settle(self, request: Request) -> Response:
        """Store an answer to what waits in the journal."""
        caller = await self._admit(request)
        given = _parsed(await self._body(request))
        if not isinstance(given, dict):
            raise Problem(422, "The body must be a JSON object.")
        key, call_id = str(given.get("key", "")), str(given.get("call_id", ""))
        if not self._journal.exists():
            raise Problem(409, "Nothing waits for an answer: there is no journal yet.")
        try:
            await in_thread(answer, self._journal, key, call_id, told_answer(given))
        except UsageError as error:
            raise Problem(409, str(error), "UsageError") from None
        except SimpleLLMFuncError as error:
            raise _journal_problem(error) from error
        push_info(f"{caller.name} answered {call_id} of {key!r}")
        return json_response(json.dumps({"answered": True}))

    async def _unnamed(self, stream: BrowserStream) -> AsyncGenerator[tuple[str, str], None]:
        with deadline_scope(self.deadline):
            async with aclosing(stream.data()) as lines:
                async for line in lines:
                    yield "", line

    async def _admit(self, request: Request) -> Caller:
        """Return the caller, and count the request as a call."""
        caller = self._admitted(request)
        await caller.take()
        self._check_length(request.headers.get("content-length", ""))
        return caller

    def guarded(self, endpoint: ASGIApp) -> Callable[[Request], Awaitable[ASGIApp]]:
        """Return the endpoint of another protocol behind the same keys, rates and budgets."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            length = 0

            async def bounded() -> Message:
                nonlocal length
                message = await receive()
                length += len(message.get("body", b""))
                self._check_length(str(length))
                return message

            with deadline_scope(self.deadline):
                await endpoint(scope, bounded, send)

        async def admitted(request: Request) -> ASGIApp:
            caller = await self._admit(request)

            async def answered(*message: Any) -> None:
                await asyncio.create_task(timed(*message), context=caller.context())

            return answered

        return admitted

    @staticmethod
    def _log(name: str, caller: Caller, began: float, status: int) -> None:
        push_info(f"{caller.name} called {name}: {status} after {time.monotonic() - began:.3f} s")

    # --- who asks, and what ---

    def _admitted(self, request: Request) -> Caller:
        """Return the caller; this machine where the server has no keys.

        Raises:
            Problem: the key is missing or wrong; or, without keys, a web page calls by another host name.
        """
        if not self.callers:
            origin = request.headers.get("origin")
            named = [f"//{request.headers.get('host', '')}", *([] if origin is None else [origin])]
            try:
                hosts = [urlsplit(each).hostname for each in named]
            except ValueError:
                raise Problem(400, "The header Host or Origin is no address.") from None
            if any(host not in THIS_MACHINE for host in hosts):
                raise Problem(403, "Without keys only this machine may call, by its own names.")
            return self.callers.this_machine
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        caller = self.callers.find(key.strip()) if scheme.lower() == "bearer" and key.strip() else None
        if caller is None:
            raise Problem(
                401,
                "Send your key as a bearer token, in the header Authorization.",
                headers={"www-authenticate": "Bearer"},
            )
        return caller

    async def _asked(self, request: Request) -> tuple[Offer, Caller, tuple[Any, ...], dict[str, Any]]:
        caller = self._admitted(request)
        name = request.path_params["name"]
        offer = self.offers.get(name)
        if offer is None:
            raise Problem(404, f"There is no function {cut(name, 100)!r}. There are: {', '.join(self.offers)}.")
        await caller.take()
        body = await self._body(request)
        args, kwargs = await off_loop_if_large(len(body), partial(self._read, offer, body))
        return offer, caller, args, kwargs

    async def _body(self, request: Request) -> bytes:
        """Return the JSON text in a request's body."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, f"The body must be application/json, not {cut(kind, 100) or 'nothing'!r}.")
        self._check_length(request.headers.get("content-length", ""))
        body = bytearray()
        async for piece in request.stream():
            body += piece
            self._check_length(str(len(body)))
        return bytes(body)

    def _check_length(self, length: str) -> None:
        if length.isdigit() and int(length) > self.max_body:
            raise Problem(413, f"The body may have {self.max_body} bytes.", headers={"connection": "close"})

    def _read(self, offer: Offer, body: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = _parsed(body)
        if not isinstance(arguments, dict):
            raise Problem(422, "The body must be a JSON object with the arguments by name.")
        # Strictly by the published schema: a caller is no model that guesses.
        validation = self._validations[offer.name]
        try:
            violations = validation.violations(arguments) if validation is not None else []
        except SchemaError as error:
            raise Problem(422, f"The arguments cannot be checked: {error}", "ArgumentsError") from None
        if violations:
            said = [f"{path or 'arguments'}: expected {wanted}, got {got}" for path, wanted, got in violations[:5]]
            raise Problem(422, "; ".join(said), "ArgumentsError")
        try:
            args, kwargs = offer.tool.bind(arguments)
        except ArgumentsError as misfit:
            raise Problem(422, f"The arguments do not fit {offer.name}: {misfit}", "ArgumentsError") from None
        return tuple(args), kwargs

    # --- answers ---

    async def _whole(self, offer: Offer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the body of a whole answer, JSON.

        Raises:
            Problem: the call failed.
        """
        try:
            with deadline_scope(self.deadline):
                result = await offer.answers.result(args, kwargs)
            return await in_thread(_answer, offer, result.value, _facts(result))
        except Exception as error:  # noqa: BLE001 - the caller is told every failure, of tools and of ours
            raise problem_of(error, offer.name) from None

    async def _pieces(
        self, offer: Offer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[tuple[str, str], None]:
        """Yield the events of a streamed answer, by name and data, JSON.

        Raises:
            Problem: the call failed.
        """
        facts: dict[str, Any] = {}

        def note(trace_id: str, event: ReActEvent) -> None:
            if isinstance(event, RunStarted):
                facts.setdefault("trace_id", trace_id)  # the runs inside of it start later
            elif isinstance(event, RunFinished):
                facts["usage"], facts["cost"] = _usage(event.usage), event.usage.cost

        source = offer.pipeline.items if offer.is_iterator else offer.answers.stream
        try:
            if getattr(offer.answers, "voting", None) is not None:
                with deadline_scope(self.deadline):
                    voted = await offer.answers.result(args, kwargs)
                yield "value", await in_thread(_piece, "value", voted.value)
                yield "result", await in_thread(_answer, offer, voted.value, _facts(voted))
                return
            value: Any = None
            texts: list[str] = []
            # Around the whole stream: functions that ask several times start runs while it goes on.
            with deadline_scope(self.deadline), watching(note):
                async with aclosing(source(args, kwargs)) as values:
                    async for value in values:
                        if offer.is_iterator:
                            texts.append(value)
                            yield "item", await in_thread(_piece, "item", value)
                        elif offer.spec.is_text and isinstance(value, str):
                            texts.append(value)
                            yield "text", json.dumps({"text": value})
                        else:
                            yield "value", await in_thread(_piece, "value", value)
            whole = texts if offer.is_iterator else "".join(texts) if offer.spec.is_text and texts else value
            yield "result", await in_thread(_answer, offer, whole, facts)
        except Exception as error:  # noqa: BLE001 - the caller is told every failure, of tools and of ours
            raise problem_of(error, offer.name) from None


def _journal_problem(error: SimpleLLMFuncError) -> Problem:
    push_error(f"the journal of the server: {error}")
    return Problem(500, "The journal cannot be used; the server's log says more.", type(error).__name__)


def _validation(offer: Offer) -> SchemaValidation | None:
    """Return the check of arguments against the published schema; None where its work cannot be bounded."""
    try:
        return SchemaValidation(offer.tool.parameters)
    except SchemaError as error:
        push_warning(f"the arguments of {offer.name} are checked by their types alone: {error}")
        return None


# --- data ------------------------------------------------------------------------------------------------


def _answer(offer: Offer, value: Any, facts: Mapping[str, Any]) -> str:
    """Return an answer as JSON, with the agreement of votes. It may be large: call it in a thread."""
    votes: dict[str, Any] = {}
    if isinstance(value, Confident):
        shares = [{"value": offer.data(each), "probability": share} for each, share in value.probabilities.items()]
        votes = {
            "agreement": value.agreement,
            "abstained": value.abstained,
            **({"probabilities": shares} if shares else {}),
        }
        value = value.value
    return json.dumps({"value": offer.data(value), **votes, **facts})


def _piece(name: str, value: Any) -> str:
    """Return a partial value, or an item, as JSON; a partial value may not fit its type yet."""
    return json.dumps({name: to_jsonable_python(value, by_alias=True, serialize_unknown=True)})


def _facts(result: Result[Any]) -> dict[str, Any]:
    return {"trace_id": result.trace_id, "cost": result.cost, "seconds": result.seconds, "usage": _usage(result.usage)}


def _usage(usage: Any) -> dict[str, int]:
    return {name: count for name, count in asdict(usage).items() if name != "cost"}


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is no JSON: {cut(str(error), 200)}.") from None
