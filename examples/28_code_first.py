# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Plain code answers what it can, the model the rest, and other code when the service is down.

A part of the calls is answered by both, to see how often they agree.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import re
from typing import Literal

from SimpleLLMFunc import ServerUnavailable, llm_function
from SimpleLLMFunc.evaluate import wilson_interval
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ABSTAIN, Abstention

Mood = Literal["glad", "angry", "neutral"]

# A model that reads the stars.
# A real one: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(lambda asked: '"glad"' if "*****" in asked.text else '"neutral"', repeat=True)
down = ScriptedLLM(ServerUnavailable("gpt-5-mini", status=503), repeat=True)


def by_stars(review: str) -> Mood | Literal[Abstention.ABSTAIN]:
    stars = re.match(r"\*+", review)
    return ABSTAIN if stars is None else "glad" if len(stars[0]) >= 4 else "angry"


def nothing_known(review: str) -> Mood:
    return "neutral"


@llm_function(llm, first=by_stars, fallback=nothing_known, sample=1.0)
def mood(review: str) -> Mood:
    """How does the guest feel?"""
    raise NotImplementedError


def main() -> None:
    reviews = ["***** lovely", "* never again", "the tea was hot", "**** good"]
    for review in reviews:
        result = mood.call(review)
        print(f"{review}: {result.value} (by {result.source})")
    agreement = mood.agreement
    low, high, _ = wilson_interval(agreement.agreed, agreement.compared)
    print(f"code and model agree in {agreement.agreed} of {agreement.compared}: {low:.0%} to {high:.0%}")
    for one in agreement.disagreements:
        print(f"    {one.arguments['review']}: {one.code} or {one.model}?")

    without = mood.with_options(llm_interface=down)
    print(f"while the service is down: {without.call('the tea was hot').source}")
    report = mood.with_options(sample=0).map(reviews)
    print(f"as a map: {[row.value for row in report.rows]}, {report.usage.total_tokens} tokens for one row of four")
    assert [row.value for row in report.rows] == ["glad", "angry", "neutral", "glad"]


if __name__ == "__main__":
    main()
