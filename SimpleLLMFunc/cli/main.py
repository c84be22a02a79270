"""The commands and their exit codes: 0 done, 1 one of our errors, 2 wrong usage, 130 stopped with Ctrl-C."""

from __future__ import annotations

import errno
import io
import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.errors import SimpleLLMFuncError, did_you_mean
from SimpleLLMFunc.logger import is_debugging, redact, shown_traceback

COMMANDS = {
    "chat": "commands.chat:chat",
    "completion": "completion:completion",
    "demo": "commands.demo:demo",
    "doctor": "commands.doctor:doctor",
    "eval": "commands.eval:eval_command",
    "improve": "commands.eval:improve_command",
    "lock": "commands.lock:lock_command",
    "map": "commands.map:map_command",
    "mcp": "commands.serve:mcp",
    "model": "commands.model:model",
    "preview": "commands.run:preview",
    "run": "commands.run:run",
    "runs": "commands.runs:runs",
    "serve": "commands.serve:serve_command",
    "traces": "commands.traces:traces",
    "view": "commands.view:view",
}
"""Module and name of each command, in this package; loaded when it is used, for a fast start."""

_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What the disk says that the output goes to."""


class _Program(click.Group):
    """A group that prints one line instead of a traceback for errors of ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(f"SimpleLLMFunc.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}.{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Names only: loading every command is too slow for completion.
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # an encoding such as cp1252 lacks most characters
        try:
            return super().invoke(ctx)
        except (SimpleLLMFuncError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _DISK:
                raise  # of the user's code, with its traceback; click ends quietly where a pipe is closed
            if is_debugging():
                click.echo(printable(shown_traceback(error)), err=True)
            click.secho("Error: ", fg="red", nl=False, err=True)
            # The text may quote a service: no terminal escapes.
            click.echo(printable(redact(str(error))), err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)
            ctx.exit(130)  # 128 + SIGINT, as shells have it


@click.group(
    cls=_Program,
    name="simplellmfunc",
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100, "show_default": True},
    epilog="Exit codes: 0 done, 1 an error, with its message; 2 wrong usage, 130 stopped with Ctrl-C.",
)
@click.version_option(__version__, prog_name="simplellmfunc")
def main() -> None:
    """Typed Python functions and chats, answered by a language model."""
