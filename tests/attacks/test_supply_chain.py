"""Attack 23: what is installed runs nothing by itself, brings little along, and takes nothing from the network."""

import re
import tomllib
from pathlib import Path

from tests.support.processes import run_script

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

NO_NETWORK = """
import sys

def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.fork", "shutil.rmtree"}:
        raise SystemExit(f"{event} {arguments}")
    if event == "open" and arguments[1] is not None and set(str(arguments[1])) & set("wax+"):
        raise SystemExit(f"{event} {arguments}")

sys.dont_write_bytecode = True
sys.addaudithook(refuse)
import importlib, pkgutil
import SimpleLLMFunc
for name in SimpleLLMFunc.__all__:
    getattr(SimpleLLMFunc, name)
for module in pkgutil.walk_packages(SimpleLLMFunc.__path__, "SimpleLLMFunc."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("nothing")
"""


def test_attack_23_importing_any_module_opens_no_socket_starts_no_process_and_writes_no_file():
    done = run_script(NO_NETWORK, "-W", "default")
    assert (done.stdout, done.returncode) == ("nothing\n", 0), done.stderr[-2000:]


def test_attack_23_nothing_in_the_package_runs_at_the_start_of_an_interpreter():
    files = [path for path in (ROOT / "SimpleLLMFunc").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert files
    assert not [
        path for path in files if path.suffix in {".pth", ".so", ".pyd", ".dll", ".exe", ".sh", ".gguf", ".pkl", ".bin"}
    ]
    assert not [path for path in files if path.name in {"sitecustomize.py", "usercustomize.py", "conftest.py"}]
    # What is built runs no code of ours; further down it is a module like another.
    assert not [place / "setup.py" for place in (ROOT, ROOT / "SimpleLLMFunc") if (place / "setup.py").exists()]
    backend = PROJECT["build-system"]
    assert backend["build-backend"] == "hatchling.build"
    assert [re.split(r"[<>=]", each)[0] for each in backend["requires"]] == ["hatchling"]
    assert "hooks" not in str(PROJECT["tool"].get("hatch", {}))


def test_attack_23_it_depends_on_little_and_says_from_which_version_on():
    core = PROJECT["project"]["dependencies"]
    assert len([each for each in core if "sys_platform" not in each]) == 10
    for each in [
        *core,
        *(one for name, extra in PROJECT["project"]["optional-dependencies"].items() if name != "all" for one in extra),
    ]:
        if each.startswith("SimpleLLMFunc["):
            continue  # extras of our own
        assert re.search(r">=\d", each), f"{each} has no lower bound"
        assert "@" not in each, f"{each} comes from an address"
        assert "://" not in each
    assert next(each for each in core if each.startswith("jinja2")) == "jinja2>=3.1.6"


def test_attack_23_an_entry_point_is_a_command_and_no_plugin_of_someone_else():
    assert PROJECT["project"]["scripts"] == {"simplellmfunc": "SimpleLLMFunc.cli.main:main"}
    entry_points = PROJECT["project"].get("entry-points", {})
    assert set(entry_points) <= {"pytest11"}


def test_attack_23_no_source_hides_anything():
    """No characters that show other than they are, no long encoded texts, no code on one endless line."""
    for path in (ROOT / "SimpleLLMFunc").rglob("*.py"):
        text = path.read_bytes().decode("utf-8")
        odd = "[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
        assert not re.search(odd, text), path
        assert not re.search(r"[A-Za-z0-9+/=]{120,}", text), path
        assert max(map(len, text.splitlines()), default=0) <= 600, path
