# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[frames]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""From a CSV file to a Parquet file with a column for each field of a model, begun again without asking twice.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import csv
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from SimpleLLMFunc import forbid_real_calls, llm_function
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest

REVIEWS = [
    ("Anna", "Wonderful bread, friendly people."),
    ("Ben", "Cold soup, and a long wait."),
    ("Chen", "面包很好吃，下次还来。"),
]


class Judgement(BaseModel):
    mood: Literal["good", "bad"]
    about: list[str]


def service(request: ScriptedRequest) -> str:
    """Answer like a service would."""
    text = request.text
    about = [word for word in ("bread", "soup", "面包", "wait") if word in text]
    return Judgement(mood="bad" if "Cold" in text else "good", about=about).model_dump_json()


# A real model, and no forbid_real_calls(): from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(service, repeat=True)


@llm_function(llm_interface=llm)
def judge(review: str) -> Judgement:
    """Judge the review: its mood, and what it is about, in the words of the review."""
    raise NotImplementedError


def main() -> None:
    forbid_real_calls()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "reviews.csv").open("w", encoding="gb18030", newline="") as file:  # as spreadsheets save it
            csv.writer(file).writerows([("guest", "review"), *REVIEWS])

        report = judge.map(folder / "reviews.csv", checkpoint=folder / "run.sqlite", progress=False)
        print(report)
        report.write(folder / "judged.parquet")
        report.close()

        with (folder / "reviews.csv").open("a", encoding="gb18030", newline="") as file:
            csv.writer(file).writerow(("Dora", "Good bread."))
        report = judge.map(folder / "reviews.csv", checkpoint=folder / "run.sqlite", progress=False)
        report.write(folder / "judged.parquet")
        print(f"one row more: {report.counts.asked} asked, {report.counts.restored} from the checkpoint")
        print(report.to_frame()[["guest", "mood", "about"]].to_string())
        report.close()


if __name__ == "__main__":
    main()
