"""The page and the picture of a league: benchmarks/LEAGUE.md and league.svg, made from the answers alone."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.league import improved, sure
from benchmarks.league.tasks import ORDER, NaiveBayes, Score, Task, constant, f1
from SimpleLLMFunc.evaluate.comparison import difference_of
from SimpleLLMFunc.statistics import wilson_interval

FOLDER = Path(__file__).parent.parent
OURS = "ours"
TITLES = {"ours": "SimpleLLMFunc", "openai": "openai, JSON schema", "pydantic_ai": "pydantic-ai", "baml": "BAML"}
TITLES |= {"langchain": "LangChain", "dspy": "DSPy", "constant": "a constant answer", "bayes": "naive Bayes, no model"}
BARS = ("constant", "bayes")
DRAWS = 1_000
RULES = (
    "All contenders ask the same small model behind one llama.cpp server, one request after the other, at temperature 0 "
    "and with at most 256 tokens for an answer. They get the same docstring, type and descriptions of fields; the prompt, "
    "the schema and what happens to a bad answer are theirs (`league/contenders.py`). No one gets examples. The tasks are "
    "public data (`league/data`, with licences). The split `test` is asked once per release."
)
FIGURES = (
    "A figure is the share of right answers with Wilson's 95 % interval; for the two `record` tasks the F1 of the fields "
    "that are not null, with a bootstrap interval. ▲ and ▼: significantly better or worse than SimpleLLMFunc on the same "
    "rows (p < 0.05; exact McNemar test, for records a permutation of signs; not corrected for their number). An error is "
    "an exception, or no answer within 180 s. Seconds are what a caller waits; processor seconds are the server's, and "
    "right answers a second are counted with them, as other programs ran on the machine. Rows of ours that were recorded for the "
    "replay (`league/replay.py`) count among the answers, not in the times."
)


@dataclass(frozen=True)
class Cell:
    """What one contender got of one task with one model; `answers` by the id of the row."""

    answers: dict[str, dict[str, Any]]
    is_record: bool

    @cached_property
    def scores(self) -> list[Score]:
        return [Score(each["exact"], each["found"], each["made_up"], each["missed"]) for each in self.answers.values()]

    @cached_property
    def points(self) -> dict[str, float]:
        """A score for each row: right or not, of records the F1 of the row."""
        pairs = zip(self.answers, self.scores, strict=True)
        return {key: f1([score]) if self.is_record else float(score.exact) for key, score in pairs}

    @cached_property
    def figure(self) -> float:
        """The share that is right; of records the F1 over all fields."""
        return f1(self.scores) if self.is_record else statistics.fmean(self.points.values())

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 %: Wilson's, and for records the percentiles of 1,000 bootstrap draws of rows."""
        if not self.is_record:
            low, high, _ = wilson_interval(sum(self.points.values()), len(self.points))
            return low, high
        chance = random.Random(0)
        drawn = sorted(f1(chance.choices(self.scores, k=len(self.scores))) for _ in range(DRAWS))
        return drawn[DRAWS // 40], drawn[-DRAWS // 40]

    @property
    def rate(self) -> float:
        """Right answers (for records: F1) for a second of the model's processor time; 0 where no time was taken."""
        times = [each["cpu"] for each in self.answers.values() if each.get("cpu")]
        return self.figure * len(times) / sum(times) if times else 0.0

    def p(self, other: Cell) -> tuple[float, float]:
        """How much better `other` is on the rows that both have, and its p: McNemar's, or of a permutation."""
        pairs = [(self.points[key], other.points[key]) for key in self.points if key in other.points]
        found = difference_of(pairs, 0.95) if pairs else None
        return (found.difference, found.p) if found else (0.0, 1.0)


Cells = dict[tuple[str, str], Cell]
"""By task and contender."""


def cells_of(answers: Sequence[dict[str, Any]], model: str) -> Cells:
    """Return the cells of a model, those of the bars too: they answer the same rows."""
    grouped: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for each in answers:
        if each["model"] == model:
            grouped[each["task"], each["contender"]][each["id"]] = each
    for name in ORDER:
        asked = {key for (task, _), rows in grouped.items() if task == name for key in rows}
        if not asked:
            continue
        task = Task(name)
        rows = [row for row in task.rows if row["id"] in asked]
        said = constant(task)
        bars: dict[str, list[Any]] = {"constant": [said for _ in rows]}
        bars |= {"bayes": [*map(NaiveBayes(task), rows)]} if task.kind == "choice" else {}
        for bar, values in bars.items():
            scores = {row["id"]: task.score(row, value) for row, value in zip(rows, values, strict=True)}
            grouped[name, bar] = {key: {**vars(score), "cpu": 0} for key, score in scores.items()}
    return {key: Cell(rows, "record" in key[0]) for key, rows in grouped.items()}


def standing(cells: Cells, name: str) -> tuple[int, int]:
    """Return on how many tasks a contender is first or within the interval of the first, and first by rate."""
    close = fast = 0
    for task in ORDER:
        field = {who: cell for (of, who), cell in cells.items() if of == task and who not in BARS}
        if name in field:
            first = max(field.values(), key=lambda cell: cell.figure)
            close += field[name].figure >= first.interval[0]
            fast += field[name].rate > 0 and field[name].rate >= max(cell.rate for cell in field.values())
    return close, fast


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _names(cells: Cells) -> list[str]:
    there = dict.fromkeys(who for _, who in cells if who not in BARS)
    return sorted(there, key=lambda who: who != OURS)


def _accuracy(cells: Cells) -> list[str]:
    lines = [_row(["", *(name.replace("_", " ") for name in ORDER)]), _row(["---", *["---:"] * len(ORDER)])]
    for name in [*_names(cells), *BARS]:
        texts = []
        for task in ORDER:
            cell, mine = cells.get((task, name)), cells.get((task, OURS))
            if cell is None:
                texts.append("–")
                continue
            better, p = mine.p(cell) if mine and name != OURS else (0.0, 1.0)
            mark = "" if p >= 0.05 else " ▲" if better > 0 else " ▼"
            low, high = cell.interval
            shown = f"**{cell.figure:.0%}**{mark} ({low:.0%}–{high:.0%}, n = {len(cell.answers)})"
            texts.append(shown.replace("%–", "–"))
        lines.append(_row([TITLES.get(name, name), *texts]))
    return lines


def _counts(cells: Cells, versions: dict[str, str]) -> list[str]:
    head = ["", "version", "right", "wrong", "wrong type, silently", "error", "s, median", "processor s, mean"]
    head += ["tokens in", "out", "first or within its interval", "most right answers a second"]
    lines = [_row(head), _row(["---", "---", *["---:"] * (len(head) - 2)])]
    for name in _names(cells):
        mine = [each for (_, who), cell in cells.items() if who == name for each in cell.answers.values()]
        kinds = [sum(each["kind"] == kind for each in mine) for kind in ("right", "wrong", "type", "error")]
        timed = [each for each in mine if "seconds" in each]
        seconds = f"{statistics.median(each['seconds'] for each in timed):.2f}" if timed else "–"
        means = [statistics.fmean(each[key] for each in timed) if timed else 0.0 for key in ("cpu", "in", "out")]
        tasks = sum(who == name for _, who in cells)
        close, fast = standing(cells, name)
        texts = [TITLES.get(name, name), versions[name], *map(str, kinds), seconds, f"{means[0]:.2f}"]
        lines.append(
            _row([*texts, *(f"{mean:.0f}" for mean in means[1:]), f"{close} of {tasks}", f"{fast} of {tasks}"])
        )
    return lines


def page(answers: Sequence[dict[str, Any]], split: str, note: str) -> str:
    """Return the page."""
    dates = sorted({each["date"] for each in answers})
    versions = {each["contender"]: each["version"] for each in answers}
    models = list(dict.fromkeys(each["model"] for each in answers))
    counts = [len({each["id"] for each in answers if each["task"] == name}) for name in ORDER]
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    rows = f"{min(counts)} to {max(counts)}" if min(counts) != max(counts) else f"{max(counts)}"
    lines = [
        "# League: are the answers right?",
        "",
        f"Split `{split}`, asked {when}; {rows} rows of each of eight tasks. Made by `make league` from "
        f"`league/{split}.jsonl.gz`: do not edit. {note}".strip(),
        "",
        RULES,
        "",
        FIGURES,
        "",
        "![Right answers by task and model](league.svg)",
    ]
    for model in models:
        cells = cells_of(answers, model)
        lines += ["", f"## {model}", "", *_accuracy(cells), "", *_counts(cells, versions)]
    return "\n".join([*lines, ""])


def picture(answers: Sequence[dict[str, Any]]) -> str:
    """Return a panel for each task and model: a dot and its interval for each contender, a line for each bar."""
    models = list(dict.fromkeys(each["model"] for each in answers))
    names = sorted({each["contender"] for each in answers}, key=lambda who: (who != OURS, who))
    line, wide, left, top = 17, 150, 118, 58
    high = line * len(names) + 34
    size = f'width="{left + (wide + 22) * len(ORDER)}" height="{top + high * len(models)}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">']
    parts += ["<title>Right answers by task and model</title>", '<rect width="100%" height="100%" fill="white"/>']
    parts += ['<text x="8" y="18" font-size="14" font-weight="bold">Right answers (records: F1), 95 % intervals</text>']
    parts += ['<text x="420" y="18" fill="#888">dashed: a constant answer; dotted: naive Bayes without a model</text>']
    for number, model in enumerate(models):
        cells, y0 = cells_of(answers, model), top + high * number
        parts.append(f'<text x="8" y="{y0 - 8}" font-weight="bold">{escape(model)}</text>')
        for place, who in enumerate(names):
            weight = ' font-weight="bold"' if who == OURS else ""
            title = escape(TITLES.get(who, who))
            parts.append(f'<text x="{left - 8}" y="{y0 + line * place + 14}" text-anchor="end"{weight}>{title}</text>')
        for column, task in enumerate(ORDER):
            x0, bottom = left + (wide + 22) * column, y0 + line * len(names)
            parts.append(f'<text x="{x0}" y="{y0 - 8}">{task.replace("_", " ")}</text>')
            parts.append(f'<rect x="{x0}" y="{y0}" width="{wide}" height="{bottom - y0}" fill="none" stroke="#ccc"/>')
            for bar, dashes in zip(BARS, ("4 3", "1 3"), strict=True):
                if cell := cells.get((task, bar)):
                    x = round(x0 + cell.figure * wide, 1)
                    style = f'stroke="#c60" stroke-dasharray="{dashes}"'
                    parts.append(f'<line x1="{x}" y1="{y0}" x2="{x}" y2="{bottom}" {style}/>')
            for place, who in enumerate(names):
                if cell := cells.get((task, who)):
                    y, colour = y0 + line * place + 10, "#047" if who == OURS else "#789"
                    least, middle, most = (
                        round(x0 + at * wide, 1) for at in (cell.interval[0], cell.figure, cell.interval[1])
                    )
                    parts.append(
                        f'<line x1="{least}" y1="{y}" x2="{most}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
                    )
                    parts.append(f'<circle cx="{middle}" cy="{y}" r="4" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>", ""])


def write(answers: Sequence[dict[str, Any]], split: str, note: str) -> None:
    """Write the page and the picture."""
    more = "\n".join(["", *sure.section(), *improved.section()])
    (FOLDER / "LEAGUE.md").write_text(page(answers, split, note) + more, encoding="utf-8")
    (FOLDER / "league.svg").write_text(picture(answers), encoding="utf-8")
