"""`simplellmfunc view`: the page over a trace store."""

from __future__ import annotations

import asyncio
import os
import webbrowser
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.arguments import FILE, PORT
from SimpleLLMFunc.cli.load import complete_target, load_module, load_object, split_target, store_path
from SimpleLLMFunc.errors import ConfigError, did_you_mean
from SimpleLLMFunc.observability.store import TraceStore
from SimpleLLMFunc.viewer import new_token, serve_page, viewer_app

_REPORT = click.Path(path_type=Path, dir_okay=False, exists=True)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(short_help="Look at the kept runs in the browser.")
@click.argument("store", required=False, type=FILE, metavar="[STORE]")
@click.option("--port", type=PORT, help="The port to listen at; by default any that is free.")
@click.option("--host", default="127.0.0.1", help="The address of this machine to listen at.")
@click.option(
    "--allow-run",
    "allowed",
    multiple=True,
    metavar="MODULE[:NAME]",
    shell_complete=complete_target,
    help="Let the page run the functions and chats of a module, or one of them. Every run may cost money.",
)
@click.option("--checkpoint", "checkpoints", multiple=True, type=FILE, help="Show the map that writes this checkpoint.")
@click.option(
    "--report", "reports", multiple=True, type=_REPORT, help="Show this report of `simplellmfunc eval --report`."
)
@click.option("--cases", type=_FOLDER, help="Where runs are saved as test cases; default: `cases` next to the store.")
@click.option("--journal", "journals", multiple=True, type=FILE, help="Show and answer what waits in this journal.")
@click.option("--open/--no-open", "opens", default=None, help="Open the page in the browser (the default), or do not.")
def view(
    store: Path | None,
    port: int | None,
    host: str,
    allowed: tuple[str, ...],
    cases: Path | None,
    opens: bool | None,
    **files: Any,
) -> None:
    """Look at the runs that a trace store keeps, in the browser, on this machine only.

    \b
    SIMPLELLMFUNC_TRACE=runs.sqlite python my_script.py
    simplellmfunc view runs.sqlite
    simplellmfunc view runs.sqlite --allow-run my_module --checkpoint map.sqlite

    STORE is the path of the file; without it, SIMPLELLMFUNC_TRACE names it. The address that is printed holds a token that
    is new at every start: without it, nothing is shown.
    """  # noqa: D301 - click reads the character itself
    path = store_path(store, "view")
    if not path.is_file():
        near = did_you_mean(path.name, [each.name for each in path.absolute().parent.glob("*") if each.is_file()])
        raise ConfigError(
            f"there is no trace store {str(path)!r}.{near} A run writes one where SIMPLELLMFUNC_TRACE names it."
        )

    def announce(address: str) -> None:
        click.echo(f"The runs in {path}, until Ctrl-C:\n  {address}")
        if opens is not False and not _opened(address):
            click.echo("There is no browser to open; copy the address.", err=True)

    with TraceStore(path) as kept:
        # Modules and stores that cannot be loaded fail now, before the page is served.
        runnable = [load_object(each) if split_target(each)[1] else load_module(each) for each in allowed]
        app = viewer_app(kept, allow_run=runnable, cases=cases or path.with_name("cases"), token=new_token(), **files)
        kept.reader.seq()
        asyncio.run(serve_page(app, host=host, port=port or 0, announce=announce))


def _opened(address: str) -> bool:
    if os.name == "posix" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        # What would be found is a browser for the terminal, which takes it over.
        return os.uname().sysname == "Darwin" and webbrowser.open(address)
    return webbrowser.open(address)
