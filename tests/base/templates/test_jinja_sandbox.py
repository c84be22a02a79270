"""Attacks 6 to 9 of the design's fault list, and more of their kind: refused, and quickly."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.base.templates import jinja_sandbox
from SimpleLLMFunc.base.templates.engines import render_template
from SimpleLLMFunc.errors import TemplateError

LEAK = "sk-LEAK-0123456789abcdef"


class Secret:
    api_key = LEAK

    def __init__(self):
        self.wiped = False

    def wipe(self):
        self.wiped = True

    def __str__(self):
        return LEAK


def refused(template, match=None, **values):
    with pytest.raises(TemplateError, match=match) as caught:
        render_template(template, values)
    assert LEAK not in str(caught.value)
    return str(caught.value)


def test_the_jinja2_whose_sandbox_holds():
    assert tuple(map(int, version("jinja2").split(".")[:3])) >= (3, 1, 6)


# --- out of the data (attacks 6 and 7) -------------------------------------------------------------------

ESCAPES = Path(__file__).with_name("escapes.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("template", ESCAPES)
def test_no_template_leads_out_of_the_data(template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = {"a": "b"}
    refused(template, o=value)
    assert value == {"a": "b"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", ["{{ o.api_key }}", "{{ o.wipe() }}", "{{ o }}", "{{ [o] }}", "{{ o|string }}"])
def test_an_object_never_gets_into_a_template(template):
    secret = Secret()
    for value in (secret, [secret], {"o": secret}):
        refused(template, "no plain data", o=value)
    assert not secret.wiped


def test_what_fills_up_to_any_width_or_reaches_further_is_not_there():
    environment = jinja_sandbox._environment()
    assert set(environment.globals) == {"range"}
    assert not {"map", "attr", "format", "center", "indent", "wordwrap", "xmlattr"} & set(environment.filters)
    for value in (1, 1.5, None, b"", {1}, object()):
        assert not [name for name in dir(value) if environment.is_safe_attribute(value, name, getattr(value, name))]


def test_a_key_may_be_called_like_anything():
    values = {"d": {"__class__": "c", "format": "f", "update": "u", "pop": 1}}
    assert render_template("{{ d.__class__ }}{{ d.format }}{{ d.update }}{{ d['pop'] }}", values) == "cfu1"


# --- without end (attack 8) ------------------------------------------------------------------------------

BOMBS = [
    "{{ ('a'*10**9)|length }}", "{{ ('a'*1000000000)|length }}", "{{ (1000000000*'a')|length }}",
    "{{ [1] * 1000000000 }}", "{{ (1,) * 1000000000 }}", "{{ true * [1] }}", "{{ 10 ** 10 ** 10 }}", "{{ 2.0 ** 2 }}",
    "{{ '%1000000000d' % 1 }}", "{{ '%*d' % (1000000000, 1) }}", "{{ '{0:>1000000000}'.format(1) }}",
    "{{ 'a'|center(10**9) }}", "{{ 'a'|center(1000000000) }}", "{{ 'a'.center(1000000000) }}",
    "{{ 'a'.ljust(1000000000) }}", "{{ 'a'.rjust(1000000000) }}", "{{ 'a'.zfill(1000000000) }}",
    "{{ '\t'.expandtabs(1000000000) }}", "{{ 'a'|indent(1000000000) }}", "{{ 'a'|wordwrap(1000000000) }}",
    "{{ lipsum(n=100000) }}", "{{ range(99999) }}", "{{ range(1001) }}",
    "{{ range(0, 1000000000000000000000000000000) }}", "{{ range(0, -1000000000, -1) }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "{% for i in range(1000) %}{% for j in range(1000) %}{{ text }}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
    "{{ " + "9" * 5000 + " }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "{{ " + "-" * 5000 + "1 }}", "{{ " + "not " * 5000 + "1 }}",
    "{{ x" + "|upper" * 3000 + " }}", "{{ x" + ".x" * 5000 + " }}", "{{ " + "[" * 2000 + "]" * 2000 + " }}",
    "{% if 1 %}" * 2000 + "{% endif %}" * 2000, "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
]  # fmt: skip


@pytest.mark.parametrize("template", BOMBS, ids=lambda template: template[:60])
def test_no_expression_fills_the_memory_and_no_result_grows_without_end(template):
    # Without a limit most of these would not end before the tests do, or take all memory.
    refused(template, text="a" * 300_000, x="a")


def test_a_value_that_is_nested_very_deep_is_written_or_refused():
    # How deep the standard library writes JSON is not the same in every version of Python.
    try:
        written = render_template("{% set x = [1] %}" + "{% set x = [x] %}" * 2000 + "{{ x }}", {})
    except TemplateError:
        return
    assert written == "[" * 2001 + "1" + "]" * 2001


FRAGMENTS = [
    "{{ a }}", "{{ b.c }}", "{% for i in a %}", "{% endfor %}", "{% if b %}", "{% else %}", "{% endif %}", "{% set a = a ~ 1 %}",
    "{% set a = [a, 1] %}", "{{ a|upper }}", "{{ a|join('-') }}", "{{ a.__class__ }}", "{% macro m(x) %}", "{% endmacro %}", "{{ m(a) }}",
    "{% call m(1) %}", "{% endcall %}", "{{ loop.index }}", "{{ caller() }}", "{% raw %}", "{% endraw %}", "{# ", " #}", "text", "{{", "}}",
    "{%", "%}", "{{ a[1:] }}", "{{ a + a }}", "{{ a * 3 }}", "{{ a|tojson }}", "{% filter upper %}", "{% endfilter %}", "{% set x %}",
    "{% endset %}", "{{ x }}", "{{ range(9)|join('-') }}", "{% for j in a recursive %}", "{{ a == b }}", "\n", "- %}",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join),
    st.recursive(st.text(max_size=5) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)),
)
def test_all_that_is_put_together_renders_or_is_a_template_error(template, value):
    try:
        assert isinstance(render_template(template, {"a": value, "b": {"c": value}}), str)
    except TemplateError as error:
        assert str(error).startswith("the template ")
