"""Read the code out of a page, and run it as a reader would: block after block, in one namespace.

As a script (``python pages.py PAGE``) it runs one page in a process of its own, where no network can be reached:

* ` ```python ` is run; ` ```python no-run ` is only compiled (code that needs a real key).
* ` ```text output ` right after a block is what that block prints, to the letter.
* ``<!-- setup`` … ``-->`` holds code that the reader does not see.
* A block with ``await`` at its top runs as in a notebook, in one event loop for the whole page.

A block keeps the line numbers it has on the page, so a traceback points into the page.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import CO_COROUTINE
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Block:
    """A piece of code on a page; `line` is the number of its first line, from 1."""

    code: str
    line: int
    is_run: bool = True
    output: str | None = None


def pages() -> list[Path]:
    """The pages whose code is run, relative to the root."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page.relative_to(ROOT) for page in found)


def blocks(text: str) -> list[Block]:
    """Return the Python blocks of a page, in order.

    Raises:
        ValueError: a fence or a setup comment that is not closed, an unknown tag, an output that follows no block.
    """
    found: list[Block] = []
    is_after_block = False  # nothing but blank lines since the last block
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if line.strip() == "<!-- setup":
            found.append(Block(_until(lines, lambda each: each.strip() == "-->", f"line {number}: setup"), number + 1))
            continue
        fence = _FENCE.match(line)
        if fence is None:
            is_after_block = is_after_block and not line.strip()
            continue
        indent, mark = len(fence["indent"]), fence["mark"]
        body = _until(
            lines,
            lambda each, mark=mark: each.strip().startswith(mark) and not each.strip().strip(mark[0]),
            f"line {number}: fence",
            indent,
        )
        language, *tags = fence["info"].split() or [""]
        if language == "python":
            if unknown := set(tags) - {"no-run"}:
                raise ValueError(f"line {number}: unknown tag {unknown}")
            found.append(Block(body, number + 1, is_run="no-run" not in tags))
        elif tags == ["output"]:
            if not is_after_block or not found[-1].is_run:
                raise ValueError(f"line {number}: an output must follow a block that runs")
            found[-1] = Block(found[-1].code, found[-1].line, output=body)
        is_after_block = language == "python"
    return found


def _until(lines: Iterator[tuple[int, str]], is_end: object, what: str, indent: int = 0) -> str:
    body: list[str] = []
    for _, line in lines:
        if is_end(line):  # type: ignore[operator]
            return "".join(f"{each}\n" for each in body)
        body.append(line[indent:] if not line[:indent].strip() else line)
    raise ValueError(f"{what} is not closed")


def run_page(path: Path) -> None:
    """Run the blocks of a page in order, in one namespace that is `__main__`.

    Raises:
        AssertionError: a block printed something else than the page says.
    """
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    with asyncio.Runner() as runner:
        for block in blocks(path.read_text(encoding="utf-8")):
            code = compile(
                "\n" * (block.line - 1) + block.code,
                str(path),
                "exec",
                ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
                dont_inherit=True,
            )
            if block.is_run:
                _run(code, block, vars(module), runner)


def _run(code: types.CodeType, block: Block, namespace: dict[str, object], runner: asyncio.Runner) -> None:
    printed = io.StringIO()
    with contextlib.nullcontext() if block.output is None else contextlib.redirect_stdout(printed):
        if code.co_flags & CO_COROUTINE:
            runner.run(_awaited(code, namespace))
        else:
            exec(code, namespace)
    if block.output is not None and printed.getvalue().rstrip() != block.output.rstrip():
        raise AssertionError(
            f"{code.co_filename}:{block.line}: the page says\n{block.output}\nand the block printed\n{printed.getvalue()}"
        )


async def _awaited(code: types.CodeType, namespace: dict[str, object]) -> None:
    await eval(code, namespace)


def forbid_network() -> None:
    """Let every attempt of this process to reach a network fail; a server of its own on loopback is none."""

    def hook(event: str, args: tuple[object, ...]) -> None:
        address = args[1] if len(args) > 1 else None
        if event == "socket.connect" and isinstance(address, tuple) and address[0] in {"127.0.0.1", "::1"}:
            return
        if event == "socket.getaddrinfo" and args[0] in {"127.0.0.1", "::1"}:
            return  # looked up nowhere
        if event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"}:
            raise RuntimeError(f"a page reaches for the network: {event} {args[1:]}")

    sys.addaudithook(hook)


def clean_environment(home: Path) -> dict[str, str]:
    """Return this process's environment without keys and models, and with a home of its own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "SIMPLELLMFUNC_", "PYTEST_", "PYTHON"))
        and not name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "100",
    }


def ran(*words: str | Path, cwd: Path, env: dict[str, str], seconds: int = 55) -> subprocess.CompletedProcess[str]:
    """Run Python with these words as a reader would, in `cwd` with just these variables."""
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=seconds, check=False
    )


if __name__ == "__main__":
    forbid_network()
    run_page(Path(sys.argv[1]))
