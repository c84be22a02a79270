"""Every example runs, says what it shows, and needs no key."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from SimpleLLMFunc.extras import install_line
from tests.docs.forked import run_code
from tests.docs.pages import ROOT, clean_environment, ran

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
# These ask the model inside the process, and say what must be seen.
LOCAL = {
    "01_first_function.py": "person(name='anna lindgren', age=34, city='uppsala')",
    "11_local_tools.py": "temperature(",
    "14_four_steps_local.py": "history: ['slot', 'weather', 'answer', 'summary']",
    "16_assistant_local.py": "5 messages in the session",
}
# This one starts a cluster, where what it takes is installed.
CLUSTER = {"32_ray.py": "200 restored, 0 asked"}


def without_network(example: Path) -> str:
    """Code that runs an example where no network can be reached: it must not even try."""
    return (
        f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); from tests.docs.pages import forbid_network; "
        f"sys.path.pop(0); forbid_network(); runpy.run_path({str(example)!r}, run_name='__main__')"
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.name not in LOCAL | CLUSTER], ids=lambda path: path.name
)
def test_an_example_runs_without_a_key(example: Path, tmp_path: Path) -> None:
    done = run_code(without_network(example), cwd=tmp_path, env=clean_environment(tmp_path))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), "an example prints something"
    assert "Exception ignored" not in done.stderr
    assert "was never" not in done.stderr


@pytest.mark.local_model
@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("example", LOCAL)
def test_an_example_asks_a_real_model(example: str) -> None:
    # In the user's own cache: the weights are fetched once.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTEST_"))}
    done = ran(ROOT / "examples" / example, cwd=ROOT, env=environment, seconds=580)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert LOCAL[example] in done.stdout.lower()


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("example", CLUSTER)
def test_an_example_runs_on_a_cluster(example: str, tmp_path: Path) -> None:
    code = without_network(ROOT / "examples" / example)
    done = ran("-W", "error", "-c", code, cwd=tmp_path, env=clean_environment(tmp_path), seconds=280)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert CLUSTER[example] in done.stdout


def test_an_example_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import runpy, importlib.util; importlib.util.find_spec = lambda name: None; "
        f"runpy.run_path({str(ROOT / 'examples' / '32_ray.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    assert install_line("ray") in done.stdout


def test_an_example_says_what_it_shows_and_which_model_it_asks() -> None:
    for example in EXAMPLES:
        code = example.read_text("utf-8")
        docstring = ast.get_docstring(ast.parse(code)) or ""
        assert docstring.split("\n")[0].endswith((".", ":")), example
        assert re.search(r"^Model: .+\.$", docstring, re.MULTILINE), example
        if re.search(r"# .*\bOpenAICompatible\(", code):  # a line that is there to be uncommented has its import
            assert re.search(r"import .*\bOpenAICompatible\b", code), example


@pytest.mark.parametrize(
    "example",
    [*EXAMPLES, ROOT / "examples/receipts/receipts.py", *sorted((ROOT / "examples").glob("*_*/*.py"))],
    ids=lambda path: path.name,
)
def test_an_example_names_what_it_needs(example: Path) -> None:
    # https://packaging.python.org/en/latest/specifications/inline-script-metadata/
    header = re.match(r"# /// script\n((?:#(?: .*)?\n)+?)# ///\n", example.read_text("utf-8"))
    assert header, "it begins with its requirements"
    told = tomllib.loads(re.sub(r"^# ?", "", header[1], flags=re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert told["requires-python"] == project["requires-python"]
    ours = [re.match(r"SimpleLLMFunc(?:\[([\w,]+)\])?", need) for need in told["dependencies"]]
    named = {extra for need in ours if need and need[1] for extra in need[1].split(",")}
    assert any(ours)
    assert named <= set(project["optional-dependencies"])
    # What it imports is what it asks for: itself, or through an extra; not what happens to be installed here.
    wanted = [*told["dependencies"], *project["dependencies"]]
    wanted += [need for extra in named for need in project["optional-dependencies"][extra]]
    given = {_distribution(need) for need in wanted}
    by_module = _by_module()
    tree = ast.parse(example.read_text("utf-8"))
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    for module in {name.partition(".")[0] for name in imported} - sys.stdlib_module_names:
        assert given & {_distribution(name) for name in by_module.get(module, [module])}, f"{module} is not asked for"


_by_module = cache(packages_distributions)


def _distribution(requirement: str) -> str:
    """Return the normal form of the name that a requirement begins with."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
