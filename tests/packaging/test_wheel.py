"""The wheel as a user gets it: what is inside, and that a fresh environment with nothing else can use it."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from SimpleLLMFunc import __version__
from tests.release.check import FIRST_USE, ROOT, run

PACKAGE = ROOT / "SimpleLLMFunc"
INFO = f"simplellmfunc-{__version__}.dist-info"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

EVERYTHING = """
import importlib, json, pkgutil
import SimpleLLMFunc

for name in SimpleLLMFunc.__all__:
    getattr(SimpleLLMFunc, name)
missing = {}
modules = [each.name for each in pkgutil.walk_packages(SimpleLLMFunc.__path__, "SimpleLLMFunc.")]
for name in modules:
    if not name.endswith("__main__"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing[name] = error.name
        else:
            exec(f"from {name} import *", {})
print(json.dumps({"modules": modules, "missing": missing}))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("a folder with spaces")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = message_from_bytes(archive.read(f"{INFO}/METADATA"))
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {
        "SimpleLLMFunc/py.typed",
        "SimpleLLMFunc/viewer/static/app.js",
        "SimpleLLMFunc/assistant/search/phrases.json",
    } < ours
    assert {name for name in names if not name.startswith(f"{INFO}/")} == ours
    assert not [
        name for name in names if name.endswith((".pth", ".gguf", ".so")) or name.rpartition("/")[2].startswith("test_")
    ]
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "MIT"


def test_every_licence_comes_along(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    vendored = PACKAGE / "viewer" / "static" / "vendor"
    licences = ["LICENSE", *(path.relative_to(ROOT).as_posix() for path in vendored.glob("*.LICENSE.txt"))]
    assert {f"{INFO}/licenses/{each}" for each in licences} <= names
    of = {path.name.partition(".")[0] for path in vendored.iterdir()}
    assert of == {path.name.partition(".")[0] for path in vendored.glob("*.LICENSE.txt")}, "vendored without a licence"


def test_the_sdist_builds_the_same_wheel(built, wheel, tmp_path):
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ROOT)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(tmp_path / wheel.name) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert not [name for name in one.namelist() if one.read(name) != other.read(name)]


def test_the_sdist_holds_what_its_tests_need(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["pyproject.toml", "Makefile", "CHANGELOG.md", "LICENSE", "tests/conftest.py", "benchmarks/recorded.json"]
    assert set(wanted) <= names
    tops = {name.partition("/")[0] for name in names}
    assert tops & {".venv", ".git", ".bench", "site", ".hypothesis", ".mypy_cache"} == set()
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pth")]


def test_a_fresh_environment_uses_it(wheel, tmp_path):
    """One test, so that the environment is made once however many run at a time."""
    home = tmp_path / "an environment"
    venv.create(home, with_pip=True)
    plain = home / "bin" / "python"
    run(plain, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    it_answers_and_tells_its_version(plain, tmp_path)
    it_imports_everything_that_is_offered(plain, tmp_path)
    it_names_each_missing_extra(plain, tmp_path)


def it_answers_and_tells_its_version(plain, tmp_path):
    run(plain, "-W", "error", "-c", FIRST_USE, cwd=tmp_path)
    command = plain.with_name("simplellmfunc")
    assert "doctor" in run(command, "--help", cwd=tmp_path)
    assert run(command, "--version", cwd=tmp_path) == f"simplellmfunc, version {__version__}\n"
    tell = "from importlib.metadata import version; print(version('SimpleLLMFunc'))"
    assert run(plain, "-c", tell, cwd=tmp_path) == f"{__version__}\n"


def it_imports_everything_that_is_offered(plain, tmp_path):
    found = json.loads(run(plain, "-W", "error", "-c", EVERYTHING, cwd=tmp_path))
    modules = {
        re.sub(r"\.__init__$", "", ".".join(path.relative_to(ROOT).with_suffix("").parts))
        for path in PACKAGE.rglob("*.py")
    }
    assert set(found["modules"]) == modules - {"SimpleLLMFunc"}
    # Loaded by pytest alone, which finds it by its entry point.
    assert found["missing"] == {"SimpleLLMFunc.testing.pytest_plugin": "pytest"}


def it_names_each_missing_extra(plain, tmp_path):
    said = run(plain, "-c", "import subprocess, sys; print(subprocess.run("
               "[sys.executable, '-m', 'SimpleLLMFunc', 'doctor', '--json'], capture_output=True, text=True).stdout)",
               cwd=tmp_path)  # fmt: skip
    checks = {each["name"]: each for each in json.loads(said)["checks"]}
    extras = {name.removeprefix("extra ") for name in checks if name.startswith("extra ")}
    assert {"cost", "local", "mcp", "otel", "view"} <= extras
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for extra in extras:
        told = shlex.split(checks[f"extra {extra}"]["next"])
        assert (told[:2], set(told[2:])) == (["pip", "install"], set(needed[extra]))
