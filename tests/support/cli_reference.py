"""The reference of the command line, written from the commands themselves.

python -m tests.support.cli_reference          # writes docs/reference/cli.md
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from SimpleLLMFunc.cli.main import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "cli.md"

_HEAD = """\
# The command line

`simplellmfunc` and `python -m SimpleLLMFunc` are the same. `simplellmfunc COMMAND -h` tells what stands here; how the commands work together is in
[How to use the command line](../how-to/command-line.md).

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | an error, told in a line on stderr: no model, no such file, the call failed, `doctor` found a problem, `map` has rows without a value |
| 2 | wrong usage: an unknown command or option, arguments that do not fit the function |
| 130 | stopped with Ctrl-C |

What a script wants goes to stdout, everything else to stderr. `--json` is on one line where stdout is no terminal.

| variable | read by | meaning |
|---|---|---|
| `SIMPLELLMFUNC_MODEL` | everything that runs a function; `preview`, `chat`, `doctor` | the model of functions that name none: `openai:gpt-5-mini`, `local`, `provider.json:openai/gpt-5-mini` |
| `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_API_KEY`; `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` | the same | key and address |
| `SIMPLELLMFUNC_TRACE`, `SIMPLELLMFUNC_TRACE_CONTENT` | everything that runs a function; of the first, `traces`, `view`, `doctor` | the file that runs are kept in; `0` keeps sizes and hashes only |
| `SIMPLELLMFUNC_MODEL_DIR` | everything that asks the local model; `model`, `doctor` | where weights are kept |
| `SIMPLELLMFUNC_DEBUG`, `SIMPLELLMFUNC_LANG` | every command | `1` prints the whole traceback of an error; the language of [some messages](errors.md#what-is-printed-of-an-error) |
"""


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that lead to it."""
    with click.Context(group) as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            yield (*path, name), command
            if isinstance(command, click.Group):
                own = [each.make_metavar(ctx) for each in command.params if isinstance(each, click.Argument)]
                yield from commands(command, (*path, name, *own))


def _does_something(command: click.Command) -> bool:
    return not isinstance(command, click.Group) or command.invoke_without_command


def reference() -> str:
    """Return the whole page."""
    sections = [_section(path, command) for path, command in commands() if _does_something(command)]
    return "\n".join([_HEAD, *sections])


def _section(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path), show_default=True)
    usage = f"simplellmfunc {' '.join(path)} {' '.join(command.collect_usage_pieces(context))}"
    lines = [f"## simplellmfunc {' '.join(path)}", "", "```console", usage, "```", "", *_help(command.help or "")]
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        lines += ["| option | |", "|---|---|", *(_option(each, context) for each in options), ""]
    return "\n".join(lines)


def _help(text: str) -> Iterator[str]:
    """Yield the help text; what click leaves as it is, are examples."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield from ("```console", paragraph.removeprefix("\b").strip("\n"), "```", "")
        else:
            yield from (re.sub(r"\s*\n\s*", " ", paragraph).replace("<", "&lt;"), "")


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join(option.opts) + (f" / {', '.join(option.secondary_opts)}" if option.secondary_opts else "")
    value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}".replace("|", "\\|")
    record = option.get_help_record(context)
    told = (record[1] if record else "").replace("|", "\\|").replace("<", "&lt;")
    return f"| `{names}{value}` | {told} |"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
