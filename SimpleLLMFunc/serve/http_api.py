"""Requests over HTTP: the caller, the arguments, the response."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.events import ReActEvent, RunFinished, RunStarted
from SimpleLLMFunc.base.run import watching
from SimpleLLMFunc.errors import SchemaError, SignatureError, UsageError, cut
from SimpleLLMFunc.interface.spending import deadline_scope
from SimpleLLMFunc.llm_decorator.decorated import Chat
from SimpleLLMFunc.logger import push_error, push_info, push_warning, shown_traceback
from SimpleLLMFunc.runtime import THIS_MACHINE, in_thread, off_loop_if_large, unless_gone
from SimpleLLMFunc.serve.browser import PROTOCOLS, BrowserStream
from SimpleLLMFunc.serve.http_callers import Caller, Callers
from SimpleLLMFunc.serve.http_events import Events, json_response, problem_response
from SimpleLLMFunc.serve.http_openapi import openapi_document
from SimpleLLMFunc.serve.http_page import PAGE_POLICY, page_of
from SimpleLLMFunc.serve.http_problem import Problem, problem_of
from SimpleLLMFunc.serve.offer import Offer
from SimpleLLMFunc.tools import ArgumentsError
from SimpleLLMFunc.tools.schemas import SchemaValidation
from SimpleLLMFunc.type import Confident
from SimpleLLMFunc.utils import cancelled

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send


class Api:
    """The endpoints of the server."""

    def __init__(
        self,
        known: Mapping[str, Offer],
        callers: Callers,
        *,
        deadline: float | None,
        max_body: int,
        title: str,
        chats: Mapping[str, Chat],
    ) -> None:
        self.callers = callers
        self._offers = known
        self._chats = chats
        self._title = title
        self.deadline = deadline
        self._max_body = max_body
        self.openapi = openapi_document(known, title=title, needs_key=bool(callers))
        self._validations = {name: _validation(offer) for name, offer in known.items()}

    async def health(self, _: Request) -> Response:
        """Say that the server runs."""
        return json_response(json.dumps({"status": "ok"}))

    async def page(self, request: Request) -> Response:
        """Return a page that describes the functions; callers without a key read only how to call."""
        from starlette.responses import HTMLResponse

        status, offers, headers = 200, self._offers, {"content-security-policy": PAGE_POLICY}
        try:
            self._admitted(request)
        except Problem as problem:
            if problem.status != 401:
                raise
            status, offers, headers = 401, {}, headers | problem.headers
        shown = page_of(offers, self._title, str(request.base_url), needs_key=bool(self.callers))
        return HTMLResponse(shown, status, headers)

    async def document(self, request: Request) -> Response:
        """Give the OpenAPI document."""
        self._admitted(request)
        return json_response(json.dumps(self.openapi))

    async def call(self, request: Request) -> Response:
        """Return the whole answer."""
        began = time.monotonic()
        offer, caller, args, kwargs = await self._asked(request)
        work = self._whole(offer, args, kwargs)
        task = asyncio.create_task(work, context=caller.context())
        try:
            if not await unless_gone(task, request.receive):
                return json_response("{}", 499)  # the client has left
            text = task.result()
        except Problem as problem:
            self._log(offer.name, caller, began, problem.status)
            raise
        self._log(offer.name, caller, began, 200)
        return json_response(text)

    async def stream(self, request: Request) -> Events:
        """Return the answer as server-sent events."""
        began = time.monotonic()
        offer, caller, args, kwargs = await self._asked(request)
        return Events(self._pieces(offer, args, kwargs), caller, partial(self._log, offer.name, caller, began))

    async def browser(self, request: Request) -> Events:
        """Return the answer in the web page's protocol, which the path names."""
        began = time.monotonic()
        caller = self._admitted(request)
        name, protocol = request.path_params["name"], request.path_params["protocol"]
        known: Mapping[str, Any] = self._chats
        if request.url.path.split("/")[-3] != "chats":
            known = {each: offer.function for each, offer in self._offers.items()}
        if name not in known or protocol not in PROTOCOLS:
            raise Problem(
                404, f"There is no {cut(name, 100)!r} for {cut(protocol, 20)}. There are: {', '.join(known)}."
            )
        await caller.take()
        body = await self.body(request)
        try:
            stream = BrowserStream(known[name], json.loads(body), protocol)
        except ValueError as error:
            raise Problem(400, f"The body is no JSON: {cut(str(error), 200)}.") from None
        except (UsageError, SignatureError) as error:
            raise Problem(422, str(error), "ArgumentsError") from None
        return Events(self._unnamed(stream), caller, partial(self._log, name, caller, began), stream.headers)

    async def _unnamed(self, stream: BrowserStream) -> AsyncGenerator[tuple[str, str], None]:
        with deadline_scope(self.deadline):
            async with aclosing(stream.data()) as lines:
                async for line in lines:
                    yield "", line

    async def admit(self, request: Request) -> Caller:
        """Return the caller, and count the request as a call.

        Raises:
            Problem: the caller is unknown or over its limit, or the body is too long.
        """
        caller = self._admitted(request)
        await caller.take()
        self._check_length(request.headers.get("content-length", ""))
        return caller

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
                "Send the header Authorization, with the word Bearer and your key.",
                headers={"www-authenticate": "Bearer"},
            )
        return caller

    async def _asked(self, request: Request) -> tuple[Offer, Caller, tuple[Any, ...], dict[str, Any]]:
        caller = self._admitted(request)
        name = request.path_params["name"]
        offer = self._offers.get(name)
        if offer is None:
            raise Problem(404, f"There is no function {cut(name, 100)!r}. There are: {', '.join(self._offers)}.")
        await caller.take()
        body = await self.body(request)
        args, kwargs = await off_loop_if_large(len(body), partial(self._read, offer, body))
        return offer, caller, args, kwargs

    async def body(self, request: Request) -> bytes:
        """Return the JSON text in a request's body.

        Raises:
            Problem: the body is not JSON, or too long.
        """
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
        if length.isdigit() and int(length) > self._max_body:
            raise Problem(413, f"The body may have {self._max_body} bytes.", headers={"connection": "close"})

    def _read(self, offer: Offer, body: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            arguments = json.loads(body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise Problem(400, f"The body is no JSON: {cut(str(error), 200)}.") from None
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
            facts = {"trace_id": result.trace_id, "cost": result.cost, "seconds": result.seconds}
            return await in_thread(_answer, offer, result.value, {**facts, "usage": _usage(result.usage)})
        except Exception as error:  # noqa: BLE001 - the caller is told every failure, of tools and of ours
            raise told(error, offer) from None

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
                facts["trace_id"] = trace_id
            elif isinstance(event, RunFinished):
                facts["usage"], facts["cost"] = _usage(event.usage), event.usage.cost

        source = offer.pipeline.items if offer.is_iterator else offer.answers.stream
        try:
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
            raise told(error, offer) from None


class McpDoor:
    """Checks the requests to the MCP endpoint: the same keys, rates and budgets."""

    def __init__(self, api: Api, endpoint: ASGIApp) -> None:
        self._api = api
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of the protocol."""
        from starlette.requests import Request

        try:
            caller = await self._api.admit(Request(scope, receive))
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)
            return
        task = asyncio.create_task(self._answer(scope, receive, send), context=caller.context())
        try:
            await task
        finally:
            await cancelled(task)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        with deadline_scope(self._api.deadline):
            await self._endpoint(scope, receive, send)


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


def _usage(usage: Any) -> dict[str, int]:
    return {name: count for name, count in asdict(usage).items() if name != "cost"}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def told(error: BaseException, offer: Offer | None = None) -> Problem:
    """Return the problem that the caller reads; internal errors are logged."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):  # the router's: unknown path or method
        return Problem(status, str(getattr(error, "detail", "")), headers=getattr(error, "headers", None))
    problem = problem_of(error)
    if problem.status == 500:
        push_error(f"{'' if offer is None else offer.name} failed: {shown_traceback(error)}")
    return problem
