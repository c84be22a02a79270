"""Arguments and options that several commands have."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.load import complete_target
from SimpleLLMFunc.interface.current import named_model, use_llm

ANY_PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
PORT = click.IntRange(0, 65535)
SECONDS = click.FloatRange(min=0, min_open=True)

_SCORER = "How answers are judged; NAME is a scorer, or a function of value and expectation."

target_argument = click.argument("target", metavar="MODULE:FUNCTION", shell_complete=complete_target)
cases_argument = click.argument("cases", type=ANY_PATH, metavar="CASES")
scorer: dict[str, Any] = {
    "default": "exact",
    "show_default": True,
    "metavar": "exact|fields|MODULE:NAME",
    "help": _SCORER,
}
model_option = click.option(
    "--model",
    "model_name",
    metavar="MODEL",
    help="Ask this model instead of the function's own: openai:NAME, anthropic:NAME, gemini:NAME, local, FILE.json:PROVIDER/NAME.",
)
json_option = click.option("--json", "as_data", is_flag=True, help="Print JSON.")
cases_concurrency = click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    callback=lambda _ctx, _param, count: count or "auto",
    help="How many cases are asked at a time.",
)
budget_usd = click.option("--budget-usd", type=click.FloatRange(min=0), help="Stop before more than this is spent.")
deadline_option = click.option("--deadline", type=SECONDS, help="Stop after so many seconds.")


def asking(model_name: str | None) -> AbstractContextManager[object]:
    """Return the block in which functions ask the model of `model_option`; None leaves them their own.

    Raises:
        ConfigError: no model has this name.
    """
    return nullcontext() if model_name is None else use_llm(named_model(model_name, named_by="--model"))
