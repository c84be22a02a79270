"""The page as an application that can be mounted, and the server of `simplellmfunc view`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError
from SimpleLLMFunc.observability.store import TraceReader, TraceStore
from SimpleLLMFunc.runtime import address_of, importing, listening, require_web, serve_until_cancelled
from SimpleLLMFunc.viewer.files import MapPages, ReportPages, WaitingPages
from SimpleLLMFunc.viewer.offered import offered_of
from SimpleLLMFunc.viewer.responses import Refusal, json_reply, reason
from SimpleLLMFunc.viewer.running import RunningPages
from SimpleLLMFunc.viewer.runs import RunPages
from SimpleLLMFunc.viewer.security import ViewerApp, new_token
from SimpleLLMFunc.viewer.verdicts import CaseFiles, VerdictPages

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_GRACE_SECONDS: Final = 2


def viewer_app(
    store: TraceStore | TraceReader | str | os.PathLike[str],
    *,
    allow_run: Iterable[Any] = (),
    checkpoints: Iterable[str | os.PathLike[str]] = (),
    cases: str | os.PathLike[str] | None = None,
    reports: Iterable[str | os.PathLike[str]] = (),
    journals: Iterable[str | os.PathLike[str]] = (),
    token: str | Literal[False] | None = None,
    allowed_hosts: Iterable[str] = (),
) -> ViewerApp:
    """Return the page over a trace store, ready to be mounted or served.

    In an application of your own: ``app.mount("/llm", viewer_app(store))``.

    Args:
        store: a `TraceStore`, a `TraceReader`, or the path of the file.
        allow_run: modules, decorated functions, chats and assistants that may be run from the page; none by default.
        checkpoints: paths of the checkpoints of maps to show.
        cases: folder of the files ``function.jsonl`` to which the page adds runs as cases; None adds none.
        reports: paths of reports that `EvalReport.save` wrote; the page shows and compares them.
        journals: paths of journals; the page shows their waiting calls, and every user of the page may answer them.
        token: required by the page before it shows anything. None makes a new one, and writes the end of the address
            that holds it to stderr. False requires none: for an application with a login in front of the page.
        allowed_hosts: host names of the page, without port, in addition to those of this machine.

    Raises:
        ConfigError: the extra is missing, or an argument cannot be used.
    """
    require_web("the page")
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute, Mount, Route
    from starlette.staticfiles import StaticFiles

    reader, sinks = _opened(store)
    offered = offered_of(allow_run)
    maps, reported = MapPages(checkpoints), ReportPages(reports)
    waiting = WaitingPages(journals)
    given: Any = token
    if token is None:
        chosen: str | None = new_token()
        sys.stderr.write(f"The page asks for a token. Put this behind its address: #token={chosen}\n")
    elif token is False:
        chosen = None
    elif isinstance(given, str) and re.fullmatch("[A-Za-z0-9_-]{16,}", given):
        chosen = given
    else:
        raise ConfigError("token is at least 16 letters, digits, hyphens and underscores; or False for none.")
    runs, running = RunPages(reader), RunningPages(offered, sinks)
    verdicts = VerdictPages(reader, None if cases is None else CaseFiles(file_path(cases)))

    async def info(_request: Request) -> Response:
        about = {"version": __version__, "store": reader.path.name, "can_run": bool(offered)}
        asked = {"functions": len(offered.functions), "chats": len(offered.chats), "maps": len(maps)}
        kept = {"reports": len(reported), "cases": cases is not None, "journals": len(waiting)}
        return json_reply({**about, **asked, **kept})

    def data(path: str, answer: Callable[[Request], Awaitable[Any]], method: str = "GET") -> Route:
        async def guarded(request: Request) -> Any:
            made.admit(request)
            return await answer(request)

        return Route(f"/api/{path}", guarded, methods=[method])

    routes: list[BaseRoute] = [
        data("info", info),
        data("runs", runs.runs),
        data("changes", runs.changes),
        data("filters", runs.filters),
        data("runs/{run}", runs.run),
        data("runs/{run}/curl", runs.curl),
        data("runs/{run}/test", runs.test),
        data("runs/{run}/html", runs.html),
        data("runs/{run}/tree", runs.tree),
        data("sessions", runs.sessions),
        data("sessions/{name:path}", runs.session),
        data("runs/{run}/mark", verdicts.mark, "POST"),
        data("export/{form}", runs.export),
        data("cases", verdicts.add, "POST"),
        data("cases/{name}", verdicts.cases),
        data("functions", runs.functions),
        data("functions/{name}", runs.function),
        data("functions/{name}/same", runs.same),
        data("reports", reported.all),
        data("reports/{number:int}", reported.report),
        data("maps", maps.all),
        data("maps/{number:int}", maps.map),
        data("maps/{number:int}/rows", maps.rows),
        data("waiting", waiting.all),
        data("waiting/{number:int}", waiting.answer, "POST"),
    ]
    if offered:
        routes += [
            data("play", running.functions),
            data("play/{name}", running.play, "POST"),
            data("play/{name}/preview", running.preview, "POST"),
            data("play/{name}/patch", running.patch, "POST"),
            data("chats", running.chats),
            data("chats/{name}", running.say, "POST"),
        ]
    static = StaticFiles(packages=[("SimpleLLMFunc.viewer", "static")])

    async def page(request: Request) -> Response:
        return await static.get_response("index.html", request.scope)

    routes += [Route("/", page, methods=["GET"]), Mount("/", static)]
    app = Starlette(routes=routes, exception_handlers={Refusal: _refused, SimpleLLMFuncError: _failed})
    app.router.redirect_slashes = False
    made = ViewerApp(app, token=chosen, allowed_hosts=allowed_hosts)
    return made


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal), "it is registered for these"
    return json_reply({"error": str(error)}, error.status)


async def _failed(_request: Request, error: Exception) -> Response:
    return json_reply({"error": reason(error)}, 500)


def _opened(store: Any) -> tuple[TraceReader, tuple[TraceStore, ...]]:
    if isinstance(store, TraceStore):
        return store.reader, (store,)
    if isinstance(store, TraceReader):
        return store, ()
    if isinstance(store, (str, os.PathLike)) and str(store):
        return TraceReader(store), ()
    raise ConfigError(f"store is a TraceStore, a TraceReader or a path, not {type(store).__name__}.")


# --- the server -------------------------------------------------------------------------------------------


async def serve_page(
    app: ViewerApp, *, host: str = "127.0.0.1", port: int = 0, announce: Callable[[str], object] | None = None
) -> None:
    """Serve the page on this machine until cancelled, or until Ctrl-C.

    Args:
        app: from `viewer_app`.
        host: an address of this machine.
        port: 0 for any free port.
        announce: called with the address, including the token, as soon as a browser can open it.

    Raises:
        ConfigError: the address is not of this machine, the port is taken, or the extra is missing.
    """
    await importing(require_web, "the page", "uvicorn")  # takes its time
    others = "mount viewer_app in an application with a login to show it to others."
    with listening(host, port, others=others, offered="the page is served") as listener:
        if announce is not None:
            announce(f"{address_of(host, listener)}/{app.fragment}")
        await serve_until_cancelled(app, listener, grace=_GRACE_SECONDS, lifespan="off", server_header=False)
