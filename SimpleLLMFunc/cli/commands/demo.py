"""`simplellmfunc demo`: a typed function and a streamed chat, answered by a real model."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from pydantic import BaseModel

from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local import LocalModel
from SimpleLLMFunc.llm_decorator import llm_chat, llm_function
from SimpleLLMFunc.type import ChatPair, Message

TEXT = "Anna Lindgren is 34 years old. She lives in Uppsala and teaches physics."
QUESTION = "What is the capital of France?"


class Person(BaseModel):
    """Someone a text is about."""

    name: str
    age: int
    city: str


@llm_function()
def read_person(text: str) -> Person:
    """Extract the person that the text is about."""
    raise NotImplementedError


@llm_chat(stream=True, max_tokens=100)
def answer(history: list[Message], message: str) -> Iterator[ChatPair]:
    """You are a helpful assistant. Answer in one short sentence."""
    raise NotImplementedError


@click.command(short_help="A typed function and a chat, without a key.")
def demo() -> None:
    """Run a typed function and a chat on the small model inside this process; no key."""
    run_demo(LocalModel())


def run_demo(llm: LLM_Interface) -> None:
    """Ask `llm` for a typed value and for a chat answer, and print what comes and what it took."""
    with use_llm(llm):
        click.secho("A typed function: read_person(text) -> Person", bold=True)
        click.echo(f"  text      {TEXT}")
        result = read_person.call(TEXT)
        click.echo(f"  value     {result.value!r}")
        click.echo(f"  tokens    {result.usage.input_tokens} read, {result.usage.output_tokens} written")
        click.echo(f"  seconds   {result.seconds:.1f}")
        click.secho("A chat, streamed: answer(history, message)", bold=True)
        click.echo(f"  message   {QUESTION}")
        click.echo("  answer    ", nl=False)
        begun = time.monotonic()
        for text, _history in answer([], QUESTION):
            click.echo(text, nl=False)
        click.echo(f"\n  seconds   {time.monotonic() - begun:.1f}")
    click.echo(f"Answered by {llm.model_name} ({llm.provider}).")
