"""The field: who is measured, what has to be installed for it, and what is peculiar to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SAID = {
    "dspy": "[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]",
    "dspy_order": "[[ ## order ## ]]\n{order}\n\n[[ ## completed ## ]]",
}
"""What the server says to those who ask for a form of their own."""


@dataclass(frozen=True)
class Contender:
    """One library, or one way to do without.

    Attributes:
        name: of its module in `benchmarks.contenders` and of its environment.
        title: for a reader.
        package: whose version is shown.
        requirements: for pip.
        statement: what a user's program imports.
        options: by row, what the server is told on top of the row's own options.
        note: what a reader should know about how it is used here.
    """

    name: str
    title: str
    package: str
    requirements: tuple[str, ...]
    statement: str
    options: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


FIELD: tuple[Contender, ...] = (
    Contender(
        "aiohttp",
        "bare aiohttp",
        "aiohttp",
        ("aiohttp", "pydantic"),
        "import aiohttp",
        note="By hand: post, `json.loads`, look inside; pydantic for the typed answer. No retries, no types, no tools.",
    ),
    Contender(
        "httpx",
        "bare httpx",
        "httpx2",
        ("httpx2", "pydantic"),
        "import httpx2",
        note="The same by hand with httpx2, which the openai package sits on, with its limits and time-outs.",
    ),
    Contender("openai", "openai", "openai", ("openai",), "from openai import AsyncOpenAI, OpenAI"),
    Contender(
        "instructor",
        "instructor",
        "instructor",
        ("instructor",),
        "from instructor import Mode, from_openai\nfrom openai import AsyncOpenAI",
    ),
    Contender(
        "pydantic_ai",
        "pydantic-ai",
        "pydantic-ai-slim",
        ("pydantic-ai-slim[openai]",),
        "from pydantic_ai import Agent\nfrom pydantic_ai.models.openai import OpenAIChatModel",
        note="The slim package with what it needs for OpenAI.",
    ),
    Contender(
        "magentic",
        "magentic",
        "magentic",
        ("magentic",),
        "from magentic import OpenaiChatModel, prompt",
        options={"typed": "tool=return_order"},
        note="Asks for typed answers as tool calls, and streams every answer.",
    ),
    Contender("mirascope", "mirascope", "mirascope", ("mirascope[openai]",), "from mirascope import llm"),
    Contender(
        "langchain",
        "langchain-openai",
        "langchain-openai",
        ("langchain-openai",),
        "from langchain_openai import ChatOpenAI",
        note="The round with a tool is a loop by hand over `bind_tools`.",
    ),
    Contender(
        "agents",
        "openai-agents",
        "openai-agents",
        ("openai-agents",),
        "from agents import Agent, Runner, OpenAIChatCompletionsModel",
        note="Over chat completions, with tracing off.",
    ),
    Contender(
        "litellm",
        "litellm",
        "litellm",
        ("litellm",),
        "import litellm",
        note="The round with a tool is a loop by hand.",
    ),
    Contender(
        "dspy",
        "dspy",
        "dspy",
        ("dspy",),
        "import dspy",
        options={
            "plain": "say=dspy",
            "typed": "say=dspy_order",
            "history": "say=dspy",
            "sync": "say=dspy",
        },
        note="`Predict` with its own prompts, its cache off; the server answers in the form that they ask for.",
    ),
    Contender(
        "ours",
        "SimpleLLMFunc",
        "SimpleLLMFunc",
        ("-e", "."),
        "from SimpleLLMFunc import OpenAICompatible, llm_chat, llm_function, tool",
    ),
)

BY_NAME = {contender.name: contender for contender in FIELD}
SDK, AIOHTTP, OURS = "openai", "aiohttp", "ours"
