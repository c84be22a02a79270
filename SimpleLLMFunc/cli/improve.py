"""`simplellmfunc improve`: search for a better form of a function, and keep it in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.load import load_object
from SimpleLLMFunc.cli.options import (
    ANY_PATH,
    asking,
    cases_argument,
    cases_concurrency,
    model_option,
    scorer,
    target_argument,
)
from SimpleLLMFunc.cli.output import echo_safely
from SimpleLLMFunc.improve import improved
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.runtime import run_sync


@click.command(name="improve", short_help="Look for examples and prompts with which a function answers better.")
@target_argument
@cases_argument
@click.option("--scorer", "scorer_name", **scorer)
@click.option("--budget", type=click.IntRange(min=0), metavar="REQUESTS", help="Requests at most; by default 3 a case.")
@click.option("--proposer", metavar="MODEL", help="A model that proposes other wordings; named as in --model.")
@click.option("--seed", type=int, default=0, show_default=True, help="Split the cases and draw with this seed.")
@click.option(
    "--path", type=ANY_PATH, help="The file to write, FUNCTION.improved.json by default; the same command goes on."
)
@click.option("--diff", "shows_diff", is_flag=True, help="Print the change as a patch of the source file, too.")
@cases_concurrency
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
