# /// script
# dependencies = ["mcp", "SimpleLLMFunc[mcp]", "mcp-server-time", "mcp-server-git"]
# ///
"""The reference servers `time`, `git`, `everything`, `filesystem` and `memory` in `toolkit=`; `everything` asks for sampling and elicitation."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from scene import answers, asked, check, seen, skip

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.tools.mcp import tools_from_mcp

node, npm = shutil.which("node"), shutil.which("npm")
if node is None or npm is None:
    skip("it takes npm")
NAMES = ("everything", "filesystem", "memory")
packages = [f"@modelcontextprotocol/server-{name}" for name in NAMES]
subprocess.run([npm, "install", "--no-audit", "--no-fund", *packages], check=True, capture_output=True)
Path("note.txt").write_text("a note")
subprocess.run(["git", "init", "-q", "."], check=True)


def of_npm(name: str, *arguments: str) -> list[str]:
    folder = Path.cwd() / "node_modules" / "@modelcontextprotocol" / f"server-{name}"
    programs = json.loads((folder / "package.json").read_text())["bin"]
    return [node, str(folder / next(iter(programs.values()))), *arguments]


async def said(command: list[str], tool: str, arguments: dict[str, Any], *then: str, **options: Any) -> str:
    """Have a function call one tool of a server; return what its model reads of it."""
    async with tools_from_mcp(command=command, untrusted=False) as tools:
        known.append(len(tools))

        @llm_function(OpenAICompatible("m"), toolkit=[*tools], **options)
        async def ask(question: str) -> str:
            """Answer."""

        answers({"calls": [[tool, arguments]]}, *then, "done")
        result = await ask.call("?")
    return "\n".join(str(message["content"]) for message in result.messages if message["role"] == "tool")


def fill_in(tool: str, form: dict[str, Any]) -> Any:
    forms.append(form["message"])
    return {
        "name": "Anna",
        **{
            name: field["default"]
            for name, field in form["requestedSchema"]["properties"].items()
            if "default" in field
        },
    }


async def main() -> None:
    here = str(Path.cwd())
    time = [sys.executable, "-m", "mcp_server_time", "--local-timezone=UTC"]
    check("time", "Asia/Tokyo" in await said(time, "get_current_time", {"timezone": "Asia/Tokyo"}), True)
    git = [sys.executable, "-m", "mcp_server_git", "--repository", here]
    check("git", "note.txt" in await said(git, "git_status", {"repo_path": here}), True)
    files = of_npm("filesystem", here)
    check("filesystem", await said(files, "read_text_file", {"path": f"{here}/note.txt"}), "a note")
    entity = {"name": "Anna", "entityType": "person", "observations": ["sings"]}
    check("memory", "sings" in await said(of_npm("memory"), "create_entities", {"entities": [entity]}), True)
    every = of_npm("everything")
    check("everything", await said(every, "get-sum", {"a": 2, "b": 3}), "The sum of 2 and 3 is 5.")
    before = len(asked())
    sampled = await said(every, "trigger-sampling-request", {"prompt": "a colour?", "maxTokens": 20}, "it is blue")
    check("sampling", ("it is blue" in sampled, len(asked()) - before), (True, 3))
    elicited = await said(every, "trigger-elicitation-request", {}, toolkit_confirm=fill_in)
    check("elicitation", ("Anna" in elicited, len(forms)), (True, 1))


known: list[int] = []
forms: list[str] = []
asyncio.run(main())
versions = [
    json.loads((Path("node_modules") / package / "package.json").read_text())["version"] for package in packages
]
seen(
    f"{known[0]}, {known[1]}, {known[4]}, {known[2]} and {known[3]} tools; sampling was answered by the function's model, "
    f"elicitation by `toolkit_confirm`; those of npm: {', '.join(map(' '.join, zip(NAMES, versions, strict=True)))}"
)
