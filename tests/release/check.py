"""What has to hold before a release: ``python -m tests.release.check [step …]``; by hand, it takes an hour.

* `build`: wheel and sdist, and `twine check`; what they hold is tested in tests/packaging.
* `extras`: the wheel in an empty environment, and again with each extra alone; what the extra offers is used.
* `examples`: each with exactly what its header says it needs.
* `oldest`, `newest`: the test suite with the oldest versions that pyproject.toml allows, and with the newest.
* `ecosystem`: packages of others beside ours; see tests/ecosystem.

Environments are made in a temporary folder and thrown away; `--keep FOLDER` keeps them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

FIRST_USE = """
from pydantic import BaseModel
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

class City(BaseModel):
    name: str

@llm_function(ScriptedLLM('{"name": "Lisbon"}'))
def find(text: str) -> City:
    '''Find the city.'''
    raise NotImplementedError

assert find("She lives in Lisbon.") == City(name="Lisbon")
"""

OFFERED = {
    "cost": "from SimpleLLMFunc import Usage, OpenAICompatible\n"
    "assert OpenAICompatible('gpt-4o-mini', api_key='-').price(Usage(input_tokens=1000)) > 0",
    "files": "import pypdf, docx\nfrom SimpleLLMFunc.assistant import builtin_tools\nassert builtin_tools(root='.')",
    "frames": "import pandas, pyarrow\nfrom SimpleLLMFunc import llm_function\n"
    "from SimpleLLMFunc.testing import ScriptedLLM\n"
    "@llm_function(ScriptedLLM('3', repeat=True))\ndef f(text: str) -> int:\n    'Rate.'\n"
    "report = f.map(pandas.DataFrame({'text': ['a', 'b']}))\nassert list(report.to_frame()['value']) == [3, 3]",
    "improve": "import gepa\nfrom gepa.core.adapter import EvaluationBatch\n"
    "from SimpleLLMFunc.improve import Gepa\nfrom SimpleLLMFunc.testing import ScriptedLLM\n"
    "assert gepa.optimize and Gepa(ScriptedLLM('-'))",
    "local": "import xllamacpp\nfrom SimpleLLMFunc import LocalModel\nassert LocalModel().model_name",
    "mcp": "import mcp\nfrom SimpleLLMFunc.tools.mcp.client import tools_from_mcp",
    "otel": "import opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http\nimport SimpleLLMFunc.observability.otel.span_sink",
    "pretty": "import rich, tqdm.auto",
    "ray": "import ray\nfrom SimpleLLMFunc.batch.ray import engine as on_ray",
    "search": "import tavily\nfrom SimpleLLMFunc.assistant import TavilySearch",
    "view": "import starlette, uvicorn\nfrom SimpleLLMFunc.viewer import viewer_app",
    "ocr": "import rapidocr, onnxruntime",
    "all": "import starlette, rich, mcp, pandas, xllamacpp",
}
"""What an extra brings, used."""


class Failure(Exception):
    """A step did not hold; its text says how."""


def run(*command: object, cwd: Path | None = None, **more: str) -> str:
    """Run a command; its output where it succeeds.

    Raises:
        Failure: it does not.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Failure(f"{' '.join(str(part) for part in command)[:300]}\n{done.stdout[-6000:]}")
    return done.stdout


def interpreter(home: Path) -> Path:
    """Return the interpreter of the environment in `home`."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def uv(work: Path, *arguments: object) -> str:
    """Run uv, which finds the oldest versions, and installs in seconds what takes pip minutes."""
    python = interpreter(work / "uv")
    if not python.exists():
        venv.create(work / "uv", with_pip=True)
        run(python, "-m", "pip", "install", "--quiet", "uv")
    return run(python, "-m", "uv", *arguments)


def environment(work: Path, home: Path, *requirements: object, constraints: Path | None = None) -> Path:
    """Make a virtual environment in `home` with `requirements`, and return its interpreter."""
    shutil.rmtree(home, ignore_errors=True)
    uv(work, "venv", "-q", "--seed", "--python", sys.executable, home)  # with pip, as a user has it
    limits = ["-c", constraints] if constraints else []
    uv(work, "pip", "install", "-q", "--python", interpreter(home), *limits, *requirements)
    return interpreter(home)


def build(work: Path) -> Path:
    """Build wheel and sdist, check both, and return the wheel."""
    python = environment(work, work / "build-env", "build", "twine")
    shutil.rmtree(work / "dist", ignore_errors=True)
    run(python, "-m", "build", "--outdir", work / "dist", ROOT)
    print(run(python, "-m", "twine", "check", "--strict", *sorted((work / "dist").iterdir())).strip())
    (wheel,) = (work / "dist").glob("*.whl")
    (sdist,) = (work / "dist").glob("*.tar.gz")
    sizes = ", ".join(f"{each.name} {each.stat().st_size / 1e3:.0f} kB" for each in (wheel, sdist))
    print(sizes)
    return wheel


def extras(work: Path, wheel: Path) -> None:
    """Install the wheel with nothing, then with each extra alone, and use it."""
    offered = {name for name in PROJECT["optional-dependencies"] if not name.startswith("dev")}
    if offered != set(OFFERED):
        raise Failure(f"say here what these extras offer: {sorted(offered ^ set(OFFERED))}")
    for extra in ("", *sorted(OFFERED)):
        started = time.monotonic()
        python = environment(work, work / "extra", f"{wheel}[{extra}]" if extra else wheel)
        run(python, "-W", "error", "-c", FIRST_USE, cwd=work)
        run(python, "-c", OFFERED.get(extra, "import SimpleLLMFunc"), cwd=work)
        if not extra:
            run(python.with_name("simplellmfunc"), "--help", cwd=work)
        print(f"  {extra or 'no extra':<9} {time.monotonic() - started:.0f} s")


def examples(work: Path, wheel: Path) -> None:
    """Run every example with exactly what its header says it needs."""
    groups: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "examples").glob("[0-9]*.py")):
        header = re.search(r"^# dependencies = \[(.*)\]$", path.read_text("utf-8"), re.MULTILINE)
        if header is None:
            raise Failure(f"{path.name} does not say what it needs")
        groups.setdefault(header[1], []).append(path)
    for needs, paths in groups.items():
        wanted = [each.replace("SimpleLLMFunc", str(wheel)) for each in re.findall(r'"([^"]+)"', needs)]
        python = environment(work, work / "example", *wanted)
        for path in paths:
            run(python, path, cwd=work)
        print(f"  {needs}: {len(paths)}")


def lowest(work: Path) -> str:
    """Return constraints that hold what users install to the oldest versions that it allows, and that go together.

    Of a package that needs a compiler, the oldest that has a wheel for this Python.
    """
    needs = PROJECT["dependencies"] + [
        each
        for extra, needs in PROJECT["optional-dependencies"].items()
        if extra not in {"all", "ocr", "ray"} and not extra.startswith("dev")
        for each in needs
    ]
    wanted = work / "wanted.in"
    wanted.write_text("\n".join(needs) + "\n", "utf-8")
    how = ("-q", "--no-annotate", "--no-header", "--only-binary", ":all:", "--resolution", "lowest-direct")
    found = uv(work, "pip", "compile", *how, wanted)
    ours = {re.split(r"[^\w.-]", each)[0].lower() for each in needs}
    return "\n".join(line for line in found.splitlines() if line.partition("==")[0].lower() in ours) + "\n"


def suite(work: Path, name: str, constraints: str = "", *more: str) -> None:
    """Run the test suite in an environment of its own, from a copy of what is committed."""
    copy = work / f"{name} copy"
    shutil.rmtree(copy, ignore_errors=True)
    run("git", "clone", "--quiet", "--local", ROOT, copy)
    limits = work / f"{name}.txt"
    limits.write_text(constraints, "utf-8")
    python = environment(work, copy / ".venv", *more, "-e", f"{copy}[dev,all]", constraints=limits)
    print("  " + uv(work, "pip", "freeze", "--exclude-editable", "--python", python).replace("\n", " "), flush=True)
    said = run(python, "-m", "pytest", "-q", "-m", "not heavy", "-n", "auto", cwd=copy)
    print(f"  {name}: {said.strip().splitlines()[-1]}")


def ecosystem(work: Path, wheel: Path) -> None:
    """Use the packages of others beside ours, each in an environment made for it."""
    from tests.ecosystem.run import tried_all

    tried_all(work / "ecosystem", wheel)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; 0 where all hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], default=[])
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args(arguments)
    work = chosen.keep or Path(tempfile.mkdtemp(prefix="release-"))
    work.mkdir(parents=True, exist_ok=True)
    failed = 0
    try:
        wheel = build(work)
        for step in chosen.steps or STEPS:
            started = time.monotonic()
            print(f"{step} …", flush=True)
            try:
                STEPS[step](work, wheel)
            except Failure as failure:
                failed += 1
                print(f"{step} FAILED\n{failure}", flush=True)
            else:
                print(f"{step} holds ({time.monotonic() - started:.0f} s)", flush=True)
    finally:
        if chosen.keep is None:
            shutil.rmtree(work, ignore_errors=True)
    return int(failed > 0)


STEPS = {
    "build": lambda work, wheel: None,
    "extras": extras,
    "examples": examples,
    "oldest": lambda work, wheel: suite(work, "oldest", lowest(work)),
    "newest": lambda work, wheel: suite(work, "newest", "", "--upgrade"),
    "ecosystem": ecosystem,
}

if __name__ == "__main__":
    sys.exit(main())
