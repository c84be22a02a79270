"""`simplellmfunc eval` and `improve`: judge a decorated function on the cases of a file, or search for a better form of it."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import click

from SimpleLLMFunc.cli.arguments import (
    ANY_PATH,
    asking,
    budget_usd,
    cases_argument,
    concurrency_option,
    deadline_option,
    model_option,
    scorer,
    target_argument,
)
from SimpleLLMFunc.cli.load import load_object
from SimpleLLMFunc.cli.output import echo_safely
from SimpleLLMFunc.config import file_to_write
from SimpleLLMFunc.evaluate import EvalReport, evaluate
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.runtime import run_sync

_SHOWN = 5
_CONFIDENCE = click.FloatRange(0, 1, min_open=True, max_open=True)


def _least(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    with suppress(ValueError):
        found = {name: float(least) for name, least in (value.rsplit("=", 1) for value in values)}
        if all(map(math.isfinite, found.values())):
            return found
    raise click.BadParameter(f"{' '.join(values)!r} is not SCORE=NUMBER.")


@click.command(name="eval", short_help="Judge the answers to the cases of a file.")
@target_argument
@cases_argument
@click.option("--scorer", "scorers", multiple=True, **{**scorer, "default": ("exact",)})
@click.option("--repeats", type=click.IntRange(min=1), default=1, help="How often each case is asked.")
@click.option(
    "--min", "least", callback=_least, multiple=True, metavar="SCORE=NUMBER", help="Fail where a score is below."
)
@click.option(
    "--at",
    type=click.Choice(["mean", "low"]),
    default="mean",
    help="Compare --min with the mean, or with the lower end of its interval.",
)
@click.option("--report", "report_path", type=ANY_PATH, help="Write the report to this file, as JSON.")
@click.option("--svg", type=ANY_PATH, help="Write a picture of the scores to this file.")
@click.option(
    "--compare", "baseline", type=ANY_PATH, help="Fail where a score is lower than in this report beyond chance."
)
@click.option(
    "--alpha", type=click.FloatRange(0, 1), default=0.05, help="The p-value below which a difference counts as real."
)
@click.option("--confidence", type=_CONFIDENCE, default=0.95, help="The confidence of the intervals.")
@click.option("--checkpoint", type=ANY_PATH, help="Keep answers in this file; the same command then goes on.")
@concurrency_option
@budget_usd
@deadline_option
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
    for path in filter(None, (report_path, svg)):
        file_to_write(path)
    with asking(model_name):
        report = evaluate(
            function,
            cases,
            [load_object(name) if ":" in name else name for name in scorers],
            budget=budget_usd,
            progress=False if quiet else None,
            **options,
        )
    if not quiet:
        # Before the file is written and compared: if that fails, the paid report has been shown.
        echo_safely(str(report))
        _show_errors(report)
    if report_path is not None:
        report.save(report_path)
    if svg is not None:
        report.plot(svg)
    comparison = None if earlier is None else earlier.compare(report)
    if comparison is not None and not quiet:
        echo_safely(f"\n{comparison}")
    worse = [] if comparison is None else comparison.got_worse(alpha=alpha)
    if worse:
        echo_safely(f"Lower than before beyond chance: {', '.join(worse)}.", err=True)
    report.require(at=at, **least)
    if worse:
        ctx.exit(1)


def _show_errors(report: EvalReport) -> None:
    failed = [(result.id, outcome.error) for result in report.results for outcome in result.outcomes if outcome.error]
    for name, error in failed[:_SHOWN]:
        echo_safely(f"  case {name}: {error}", err=True)
    if len(failed) > _SHOWN:
        click.echo(f"  and {len(failed) - _SHOWN} more", err=True)


@click.command(name="improve", short_help="Look for examples and prompts with which a function answers better.")
@target_argument
@cases_argument
@click.option("--scorer", "scorer_name", **scorer)
@click.option("--budget", type=click.IntRange(min=0), metavar="REQUESTS", help="Requests at most; by default 3 a case.")
@click.option("--proposer", metavar="MODEL", help="A model that proposes other wordings; named as in --model.")
@click.option("--seed", type=int, default=0, help="Split the cases and draw with this seed.")
@click.option(
    "--path", type=ANY_PATH, help="The file to write, FUNCTION.improved.json by default; the same command goes on."
)
@click.option("--diff", "shows_diff", is_flag=True, help="Print the change as a patch of the source file, too.")
@concurrency_option
@model_option
@click.option("--quiet", is_flag=True, help="Print no progress.")
def improve_command(
    target: str,
    cases: Path,
    scorer_name: str,
    proposer: str | None,
    path: Path | None,
    model_name: str | None,
    *,
    shows_diff: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Search for a form of a function that answers the cases of a JSONL file better, and test it on cases it never saw.

    \b
    simplellmfunc improve shop:classify cases.jsonl --budget 400
    simplellmfunc improve shop:classify cases.jsonl --proposer openai:gpt-5 --diff

    A line of the file is {"args": ..., "expected": ...}; at least 30 lines. In the code, with_options(improvement=PATH) gives
    the function what was found. Ends with code 0 also where nothing better was found.
    """  # noqa: D301 - click looks for the character
    from SimpleLLMFunc.improve import improved  # `eval` starts without it

    function = load_object(target)
    place = path or Path(f"{getattr(function, '__name__', 'function')}.improved.json")
    with asking(model_name):
        found = run_sync(
            improved(
                function,
                cases,
                scorer=load_object(scorer_name) if ":" in scorer_name else scorer_name,
                proposer=None if proposer is None else named_model(proposer, named_by="--proposer"),
                path=place,
                progress=False if quiet else None,
                **options,
            )
        )
    echo_safely(str(found))
    click.echo(f"written: {place}")
    if shows_diff and found.accepted:
        echo_safely(found.diff())
