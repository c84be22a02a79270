"""What a tool search saves, and how often it finds the right tool: `python -m benchmarks.tool_search FOLDER`.

FOLDER holds `*.jsonl` with rows of ``{"input": {"question", "functions": [{name, description, parameters}]}, "expected":
{"function"}}``, as made of the Berkeley Function Calling Leaderboard. All functions of all rows are one toolkit; each
question is the query. Tokens are the library's estimate of what the tools of a conversation take: in both requests of a
call without a search, in all three with one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from SimpleLLMFunc.interface.spending import estimate_tokens
from SimpleLLMFunc.tools import Tool, ToolSearch

_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def _tool(function: dict[str, Any]) -> Tool:
    given = function["parameters"]
    properties = {
        name: {"type": _TYPES[each["type"]], "description": each.get("description", "")}
        | ({"enum": each["enum"]} if each.get("enum") else {})
        for name, each in given.items()
    }
    required = [name for name, each in given.items() if each.get("required")]
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool(lambda **_: "", function["name"], function["description"], schema)


def _tokens(tools: list[Tool]) -> int:
    return estimate_tokens([], [tool.to_openai_tool() for tool in tools], None)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows = [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    found = {each["name"]: each for row in rows for each in row["input"]["functions"]}
    tools = {name: _tool(each) for name, each in found.items()}
    search = ToolSearch(tools, True)
    places: list[int | None] = []
    taken = 0
    for row in rows:
        names = [line.partition(":")[0] for line in (await search.find(row["input"]["question"])).splitlines()]
        wanted = row["expected"]["function"]
        places.append(names.index(wanted) if wanted in names else None)
        known = [tools[name] for name in names if name in tools]
        # The search's request; then twice with what it found, and what the model read of it.
        said = sum(_tokens([tool]) for tool in known)
        taken += 3 * _tokens([search.tool]) + 2 * _tokens(known) + 2 * said // 3
    whole = 2 * _tokens(list(tools.values()))
    print(f"{len(tools)} tools, {len(rows)} questions")
    for most in (1, 3, 8):
        share = sum(place is not None and place < most for place in places) / len(rows)
        print(f"right tool among the first {most}: {share:.1%}")
    print(
        f"tokens of tools in a call: {whole} without a search, {taken // len(rows)} with ({1 - taken / len(rows) / whole:.1%} saved)"
    )


if __name__ == "__main__":
    asyncio.run(main())
