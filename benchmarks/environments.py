"""One virtual environment per contender, under `.bench/` in the project; pinned in `benchmarks/pins/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.field import Contender
from benchmarks.workers import ROOT, Failed, environment
from SimpleLLMFunc import __version__

CACHE = ROOT / ".bench"
PINS = ROOT / "benchmarks" / "pins"
SERVER = Contender("server", "the server", "uvloop", ("uvloop",), "")

_COUNT = """
import importlib.metadata, json, os, pathlib, sysconfig
tools = {"pip", "setuptools", "wheel"}
versions = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
versions = {name: version for name, version in versions.items() if name.lower() not in tools}
place = pathlib.Path(sysconfig.get_path("purelib"))
left_out = {entry for tool in tools for entry in place.glob(f"{tool}*")} | {place / "_distutils_hack"}
size = sum(
    path.stat().st_size
    for entry in place.iterdir()
    if entry not in left_out
    for path in ([entry] if entry.is_file() else entry.rglob("*"))
    if path.is_file()
)
print(json.dumps({"versions": versions, "megabytes": size / 1e6, "packages": len(versions)}))
"""


def python_of(name: str) -> Path:
    """Return the interpreter of an environment."""
    return CACHE / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def home() -> Path:
    """Return where the contenders' processes may write."""
    folder = CACHE / "home"
    folder.mkdir(parents=True, exist_ok=True)
    # Git looks into the folder, and finds that nothing in it is of interest.
    (CACHE / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


def prepare(contender: Contender, *, is_pinned: bool = True) -> Path:
    """Make the environment of a contender, if it is not there as it is wanted, and return its interpreter.

    Args:
        contender: whose.
        is_pinned: take the versions that were written down; else those of today, which are written down then.

    Raises:
        Failed: it cannot be installed.
    """
    home()
    pins, folder, python = PINS / f"{contender.name}.txt", CACHE / contender.name, python_of(contender.name)
    constraints = ["-c", str(pins)] if is_pinned and pins.exists() else []
    wanted = json.dumps([contender.requirements, pins.read_text("utf-8") if constraints else "", sys.version])
    mark = folder / "prepared.json"
    if is_pinned and mark.exists() and mark.read_text("utf-8") == wanted:
        return python
    if folder.exists():
        shutil.rmtree(folder)
    _run(sys.executable, "-m", "venv", str(folder))
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    _run(*pip, *constraints, *contender.requirements)
    if not constraints:
        PINS.mkdir(exist_ok=True)
        versions = sorted(installed(contender)["versions"].items(), key=lambda item: item[0].lower())
        lines = [f"{name}=={version}\n" for name, version in versions if name != "SimpleLLMFunc"]
        pins.write_text("".join(lines), encoding="utf-8")
        wanted = json.dumps([contender.requirements, "".join(lines), sys.version])
    mark.write_text(wanted, encoding="utf-8")
    return python


def installed(contender: Contender) -> dict[str, Any]:
    """Return `versions`, `packages` and `megabytes` of an environment, without what installs the others.

    Our own package is counted where it lies, and says there what version it is: it is installed as a link to the tree.
    """
    told: dict[str, Any] = json.loads(_run(str(python_of(contender.name)), "-P", "-c", _COUNT))
    if contender.package == "SimpleLLMFunc":
        ours = (ROOT / "SimpleLLMFunc").rglob("*")
        told["versions"]["SimpleLLMFunc"] = __version__
        told["megabytes"] += sum(path.stat().st_size for path in ours if path.is_file()) / 1e6
    return told


def import_seconds(contender: Contender, python: Path) -> float:
    """Return how long the import takes in a new interpreter.

    Raises:
        Failed: it cannot be imported.
    """
    code = f"import time; _begun = time.perf_counter()\n{contender.statement}\nprint(time.perf_counter() - _begun)"
    return float(_run(str(python), "-P", "-c", code, env=environment(home()), cwd=home()).split()[-1])


def _run(*command: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command and return what it printed.

    Raises:
        Failed: it went wrong.
    """
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["not a word"]
        raise Failed(f"{' '.join(command[1:4])}: {lines[-1]}"[:400])
    return done.stdout
