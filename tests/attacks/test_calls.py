"""Attacks 6 to 11 through what a Call takes: templates of Jinja2, schemas of slots, and what users say to both.

The engines have tests of their own beside them; these are the inputs of the incidents, at the doors.
"""

import contextlib
import re
import socket
import time
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.base.templates.engines import render_template
from SimpleLLMFunc.calls.call_data import ExecutorBackground, LanguageType
from SimpleLLMFunc.calls.llm import LLM
from SimpleLLMFunc.calls.slot.processor import SlotProcessor
from SimpleLLMFunc.calls.summary import Summary
from SimpleLLMFunc.calls.task import Task
from SimpleLLMFunc.errors import SimpleLLMFuncError, TemplateError, ToolDefinitionError
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools import Tool

LEAK = "sk-LEAK-0123456789abcdef"


class User:
    """What an application has at hand."""

    def __init__(self) -> None:
        self.api_key = LEAK
        self.wiped = False

    def wipe(self) -> str:
        self.wiped = True
        return "wiped"

    def __str__(self) -> str:
        return "Anna"


ESCAPES = {
    6: [
        "{{ cycler.__init__.__globals__.os.popen('touch pwned').read() }}",
        "{{ lipsum.__globals__['os'].popen('touch pwned').read() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ request.application.__globals__ }}",
        "{% for c in [].__class__.__base__.__subclasses__() %}{% if c.__name__ == 'Popen' %}{{ c('touch pwned', shell=True) }}{% endif %}{% endfor %}",
        "{{ o.__init__.__globals__.__builtins__.open('/etc/passwd').read() }}",
        "{% import 'os' as os %}{{ os.system('touch pwned') }}",
        "{% include '/etc/passwd' %}",
        "{% extends '/etc/passwd' %}",
    ],
    7: [
        "{{ ('{0.__class__}'|attr('format'))(o) }}",
        "{{ ('{0.api_key}'|attr('format'))(o) }}",
        "{{ ''|attr('__class__') }}",
        "{{ ['{0.__class__}']|map('format', o)|list }}",
        "{{ '{0.__class__.__mro__}'.format(o) }}",
        "{{ '{o.api_key}'.format_map({'o': o}) }}",
        "{% set f = '{0.__class__}'.format %}{{ f(o) }}",
        "{{ [o]|map(attribute='api_key')|list }}",
        "{{ ({}|attr('get'))('x') }}",
    ],
    8: [
        "{{ o.api_key }}",
        "{{ o.wipe() }}",
        "{{ ('a' * 10**9)|length }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}",
        "{{ lipsum(n=100000) }}",
        "{{ 'a'|center(10**9) }}",
        "{{ '{0:>1000000000}'.format('a') }}",
        "{{ 'a'.ljust(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ ['a'] * 10**9 }}",
        "{{ range(10**9)|list }}",
        "{% for x in range(1000) %}{% for y in range(1000) %}{{ big }}{% endfor %}{% endfor %}",
    ],
}


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def refused(template, **values):
    user = User()
    with pytest.raises(TemplateError) as caught:
        pytest.fail(render_template(template, {"o": user, "big": "x" * 1000, **values})[:200])
    assert LEAK not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {vars(caught.value)}"
    assert not user.wiped


@pytest.mark.parametrize("template", ESCAPES[6])
def test_attack_06_no_template_leaves_the_sandbox(template):
    refused(template)


@pytest.mark.parametrize("template", ESCAPES[7])
def test_attack_07_nor_by_the_ways_that_were_found_later(template):
    refused(template)


@pytest.mark.parametrize("template", ESCAPES[8])
def test_attack_08_nor_reads_objects_nor_goes_on_for_ever(template):
    refused(template)


def test_attack_08_what_templates_are_for_still_works():
    text = "{% for each in people %}{{ loop.index }} {{ each.name|upper }}\n{% endfor %}{{ d.items()|list }}"
    made = render_template(text, {"people": [{"name": "Anna"}], "d": {"a": 1}})
    assert "1 ANNA" in made


QUESTIONS = [
    "{{ 7*7 }}",
    "{% for x in range(9) %}49{% endfor %}",
    "{{ o.api_key }}",
    "{# gone #}",
    "{{",
    "{%",
    "{{ 7*7 }}" * 50,
]


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
        {},
        {"properties": {"a": "HERE"}},
        {"items": "HERE"},
        {"anyOf": ["HERE"]},
        {"$defs": {"x": "HERE"}, "$ref": "#/$defs/x"},
    ],
    ids=str,
)
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


def nested(depth):
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


ENDLESS = {
    "a pattern": (
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"a": "a" * 28 + "!"},
    ),
    "a pattern that looks around": (
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=(a+)+$)"}}},
        {"a": "a" * 28 + "!"},
    ),
    "a doubling": ({"type": "object", "properties": {"a": doubled(20)}}, {"a": "x"}),
    "unique items": (
        {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}},
        {"a": [{"n": n} for n in range(5000)]},
    ),
    "a circle": ({"$ref": "#"}, {"a": 1}),
    "a circle of two": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"a": 1},
    ),
    "a depth": (nested(1000), {"a": 1}),
    "a width": ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, {"a": 1}),
    "a long pattern": ({"type": "object", "properties": {"a": {"type": "string", "pattern": "a" * 300}}}, {"a": "x"}),
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
