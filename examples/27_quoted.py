# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Findings with quotes that are really in the text, and where: an invented quote is sent back to the model.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import json

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import Quoted

CONTRACT = """\
The tenant pays 900 euros a month, due on the “first working day”.
The landlord keeps the roof and the heating in repair.
租客提前三个月
通知房东。
"""


class Duty(BaseModel):
    who: str
    what: str
    quote: Quoted[str]


def duty(who: str, what: str, quote: str) -> dict[str, str]:
    return {"who": who, "what": what, "quote": quote}


# What a model may say: at first one quote is not in the contract.
# A real one: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(
    json.dumps([duty("tenant", "pay", "900 euros per month"), duty("tenant", "tell", "提前三个月通知")]),
    json.dumps(
        [
            duty("tenant", "pay the rent", 'pays 900 euros a month, due on the "first working day"'),
            duty("landlord", "repair", "the roof and the heating"),
            duty("tenant", "tell", "提前三个月通知"),
        ]
    ),
)


@llm_function(llm)
def duties(contract: str) -> list[Duty]:
    """List who has to do what."""
    raise NotImplementedError


def main() -> None:
    result = duties.call(CONTRACT)
    for path, expected, got in result.attempts[0].violations:
        print(f"sent back: {path}: {got} is not {expected}")
    for each in result.value:
        found = CONTRACT[each.quote.start : each.quote.end]
        print(f"{each.who} {each.what}: {each.quote.path}[{each.quote.start}:{each.quote.end}] {found!r}")
        assert each.quote.argument == "contract"


if __name__ == "__main__":
    main()
