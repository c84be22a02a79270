"""How often `is_uncertain` is right: precision and recall over a labelled set of answers, in Chinese and English.

Run it with `python benchmarks/uncertainty.py` (`--errors` lists what it gets wrong, `--all` lists it for the held-out
part too). The set is tests/assistant/search/uncertainty_set.jsonl: answers as models write them, each labelled by whether the
model says that it does not know. The `tuned` part was looked at while the phrases were written, so what it shows is
that nothing broke since. The `held-out` part was written after the phrases, run once, and not tuned for: its figures
are the ones to expect elsewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from SimpleLLMFunc.assistant.search.uncertainty import explain, is_uncertain

SET = Path(__file__).parents[1] / "tests" / "assistant" / "search" / "uncertainty_set.jsonl"
AIM = 0.95


@dataclass
class Score:
    hits: int = 0
    false_alarms: int = 0
    misses: int = 0
    rest: int = 0

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.hits + self.false_alarms)

    @property
    def recall(self) -> float:
        return self.hits / max(1, self.hits + self.misses)

    def count(self, *, said: bool, label: bool) -> None:
        if said and label:
            self.hits += 1
        elif said:
            self.false_alarms += 1
        elif label:
            self.misses += 1
        else:
            self.rest += 1


def labelled() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SET.read_text("utf-8").splitlines()]


def score(rows: list[dict[str, Any]]) -> Score:
    found = Score()
    for row in rows:
        found.count(said=is_uncertain(row["text"]), label=row["uncertain"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Precision and recall of is_uncertain.")
    parser.add_argument("--errors", action="store_true", help="list what it gets wrong in the tuned part")
    parser.add_argument("--all", action="store_true", help="list what it gets wrong in the held-out part too")
    asked = parser.parse_args()
    rows = labelled()
    print(
        f"{'part':10} {'language':8} {'answers':>7} {'precision':>9} {'recall':>7} {'false alarms':>13} {'misses':>7}"
    )
    for part in ("tuned", "held-out", "all"):
        for language in ("zh", "en", "both"):
            chosen = [row for row in rows if part in {"all", row["part"]} and language in {"both", row["language"]}]
            found = score(chosen)
            print(
                f"{part:10} {language:8} {len(chosen):7} {found.precision:9.3f} {found.recall:7.3f} "
                f"{found.false_alarms:13} {found.misses:7}"
            )
    start = time.perf_counter()
    for row in rows:
        is_uncertain(row["text"])
    print(f"{(time.perf_counter() - start) / len(rows) * 1e6:.0f} µs an answer")
    for row in rows:
        if (asked.all or (asked.errors and row["part"] == "tuned")) and is_uncertain(row["text"]) != row["uncertain"]:
            print(f"\n{'false alarm' if not row['uncertain'] else 'miss'}: {row['text']}\n{explain(row['text'])}")
    total = score(rows)
    return 0 if min(total.precision, total.recall) > AIM else 1


if __name__ == "__main__":
    sys.exit(main())
