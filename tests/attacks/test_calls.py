"""Attacks 9 to 11 through what a Call takes: schemas of slots, and what users say to templates and schemas.

Attacks 6 to 8 are tests of the engine, in tests/base/templates/test_jinja_sandbox.py.
"""

import contextlib
import re
import socket
import time
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.calls.call_data import ExecutorBackground, LanguageType
from SimpleLLMFunc.calls.llm import LLM
from SimpleLLMFunc.calls.slot.processor import SlotProcessor
from SimpleLLMFunc.calls.summary import Summary
from SimpleLLMFunc.calls.task import Task
from SimpleLLMFunc.errors import SimpleLLMFuncError, ToolDefinitionError
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools import Tool


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


QUESTIONS = [
    "{{ 7*7 }}", "{% for x in range(9) %}49{% endfor %}", "{{ o.api_key }}", "{# gone #}", "{{", "{%",
    "{{ 7*7 }}" * 50,
]  # fmt: skip


def executor(llm, question):
    background = ExecutorBackground(
        num=10,
        conversation=[{"role": "user", "content": question}, {"role": "assistant", "content": question}],
        facts=[question],
    )
    return SimpleNamespace(task=Task(question, LanguageType.ENGLISH, background), step=None, llm=llm)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", [LLM, Summary])
async def test_attack_09_what_a_user_asks_is_no_template(kind, question):
    llm = ScriptedLLM("ok", repeat=True)
    on = executor(llm, question)
    call = await kind.instance(on, None)
    _ = [chunk async for chunk in call.exec(on, call.input)]
    assert llm.calls
    sent = "\n".join(str(message["content"]) for request in llm.requests for message in request)
    assert question in sent
    assert "49" not in re.sub(r"\d\d:\d\d:\d\d", "", sent.replace(question, ""))  # nor in the time of day


# --- schemas ----------------------------------------------------------------------------------------------


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)
        yield server.getsockname()[1]
        with pytest.raises(TimeoutError):
            server.accept()  # where somebody had called


def use(schema, data):
    """All that a schema is used for."""
    processor = SlotProcessor(schema)
    processor.process_json(data)
    processor.check_json(data)


@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:{port}/latest/meta-data/", "https://127.0.0.1:{port}/x", "//127.0.0.1:{port}/x", "file:///etc/passwd", "ftp://127.0.0.1:{port}/", "other.json", "#/nowhere"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place",
    [
        {}, {"properties": {"a": "HERE"}}, {"items": "HERE"}, {"anyOf": ["HERE"]},
        {"$defs": {"x": "HERE"}, "$ref": "#/$defs/x"},
    ],
    ids=str,
)  # fmt: skip
def test_attack_10_no_schema_fetches_anything(reference, place, port):
    target = {"$ref": reference.format(port=port)}

    def filled(node):
        if node == "HERE":
            return target
        if isinstance(node, dict):
            return {name: filled(each) for name, each in node.items()}
        return [filled(each) for each in node] if isinstance(node, list) else node

    schema = filled(place) or target
    with contextlib.suppress(SimpleLLMFuncError):
        use(schema, {"a": 1})
        use({"type": "object", "properties": {"x": schema}}, {"x": {"a": 1}})
    with contextlib.suppress(ToolDefinitionError):
        Tool(lambda a: a, name="t", parameters={"type": "object", "properties": {"a": schema}}).read('{"a": 1}')


def doubled(levels):
    schema = {"type": "integer"}
    for _ in range(levels):
        schema = {"anyOf": [schema, schema]}
    return schema


# Circles, depths and patterns that look around are refused before any data: see tests/calls/slot/test_processor.py.
ENDLESS = {
    "a pattern": (
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"a": "a" * 28 + "!"},
    ),
    "a doubling": ({"type": "object", "properties": {"a": doubled(20)}}, {"a": "x"}),
    "unique items": (
        {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}},
        {"a": [{"n": n} for n in range(5000)]},
    ),
    "a width": ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, {"a": 1}),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_attack_11_a_schema_is_used_or_refused_before_it_costs(name):
    schema, data = ENDLESS[name]
    with contextlib.suppress(SimpleLLMFuncError):
        use({}, {})  # what is imported late is paid for here
    started = time.process_time()
    with contextlib.suppress(SimpleLLMFuncError):
        use(schema, data)
    # No limit on speed, but on a hang: the naive way takes from five seconds to for ever.
    assert time.process_time() - started < 3
