"""What a wrong use prints: the user's frames, at most one of ours, the message last, in at most twelve lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wrong_uses import SERVED, USES, answering

ROOT = Path(__file__).parent.parent
OURS = f'File "{ROOT / "SimpleLLMFunc"}{os.sep}'
MOST_LINES = 12


def printed(folder: Path, address: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Run all wrong uses in one process and return what Python prints of each, and what its errors hold."""
    folder.mkdir(parents=True)
    for name, source in USES.items():
        (folder / f"{name}.py").write_text(source.replace(SERVED, address), "utf-8")
    runner = Path(__file__).parent / "support" / "run_wrong_uses.py"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SIMPLELLMFUNC_"))}
    done = subprocess.run(
        [sys.executable, str(runner), str(folder)],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "SIMPLELLMFUNC_LANG": "en", **environment},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return told


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    with answering() as address:
        yield printed(tmp_path_factory.mktemp("uses") / "wrong", address)


@pytest.mark.parametrize("name", USES)
def test_a_wrong_use_is_told_in_twelve_lines(uses: dict[str, dict[str, Any]], name: str) -> None:
    told = uses[name]
    lines = without_asyncio(told["printed"])
    assert any(line.startswith("  File ") and f'{name}.py"' in line for line in lines)
    assert len(lines) <= MOST_LINES, "\n".join(lines)
    assert sum(OURS in line for line in lines) <= 1, "\n".join(lines)
    assert any(told["kind"] in line for line in lines), "\n".join(lines)
    assert lines[-1].endswith(told["said"]), "\n".join(lines)
    if name == "tool_raises":
        assert any("in raise_in_a_tool" in line for line in lines)


def test_debugging_shows_all_frames(tmp_path: Path) -> None:
    with answering() as address:
        told = printed(tmp_path / "all", address, SIMPLELLMFUNC_DEBUG="1")
    ours = {name: each["printed"].count(OURS) for name, each in told.items()}
    assert sum(count > 1 for count in ours.values()) > len(USES) * 0.8
    assert ours["unreachable"] > 5


@pytest.mark.parametrize("name", ["unreachable", "async_call", "stream", "tool_raises"])
def test_a_debugger_reaches_the_frames_that_are_not_printed(uses: dict[str, dict[str, Any]], name: str) -> None:
    told = uses[name]
    assert told["frames_of_ours"] > 3
    assert {"react_events", "model_turn"} & {*told["functions"]}


def without_asyncio(text: str) -> list[str]:
    """Return the printed lines without those of `asyncio.run`: they stand between frames of the user's."""
    lines: list[str] = []
    is_asyncio = False
    for line in text.rstrip("\n").split("\n"):
        if line.startswith('  File "'):
            is_asyncio = f"{os.sep}asyncio{os.sep}" in line
        elif not line.startswith("    "):
            is_asyncio = False
        if not is_asyncio and line.strip(" ~^"):  # Python 3.13 underlines more lines than 3.11 does
            lines.append(line)
    return lines
