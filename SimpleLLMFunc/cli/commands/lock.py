"""`simplellmfunc lock`: record every decorated function, or show what has changed since."""

from __future__ import annotations

from pathlib import Path

import click

from SimpleLLMFunc.cli.arguments import FILE
from SimpleLLMFunc.cli.load import load_module
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.lock import LOCK_FILE, check_lock, lock_of, read_lock, write_lock

_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(name="lock", short_help="Write or check llm.lock.")
@click.argument("targets", nargs=-1, metavar="[MODULE_OR_PACKAGE]...")
@click.option("--check", is_flag=True, help="Write nothing; end with code 1 if something has changed.")
@click.option("--file", "path", type=FILE, default=LOCK_FILE, help="The file to write or to check.")
@click.option(
    "--look-in", "folders", type=_FOLDER, multiple=True, help="A folder with cassettes and evaluations, for --check."
)
@click.pass_context
def lock_command(
    ctx: click.Context, targets: tuple[str, ...], check: bool, path: Path, folders: tuple[Path, ...]
) -> None:
    """Write llm.lock: version, model and parameters of every function under @llm_function and @llm_chat.

    \b
    simplellmfunc lock shop             # writes llm.lock; put it under version control
    simplellmfunc lock --check          # in CI: names what changed since

    Without a name, those of the file are taken. A key or an address is never written.
    """  # noqa: D301 - click reads the character itself
    if not targets:
        if not check and not path.exists():
            raise click.UsageError("Name the module or package to lock: simplellmfunc lock PACKAGE")
        targets = tuple(read_lock(path)[1])
        if not targets:
            raise click.UsageError(f"{path} names no module. Give one: simplellmfunc lock PACKAGE")
    before = read_lock(path)[0] if check else {}
    now = lock_of(*(load_module(target) for target in targets))
    if not check:
        has_changed = write_lock(path, now, targets)
        count = counted(len(now), "function")
        click.echo(f"{path}: {count}" if has_changed else f"{path}: {count}, nothing new")
        return
    found = check_lock(before, now, folders or (Path(),))
    if found.is_clean:
        click.echo(f"{path}: {counted(len(now), 'function')}, nothing has changed")
        return
    click.echo(printable(str(found)))
    click.echo(
        f"If that is meant: `simplellmfunc lock` writes {path} again; `pytest --llm-record=all` and another evaluation "
        "renew what is stale.",
        err=True,
    )
    ctx.exit(1)
