"""Decorated functions offered over HTTP: JSON in, JSON or server-sent events out, an OpenAPI document from the signatures."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS, chat_pipeline_of
from SimpleLLMFunc.runtime import address_of, importing, listening, require_web, serve_until_cancelled
from SimpleLLMFunc.serve import mcp as mcp_door
from SimpleLLMFunc.serve.http_api import Api
from SimpleLLMFunc.serve.http_callers import Callers
from SimpleLLMFunc.serve.http_responses import Problem, problem_of, problem_response
from SimpleLLMFunc.serve.offer import Decorated, decorated_functions, offers, refuse_files

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


def fastapi_errors(app: Starlette) -> None:
    """Have a FastAPI or Starlette application answer the errors of this library with problem details (RFC 9457).

    A rate limit is a 503 with ``retry-after``, a refusal of the model a 422, a deadline a 504. An error in configuration
    or code is a 500 without details, and is logged. Other exceptions are not handled.

    Args:
        app: gets the handler; mounted sub-applications need one each.

    Source: RFC 9457, Problem Details for HTTP APIs.
    """

    async def answer(_: Request, error: Exception) -> Response:
        return problem_response(problem_of(error))

    app.add_exception_handler(SimpleLLMFuncError, answer)


def http_app(
    functions: Mapping[str, Decorated] | Any,
    *,
    callers: Callers | None = None,
    deadline: float | None = 120.0,
    max_body: int = 1_000_000,
    title: str = "SimpleLLMFunc",
    mcp: bool = False,
    journal: str | os.PathLike[str] | None = None,
) -> Starlette:
    """Return an ASGI application (Starlette) that offers decorated functions; mount it, or run it with any server.

    ``POST /functions/{name}`` takes the arguments as a JSON object and returns ``{"value": …}``, with trace id, usage and
    cost; ``POST /functions/{name}/stream`` returns server-sent events; ``GET /openapi.json`` describes both, and ``GET /``
    is a page for people. Web pages use ``POST /chats/{name}/ag-ui`` and ``…/ai-sdk``, and for functions
    ``/functions/{name}/…``; see `BrowserStream`.

    Args:
        functions: functions and chats by name, or a module, which offers all that it defines.
        callers: keys and limits of the callers; without any, only this machine may call, by its own host names.
        deadline: seconds for one call; None for no limit.
        max_body: most bytes of a request's body.
        title: of the service, in its OpenAPI document.
        mcp: offer the functions as MCP tools too, at ``/mcp``, to the same callers; each request counts as a call. Needs
            the extra `mcp`, and a server that runs the application's lifespan.
        journal: path of a journal; ``GET /waiting`` lists its waiting calls, ``POST /waiting`` takes an answer. Any
            caller may answer: where callers must not approve, serve the journal at another address with other keys.

    Raises:
        ConfigError: nothing to offer, or an extra is missing.
        ToolDefinitionError: a parameter without a type, or with one no schema can be made of.
    """
    require_web("serving", "uvicorn")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    kinds = (*FUNCTIONS, *CHATS)
    given = decorated_functions(functions, kinds=kinds) if isinstance(functions, ModuleType) else functions
    if not isinstance(given, Mapping) or not given or not all(isinstance(each, kinds) for each in given.values()):
        raise ConfigError(
            "http_app takes a module, or functions under @llm_function and @llm_chat by name: {'grade': grade}."
        )
    chosen = {name: each for name, each in given.items() if not isinstance(each, CHATS)}
    chats = {name: each for name, each in given.items() if isinstance(each, CHATS)}
    for name, chat in chats.items():
        refuse_files(name, chat_pipeline_of(chat))
    path = None if journal is None else file_path(journal, "journal")
    api = Api(offers(chosen), chats, callers or Callers(), path, deadline=deadline, max_body=max_body, title=title)
    routes = [
        Route("/", api.page, methods=["GET"]),
        Route("/health", api.health, methods=["GET"]),
        Route("/openapi.json", api.document, methods=["GET"]),
        Route("/functions/{name}", api.call, methods=["POST"]),
        Route("/functions/{name}/stream", api.stream, methods=["POST"]),
        Route("/{kind}/{name}/{protocol}", api.browser, methods=["POST"]),
    ]
    if journal is not None:
        routes.append(Route("/waiting", api.waiting, methods=["GET"]))
        routes.append(Route("/waiting", api.settle, methods=["POST"]))

    manager: Any = contextlib.nullcontext()
    if mcp:
        sessions = mcp_door.http_sessions(chosen, title, is_guarded=True)
        manager = sessions.run()
        routes.append(Route(mcp_door.PATH, api.guarded(sessions.handle_request), methods=mcp_door.METHODS))

    async def problem(_: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):  # the router's: unknown path or method
            error = Problem(error.status_code, error.detail, headers=error.headers)
        return problem_response(cast("Problem", error))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        async with manager:
            try:
                yield
            finally:
                api.callers.close()

    return Starlette(routes=routes, exception_handlers={Problem: problem, HTTPException: problem}, lifespan=lifespan)


async def serve_functions(
    functions: Mapping[str, Decorated] | Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    callers: Callers | None = None,
    announce: Callable[[str], object] | None = None,
    **options: Any,
) -> None:
    """Serve `http_app` until cancelled, or until Ctrl-C.

    Args:
        functions: as for `http_app`.
        host: an address of this machine; one that other machines reach needs `callers`.
        port: 0 for any free port.
        callers: keys and limits of the callers.
        announce: called with the address as soon as clients can connect.
        options: the further ones of `http_app`.

    Raises:
        ConfigError: other machines reach the address and there are no callers, the port is taken, or the extra is missing.
    """
    # In a thread: importing the web framework and describing the models takes seconds.
    app = await importing(partial(http_app, functions, callers=callers, **options))
    others = (
        "without callers any machine may call, and every call costs. Give a file of callers (simplellmfunc serve "
        "--new-key NAME), and put a proxy with TLS in front."
    )
    with listening(host, port, others="" if callers else others) as listener:
        if announce is not None:
            announce(address_of(host, listener))
        # Calls of models take seconds; Docker kills what has not ended 10 s after it was told to.
        await serve_until_cancelled(app, listener, grace=8, server_header=False)
