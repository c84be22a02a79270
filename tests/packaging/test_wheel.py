"""The wheel as a user gets it: what is inside, and that a fresh environment with nothing else can use it."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

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
print("done")
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder with spaces")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"SimpleLLMFunc"}
    assert "SimpleLLMFunc/py.typed" in names
    assert {"SimpleLLMFunc/viewer/static/app.js", "SimpleLLMFunc/viewer/static/vendor/uPlot.LICENSE.txt"} <= set(names)
    assert not [
        name for name in names if name.endswith((".pth", ".gguf", ".so")) or name.rpartition("/")[2].startswith("test_")
    ]
    assert "License-Expression: MIT" in metadata
    core = {
        line.split()[1].split(";")[0]
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist") and "extra" not in line
    }
    assert len(core) == 10


def test_a_fresh_environment_uses_it(wheel, tmp_path):
    home = tmp_path / "an environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert run(python, "-W", "error", "-c", FIRST_USE, cwd=tmp_path).strip() == "done"
    assert "doctor" in run(home / "bin" / "simplellmfunc", "--help", cwd=tmp_path)
