# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = "../.." }
# ///
"""Last night's comments are classified, within a budget and a deadline, and an alarm is raised when something is wrong.

python nightly_job.py                              # recorded answers, no key
python nightly_job.py comments.csv --model openai:gpt-5-mini --usd 0.50 --webhook https://…
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal
from urllib.request import Request, urlopen

from pydantic import BaseModel

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch import MapReport
from SimpleLLMFunc.testing import use_cassette

HERE = Path(__file__).parent


class Comment(BaseModel):
    topic: Literal["price", "delivery", "quality", "other"]
    angry: bool


@llm_function(max_reasks=1)
def classify(comment: str) -> Comment:
    """Say what a customer's comment is about, and whether the customer is angry."""
    raise NotImplementedError


def alarms(report: MapReport[Comment], *, max_failed: float, max_angry: float) -> list[str]:
    """Return what a person should look at in the morning."""
    found = []
    values = [row.value for row in report.rows if row.error is None]
    if report.stopped is not None:
        found.append(f"stopped before the end: {report.stopped}")
    elif report.counts.failed > max_failed * report.counts.rows:
        found.append(f"{report.counts.failed} of {report.counts.rows} rows failed: {dict(report.errors)}")
    if values and (angry := sum(value.angry for value in values)) > max_angry * len(values):
        found.append(f"{angry} of {len(values)} customers are angry")
    return found


def notify(messages: Sequence[str], webhook: str | None) -> None:
    """Print the alarms, and send them to a webhook (Slack, Teams, ntfy …)."""
    for message in messages:
        print(f"ALARM: {message}")
    if messages and webhook:
        body = json.dumps({"text": "\n".join(messages)}).encode()
        request = Request(webhook, body, {"Content-Type": "application/json"})  # noqa: S310 - the operator's own address
        urlopen(request, timeout=30).close()  # noqa: S310


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 where there is an alarm."""
    parser = argparse.ArgumentParser(description="Classify the comments of a day.")
    parser.add_argument("file", type=Path, nargs="?", default=HERE / "comments.csv")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--requests", type=int, default=1000, help="the most requests of this run")
    parser.add_argument("--usd", type=float, help='the most money of this run; needs pip install ".[cost]"')
    parser.add_argument("--deadline", type=float, default=3600, help="seconds")
    parser.add_argument("--max-failed", type=float, default=0.05)
    parser.add_argument("--max-angry", type=float, default=0.5)
    parser.add_argument("--webhook")
    parser.add_argument("--model", help="openai:gpt-5-mini, anthropic:…, gemini:…, local; without it recorded answers")
    chosen = parser.parse_args(arguments)
    if chosen.model:
        os.environ["SIMPLELLMFUNC_MODEL"] = chosen.model
    chosen.out.mkdir(parents=True, exist_ok=True)
    limits: dict[str, float] = {"requests": chosen.requests}
    if chosen.usd is not None:
        limits["usd"] = chosen.usd
    with (
        nullcontext() if chosen.model else use_cassette(HERE / "cassette.json", record="none"),
        classify.map(
            chosen.file,
            column="comment",
            checkpoint=chosen.out / f"{chosen.file.stem}.sqlite",
            budget=limits,
            deadline=chosen.deadline,
            concurrency=4,
            progress=False,
        ) as report,
    ):
        report.write(chosen.out / f"{chosen.file.stem}.jsonl")
        counts = report.counts
        topics = Counter(row.value.topic for row in report.rows if row.error is None)
        print(f"{counts.asked} asked, {counts.restored} from the checkpoint, {counts.unasked} not asked")
        if report.stopped is None:  # else these are the topics of whichever rows came first
            print(", ".join(f"{topic} {count}" for topic, count in sorted(topics.items())))
        found = alarms(report, max_failed=chosen.max_failed, max_angry=chosen.max_angry)
    notify(found, chosen.webhook)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
