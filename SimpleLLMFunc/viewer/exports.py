"""A stored run as a shell command, and as a test."""

from __future__ import annotations

import json
import keyword
import pprint
import re
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.run import curl_command
from SimpleLLMFunc.logger import MASK
from SimpleLLMFunc.observability.store import RunDetail, StoredTurn
from SimpleLLMFunc.viewer.responses import Refusal

_NO_CONTENT: Final = "The store was told to keep no content: there is nothing to make this of."
_SHORTENED = re.compile(r"<(?:image|audio|file|bytes|base64) \d+ k?B>")


def is_omitted(value: Any) -> bool:
    """Say whether a content was not kept."""
    return isinstance(value, dict) and value.keys() == {"omitted"}


def as_curl(turn: StoredTurn) -> str:
    """Return a request as a shell command; the key is read from a variable.

    Raises:
        Refusal: the request is not known.
    """
    if turn.request is None or is_omitted(turn.request):
        raise Refusal(409, _NO_CONTENT)
    if not turn.url:
        raise Refusal(409, "This model has no address: it runs inside the process.")
    return curl_command(turn.url, turn.headers, turn.request)


def as_test(detail: RunDetail) -> str:
    """Return a run as a test: the same arguments, the same replies of the model and the tools, the same value.

    Raises:
        Refusal: the run cannot be played again.
    """
    return _Test(detail).text()


class _Test:
    """Writes the test of one run."""

    def __init__(self, detail: RunDetail) -> None:
        self.detail = detail
        self.run = detail.summary
        self.is_chat = self.run.kind == "chat"
        version = detail.function_version
        self.tools: Sequence[Any] = version.tools if version else ()
        self.path = self.run.function.split(".")
        place, _, qualname = (version.place if version else "").partition(":")
        if place and qualname and "<locals>" not in qualname:
            self.path = qualname.split(".")
        self.module = "your_module" if place in {"", "__main__"} else place
        self._check()

    def _check(self) -> None:
        detail, run = self.detail, self.run
        if run.kind not in {"function", "chat"}:
            raise Refusal(
                409, f"Only runs of functions and chats become a test; this is one of a {run.kind or 'caller'}."
            )
        if run.status not in {"ok", "error"}:
            raise Refusal(409, f"Only a run that has ended becomes a test; this one is {run.status}.")
        contents = [detail.arguments, *(turn.reply for turn in detail.turns), *(c.content for c in detail.tool_calls)]
        if any(map(is_omitted, contents)):
            raise Refusal(409, _NO_CONTENT)
        if not self.replies:
            raise Refusal(409, "The model gave no reply in this run: there is nothing to play again.")
        if run.status == "error" and (detail.turns[-1].reply is None or not self._error_type()):
            raise Refusal(409, "The service failed in this run; its answer cannot be played again.")
        if not all(each.isidentifier() and not keyword.iskeyword(each) for each in self.path):
            raise Refusal(409, "The function has no name that it can be imported by.")

    @property
    def replies(self) -> list[Any]:
        """The model's replies; a request that the service refused has none."""
        return [_reply(turn.reply) for turn in self.detail.turns if turn.reply is not None]

    def _error_type(self) -> str:
        found = getattr(errors, self.run.error, None)
        return self.run.error if isinstance(found, type) and issubclass(found, errors.SimpleLLMFuncError) else ""

    def text(self) -> str:
        """Return the whole file."""
        parts = [self._head(), self._imports()]
        parts.append(f"ARGUMENTS = {_literal(self.detail.arguments or {})}")
        parts.append(f"REPLIES = {_literal(self.replies)}")
        if self.tools:
            parts.append(f"TOOLS = {_literal([tool.get('function', tool) for tool in self.tools])}")
            results = {_call_key(call.name, call.arguments): call.content for call in self.detail.tool_calls}
            parts.append(f"TOOL_RESULTS = {_literal(results)}")
            parts.append(_RECORDED_TOOL)
        parts.append(self._test())
        return "\n\n".join(part.rstrip() for part in parts).replace("\n\n\n\ndef ", "\n\n\ndef ") + "\n"

    def _head(self) -> str:
        began = datetime.fromtimestamp(self.run.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
        lines = [f"What {'.'.join(self.path)} did on {began}, played again: no model is asked.", ""]
        lines.append(f"Run {self.run.trace_id}")
        if self.module == "your_module":
            lines.append("Write the module of the function in place of your_module.")
        whole = json.dumps([self.detail.arguments, self.replies], ensure_ascii=False)
        if MASK in whole or _SHORTENED.search(whole):
            lines.append("Secrets are masked here, and files named by their size: put in what the function needs.")
        body = "\n".join(lines).replace("\\", "\\\\").replace('"""', r"\"\"\"")
        return f'"""{body}\n"""'

    def _imports(self) -> str:
        standard = ["import asyncio", *([] if self.is_chat else ["import inspect"])]
        others, ours = (
            [],
            ["from SimpleLLMFunc.testing import ScriptedLLM", f"from {self.module} import {self.path[0]}"],
        )
        if self.tools:
            standard.append("import json")
        if self.run.status == "error":
            others.append("import pytest")
            ours.insert(0, f"from SimpleLLMFunc.errors import {self.run.error}")
        elif not self.is_chat:
            others.append("from pydantic_core import to_jsonable_python")
        if self.tools or not self.is_chat:
            ours.insert(0, "from SimpleLLMFunc import Tool")
        return "\n\n".join("\n".join(group) for group in (standard, others, ours) if group)

    def _options(self) -> list[str]:
        options = ["llm_interface=ScriptedLLM(*REPLIES)"]
        if self.tools:
            options.append("toolkit=[recorded(tool) for tool in TOOLS]")
            requests = [turn.request for turn in self.detail.turns if isinstance(turn.request, Mapping)]
            if requests and not any(request.get("tools") for request in requests):
                options.append('tools="json"')
        if self.detail.output_mode in {"native", "tool", "prompt", "choice"} and not self.is_chat:
            options.append(f'output_mode="{self.detail.output_mode}"')
        return options

    def _test(self) -> str:
        name = "_".join(self.path).lower().strip("_") or "run"
        lines = [f"function = {'.'.join(self.path)}.with_options(", *(f"    {each}," for each in self._options()), ")"]
        asking = (_ASKS_CHAT if self.is_chat else _ASKS_FUNCTION).splitlines()
        if self.run.status == "error":
            lines += [f"with pytest.raises({self.run.error}):", *(f"    {line}" for line in asking)]
        else:
            lines += [*asking, self._claim()]
        return f"\n\ndef test_{name}():\n" + textwrap.indent("\n".join(lines), "    ")

    def _claim(self) -> str:
        if self.is_chat:
            return f'assert pairs[-1][1][-1]["content"] == {_literal(self.detail.answer)}'
        if self.detail.value is None and self.detail.answer:
            # The value had no JSON form, so the test compares the text.
            return f"assert result.text == {_literal(self.detail.answer)}"
        return f"assert to_jsonable_python(result.value) == {_literal(self.detail.value)}"


_ASKS_FUNCTION: Final = """\
args, kwargs = Tool(func=function).bind(ARGUMENTS)
result = function.call(*args, **kwargs)
if inspect.isawaitable(result):
    result = asyncio.run(result)
"""

_ASKS_CHAT: Final = """\
answer = function(**ARGUMENTS)
if hasattr(answer, "__aiter__"):
    async def read():
        return [pair async for pair in answer]

    pairs = asyncio.run(read())
else:
    pairs = list(answer)
"""

_RECORDED_TOOL: Final = '''

def recorded(tool):
    """The tool as it answered then; it does nothing."""

    def answer(**arguments):
        return TOOL_RESULTS[tool["name"] + json.dumps(arguments, sort_keys=True)]

    return Tool(
        func=answer, name=tool["name"], description=tool.get("description"), parameters=tool.get("parameters")
    )
'''


def _reply(reply: Any) -> Any:
    """Return a reply for `ScriptedLLM`: a text, else a message, else the whole reply."""
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices:
        return reply
    message = {name: part for name, part in (choices[0].get("message") or {}).items() if part not in (None, [], "")}
    message.pop("role", None)
    finish_reason = choices[0].get("finish_reason")
    if len(choices) > 1:
        return {"choices": choices}
    if finish_reason == "stop" and message.keys() <= {"content"}:
        return message.get("content", "")
    if finish_reason == "tool_calls" and message.keys() == {"tool_calls"}:
        return message
    return {"content": None, **message, "finish_reason": finish_reason}


def _call_key(name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {}
    return name + json.dumps(arguments or {}, sort_keys=True)


def _literal(value: Any) -> str:
    """Return `value` as Python code; invisible characters are escaped."""
    return pprint.pformat(value, width=110, sort_dicts=False)
