# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = "../.." }
# ///
"""Questions over your own files, answered with quotes that are really there.

python ask_files.py "May I bring my dog?"        # recorded answers, no key
python ask_files.py "Who pays for paint?" --files my-notes --model openai:gpt-5-mini
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from pydantic import BaseModel, Field

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import use_cassette
from SimpleLLMFunc.type import Quoted

HERE = Path(__file__).parent


class Passage(BaseModel):
    place: str
    text: str


class Answer(BaseModel):
    answer: str = Field(description="one or two sentences, or: The files do not say.")
    quotes: list[Quoted[str]] = Field(description="what the answer rests on; empty if the files do not say")


@llm_function
def answer(question: str, passages: list[Passage]) -> Answer:
    """Answer the question from the passages alone. Quote the sentences that the answer rests on."""
    raise NotImplementedError


def passages_of(folder: Path) -> list[Passage]:
    """Return the paragraphs of all text files, each with its file and line."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".txt"}):
        at = 0
        for paragraph in re.split(r"\n{2,}", text := path.read_text("utf-8")):
            at = text.index(paragraph, at)
            line = text.count("\n", 0, at) + 1
            found.append(Passage(place=f"{path.name}:{line}", text=paragraph.strip()))
            at += len(paragraph)
    return [each for each in found if each.text]


def words_of(text: str) -> set[str]:
    """Return the words of a text, plurals as singulars."""
    return {word.rstrip("s") for word in re.findall(r"\w{3,}", text.lower())}


def nearest(question: str, passages: Sequence[Passage], count: int = 4) -> list[Passage]:
    """Return the passages that share most words with the question; rare words count more."""
    words = [words_of(f"{each.place} {each.text}") for each in passages]
    known = Counter(word for each in words for word in each)
    asked = words_of(question)
    ranked = sorted(range(len(passages)), key=lambda at: -sum(1 / known[word] for word in asked & words[at]))
    return [passages[at] for at in sorted(ranked[:count])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Ask your own files.")
    parser.add_argument("question")
    parser.add_argument("--files", type=Path, default=HERE / "files")
    parser.add_argument("--model", help="openai:gpt-5-mini, anthropic:…, gemini:…, local; without it recorded answers")
    chosen = parser.parse_args(arguments)
    if chosen.model:
        os.environ["SIMPLELLMFUNC_MODEL"] = chosen.model
    passages = nearest(chosen.question, passages_of(chosen.files))
    with nullcontext() if chosen.model else use_cassette(HERE / "cassette.json", record="none"):
        result = answer.call(chosen.question, passages)
    print(result.value.answer)
    for quote in result.value.quotes:
        number = int(re.findall(r"\[(\d+)\]", quote.path or "")[0])
        print(f"  {passages[number].place}: “{passages[number].text[quote.start : quote.end]}”")
    if len(result.attempts) > 1:
        print(
            f"  ({len(result.attempts) - 1} answer sent back: {result.attempts[0].violations[0][2]} is in no passage)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
