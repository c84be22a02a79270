"""`simplellmfunc run` and `preview`: one call of a decorated function, or the request that it would send."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.base.run import Preview, Result, watching
from SimpleLLMFunc.cli.arguments import FILE, SECONDS, argument_options, asking
from SimpleLLMFunc.cli.output import as_json, echo_json, echo_text, echo_value, printable
from SimpleLLMFunc.display.cards import as_text
from SimpleLLMFunc.display.results import preview_card
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.llm_decorator.decorated import CHATS, STREAMS
from SimpleLLMFunc.observability.store import TraceStore
from SimpleLLMFunc.runtime import iterate_sync


@click.command(short_help="Call a function once and print its value.")
@argument_options
@click.option("--stream", "streams", is_flag=True, help="Print the answer as it comes; JSON lines unless it is text.")
@click.option(
    "--json", "as_result", is_flag=True, help="Print the whole Result as JSON: value, usage, cost, attempts, …"
)
@click.option("--deadline", type=SECONDS, help="Give up after so many seconds.")
@click.option("--trace", type=FILE, help="Keep the run in this trace store.")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what the call took.")
def run(
    function: Any,
    arguments: dict[str, Any],
    model_name: str | None,
    *,
    streams: bool,
    as_result: bool,
    deadline: float | None,
    trace: Path | None,
    verbose: bool,
) -> None:
    """Call a function under @llm_function or @llm_chat once, and print its value.

    \b
    simplellmfunc run shop:classify "Great kettle!"
    simplellmfunc run shop:classify --arg review=@letter.txt --arg strict=true
    simplellmfunc run shop:grade --arg essay=- --arg rubric:='{"weight": 2}' --json < essay.txt
    simplellmfunc run shop:guide --arg message=hello --stream

    MODULE is a name or the path of a file. VALUEs are the arguments in their order, --arg gives them by name: a text for
    a str, JSON or anything that pydantic reads for other types, a path or an address for a picture. The value is printed
    as text if it is a str, else as JSON. A VALUE that begins with a minus sign stands after -- or behind --arg. The exit code is 0 with a value, 1 if the call failed, 2 if the arguments do
    not fit, and 130 after Ctrl-C.
    """  # noqa: D301 - click reads the character itself
    if streams and as_result:
        raise click.UsageError("--stream prints pieces, --json the whole Result at the end. Choose one.")
    if as_result and isinstance(function, CHATS):
        raise click.UsageError(f"{function.__name__} is a chat, which has no Result. Leave --json out.")
    if deadline is not None:
        function = function.with_options(deadline=deadline)
    with ExitStack() as stack:
        stack.enter_context(asking(model_name))
        if trace is not None:
            store = stack.enter_context(TraceStore(trace))
            store.reader.seq()  # an unusable file fails before a request is paid
            stack.enter_context(watching(store))
        if isinstance(function, CHATS):
            _chat(function, arguments)
        elif streams:
            _stream(function, arguments)
        else:
            made: Any = function.call(**arguments)
            result: Result[Any] = asyncio.run(made) if inspect.iscoroutine(made) else made
            if as_result:
                echo_json(result)
            else:
                echo_value(result.value)
            if verbose:
                click.echo(_took(result), err=True)


def _stream(function: Any, arguments: dict[str, Any]) -> None:
    """Print pieces of a text as they come, else each growing value, or each item, as a line of JSON."""
    is_text = False
    for item in _items(function.stream(**arguments)):
        if isinstance(item, str) and not isinstance(function, STREAMS):
            is_text = True
            echo_text(item)
        else:
            click.echo(as_json(item))
    if is_text:
        click.echo()


def _chat(function: Any, arguments: dict[str, Any]) -> None:
    for content, _history in _items(function(**arguments)):
        text = content if isinstance(content, str) else _text_of(content)
        if text:
            echo_text(text)
    click.echo()


def _text_of(raw: Any) -> str:
    """Return the text of a raw reply or chunk, as `return_mode="raw"` gives it."""
    for choice in getattr(raw, "choices", None) or ():
        part = getattr(choice, "delta", None) or getattr(choice, "message", None)
        return str(getattr(part, "content", None) or "")
    return ""


def _items(items: Iterator[Any] | AsyncIterator[Any]) -> Iterator[Any]:
    return iterate_sync(items) if isinstance(items, AsyncIterator) else items


def _took(result: Result[Any]) -> str:
    usage = result.usage
    cost = "" if result.cost is None else f", {result.cost:.6f} USD"
    repairs = "".join(f"\n  {path or 'the answer'}: {what}" for path, what in result.repairs)
    downgrades = "".join(f"\n  {what}: {said}" for what, said in result.downgrades)
    return printable(
        f"{usage.input_tokens} tokens read, {usage.output_tokens} written{cost}, {result.seconds:.2f} s, "
        f"{counted(len(result.attempts), 'answer')}, mode {result.output_mode}, trace {result.trace_id}{repairs}{downgrades}"
    )


@click.command(short_help="Show what a call would send.")
@argument_options
@click.option("--curl", "as_curl", is_flag=True, help="Print a curl command; it reads the key from the environment.")
@click.option("--json", "as_data", is_flag=True, help="Print the Preview as JSON; its `body` is what goes out.")
def preview(function: Any, arguments: dict[str, Any], model_name: str | None, *, as_curl: bool, as_data: bool) -> None:
    """Show what a call would send: messages, tools, schema, tokens and price; nothing leaves this machine.

    \b
    simplellmfunc preview shop:classify "Great kettle!"
    simplellmfunc preview shop:classify --arg review=@letter.txt --curl

    The arguments are those of `simplellmfunc run`. Tokens and price are estimates, of the input alone.
    """  # noqa: D301 - click reads the character itself
    if as_curl and as_data:
        raise click.UsageError("--curl and --json are two forms of the same. Choose one.")
    with asking(model_name):
        made: Preview = function.preview(**arguments)
    if as_curl:
        click.echo(made.as_curl())
    elif as_data:
        echo_json(made)
    else:
        click.echo(as_text(preview_card(made)))
