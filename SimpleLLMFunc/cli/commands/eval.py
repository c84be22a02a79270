"""`simplellmfunc eval`: judge a decorated function on cases; the exit code tells whether it is good enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from SimpleLLMFunc.cli.load import asking, complete_target, load_object, model_option
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.evaluate import EvalReport, evaluate
from SimpleLLMFunc.logger import redact

_SHOWN = 5


def _least(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for value in values:
        name, sign, least = value.rpartition("=")
        try:
            found[name] = float(least)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise click.BadParameter(f"{value!r} is not SCORE=NUMBER.")
    return found


@click.command(name="eval", short_help="Judge the answers to the cases of a file.")
@click.argument("target", metavar="MODULE:FUNCTION", shell_complete=complete_target)
@click.argument("cases", type=click.Path(path_type=Path), metavar="CASES")
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    default=("exact",),
    show_default=True,
    metavar="exact|fields|MODULE:NAME",
    help="How answers are judged; NAME is a scorer or a function of value and expectation. Several are fine.",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="How often each case is asked."
)
@click.option(
    "--min",
    "least",
    callback=_least,
    multiple=True,
    metavar="SCORE=NUMBER",
    help="End with code 1 where a score is below this number.",
)
@click.option(
    "--at",
    type=click.Choice(["mean", "low"]),
    default="mean",
    show_default=True,
    help="Compare --min with the mean, or with the lower end of its interval.",
)
@click.option(
    "--report", "report_path", type=click.Path(path_type=Path), help="Write the report to this file, as JSON."
)
@click.option("--svg", type=click.Path(path_type=Path), help="Write a picture of the scores to this file.")
@click.option(
    "--compare",
    "baseline",
    type=click.Path(path_type=Path),
    help="Compare with an earlier report; end with code 1 where a score is lower beyond chance.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    help="The probability below which a difference is not taken for chance.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence of the intervals around the scores.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    help="Keep answers in this file; the same command then goes on where it stopped.",
)
@click.option("--concurrency", type=click.IntRange(min=1), help="How many cases are asked at a time.")
@click.option("--budget-usd", type=click.FloatRange(min=0), help="Stop before more than this is spent.")
@click.option("--deadline", type=click.FloatRange(min=0, min_open=True), help="Stop after so many seconds.")
@model_option
@click.option("--quiet", is_flag=True, help="Print no progress, and only what is not good enough.")
@click.pass_context
def eval_command(
    ctx: click.Context,
    /,
    target: str,
    cases: Path,
    *,
    scorers: tuple[str, ...],
    least: dict[str, float],
    at: Literal["mean", "low"],
    report_path: Path | None,
    svg: Path | None,
    baseline: Path | None,
    alpha: float,
    concurrency: int | None,
    budget_usd: float | None,
    model_name: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Ask a function under @llm_function for every case of a JSONL file, and judge the answers.

    \b
    simplellmfunc eval shop:classify cases.jsonl --scorer exact --min exact=0.9
    simplellmfunc eval shop:classify cases.jsonl --report new.json --compare agreed.json

    A line of the file is {"args": ..., "expected": ...}. Ends with code 1 where a score is below --min, lower than in
    --compare beyond chance, or where the run was stopped.
    """  # noqa: D301 - click looks for the character
    function = load_object(target)
    earlier = EvalReport.load(baseline) if baseline is not None else None
    for path in (report_path, svg):
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigError(f"there is no folder {str(path.absolute().parent)!r} to write {path.name!r} to.")
    with asking(model_name):
        report = evaluate(
            function,
            cases,
            [load_object(name) if ":" in name else name for name in scorers],
            concurrency=concurrency or "auto",
            budget=budget_usd,
            progress=False if quiet else None,
            **options,
        )
    if not quiet:
        # Before the file is written: if that fails, the paid report has been shown.
        click.echo(printable(redact(str(report))))
        _show_errors(report)
    if report_path is not None:
        report.save(report_path)
    if svg is not None:
        report.plot(svg)
    worse: list[str] = []
    if earlier is not None:
        comparison = earlier.compare(report)
        worse = comparison.got_worse(alpha=alpha)
        if not quiet:
            click.echo("")
            click.echo(printable(redact(str(comparison))))
    if worse:
        click.echo(printable(redact(f"Lower than before beyond chance: {', '.join(worse)}.")), err=True)
    report.require(at=at, **least)
    if worse:
        ctx.exit(1)


def _show_errors(report: EvalReport) -> None:
    failed = [(result.id, outcome.error) for result in report.results for outcome in result.outcomes if outcome.error]
    for name, error in failed[:_SHOWN]:
        click.echo(printable(redact(f"  case {name}: {error}")), err=True)
    if len(failed) > _SHOWN:
        click.echo(f"  and {len(failed) - _SHOWN} more", err=True)
