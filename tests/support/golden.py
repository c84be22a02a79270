"""Rendered prompts as text files, one per prompt, so that a change of a prompt is seen as what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "golden"


def as_text(messages: Sequence[Mapping[str, object]]) -> str:
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def golden(name: str, text: str) -> None:
    """Compare with a file, byte by byte; a missing one is written, and the test fails once so that it is read."""
    path = FOLDER / name
    wanted = (text + "\n").encode()
    if not path.exists():
        path.write_bytes(wanted)
        pytest.fail(f"{path.name} was written: read it and commit it")
    assert path.read_bytes() == wanted
