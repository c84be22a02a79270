"""Draws docs/images/floors.svg from the contract in pyproject.toml: python docs/floors.py."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SAID = {
    "cli": "the command line",
    "serve": "functions for others: HTTP, MCP",
    "viewer": "the page over the traces",
    "improve": "a better form of a function",
    "assistant": "memory, search, tools",
    "testing": "doubles, cassettes",
    "evaluate": "cases and scores",
    "guards": "checks that ship",
    "lock": "what was agreed to",
    "observability": "spans, metrics, the trace store",
    "display": "how results show themselves",
    "llm_decorator": "@llm_function, @llm_chat: the five steps",
    "calls": "LLM, Slot, Summary",
    "batch": "one function over many rows",
    "journal": "runs that cannot be lost",
    "base": "the one loop, text to value, events, results",
    "interface": "how a model is reached",
    "tools": "what a model may call",
    "storage": "how the library opens a database",
    "sync": "a path of 1.0",
    "logger": "one structured log, without secrets",
    "runtime": "threads, loops, forks, the bridge",
    "type": "shapes of data",
    "config": "settings",
    "extras": "optional libraries",
    "statistics": "intervals, tests",
    "errors": "every exception",
    "utils": "async helpers",
    "_version": "the version",
}
STYLE = """\
text { font-family: system-ui, sans-serif; text-anchor: middle; fill: #24292f; }
.room { font-size: 15px; font-weight: 600; }
.said, .way { font-size: 11.5px; fill: #57606a; }
rect { fill: #f2f5fb; stroke: #9fb3d9; }
path { fill: none; stroke: #57606a; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8eb; }
  .said, .way { fill: #a9b1bb; }
  rect { fill: #1f2733; stroke: #4a5d82; }
  path { stroke: #a9b1bb; }
}"""
LEFT, WIDTH, GAP, STEP, TALL = 40, 700, 8, 54, 46


def floors() -> list[list[str]]:
    """Return the rooms of each floor, the highest first, as the import contract has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return [layer.split(" | ") for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]


def drawing(rooms: list[list[str]]) -> str:
    height = 34 + STEP * len(rooms) + 10
    foot = height - 22
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 750 {height}" width="750" height="{height}" role="img" '
        'aria-labelledby="title">',
        '<title id="title">The floors of the house, the highest at the top: a room imports only from floors below its own'
        "</title>",
        f"<style>\n{STYLE}\n</style>",
        '<text class="way" x="390.0" y="20">a room imports from floors below its own; rooms on one floor do not know each '
        "other</text>",
        f'<path d="M18 34 V{foot} M12 {foot - 8} L18 {foot + 2} L24 {foot - 8}"/>',
    ]
    for number, names in enumerate(rooms):
        top = 34 + STEP * number
        width = (WIDTH - GAP * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            x = LEFT + place * (width + GAP)
            middle = x + width / 2
            lines += [
                f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{TALL}" rx="6"/>',
                f'<text class="room" x="{middle:.1f}" y="{top + 19}">{name}</text>',
                f'<text class="said" x="{middle:.1f}" y="{top + 36}">{SAID[name]}</text>',
            ]
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    (ROOT / "docs/images/floors.svg").write_text(drawing(floors()), "utf-8")
