"""`simplellmfunc improve`: search for a better form of a function, and keep it in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.load import asking, complete_target, load_object, model_option
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.improve import improved
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.runtime import run_sync


@click.command(name="improve", short_help="Look for examples and prompts with which a function answers better.")
@click.argument("target", metavar="MODULE:FUNCTION", shell_complete=complete_target)
@click.argument("cases", type=click.Path(path_type=Path), metavar="CASES")
@click.option(
    "--scorer",
    default="exact",
    show_default=True,
    metavar="exact|fields|MODULE:NAME",
    help="How answers are judged; NAME is a scorer or a function of value and expectation.",
)
@click.option(
    "--budget", type=click.IntRange(min=0), metavar="REQUESTS", help="Requests at most; by default three for each case."
)
@click.option(
    "--proposer", metavar="MODEL", help="A model that proposes other wordings of the docstring; named as in --model."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Split the cases and draw with this seed.")
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    help="The file to write; by default FUNCTION.improved.json. The same command goes on where a search was stopped.",
)
@click.option("--diff", "shows_diff", is_flag=True, help="Print the change as a patch of the source file, too.")
@click.option("--concurrency", type=click.IntRange(min=1), help="How many cases are asked at a time.")
@model_option
@click.option("--quiet", is_flag=True, help="Print no progress.")
def improve_command(
    target: str,
    cases: Path,
    scorer: str,
    budget: int | None,
    proposer: str | None,
    seed: int,
    path: Path | None,
    concurrency: int | None,
    model_name: str | None,
    *,
    shows_diff: bool,
    quiet: bool,
) -> None:
    """Search for a form of a function that answers the cases of a JSONL file better, and test it on cases it never saw.

    \b
    simplellmfunc improve shop:classify cases.jsonl --budget 400
    simplellmfunc improve shop:classify cases.jsonl --proposer openai:gpt-5 --diff

    A line of the file is {"args": ..., "expected": ...}; at least 30 lines. In the code, with_options(improvement=PATH) gives
    the function what was found. Ends with code 0 also where nothing better was found.
    """  # noqa: D301 - click looks for the character
    function: Any = load_object(target)
    place = path or Path(f"{getattr(function, '__name__', 'function')}.improved.json")
    with asking(model_name):
        found = run_sync(
            improved(
                function,
                cases,
                scorer=load_object(scorer) if ":" in scorer else scorer,
                budget=budget,
                proposer=None if proposer is None else named_model(proposer, named_by="--proposer"),
                seed=seed,
                path=place,
                concurrency=concurrency or "auto",
                progress=False if quiet else None,
            )
        )
    click.echo(printable(redact(str(found))))
    click.echo(f"written: {place}")
    if shows_diff and found.accepted:
        click.echo(printable(redact(found.diff())))
