"""`simplellmfunc traces`: list, show, mark, export, sum up and delete the runs of a trace store."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.cli.arguments import FILE, json_option
from SimpleLLMFunc.cli.load import store_path
from SimpleLLMFunc.cli.output import echo_json, printable, show_table
from SimpleLLMFunc.display.cards import as_text
from SimpleLLMFunc.display.results import marked as describe_mark
from SimpleLLMFunc.display.results import page_card, run_card, when
from SimpleLLMFunc.errors import counted, cut
from SimpleLLMFunc.logger import escape_control
from SimpleLLMFunc.observability.store import (
    Dimension,
    MetricRow,
    RunFormat,
    RunOrder,
    RunQuery,
    RunStatus,
    Thumb,
    TraceReader,
    delete_runs,
    exported_runs,
    mark_run,
    metrics,
    shrink,
)

F = TypeVar("F", bound=Callable[..., Any])

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BY = click.Choice(get_args(Dimension))
_SORT = click.Choice(get_args(RunOrder))
_BYTES = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}


def duration(text: str) -> float:
    """Read `90s`, `15m`, `2h`, `3d` or `1w` as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a span of time. Write 30s, 15m, 2h, 7d or 4w.")
    return float(match[1]) * _SECONDS[match[2]]


def _moment(text: str) -> float:
    with suppress(click.BadParameter):
        return time.time() - duration(text)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{text!r} is not a time. Write 2h (ago), 2026-11-22 or 2026-11-22T08:30.") from None


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size. Write 500MB or 2GB.")
    return int(float(match[1]) * _BYTES[match[2]])


def _store(command: F) -> F:
    """Give a command its `reader`, of the file from the argument, the option or the variable."""

    @click.argument("file", required=False, type=FILE, metavar="[FILE]")
    @click.option("--store", type=FILE, help="The same as FILE.")
    @wraps(command)
    def reading(*args: Any, file: Path | None, store: Path | None, **kwargs: Any) -> Any:
        if file is not None and store is not None:
            raise click.UsageError("FILE and --store are the same. Give one of them.")
        return command(*args, reader=TraceReader(store_path(file or store, "traces")), **kwargs)

    return cast("F", reading)


_TEXTS = {
    "function": "of this function",
    "model": "with this model",
    "version": "of this version of a function",
    "session": "of this conversation",
    "user": "for this user",
    "error": "that ended with this type of error",
    "tag": "with this tag",
}
_NUMBERS = {
    "min-seconds": "at least so many seconds",
    "max-seconds": "fewer seconds",
    "min-cost": "at least so many USD",
    "max-cost": "fewer USD",
}
_FLAGS = {
    "asked-again/--not-asked-again": "Take only runs in which an answer was sent back, or only the others.",
    "repaired/--not-repaired": "Take only runs in which the answer was repaired, or only the others.",
    "failed-tries/--no-failed-tries": "Take only runs in which a request failed, or only the others.",
    "marked/--not-marked": "Take only runs that are marked, or only the others.",
}
_WHEN = "2h (ago), 7d, 2026-11-22T08:30"
_FILTERS = (
    *(click.option(f"--{name}", help=f"Take runs {which} only.") for name, which in _TEXTS.items()),
    click.option("--status", type=click.Choice(get_args(RunStatus)), help="Take runs with this status only."),
    click.option("--thumb", type=click.Choice(get_args(Thumb)), help="Take runs with this mark only."),
    click.option("--text", help="Take runs with this text in arguments, answer or error."),
    click.option("--since", type=_moment, metavar="WHEN", help=f"Take runs that began then or later: {_WHEN}."),
    click.option("--until", type=_moment, metavar="WHEN", help=f"Take runs that began before: {_WHEN}."),
    *(click.option(f"--{name}", type=float, help=f"Take runs that took {said}.") for name, said in _NUMBERS.items()),
    *(click.option(f"--{names}", default=None, help=said) for names, said in _FLAGS.items()),
)
_ORDER = (
    click.option("--sort", type=_SORT, default="started", help="Sort by this, the largest or latest first."),
    click.option("--ascending", is_flag=True, help="Begin with the smallest."),
)


def _with(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return the decorator that adds options, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


class _Traces(click.Group):
    """A group that lists the runs of a file in place of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and (Path(args[0]).suffix or Path(args[0]).is_file()):
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_Traces, short_help="Kept runs: list, show, mark, export, metrics, prune.")
def traces() -> None:
    """Runs that a trace store keeps: list them, show one, mark it, export them, sum them up, let old ones go.

    \b
    simplellmfunc traces runs.sqlite                # the same as: traces list runs.sqlite
    simplellmfunc traces show 17 runs.sqlite

    FILE is the store; without it, SIMPLELLMFUNC_TRACE names it. A store is kept where SIMPLELLMFUNC_TRACE=runs.sqlite or watching(TraceStore("runs.sqlite")) says so.
    """  # noqa: D301 - click reads the character itself


@traces.command(name="list")
@_store
@_with(*_FILTERS)
@click.option("--limit", type=click.IntRange(1, 500), default=20, help="How many runs are listed.")
@click.option("--after", metavar="PLACE", help="Go on where the last page ended, at its `next`.")
@_with(*_ORDER)
@json_option
def list_runs(
    reader: TraceReader,
    *,
    limit: int,
    after: str | None,
    sort: RunOrder,
    ascending: bool,
    as_data: bool,
    **filters: Any,
) -> None:
    """List runs, the latest first."""
    page = reader.runs(RunQuery(**filters), limit=limit, after=after, sort=sort, ascending=ascending)
    (part,) = page_card(page).parts
    rows = ([_short(cell) for cell in row] for row in part.rows)
    _print({"runs": page.runs, "next": page.next}, part.headers, rows, as_data=as_data)
    if page.next is not None and not as_data:
        click.echo(f"There are more: --after {page.next}", err=True)


@traces.command()
@click.argument("run")
@_store
@json_option
@click.pass_context
def show(ctx: click.Context, run: str, reader: TraceReader, *, as_data: bool) -> None:
    """Show one RUN: its number, its trace id, or the beginning of that."""
    detail = reader.run(run)
    if detail is None:
        named = f"{escape_control(cut(run, 100))!r} in {reader.path}"
        click.echo(f"There is no run {named}. List them: simplellmfunc traces list {reader.path}", err=True)
        ctx.exit(1)
    elif as_data:
        echo_json(detail)
    else:
        click.echo(as_text(run_card(detail)))


@traces.command(short_help="Mark a run: thumb, score, comment, tags.")
@click.argument("run")
@_store
@click.option("--thumb", type=click.Choice(get_args(Thumb)), help="Say what you think of it.")
@click.option("--score", type=float, help="A number; what it means is yours.")
@click.option("--comment", help="A text.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given several times, in place of those it had.")
@click.option("--forget", is_flag=True, help="Remove the earlier mark first.")
@json_option
def mark(reader: TraceReader, run: str, *, tags: tuple[str, ...], as_data: bool, **given: Any) -> None:
    """Mark one RUN; parts that are not given keep their earlier value."""
    marked = mark_run(reader, run, tags=tags or None, **given)
    if as_data:
        echo_json(marked)
    else:
        click.echo(printable(f"run {marked.id} {marked.function}: {describe_mark(marked) or 'no mark'}"))


@traces.command(short_help="Write runs to a file: .csv, .jsonl, .parquet.")
@_store
@click.option("--to", "path", type=FILE, required=True, help="The file to write, .csv, .jsonl or .parquet.")
@_with(*_FILTERS, *_ORDER)
def export(reader: TraceReader, *, path: Path, sort: RunOrder, ascending: bool, **filters: Any) -> None:
    """Write runs to a file, a row each, with arguments, value and mark."""
    form: Any = path.suffix.lower().removeprefix(".")
    if form not in get_args(RunFormat):
        raise click.BadParameter(f"{path.name!r} ends with none of .csv, .jsonl, .parquet.", param_hint="--to")
    with replaced_whole(path) as part, part.open("wb") as file:
        file.writelines(exported_runs(reader, form, RunQuery(**filters), sort=sort, ascending=ascending))
    click.echo(f"{printable(str(path))}: {path.stat().st_size:,} bytes", err=True)


@traces.command(short_help="List functions and their versions.")
@_store
@json_option
def functions(reader: TraceReader, *, as_data: bool) -> None:
    """List the functions that ran, with their versions."""
    found = [version for function in reader.functions() for version in reader.versions(function.name)]
    rows = []
    for each in found:
        times = (when(each.first_seen), when(each.last_seen))
        counts = (str(each.runs), str(each.errors))
        rows.append([_short(each.function), _short(each.version), *times, *counts, _short(each.docstring, 60)])
    _print(found, ("function", "version", "first", "last", "runs", "errors", "docstring"), rows, as_data=as_data)


@traces.command(name="metrics")
@_store
@_with(*_FILTERS)
@click.option("--by", type=_BY, multiple=True, default=("function",), help="Sum up by this; repeatable.")
@click.option("--bucket", type=duration, metavar="SPAN", help="Print a row for each span of time: 1h, 1d.")
@json_option
def show_metrics(
    reader: TraceReader, *, by: tuple[Dimension, ...], bucket: float | None, as_data: bool, **filters: Any
) -> None:
    """Sum runs up: tokens, cost, latency, errors and re-asks."""
    rows = metrics(reader, by=by, bucket=bucket, query=RunQuery(**filters))
    timed = bucket is not None
    sums = ("runs", "errors", "re-asked", "in", "out", "USD", "p50 s", "p90 s", "p99 s")
    headers = (*(("from",) if timed else ()), *by, *sums)
    _print(rows, headers, (_metric(row, by, timed=timed) for row in rows), as_data=as_data)


@traces.command(short_help="Delete old runs.")
@_store
@click.option("--older-than", type=duration, metavar="SPAN", help="Delete runs that began longer ago: 30d, 12h.")
@click.option(
    "--max-size", type=_size, metavar="SIZE", help="Delete the oldest runs until the file fits in this: 500MB."
)
@json_option
def prune(reader: TraceReader, older_than: float | None, max_size: int | None, *, as_data: bool) -> None:
    """Delete old runs, and shrink the file."""
    if older_than is None and max_size is None:
        raise click.UsageError("Say which: --older-than 30d, or --max-size 500MB.")
    gone = 0
    with reader.connection() as connection:
        if older_than is not None:
            gone += delete_runs(connection, "started < ?", (time.time() - older_than,))
        if max_size is not None:
            gone += shrink(connection, max_size)
        connection.execute("VACUUM")
    reader.close()
    if as_data:
        echo_json({"deleted": gone})
    else:
        click.echo(f"{counted(gone, 'run')} deleted.")


# --- how it looks -----------------------------------------------------------------------------------------


def _print(data: Any, headers: Sequence[str], rows: Iterable[Sequence[str]], *, as_data: bool) -> None:
    if as_data:
        echo_json(data)
    elif lines := list(rows):
        show_table(headers, lines)
    else:
        click.echo("No such runs.")


def _metric(row: MetricRow, by: tuple[Dimension, ...], *, timed: bool) -> list[str]:
    return [
        *([when(row.bucket or 0.0)] if timed else []),
        *(_short(getattr(row, name)) for name in by),
        str(row.runs),
        *(_told(rate, ".1%") for rate in (row.error_rate, row.reask_rate)),
        *map(str, (row.input_tokens, row.output_tokens)),
        _told(row.cost, ".4f") + ("+?" if row.cost is not None and row.cost_unknown else ""),
        *(_told(value, ".2f") for value in (row.seconds_p50, row.seconds_p90, row.seconds_p99)),
    ]


def _short(text: str, limit: int = 40) -> str:
    return cut(escape_control(text), limit)


def _told(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
