"""`simplellmfunc chat`: a conversation with the assistant on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, assert_never

import click

from SimpleLLMFunc.assistant import (
    AIAssistant,
    SearchClient,
    SqliteMemory,
    StreamItem,
    TavilySearch,
    WikipediaSearch,
    new_session_id,
)
from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.cli.output import printable
from SimpleLLMFunc.config import Settings, file_path
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, counted, cut
from SimpleLLMFunc.interface.current import named_model, resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local import LocalModel
from SimpleLLMFunc.logger import escape_control
from SimpleLLMFunc.runtime import run_sync

HELP: Final = """\
/tools         what the assistant can do
/memory        what it remembers of you
/forget        forget everything about you
/save FILE     write the conversation to a file: .json, else text
/new           begin a new conversation
/help          this list
/quit          leave (Ctrl-D and Ctrl-C too); Ctrl-C stops an answer"""

_MODELS: Final = "local, openai:NAME, anthropic:NAME, gemini:NAME or provider.json:PROVIDER/NAME"
_LANGUAGES: Final = click.Choice(["zh", "en"])
_SEARCHES: Final = click.Choice(["none", "wikipedia", "tavily"])


@dataclass(slots=True)
class _Talk:
    """A conversation under way."""

    assistant: AIAssistant
    memory: SqliteMemory
    user: str
    session: str = field(default_factory=new_session_id)
    has_answered: bool = False

    def ask(self, text: str) -> None:
        """Print the answer as it comes; Ctrl-C on a terminal stops it, and it is not kept."""
        try:
            with closing(self.assistant.stream_query_sync(text, session_id=self.session, user_id=self.user)) as items:
                for item in items:
                    self._show(item)
        except KeyboardInterrupt:
            if not (sys.stdin and sys.stdin.isatty()):
                raise
            click.secho("\n(stopped; not kept)", dim=True)
        except SimpleLLMFuncError as error:
            if isinstance(error, ConfigError) and not self.has_answered:
                raise  # no key, a missing extra: every line would fail
            click.secho(f"\nError: {printable(str(error))}", fg="red", err=True)
        else:
            self.has_answered = True
            click.echo()

    @staticmethod
    def _show(item: StreamItem) -> None:
        match item:
            case str():
                click.echo(printable(item), nl=False)
            case ToolCallStarted(call=call):
                click.secho(f"[{_short(call.function.name)} {_short(call.function.arguments)}]", dim=True)
            case ToolCallFinished(call=call, failed=failed, content=content):
                if failed:
                    click.secho(f"[{_short(call.function.name)}: {_short(str(content))}]", fg="yellow")
            case dict():
                if item["sources"]:
                    click.echo()
                for number, source in enumerate(item["sources"], 1):
                    click.secho(escape_control(f"  [{number}] {source['title']} {source['url']}"), dim=True)
            case _:
                assert_never(item)

    # --- commands ---

    def tools(self, _: str) -> None:
        """Print the names and what they are for."""
        functions = [each["function"] for each in self.assistant.tool_invoker.get_tool_definitions()]
        for function in functions:
            click.echo(f"{function['name']}  {function['description'].strip().splitlines()[0]}")
        if not functions:
            click.echo("No tools. Start with --tools to have them.")

    def memories(self, _: str) -> None:
        """Print what is remembered of the user."""
        known = run_sync(self.memory.memories(self.user))
        for memory in known:
            click.echo(f"- {printable(memory.text)} ({memory.type})")
        if not known:
            click.echo("Nothing yet. Memories are drawn from every ten messages.")

    def forget(self, _: str) -> None:
        """Forget the user."""
        run_sync(self.assistant.delete_user(self.user))
        self.session = new_session_id()
        click.echo("Everything about you is forgotten.")

    def save(self, name: str) -> None:
        """Write the conversation to a file."""
        if not name:
            click.echo("Say where: /save talk.json")
            return
        said = self.assistant.conversation(self.session, self.user)[1:]
        if name.endswith(".json"):
            text = json.dumps(said, ensure_ascii=False, indent=2)
        else:
            text = "\n\n".join(f"{message['role']}: {message.get('content') or ''}" for message in said)
        try:
            path = file_path(name)
            path.write_text(text.encode("utf-8", "replace").decode("utf-8") + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            click.secho(f"{name} cannot be written: {error}", fg="red", err=True)
        else:
            click.echo(f"{counted(len(said), 'message')} written to {path}.")

    def new(self, _: str) -> None:
        """Begin a new conversation."""
        self.session = new_session_id()
        click.echo("A new conversation.")

    def help(self, _: str) -> None:
        """Print the commands."""
        click.echo(HELP)

    def run(self, line: str) -> bool:
        """Carry out a line and say whether to go on."""
        commands: dict[str, Callable[[str], None]] = {
            "/tools": self.tools,
            "/memory": self.memories,
            "/forget": self.forget,
            "/save": self.save,
            "/new": self.new,
            "/help": self.help,
        }
        name, _, rest = line.partition(" ")
        if name in {"/quit", "/exit"}:
            return False
        if name in commands:
            try:
                commands[name](rest.strip())
            except SimpleLLMFuncError as error:
                click.secho(f"Error: {printable(str(error))}", fg="red", err=True)
        elif name.startswith("/"):
            click.echo(f"{name} is no command.\n{HELP}")
        elif line:
            self.ask(line)
        return True


@click.command(short_help="Talk with the assistant.")
@click.option("--model", help=f"The model: {_MODELS}; by default that of SIMPLELLMFUNC_MODEL, else local.")
@click.option("--language", type=_LANGUAGES, default="en", help="The language of the instructions.")
@click.option("--user", default="me", help="The person whose memories the assistant may use.")
@click.option("--memory", "memory_path", type=click.Path(dir_okay=False), help="Keep memories in this file.")
@click.option("--search", type=_SEARCHES, default="none", help="Where it searches when uncertain.")
@click.option(
    "--tools/--no-tools", default=None, help="Let it call tools, or not; by default unless the model is local."
)
def chat(
    model: str | None,
    language: Literal["zh", "en"],
    user: str,
    memory_path: str | None,
    search: str,
    tools: bool | None,
) -> None:
    """Talk with the assistant: with the small model inside this process, or with the model that is named."""
    llm = _model(model)
    memory = SqliteMemory(memory_path or ":memory:", llm=llm, language=language)
    offers = not isinstance(llm, LocalModel) if tools is None else tools
    # A small model does not stop by itself.
    params: dict[str, Any] = {"max_tokens": 200} if isinstance(llm, LocalModel) else {}
    made: dict[str, Callable[[], SearchClient]] = {"wikipedia": WikipediaSearch, "tavily": TavilySearch}
    searching = made[search]() if search in made else None
    assistant = AIAssistant(llm, searching, memory, None if offers else (), language, **params)
    talk = _Talk(assistant, memory, user)
    click.secho(f"{llm.model_name}. /help lists the commands.", dim=True)
    with closing(memory), closing(assistant):
        for line in _lines():
            if not talk.run(line.strip()):
                break
        run_sync(memory.settle())


def _model(name: str | None) -> LLM_Interface:
    if name:
        return named_model(name, named_by="--model")
    return resolve_llm(None) if Settings.from_environment().model else LocalModel()


def _lines() -> Iterator[str]:
    """Yield the lines that the user types, until the end of the input."""
    with suppress(ImportError):
        import readline  # noqa: F401 - the arrow keys; not on Windows
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    while True:
        try:
            yield input("> " if is_typed else "")
        except EOFError:
            if is_typed:
                click.echo()
            return
        except UnicodeDecodeError:
            raise click.ClickException(
                f"The input is not {getattr(sys.stdin, 'encoding', None)}, as the locale says. Set PYTHONUTF8=1 where it is UTF-8."
            ) from None


def _short(text: str) -> str:
    return cut(escape_control(text), 200)
