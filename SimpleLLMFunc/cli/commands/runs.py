"""`simplellmfunc runs`: list the calls that wait in a journal, answer them, forget runs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.arguments import FILE, json_option
from SimpleLLMFunc.cli.commands.traces import duration
from SimpleLLMFunc.cli.output import as_json, echo_json, show_table
from SimpleLLMFunc.errors import counted, cut
from SimpleLLMFunc.journal import RUN_AGAIN, answer, forget, paused, prune
from SimpleLLMFunc.logger import escape_control


class _Runs(click.Group):
    """A group that takes its own option also after the path; later options belong to a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args[::-1] if args[1:] == ["--json"] else args)


@click.group(cls=_Runs, short_help="Runs that wait for an answer: list, answer, forget.", invoke_without_command=True)
@click.argument("path", type=FILE)
@json_option
@click.pass_context
def runs(ctx: click.Context, path: Path, *, as_data: bool) -> None:
    """List what waits for an answer in a journal, the oldest first.

    \b
    simplellmfunc runs runs.sqlite
    simplellmfunc runs runs.sqlite answer order-17 8f3a01b2c4d5e6f7 --yes
    simplellmfunc runs runs.sqlite answer order-17 8f3a01b2c4d5e6f7 --text "Give a voucher instead."
    simplellmfunc runs runs.sqlite forget order-17

    PATH is that of `with durable(PATH, key=...)`. After the answer the same block goes on, when its program runs it again.
    """  # noqa: D301 - click reads the character itself
    ctx.obj = path
    if ctx.invoked_subcommand is not None:
        return
    waiting = paused(path)
    if as_data:
        echo_json(waiting)
    elif not waiting:
        click.echo("Nothing waits for an answer.")
    else:
        rows = [
            (*(escape_control(cut(str(each[name]), 60)) for name in ("key", "call_id", "tool")),
             escape_control(cut(as_json(each["arguments"]), 80)),
             {"confirm": "may it run?", "outcome": "what has it done?"}[each["why"]],
             datetime.fromtimestamp(each["since"]).astimezone().isoformat(" ", "seconds"))
            for each in waiting
        ]  # fmt: skip
        show_table(("key", "call", "tool", "arguments", "asks", "since"), rows)


def _told(**given: Any) -> Any:
    """Return the answer, of which exactly one option is given."""
    said = {name: value for name, value in given.items() if value not in (None, False)}
    if len(said) != 1:
        raise click.UsageError("Give one answer: --yes, --no, --text, --result or --run-again.")
    ((name, value),) = said.items()
    if name == "result":
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise click.BadParameter(f"--result is not JSON: {error}. Put quotes around a text.") from None
    return {"yes": True, "no": False, "run_again": RUN_AGAIN}.get(name, value)


@runs.command(name="answer")
@click.argument("key")
@click.argument("call_id", metavar="CALL")
@click.option("--yes", is_flag=True, help="The tool may run.")
@click.option("--no", is_flag=True, help="It may not; the model is told so.")
@click.option("--text", metavar="TEXT", help="It does not run; the model reads this in its place.")
@click.option("--result", metavar="JSON", help="Where the outcome of a tool is unknown: its result.")
@click.option("--run-again", is_flag=True, help="The tool's outcome is unknown, and you know it did nothing: run it.")
@click.pass_obj
def answer_command(path: Path, /, key: str, call_id: str, **given: Any) -> None:
    """Answer what the run KEY asks about one CALL; both are in the list."""
    answer(path, key, call_id, _told(**given))
    click.echo(f"Answered. {key} goes on when its program runs the block again.")


@runs.command(name="forget")
@click.argument("key")
@click.pass_context
def forget_command(ctx: click.Context, key: str) -> None:
    """Forget the run KEY: its block starts from the beginning the next time, and its tools run again."""
    if not forget(ctx.obj, key):
        click.echo(f"There is no run {escape_control(cut(key, 100))!r} in it.", err=True)
        ctx.exit(1)
    click.echo("Forgotten.")


@runs.command(name="prune")
@click.option("--older-than", type=duration, required=True, metavar="AGE", help="How long ago they have finished: 30d.")
@click.pass_obj
def prune_command(path: Path, /, older_than: float) -> None:
    """Forget the runs that have finished; what waits or is unfinished stays."""
    click.echo(f"{counted(prune(path, older_than), 'run')} forgotten.")
