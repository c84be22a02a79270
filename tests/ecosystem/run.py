"""The packages of others beside ours, each in an environment made for it: ``python -m tests.ecosystem.run [NAME …]``.

A script of this folder, `with_NAME.py`, is one row of docs/reference/ecosystem.md: the packages it needs stand in its
header (the first one gives the row its name and its version), its docstring says what was done, and `scene.seen` what
was seen. With `--write` the page is written; `--keep FOLDER` keeps the environments for the next time.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import contextlib
import datetime as dt
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.release.check import ROOT, Failure, environment, interpreter, run, uv
from tests.support.connections import Recorded
from tests.support.server import Answer, json_answer, serving_in_thread
from tests.support.services import ChatService, ResponsesService
from tests.support.wires import last_text

FOLDER = Path(__file__).parent
PAGE = ROOT / "docs" / "reference" / "ecosystem.md"
BEGIN, END = "<!-- table: make ecosystem -->", "<!-- end of the table -->"
SECONDS = 600
"""How long a script may take, its environment not counted."""


@dataclass(frozen=True)
class Script:
    """One row: what a script needs, and what it does."""

    path: Path
    needs: tuple[str, ...]
    done: str

    @property
    def name(self) -> str:
        return self.path.stem.removeprefix("with_")

    @property
    def package(self) -> str:
        return re.split(r"[^\w.-]", self.needs[0])[0]


@dataclass(frozen=True)
class Row:
    """What came of a script."""

    script: Script
    version: str
    said: str
    seconds: float
    failed: str = ""

    def __str__(self) -> str:
        cells = (self.script.package, self.version, self.script.done, self.said)
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def scripts() -> list[Script]:
    """Return what stands in the folder, by name."""
    found = []
    for path in sorted(FOLDER.glob("with_*.py")):
        text = path.read_text("utf-8")
        header = re.search(r"^# dependencies = \[(.*)\]$", text, re.MULTILINE)
        done = ast.get_docstring(ast.parse(text))
        if header is None or not done:
            raise Failure(f"{path.name}: its header says what it needs, and its docstring what it does")
        found.append(Script(path, tuple(re.findall(r'"([^"]+)"', header[1])), " ".join(done.split())))
    return found


def service() -> Any:
    """Return the handler of one script's service; see `scene`."""
    wires, waiting = {"/v1/chat/completions": ChatService(), "/v1/responses": ResponsesService()}, deque[Any]()
    requests: list[Recorded] = []

    def handle(request: Recorded) -> Answer:
        path = request.path.partition("?")[0]
        if path == "/v1/asked":
            return json_answer([{"path": each.path, "headers": each.headers, "body": each.body} for each in requests])
        if path == "/v1/answers":
            waiting.extend(request.body)
            return json_answer(len(waiting))
        requests.append(request)
        if path not in wires:
            return json_answer({"error": {"message": f"{request.method} {request.path} is not here"}}, status=404)
        said = waiting.popleft() if waiting else last_text(request.body)
        if isinstance(said, dict) and "status" in said:
            return json_answer(said["body"], status=said["status"], headers=said.get("headers"))
        wire = wires[path]
        said = {"texts": [said]} if isinstance(said, str) else said
        wire._script = [said]
        return replace(wire(request), delay=said.get("delay", 0.0))

    return handle


def tried(script: Script, work: Path, wheel: Path) -> Row:
    """Make the environment of a script, run it, and return its row."""
    started, home, version = time.monotonic(), work / script.name, ""
    needs = [each.replace("SimpleLLMFunc", str(wheel), 1) for each in script.needs]
    try:
        mark, wanted = home / "made.json", json.dumps([needs, wheel.stat().st_mtime, sys.version])
        if not mark.exists() or mark.read_text("utf-8") != wanted:
            environment(work, home, *needs, *([] if any(str(wheel) in each for each in needs) else [wheel]))
            mark.write_text(wanted, "utf-8")
        python, code = interpreter(home), f"import importlib.metadata as m; print(m.version({script.package!r}))"
        version = run(python, "-c", code).strip()
        said = said_by_script(script, python, home)
        text = said["seen"] if "seen" in said else f"not tried: {said['skipped']}"
        return Row(script, version, text, time.monotonic() - started)
    except Failure as failure:
        return Row(script, version, "fails", time.monotonic() - started, str(failure))


def said_by_script(script: Script, python: Path, home: Path) -> dict[str, str]:
    """Run a script with its service and return its last words; what it has started ends with it.

    Raises:
        Failure: it does not hold, has no last words, or takes too long.
    """
    place = home / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "OTEL_"))}
    with serving_in_thread(service()) as server:
        told = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-of-nobody", "HOME": str(place)}
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        # Into a file: what a script leaves running would hold a pipe open.
        with (home / "said.txt").open("w+", encoding="utf-8", errors="replace") as told_us:
            process = subprocess.Popen(
                [python, "-X", "faulthandler", script.path],
                cwd=place,
                env={**keep, **told, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=told_us,
                stderr=subprocess.STDOUT,
                start_new_session=os.name != "nt",
            )
            late = ""
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                late = f"it took longer than {SECONDS} s; "
            finally:
                _end(process)
            told_us.seek(0)
            out = told_us.read()
    said: dict[str, str] = {}
    for line in out.splitlines():  # a package may have words of its own after the last ones of the script
        with contextlib.suppress(ValueError):
            told_last = json.loads(line)
            said = told_last if isinstance(told_last, dict) and told_last.keys() & {"seen", "skipped"} else said
    if process.returncode or not said:
        raise Failure(f"{late}ended with {process.returncode}:\n{out[-4000:]}")
    return said


def _end(process: subprocess.Popen[str]) -> None:
    if os.name == "nt":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
    process.wait()


def tried_all(work: Path, wheel: Path, chosen: Sequence[str] = (), workers: int = 2) -> list[Row]:
    """Run the scripts, print how each went, and return the rows.

    Raises:
        Failure: a script does not hold, or there is none of that name.
    """
    known = {script.name: script for script in scripts()}
    if strangers := set(chosen) - set(known):
        raise Failure(f"no such script: {', '.join(sorted(strangers))}; there are {', '.join(known)}")
    uv(work, "--version")  # before many want it at once
    lock, rows = threading.Lock(), []

    def one(script: Script) -> Row:
        row = tried(script, work, wheel)
        with lock:
            print(f"  {script.name:<24} {row.version:<10} {row.seconds:5.0f} s  {row.said}", flush=True)
        return row

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        rows = list(pool.map(one, [known[name] for name in chosen or known]))
    if broken := [row for row in rows if row.failed]:
        raise Failure("\n\n".join(f"with_{row.script.name}.py: {row.failed}" for row in broken))
    return rows


def write_page(rows: Sequence[Row]) -> None:
    """Put the table into the page, between its two marks."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    when = dt.datetime.now().astimezone().strftime("%d %B %Y")
    table = ["| package | version | what was done | what was seen |", "|---|---|---|---|", *map(str, rows)]
    where = f"{platform.python_implementation()} {platform.python_version()}, {when}."
    PAGE.write_text(f"{before}{BEGIN}\n\n{where}\n\n" + "\n".join(table) + f"\n\n{END}{after}", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 where all holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a script, without with_; all, unless given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="write docs/reference/ecosystem.md")
    given = parser.parse_args(arguments)
    if given.write and given.names:
        parser.error("the page is written of all scripts")
    work = (given.keep or Path(tempfile.mkdtemp(prefix="ecosystem-"))).absolute()
    work.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        shutil.rmtree(work / "dist", ignore_errors=True)
        uv(work, "build", "-q", "--wheel", "-o", work / "dist", ROOT)
        (wheel,) = (work / "dist").glob("*.whl")
        rows = tried_all(work, wheel, given.names)
        print(f"{len(rows)} packages in {time.monotonic() - started:.0f} s")
        if given.write:
            write_page(rows)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        if given.keep is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
