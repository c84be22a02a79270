"""`simplellmfunc map`: a decorated function over the rows of a file."""

from __future__ import annotations

import asyncio
import inspect
import shlex
import sys
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import click

from SimpleLLMFunc.batch import Checkpoint, EngineName, MapReport, RowSource, check_output_path, json_lines
from SimpleLLMFunc.cli.arguments import ANY_PATH, asking, budget_usd, concurrency_option, deadline_option, model_option
from SimpleLLMFunc.cli.load import complete_target, load_object
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.llm_decorator.decorated import FUNCTIONS
from SimpleLLMFunc.logger import escape_control, redact

_SHOWN_ERRORS = 3


def _columns(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return parameters by columns; "" is the only required parameter of the function."""
    columns = {}
    for value in values:
        column, sign, parameter = value.rpartition("=")
        if sign and not (column and parameter.isidentifier()):
            raise click.BadParameter(f"{value!r} is neither COLUMN nor COLUMN=PARAMETER.")
        columns[column or value] = parameter if sign else ""
    if "" in columns.values() and len(columns) > 1:
        raise click.BadParameter("one column alone can do without =PARAMETER.")
    return columns


@click.command(name="map", short_help="Ask a function once for each row of a file.")
@click.argument("target", required=False, metavar="MODULE:FUNCTION", shell_complete=complete_target)
@click.argument("rows", required=False, type=ANY_PATH, metavar="ROWS")
@click.option("--out", type=ANY_PATH, help="Write to this file, .jsonl, .csv or .parquet; by default to stdout.")
@click.option("--checkpoint", type=ANY_PATH, help="Keep finished rows in this file; the same command then goes on.")
@concurrency_option
@click.option(
    "--on-error",
    type=click.Choice(["keep", "raise"]),
    default="keep",
    help="Go on, or stop at the first row that fails.",
)
@click.option(
    "--retry-errors/--no-retry-errors",
    default=None,
    help="Ask again for all rows that have an error in the checkpoint, or for none of them; by default for those that "
    "failed because of the service or the run, not for answers that did not fit.",
)
@budget_usd
@click.option("--budget-tokens", type=click.IntRange(min=0), help="Stop before more than this is read and written.")
@deadline_option
@click.option(
    "--column",
    "columns",
    callback=_columns,
    multiple=True,
    metavar="COLUMN[=PARAMETER]",
    help="The column for a parameter of another name; COLUMN alone for a function with one required parameter.",
)
@click.option("--limit", type=click.IntRange(min=0), help="How many rows are read at most.")
@model_option
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="local",
    help="Where the calls are made: ray spreads them over a cluster; openai-batch sends files at half the price and waits up to a day.",
)
@click.option("--quiet", is_flag=True, help="Print no progress and no summary.")
@click.option("--status", type=ANY_PATH, help="Show what a checkpoint holds, and do nothing.")
@click.pass_context
def map_command(
    ctx: click.Context,
    /,
    target: str | None,
    rows: Path | None,
    *,
    out: Path | None,
    checkpoint: Path | None,
    columns: dict[str, str],
    limit: int | None,
    model_name: str | None,
    quiet: bool,
    status: Path | None,
    budget_usd: float | None,
    budget_tokens: int | None,
    **options: Any,
) -> None:
    """Ask a function under @llm_function once for each row of a file.

    \b
    simplellmfunc map shop:classify reviews.csv --out classified.csv --checkpoint run.sqlite
    simplellmfunc map --status run.sqlite

    ROWS is a JSONL, CSV or Parquet file whose columns are called like the parameters; --column names one that is not. The exit code is 0 if every row
    has a value, and 1 if some have none (the file holds their errors) or it stopped before the end. Ctrl-C stops (130); with --checkpoint the
    same command goes on from there.
    """  # noqa: D301 - click reads the character itself
    if status is not None:
        kept = Checkpoint.status(status)
        click.echo(printable(str(kept)))
        ctx.exit(1 if kept.damaged else 0)
    if target is None or rows is None:
        raise click.UsageError("Name the function and the file: simplellmfunc map MODULE:FUNCTION ROWS")
    _check_paths(rows, out, checkpoint)
    function = load_object(target)
    if not isinstance(function, FUNCTIONS):
        raise ConfigError(f"{target!r} is a {type(function).__name__}. Name a function under @llm_function.")
    budget = {name: limit for name, limit in (("usd", budget_usd), ("tokens", budget_tokens)) if limit is not None}
    column = next((name for name, parameter in columns.items() if not parameter), None)
    renamed = columns if column is None else {}
    source: Any = RowSource(rows, columns=renamed or None, limit=limit) if renamed or limit is not None else rows
    options |= {"checkpoint": checkpoint, "budget": budget or None, "column": column}
    with asking(model_name):
        try:
            made: Any = function.map(source, progress=False if quiet else None, **options)
            report: MapReport[Any] = asyncio.run(made) if inspect.iscoroutine(made) else made
        except KeyboardInterrupt:
            _say_how_to_go_on(checkpoint)
            raise
    if out is not None:
        report.write(out)
    else:
        for line in json_lines(report):
            click.echo(line.encode("utf-8", "replace"), nl=False)
    if not quiet:
        _sum_up(report, out)
    if report.counts.failed or report.stopped is not None:
        ctx.exit(1)


def _check_paths(rows: Path, out: Path | None, checkpoint: Path | None) -> None:
    """Check that the results can be written, and would not overwrite the rows."""
    if not rows.is_file():
        raise ConfigError(f"there is no file {str(rows)!r}.")
    if out is not None:
        check_output_path(out)
    named = [("ROWS", rows), ("--out", out), ("--checkpoint", checkpoint)]
    places: dict[Path, str] = {}
    for name, path in named:
        if path is not None and (other := places.setdefault(path.resolve(), name)) != name:
            raise ConfigError(f"{other} and {name} are the same file, {str(path)!r}. Give another one.")


def _sum_up(report: MapReport[Any], out: Path | None) -> None:
    click.echo(str(report), err=True)
    if report.stopped is not None:
        click.echo(escape_control(redact(f"  stopped before the end of the rows: {report.stopped}")), err=True)
    failed = ((row.index, row.error) for row in report.rows if row.error is not None) if report.counts.failed else ()
    for index, error in islice(failed, _SHOWN_ERRORS):
        click.echo(escape_control(redact(f"  row {index}: {type(error).__name__}: {error}")), err=True)
    if report.counts.failed > _SHOWN_ERRORS:
        click.echo(f"  and {report.counts.failed - _SHOWN_ERRORS} more", err=True)
    if out is not None:
        click.echo(f"Written to {out}.", err=True)


def _say_how_to_go_on(checkpoint: Path | None) -> None:
    if checkpoint is None:
        click.echo("\nNothing was kept. With --checkpoint run.sqlite the same command goes on from there.", err=True)
        return
    command = shlex.join(["simplellmfunc", *sys.argv[1:]])
    click.echo(f"\nWhat was answered is in {checkpoint}. Go on with the same command:\n  {command}", err=True)
