"""The pages use the words of the field: a short list of private words is at zero."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# Folders and files that are held to zero. Add a folder here when its count is zero.
HELD = ("README.md", "README.zh-CN.md", "docs", "examples", "SimpleLLMFunc")
KINDS = {".md", ".py"}
PRIVATE = (
    *("are none", "anew", "beside", "in its turn", "is none", "let go of", "lets go of", "nobody", "of its own"),
    *("somebody", "stand in", "stands in", "thereby", "whatever", "whoever", "whose move"),
)
# Case counts after the first letter: `is None` is code.
PATTERN = re.compile(r"\b(?:" + "|".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in PRIVATE) + r")\b")


# Prompts are data: another wording would make recorded answers stale.
PROMPTS = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "tests/golden").glob("*.txt")))


def files(name: str) -> list[Path]:
    place = ROOT / name
    return [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in KINDS)


def found(text: str) -> list[str]:
    """Return each line with a private word, with its number."""
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if (word := PATTERN.search(line))
        and line[max(0, word.start() - 12) : word.end() + 6].strip(' "') not in PROMPTS
    ]


@pytest.mark.parametrize("name", HELD)
def test_no_private_word(name: str) -> None:
    assert files(name), name
    told = {str(path.relative_to(ROOT)): lines for path in files(name) if (lines := found(path.read_text("utf-8")))}
    assert told == {}


@pytest.mark.parametrize(("text", "is_found"), [("Nobody knows.", True), ("if row.error is None:", False)])
def test_prose_is_found_and_code_is_not(text: str, is_found: bool) -> None:
    assert bool(found(text)) is is_found


def test_the_glossary_has_forty_words_with_the_term_of_the_field() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \|$", (ROOT / "docs/reference/glossary.md").read_text("utf-8"), re.M
    )
    words = [ours for ours, field, meaning in rows if ours != "our word" and field.strip() and meaning.strip()]
    assert len(words) == len(set(words)) >= 40
