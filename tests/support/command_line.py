"""The command line, inside this process and as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner, Result

from SimpleLLMFunc.cli.main import main

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-W", "error", "-m", "SimpleLLMFunc")


def typed(*words: object, code: int = 0, text: str | None = None) -> Result:
    """Run the command with these words and `text` on its standard input, and check the code it ends with."""
    done = CliRunner().invoke(main, [str(word) for word in words], input=text)
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


def begun(
    *words: object, program: Sequence[str] = PROGRAM, cwd: Path, stdin: int | None = None, **environment: str
) -> subprocess.Popen[str]:
    """Start the command as a process that knows no model and no key, with pipes for what it writes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SIMPLELLMFUNC_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", **environment}
    pipe = subprocess.PIPE
    command = [*program, *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, env=env, stdin=stdin, stdout=pipe, stderr=pipe, encoding="utf-8")
