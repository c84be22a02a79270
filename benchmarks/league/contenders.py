"""The contenders, each as its README writes it and in its best documented mode for a JSON schema.

    python -m benchmarks.league.contenders NAME URL KEY MODEL

runs one in its own environment and process: a line `{"task": …, "input": {…}}` in, a line with `value` or `problem` and
`seconds` out. All get the same docstring, the same type with the same descriptions of fields, temperature 0 and at most
`MOST_TOKENS` tokens; nothing else is set. What a library does by itself (its prompt, its schema, its retries, what it does
with a bad answer) is what is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.league.tasks import ORDER, Task, plain

MOST_TOKENS = 256
Ask = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Server:
    """Where the model is."""

    url: str
    key: str
    model: str


def messages(task: Task, given: dict[str, Any]) -> Any:
    return [{"role": "system", "content": task.instruction}, {"role": "user", "content": task.text(given)}]


def unpacked(task: Task, value: Any) -> Any:
    """Return what a model with one field holds; a value that is no such model as it is."""
    return value.answer if task.kind in {"choice", "number"} and isinstance(value, task.model) else value


def our_function(at: Server, task: Task) -> Any:
    """Return the function as a user would write it, at the server of all contenders."""
    from SimpleLLMFunc import LocalModel, OpenAICompatible, llm_function
    from SimpleLLMFunc.interface.spending import Deadline

    client = OpenAICompatible(at.model, base_url=at.url, api_key=at.key, profile="local")

    class Shared(LocalModel):
        """LocalModel at the server of all contenders; else it would start one of the same kind in this process."""

        async def _client(self, seconds: float | None, **_: Any) -> tuple[OpenAICompatible, Deadline]:
            return client, Deadline.after(seconds)

    # A value's limit follows from its type; so does the limit of a text.
    return llm_function(llm_interface=Shared(at.model), max_tokens=MOST_TOKENS)(task.function())


def ours(at: Server, task: Task) -> Ask:
    function = our_function(at, task)
    return lambda given: function(**given)


def openai(at: Server, task: Task) -> Ask:
    from openai import OpenAI

    client = OpenAI(base_url=at.url, api_key=at.key)
    schema = {"name": task.name, "schema": task.model.model_json_schema()}

    def ask(given: dict[str, Any]) -> Any:
        reply = client.chat.completions.create(
            model=at.model,
            messages=messages(task, given),
            response_format={"type": "json_schema", "json_schema": schema},
            temperature=0,
            max_tokens=MOST_TOKENS,
        )
        return unpacked(task, task.model.model_validate_json(reply.choices[0].message.content or ""))

    return ask


def instructor(at: Server, task: Task) -> Ask:
    from instructor import Mode, from_openai
    from openai import OpenAI

    client: Any = from_openai(OpenAI(base_url=at.url, api_key=at.key), mode=Mode.JSON_SCHEMA)

    def ask(given: dict[str, Any]) -> Any:
        return client.chat.completions.create(
            model=at.model,
            messages=messages(task, given),
            response_model=task.type,
            temperature=0,
            max_tokens=MOST_TOKENS,
        )

    return ask


def pydantic_ai(at: Server, task: Task) -> Ask:
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent: Any = Agent(
        OpenAIChatModel(at.model, provider=OpenAIProvider(base_url=at.url, api_key=at.key)),
        instructions=task.instruction,
        output_type=NativeOutput(task.type),
        model_settings={"temperature": 0, "max_tokens": MOST_TOKENS},
    )
    return lambda given: agent.run_sync(task.text(given)).output


def magentic(at: Server, task: Task) -> Ask:
    from magentic import OpenaiChatModel, prompt

    model = OpenaiChatModel(at.model, base_url=at.url, api_key=at.key, temperature=0, max_tokens=MOST_TOKENS)
    template = "\n\n".join([task.instruction, *(f"{name}: {{{name}}}" for name in task.parameters)])
    made = task.function()
    made.__annotations__["return"] = task.model if task.kind == "choice" else task.type  # it takes no bare Literal
    function = prompt(template, model=model)(made)
    return lambda given: unpacked(task, function(**given))


def mirascope(at: Server, task: Task) -> Ask:
    from mirascope import llm

    llm.register_provider(llm.providers.OpenAIProvider(api_key=at.key, base_url=at.url), scope="openai/")
    form = llm.format(task.type, mode="strict")

    @llm.call(f"openai/{at.model}:completions", format=form, temperature=0, max_tokens=MOST_TOKENS)
    def function(given: Any) -> Any:
        return [llm.messages.system(task.instruction), llm.messages.user(task.text(given))]

    return lambda given: function(given).parse()


def langchain(at: Server, task: Task) -> Ask:
    from langchain_openai import ChatOpenAI

    llm: Any = ChatOpenAI(
        model=at.model, base_url=at.url, api_key=at.key, temperature=0, max_tokens=MOST_TOKENS
    ).with_structured_output(task.model, method="json_schema")

    def ask(given: dict[str, Any]) -> Any:
        return unpacked(task, llm.invoke([("system", task.instruction), ("human", task.text(given))]))

    return ask


def dspy(at: Server, task: Task) -> Ask:
    import dspy as package

    lm = package.LM(
        f"openai/{at.model}", api_base=at.url, api_key=at.key, cache=False, temperature=0, max_tokens=MOST_TOKENS
    )
    fields: dict[str, Any] = {name: (kind, package.InputField()) for name, kind in task.parameters.items()}
    predict = package.Predict(
        package.Signature({**fields, "answer": (task.type, package.OutputField())}, task.instruction)
    )
    return lambda given: predict(**given, lm=lm).answer


def outlines(at: Server, task: Task) -> Ask:
    import openai
    import outlines as package

    model: Any = package.from_openai(openai.OpenAI(base_url=at.url, api_key=at.key), at.model)

    def ask(given: dict[str, Any]) -> Any:
        chat = package.inputs.Chat(messages(task, given))
        told = model(chat, task.model, temperature=0, max_tokens=MOST_TOKENS)
        return unpacked(task, task.model.model_validate_json(told))

    return ask


# --- BAML: a language, generated into Python when it is first asked ---------------------------------------------------

BAML_CLIENT = """\
client<llm> Small {{
  provider "openai-generic"
  options {{
    base_url "{at.url}"
    api_key "{at.key}"
    model "{at.model}"
    temperature 0
    max_tokens {most}
  }}
}}
generator target {{
  output_type "python/pydantic"
  output_dir ".."
  version "{version}"
  default_client_mode sync
}}
class Call {{
  function_name string @alias("function") @description("the name of the chosen function")
  arguments map<string, string | int | float | bool> @description("its arguments by name")
}}
"""
BAML_FUNCTION = """
function {name}({parameters}) -> {type} {{
  client Small
  prompt #"
    {{{{ _.role("system") }}}}
    {instruction}

    {{{{ ctx.output_format }}}}

    {{{{ _.role("user") }}}}
    {inputs}
  "#
}}
"""


def _baml_source(task: Task) -> str:
    name = "".join(word.title() for word in task.name.split("_"))
    labels = " | ".join(json.dumps(label, ensure_ascii=False) for label in task.labels)
    kind = {"choice": labels, "number": "int", "call": "Call", "record": name}[task.kind]
    text = ""
    if task.kind == "record":
        lines = [
            f"  {field} {'string?' if info.annotation == str | None else f'({labels})'} "
            f"@description({json.dumps(info.description, ensure_ascii=False)})"
            for field, info in task.type.model_fields.items()
        ]
        text = f"class {name} {{\n" + "\n".join(lines) + "\n}\n"
    return text + BAML_FUNCTION.format(
        name=f"{name}Function",
        parameters=", ".join(f"{each}: string" for each in task.parameters),
        type=kind,
        instruction=task.instruction,
        inputs="\n\n".join(f"{{{{ {each} }}}}" for each in task.parameters),
    )


def baml(at: Server, task: Task) -> Ask:
    if "baml_client" not in sys.modules:
        from importlib.metadata import version

        home = Path.cwd() / "baml"
        (home / "baml_src").mkdir(parents=True, exist_ok=True)
        source = BAML_CLIENT.format(at=at, most=MOST_TOKENS, version=version("baml-py"))
        text = source + "".join(_baml_source(Task(name)) for name in ORDER)
        (home / "baml_src" / "league.baml").write_text(text, encoding="utf-8")
        command = Path(sys.executable).with_name("baml-cli")
        subprocess.run([command, "generate", "--from", home / "baml_src"], check=True, stdout=2)
        sys.path.insert(0, str(home))
    from baml_client import b  # type: ignore[import-not-found]

    function = getattr(b, "".join(word.title() for word in task.name.split("_")) + "Function")

    def ask(given: dict[str, Any]) -> Any:
        told = function(**{name: task.text({name: value}) for name, value in given.items()})
        # "function" is a word of its language.
        return {"function": told.function_name, "arguments": told.arguments} if task.kind == "call" else told

    return ask


ASKED = {
    each.__name__: each
    for each in (ours, openai, instructor, pydantic_ai, magentic, mirascope, langchain, dspy, baml, outlines)
}


def main(name: str, at: Server) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some libraries print
    asks: dict[str, Ask] = {}
    for line in sys.stdin:
        order = json.loads(line)
        begun, told = time.perf_counter(), {}
        try:
            if order["task"] not in asks:
                asks[order["task"]] = ASKED[name](at, Task(order["task"]))
                begun = time.perf_counter()
            told = {"value": plain(asks[order["task"]](order["input"]))}
        except Exception as error:  # noqa: BLE001 - an error of any kind is an error of the contender
            told = {"problem": f"{type(error).__name__}: {error}"[:400]}
        told["seconds"] = time.perf_counter() - begun
        print(json.dumps(told, default=repr), file=out, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1], Server(*sys.argv[2:5]))
