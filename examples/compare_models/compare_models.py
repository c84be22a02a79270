# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = "../.." }
# ///
"""Two models answer your own cases: which one is right more often, and what do they cost?

python compare_models.py                                                    # recorded answers, no key
python compare_models.py --model openai:gpt-5-nano --other openai:gpt-5-mini --cases my-cases.jsonl
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.evaluate import EvalReport, evaluate
from SimpleLLMFunc.testing import use_cassette

HERE = Path(__file__).parent


@llm_function
def priority(ticket: str) -> Literal["now", "today", "later"]:
    """How soon must the caretaker come? "now": danger or damage that grows. "today": a flat cannot be used as usual. Else "later"."""
    raise NotImplementedError


def measured(model: str | None, cases: Path, recorded: str) -> EvalReport:
    """Ask one model for all cases; without a name, take the recorded answers."""
    if model:
        os.environ["SIMPLELLMFUNC_MODEL"] = model
    with nullcontext() if model else use_cassette(HERE / recorded, record="none"):
        return evaluate(priority, cases, progress=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Compare two models on your own cases.")
    parser.add_argument("--cases", type=Path, default=HERE / "cases.jsonl")
    parser.add_argument("--model", help="openai:gpt-5-nano, anthropic:…, gemini:…, local; without it recorded answers")
    parser.add_argument("--other", help="the second model, named in the same way")
    chosen = parser.parse_args(arguments)
    if bool(chosen.model) != bool(chosen.other):
        parser.error("--model and --other go together")
    first = measured(chosen.model, chosen.cases, "cassette-small.json")
    second = measured(chosen.other, chosen.cases, "cassette-large.json")
    for report in (first, second):
        cost = "unknown cost" if report.cost is None else f"{report.cost:.4f} USD"
        score = report.scores["exact"]
        print(f"{report.model}: {score.mean:.2f} right, {report.output_tokens} tokens out, {cost}")
    print(first.compare(second).table())
    for left, right in zip(first.results, second.results, strict=True):
        values = [each.outcomes[0].value for each in (left, right)]
        if values[0] != values[1]:
            print(f"{values[0]} / {values[1]}, expected {left.expected}: {left.arguments['ticket']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
