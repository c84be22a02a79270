"""Every command: its help, its exit codes, its completion, and its place in the reference."""

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from SimpleLLMFunc.cli.main import COMMANDS
from tests.support.cli_reference import PAGE, commands, reference
from tests.support.command_line import begun, typed
from tests.support.processes import check_script
from tests.support.referees import is_of_today

ROOT = Path(__file__).parent.parent.parent
CONTRACT = {"demo", "run", "preview", "map", "chat", "view", "doctor", "model", "mcp"}


ALL = dict(commands())
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}
WORDED_AS_TODAY = pytest.mark.skipif(not is_of_today("click", 8, 5), reason="older ones word usage otherwise")


def named(path):
    return " ".join(path)


def test_the_commands_of_the_contract_are_there():
    assert set(COMMANDS) >= CONTRACT
    assert ("model", "pull") in ALL
    assert ("mcp", "serve") in ALL


@pytest.mark.parametrize("path", ALL, ids=named)
def test_every_command_tells_what_it_does(path):
    command = ALL[path]
    shown = typed(*path, "-h")
    assert shown.output == typed(*path, "--help").output
    assert command.help
    assert not command.get_short_help_str(200).endswith("..."), "the first sentence is one"
    assert "\\b" not in shown.output
    assert "\b" not in shown.output
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.name == "help", f"--{parameter.name} says nothing"


@pytest.mark.parametrize("path", ALL, ids=named)
def test_an_unknown_option_is_wrong_usage(path):
    done = typed(*path, "--no-such-option", code=2)
    assert "Usage:" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "model pull no-such-model", "view runs.sqlite --port 70000", "view a b", "view .", "map", "map shop:classify",
        "map shop:f rows.csv --concurrency many", "map shop:f rows.csv --concurrency 0", "eval shop:f . --min exact",
        "eval shop:f . --repeats 0", "mcp serve", "mcp serve one --port 1", "mcp serve one --host ::1", "serve",
        "mcp serve one --http --port 70000", "traces list --since yesterday", "traces list --limit 0",
        "traces list --status fine", "traces list --sort name", "traces mark 1 --thumb sideways", "traces export",
        "traces metrics --bucket soon", "traces metrics --by prompt", "traces prune --max-size large",
    ],
)  # fmt: skip
def test_wrong_usage(words):
    assert "Usage:" in typed(*words.split(), code=2).stderr


GROUPS = [
    path
    for path, each in ALL.items()
    if isinstance(each, click.Group) and not any(isinstance(param, click.Argument) for param in each.params)
]
"""Those whose first word is a command, and no file."""


@pytest.mark.parametrize("path", GROUPS, ids=named)
def test_an_unknown_command_is_wrong_usage(path):
    done = typed(*path, "no-such-command", code=2)
    assert "No such command" in done.stderr


@WORDED_AS_TODAY
@pytest.mark.parametrize(
    ("arguments", "meant"), [(["mpa"], "map"), (["previw"], "preview"), (["traces", "lst"], "list"), (["cat"], "chat")]
)
def test_a_misspelt_command_is_answered_with_the_nearest(arguments, meant):
    done = typed(*arguments, code=2)
    assert f"No such command {arguments[-1]!r}. Did you mean {meant!r}?" in done.stderr


@pytest.mark.parametrize("path", LEAVES, ids=named)
def test_the_help_of_an_option_is_a_sentence_without_its_name(path):
    for parameter in LEAVES[path].params:
        if isinstance(parameter, click.Option) and parameter.help:
            first = parameter.help.split()[0]
            assert first not in {"Of", "Whose", "What", "Whether", "Instead", "As", "Also", "Over", "With", "No"}, (
                parameter.help
            )
            assert first[0].isupper(), parameter.help
            assert not parameter.help.endswith(" there."), parameter.help


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no_such_module:f"], ["run", "json:dumps"], ["preview", "no_such_module:f"],
        ["map", "no_such_module:f", "rows.csv"], ["mcp", "serve", "no_such_module"], ["traces", "list"],
        ["traces", "list", "--store", "no_such.sqlite"], ["traces", "show", "1", "--store", "no_such.sqlite"], ["view"],
        ["chat", "--model", "no such form"], ["model", "path"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_our_errors_are_a_line_and_the_code_1(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMPLELLMFUNC_TRACE", raising=False)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL_DIR", str(tmp_path))
    done = typed(*arguments, code=1)
    assert done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""


# --- completion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell):
    done = typed("completion", shell)
    assert "_SIMPLELLMFUNC_COMPLETE" in done.stdout
    assert "simplellmfunc" in done.stdout


def completed(words):
    code = "from SimpleLLMFunc.cli.main import main; main(prog_name='simplellmfunc')"
    env = {"_SIMPLELLMFUNC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    with begun(program=(sys.executable, "-W", "error", "-c", code), cwd=Path.cwd(), **env) as process:
        out, told = process.communicate(timeout=50)
    assert told == ""
    return [line.partition(",")[2] for line in out.splitlines()]


def test_what_a_shell_is_offered():
    assert {"run", "preview", "doctor"} <= set(completed("simplellmfunc "))
    assert completed("simplellmfunc pre") == ["preview"]
    assert "--curl" in completed("simplellmfunc preview --c")
    assert completed("simplellmfunc traces pr") == ["prune"]


SHOP = """
print("this module prints")
from SimpleLLMFunc import llm_chat, llm_function

@llm_function
def classify(text: str) -> str:
    '''Classify.'''

@llm_function
def clean(text: str) -> str:
    '''Clean.'''

@llm_chat
def guide(message: str):
    '''Guide.'''

def helper():
    pass
"""


def test_the_functions_of_a_module_are_completed(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    assert completed("simplellmfunc run shop:") == ["shop:classify", "shop:clean", "shop:guide"]
    assert completed("simplellmfunc serve shop:cl") == ["shop:classify", "shop:clean"]
    assert not any(completed("simplellmfunc map no_such_module:"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_behind_the_colon(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    program = tmp_path / "simplellmfunc"
    program.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c \"from SimpleLLMFunc.cli.main import main; main(prog_name='simplellmfunc')\"\n"
    )
    program.chmod(0o755)
    script = typed("completion", "bash").stdout + (
        'offered() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=();\n'
        '  _simplellmfunc_completion simplellmfunc; echo "${COMPREPLY[*]}"; }\n'
        "offered simplellmfunc run shop :\n"
        "offered simplellmfunc run shop : cle\n"
        "offered simplellmfunc pre\n"
        "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n"
        "offered simplellmfunc run shop:gu\n"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["classify clean guide", "clean", "preview", "shop:guide"]


def test_names_are_completed_without_loading_what_they_name():
    code = (
        "import sys; from SimpleLLMFunc.cli.main import main; import click\n"
        "items = main.shell_complete(click.Context(main), 'm')\n"
        "assert [item.value for item in items] == ['map', 'mcp', 'model'], items\n"
        "assert not [name for name in sys.modules if name.startswith('SimpleLLMFunc.llm_decorator')]\n"
    )
    check_script(code, "")


# --- the reference ----------------------------------------------------------------------------------------


@WORDED_AS_TODAY
def test_the_reference_is_that_of_these_commands():
    assert PAGE.read_text(encoding="utf-8") == reference(), "update it: python -m tests.support.cli_reference"


@pytest.mark.parametrize("path", LEAVES, ids=named)
def test_the_reference_tells_of_every_command_and_option(path):
    page = PAGE.read_text(encoding="utf-8")
    text = page.partition(f"## simplellmfunc {named(path)}\n")[2].partition("\n## ")[0]
    assert text
    for parameter in LEAVES[path].params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert option in text
