# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Two models over the same cases: scores with intervals, a paired test, a picture, and what CI would say.

The models here are doubles: one takes multiples of three for even, the other is always right.

Model: two, with answers written down (`ScriptedLLM`). For real ones change the lines `… = ScriptedLLM(…`.
"""

import json
import tempfile
from pathlib import Path
from typing import Literal

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.evaluate import EvaluationFailed, evaluate
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing.scripted import ScriptedRequest

Label = Literal["even", "odd"]


def counting(asked: ScriptedRequest) -> str:
    number = int(asked.text.rsplit(" ", 1)[-1])
    return json.dumps("even" if number % 2 == 0 else "odd")


def careless(asked: ScriptedRequest) -> str:
    number = int(asked.text.rsplit(" ", 1)[-1])
    return json.dumps("even" if number % 2 == 0 or number % 3 == 0 else "odd")


# Real ones: from SimpleLLMFunc import OpenAICompatible; small = OpenAICompatible("gpt-5-nano");
# and large = OpenAICompatible("gpt-5")
small = ScriptedLLM(careless, repeat=True, model_name="small")
large = ScriptedLLM(counting, repeat=True, model_name="large")


@llm_function(small)
async def parity(number: int) -> Label:
    """Is the number even or odd?"""
    raise NotImplementedError


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    cases = folder / "cases.jsonl"
    lines = [{"args": number, "expected": "even" if number % 2 == 0 else "odd"} for number in range(40)]
    cases.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    first = evaluate(parity, cases, checkpoint=folder / "run.sqlite")
    second = evaluate(parity.with_options(llm_interface=large), cases)
    print(first.table())
    comparison = first.compare(second)
    print(comparison.table())
    first.save(folder / "report.json")
    print("written:", folder.joinpath("report.json").name)
    try:
        first.require(exact=0.9)
    except EvaluationFailed as error:
        print(f"CI would fail: {error}")
    second.require(exact=0.9)


if __name__ == "__main__":
    main()
