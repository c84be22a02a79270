"""What a run looks like to a reader: tables, and a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.bench import Results
from benchmarks.field import AIOHTTP, FIELD, OURS, SDK, Contender
from benchmarks.rows import ROWS, Row

FOLDER = Path(__file__).parent


def shown(results: Results) -> list[Contender]:
    """Return who took part."""
    return [each for each in FIELD if each.name in results.versions or each.name in results.failed]


def measured(results: Results) -> list[Row]:
    """Return the rows that were measured, and those that nobody could take part in."""
    return [
        row for row in ROWS if row.key in results.samples or any(row.key in each for each in results.lacking.values())
    ]


def table(results: Results, base: str = "") -> str:
    """Return a table in Markdown: ratios to `base`, or the figures themselves."""
    contenders = shown(results)
    head = ["", *(f"**{each.title}**" if each.name == OURS else each.title for each in contenders)]
    lines = [head, ["---", *["---:"] * len(contenders)]]
    for row in measured(results):
        better = " ↑" if row.higher_is_better else ""
        unit = f" ({row.unit})" if row.unit and not base else ""
        cells = [_cell(results, row, each.name, base) for each in contenders]
        lines.append([row.title + unit + better, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(results: Results, row: Row, name: str, base: str) -> str:
    failed = results.failed.get(name, {})
    if row.key in failed or "install" in failed:
        return "failed"
    figure = results.ratio(row.key, name, base) if base else results.figure(row.key, name)
    if figure is None:
        return "–"
    text = f"{figure:.2f}" if base else _three_digits(figure)
    return f"**{text}**" if name == OURS else text


def _three_digits(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def _failures(results: Results) -> list[str]:
    titles = {row.key: row.title for row in ROWS} | {"install": "installing"}
    return [
        f"* {each.title}, {titles[key]}: {_code(error)}"
        for each in FIELD
        for key, error in results.failed.get(each.name, {}).items()
    ]


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("\n", " ") + "`"


def _lacks(results: Results) -> list[str]:
    lines: list[str] = []
    for each in FIELD:
        reasons = {
            reason: [row.title for row in ROWS if results.lacking[each.name].get(row.key) == reason]
            for reason in results.lacking.get(each.name, {}).values()
        }
        known = {"has nothing of the kind"}
        lines += [f"* {each.title} {why} ({', '.join(rows)})" for why, rows in reasons.items() if why not in known]
    return lines


def page(results: Results) -> str:
    """Return RESULTS.md."""
    about = results.about
    notes = [
        f"| {each.title} | {results.versions.get(each.name, 'not installed')} | {each.note} |"
        for each in shown(results)
    ]
    cost = ""
    if "server_us" in about:
        times = f"bare aiohttp's is {about['server_times']} times as much"
        cost = f" Its own processor time is {about['server_us']} µs a call with 256 in flight; {times}."
    return "\n".join(
        [
            "# How fast SimpleLLMFunc and the others are",
            "",
            "Made by `make bench`; do not edit. Medians of interleaved rounds in one run (of ratios within each round) against one server with canned",
            f"answers in a process of its own, on {about['server']}.{cost}",
            "Each contender's process is held to one processor, for its time on one is what is compared, and the server to the others; but where one",
            "call follows the other, the server to the same one, since else each request pays for the waking of another processor, which on a virtual",
            "machine is a call out of it. Held nowhere are rows of plain functions in threads, rows that begin a new process, and those that say so.",
            "What each contender sent was counted and looked at by the server, every answer was compared with what was due.",
            "",
            _circumstances(about),
            "",
            "![Ratios to the bare openai package](results.svg)",
            "",
            "## Ratios to the bare openai package",
            "",
            "Processor time, memory and sizes: less is better. Rows with ↑: more is better.",
            "",
            table(results, SDK),
            "",
            "## Ratios to bare aiohttp",
            "",
            table(results, AIOHTTP),
            "",
            "## Figures",
            "",
            table(results),
            "",
            "## Who was measured, and how",
            "",
            "| | version | |",
            "| --- | --- | --- |",
            *notes,
            "",
            "## What failed",
            "",
            *(_failures(results) or ["Nothing."]),
            "",
            "## What was not asked of whom",
            "",
            *(_lacks(results) or ["Everything was asked of everybody."]),
            "",
        ]
    )


def _circumstances(about: dict[str, Any]) -> str:
    return (
        f"{about['date']}, {about['python']}, {about['system']}, {about['processors']} processors, "
        f"{about.get('memory_gb', '?')} GB of memory, {about['rounds']} rounds in {about.get('minutes', '?')} minutes; "
        f"load of the machine before the run {about.get('load_before', 'unknown')}."
    )


# --- the plot --------------------------------------------------------------------------------------------

COLORS = (
    "#111111", "#7f7f7f", "#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd",
    "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#5254a3", "#d62728",
)  # fmt: skip
WIDTH, LEFT, RIGHT, TOP, STEP = 980, 330, 30, 96, 34


def plot(results: Results) -> str:
    """Return an SVG: a line for each row, a dot for each contender, on a logarithmic scale of ratios to the SDK."""
    contenders = [each for each in shown(results) if each.name != SDK]
    rows = [row for row in measured(results) if results.figure(row.key, SDK)]
    ratios = {
        (row.key, each.name): value
        for row in rows
        for each in contenders
        if (value := results.ratio(row.key, each.name, SDK))
    }
    low, high = min([*ratios.values(), 0.5]), max([*ratios.values(), 2.0])
    begin, end = math.floor(math.log10(low) * 2) / 2, math.ceil(math.log10(high) * 2) / 2

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    height = TOP + STEP * len(rows) + 50
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<text x="16" y="24" font-size="16" font-weight="bold">Ratios to the bare openai package (1 is the same)</text>',
    ]
    out += _legend(contenders)
    bottom = TOP + STEP * len(rows)
    for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        if 10**begin <= tick <= 10**end:
            color, width = ("#d62728", 1.5) if tick == 1 else ("#dddddd", 1)
            out.append(f'<line x1="{x(tick):.1f}" y1="{TOP}" x2="{x(tick):.1f}" y2="{bottom}" stroke="{color}" stroke-width="{width}"/>')  # fmt: skip
            out.append(f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for number, row in enumerate(rows):
        y = TOP + STEP * number + STEP / 2
        hint = "more is better →" if row.higher_is_better else "← less is better"
        out.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#eeeeee"/>')
        out.append(f'<text x="{LEFT - 12}" y="{y + 1}" text-anchor="end">{escape(row.title.replace("`", ""))}</text>')
        out.append(f'<text x="{LEFT - 12}" y="{y + 13}" text-anchor="end" font-size="9" fill="#888">{hint}</text>')
        # Ours comes last, and lies on top.
        for each in sorted(contenders, key=lambda each: each.name == OURS):
            if value := ratios.get((row.key, each.name)):
                out.append(_dot(each, x(value), y, f"{each.title}: {value:.2f}"))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _color(contender: Contender) -> str:
    return COLORS[FIELD.index(contender) % len(COLORS)]


def _dot(contender: Contender, x: float, y: float, title: str) -> str:
    size = 8 if contender.name == OURS else 5
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{_color(contender)}" fill-opacity="0.85" stroke="white">'
        f"<title>{escape(title)}</title></circle>"
    )


def _legend(contenders: Sequence[Contender]) -> list[str]:
    out: list[str] = []
    for number, each in enumerate(contenders):
        x, y = 24 + number % 6 * 158, 46 + number // 6 * 22
        weight = "bold" if each.name == OURS else "normal"
        out.append(_dot(each, x, y, each.title))
        out.append(f'<text x="{x + 12}" y="{y + 4}" font-weight="{weight}">{escape(each.title)}</text>')
    return out


def write(results: Results, folder: Path = FOLDER) -> None:
    """Write RESULTS.md, results.json and results.svg."""
    (folder / "results.json").write_text(results.to_json(), encoding="utf-8")
    (folder / "results.svg").write_text(plot(results), encoding="utf-8")
    (folder / "RESULTS.md").write_text(page(results), encoding="utf-8")
