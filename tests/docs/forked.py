"""Runs code in processes of their own that need not import the libraries again: each is forked from one that has.

As a script it is the process that forks. It imports the package and what that stands on. For each line on
its standard input, a JSON object, it forks a process that runs the code there, and answers with its exit status. Such a
process ends as any other does: the interpreter tidies up, and what it complains about then is in its errors.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LIBRARIES = (
    "pydantic", "jsonschema", "jinja2", "aiohttp", "docstring_parser", "opentelemetry.trace", "openai", "click",
    "SimpleLLMFunc.llm_decorator", "SimpleLLMFunc.testing",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """What a process has left behind."""

    returncode: int
    stdout: str
    stderr: str


def run_code(code: str, *, cwd: Path, env: Mapping[str, str]) -> Done:
    """Run `code` as ``python -W error -c code`` does, in `cwd` with just these variables; killed after 55 seconds."""
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        asked = {"code": code, "cwd": str(cwd), "env": dict(env), "files": [str(out), str(errors)]}
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return Done(status, out.read_text("utf-8", "replace"), errors.read_text("utf-8", "replace"))


@cache
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert server.stdin is not None
    atexit.register(server.stdin.close)
    return server


def _serve() -> str:
    """Return, in a forked process, the code that it shall run; "" at the end, in the process that forks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _LIBRARIES:
            __import__(name)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _become(asked)
            return str(asked["code"])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return ""


def _become(asked: Mapping[str, object]) -> None:
    """Make this process look as if it had been started as asked."""
    signal.alarm(55)
    os.chdir(asked["cwd"])  # type: ignore[arg-type]
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(asked["files"], 1):  # type: ignore[arg-type, var-annotated]
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.path[0] = ""  # as of `-c`: the working directory


if __name__ == "__main__":
    exec(compile(_serve(), "<string>", "exec"), {"__name__": "__main__"})
