"""Attacks 6 to 9 of the design's fault list, and more of their kind: refused, and quickly."""

from __future__ import annotations

import threading
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.base.templates import jinja_rules, jinja_sandbox, jinja_work
from SimpleLLMFunc.base.templates.jinja_sandbox import MAX_NODES, MAX_SOURCE
from SimpleLLMFunc.base.templates.jinja_work import MAX_WORK, TooMuch
from SimpleLLMFunc.base.templates.template import render_template
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

ESCAPES = [
    "{{ cycler.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "{{ joiner.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "{{ namespace.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "{{ lipsum.__globals__['os'].popen('touch PWNED').read() }}",
    "{{ lipsum.__globals__.os.system('touch PWNED') }}",
    "{{ dict.__base__.__subclasses__() }}",
    "{{ ('{0.__class__}'|attr('format'))(o) }}",
    "{{ ''|attr('__class__') }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ ['{0.__class__}']|map('format', o)|list }}",
    "{{ ['']|map(attribute='__class__')|list }}",
    "{{ [o]|map('attr', 'api_key')|list }}",
    "{{ '{0.__class__.__mro__}'.format(o) }}",
    "{{ '{0[a]}'.format(o) }}",
    "{{ '{a}'.format_map(o) }}",
    "{{ ''['format'] }}",
    "{{ ''['format']('{0}') }}",
    "{% set f = ''.format %}{{ f }}",
    "{% set f = ''['format'] %}{{ f('x') }}",
    "{{ '%s' % o }}",
    "{{ '%s'|format(o) }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ ''['__cla' ~ 'ss__'] }}",
    "{{ [].__class__ }}",
    "{{ {}.__class__.__bases__ }}",
    "{{ ().__class__ }}",
    "{{ (1).__class__ }}",
    "{{ (1).real }}",
    "{{ 1.5.hex() }}",
    "{{ true.__doc__ }}",
    "{{ none.__class__ }}",
    "{{ o.__class__ }}",
    "{{ o['__class__'] }}",
    "{{ o.get.__self__ }}",
    "{{ o.items.__call__() }}",
    "{{ o.keys().mapping }}",
    "{{ ''.upper.__self__ }}",
    "{{ range.__globals__ }}",
    "{{ range.__wrapped__ }}",
    "{{ range(3).__class__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ self }}",
    "{{ super() }}",
    "{{ caller.__globals__ }}",
    "{{ varargs.__class__ }}",
    "{{ undefined_thing.__class__ }}",
    "{{ x.__init__.__globals__ }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{{ config }}",
    "{{ request.application.__globals__ }}",
    "{{ environment }}",
    "{{ _ }}",
    "{{ t_1 }}",
    "{{ resolve('o') }}",
    "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m._func }}",
    "{% macro m() %}{% endmacro %}{{ m.name }}",
    "{% macro m() %}{% endmacro %}{{ m }}",
    "{% macro m() %}{{ caller.__class__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "{% for a in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for a in [1] %}{{ loop._iterator }}{% endfor %}",
    "{% for a in [1] %}{{ loop._undefined }}{% endfor %}",
    "{% for a in [1] %}{{ loop }}{% endfor %}",
    "{% for a in [1] %}{{ loop.cycle.__func__ }}{% endfor %}",
    "{% for g in [o]|groupby('a') %}{{ g._make([1, 2]) }}{% endfor %}",
    "{% for g in [o]|groupby('a') %}{{ g.__class__ }}{% endfor %}",
    "{% for g in [o]|groupby('a') %}{{ g._replace }}{% endfor %}",
    "{{ [''.upper]|tojson }}",
    "{{ [''.upper] }}",
    "{{ ''.upper }}",
    "{{ [''.upper]|join }}{{ ''.upper }}",
    "{{ ''.encode().__class__ }}",
    "{{ 'a'.translate({97: 'b'}) }}",
    "{{ ''.maketrans('a', 'b') }}",
    "{{ o.fromkeys([1]) }}",
    "{{ o.pop('a') }}",
    "{{ o.update({'a': 2}) }}",
    "{{ o.clear() }}",
    "{{ o.setdefault('b', 1) }}",
    "{{ [1].append(2) }}",
    "{{ [1].sort() }}",
    "{{ [1].copy() }}",
    "{% set o.a = 5 %}",
    "{% set o['a'] = 5 %}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% include '/etc/passwd' %}",
    "{% include ['a', 'b'] ignore missing %}",
    "{% extends 'base' %}",
    "{% if false %}{% include x %}{% endif %}",
    "{% block b %}{{ self.b() }}{% endblock %}",
    "{% block b %}{% endblock %}",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "{{ 'x'|xmlattr }}",
    "{{ o|pprint }}",
    "{{ '<a>'|striptags }}",
    "{{ 'http://a.b'|urlize }}",
    "{{ 1 is callable }}",
    "{% do o.clear() %}",
    "{% debug %}",
    "{% trans %}x{% endtrans %}",
    "{{ gettext('x') }}",
]  # fmt: skip


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


def test_what_may_be_reached_is_a_closed_list():
    assert set(jinja_rules.METHODS) == {str, list, tuple, dict, jinja_rules.LoopContext}
    assert set(jinja_sandbox._environment().globals) == {"range"}
    environment = jinja_sandbox._environment()
    for value in ("", [], (), {}):
        reachable = {name for name in dir(value) if environment.is_safe_attribute(value, name, getattr(value, name))}
        assert reachable == jinja_rules.METHODS[type(value)]
    for name in ("format", "format_map", "center", "ljust", "rjust", "zfill", "expandtabs", "encode", "translate"):
        assert name not in jinja_rules.METHODS[str]
    assert not {"map", "attr", "format", "center", "indent", "wordwrap", "xmlattr"} & set(environment.filters)


def test_a_subclass_of_a_text_is_no_text():
    class Word(str):
        __slots__ = ()

        def upper(self):
            return LEAK

    environment = jinja_sandbox._environment()
    word = Word("a")
    assert not environment.is_safe_attribute(word, "upper", word.upper)
    assert not environment.is_safe_callable(word.upper)
    assert render_template("{{ w.upper() }}", {"w": word}) == "A"


def test_a_key_may_be_called_like_anything():
    values = {"d": {"__class__": "c", "format": "f", "update": "u", "pop": 1}}
    assert render_template("{{ d.__class__ }}{{ d.format }}{{ d.update }}{{ d['pop'] }}", values) == "cfu1"


# --- without end (attack 8) ------------------------------------------------------------------------------

DOUBLED = "{% set x = [1] %}{% set y = [1] %}" + "{% set x = [x, x] %}{% set y = [y, y] %}" * 60
TUPLES = "{% set x = (1,) %}" + "{% set x = (x, x) %}" * 60
BOMBS = [
    "{{ ('a'*10**9)|length }}",
    "{{ ('a'*1000000000)|length }}",
    "{{ (1000000000*'a')|length }}",
    "{{ [1] * 1000000000 }}",
    "{{ (1,) * 1000000000 }}",
    "{{ true * [1] }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ 2.0 ** 2 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '{0:>1000000000}'.format(1) }}",
    "{{ 'a'|center(10**9) }}",
    "{{ 'a'|center(1000000000) }}",
    "{{ 'a'.center(1000000000) }}",
    "{{ 'a'.ljust(1000000000) }}",
    "{{ 'a'.rjust(1000000000) }}",
    "{{ 'a'.zfill(1000000000) }}",
    "{{ '\t'.expandtabs(1000000000) }}",
    "{{ 'a'|indent(1000000000) }}",
    "{{ 'a'|wordwrap(1000000000) }}",
    "{{ lipsum(n=100000) }}",
    "{{ range(99999) }}",
    "{{ range(1001) }}",
    "{{ range(0, 10**30) }}",
    "{{ range(0, 1000000000000000000000000000000) }}",
    "{{ range(0, -1000000000, -1) }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "{% for i in range(1000) %}{% for j in range(1000) %}{% for k in range(1000) %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for i in big %}{% for j in big %}{% endfor %}{% endfor %}",
    "{% for c in text %}{% for d in text %}{% endfor %}{% endfor %}",
    "{% for i in range(1000) if big == big2 %}{% endfor %}",
    "{% for i in range(1000) %}{% if text in text2 %}{% endif %}{% endfor %}",
    "{% for i in range(1000) %}{% if big is eq(big2) %}{% endif %}{% endfor %}",
    "{% for i in range(1000) %}{% set x = text[1:] %}{% endfor %}",
    "{% for i in range(1000) %}{% set x = big[1:] %}{% endfor %}",
    "{% for i in range(1000) %}{% set x = text.upper() %}{% endfor %}",
    "{% for i in range(1000) %}{% set x = big|sort %}{% endfor %}",
    "{% for i in range(1000) %}{% set x = big + big %}{% endfor %}",
    "{% for i in range(1000) %}" + "{% for j in range(1000) %}" + "{% set a = 1 %}" * 50 + "{% endfor %}{% endfor %}",
    "{% set q %}{% for i in range(1000) %}{{ text }}{% endfor %}{% endset %}",
    "{% set q %}{% for i in range(1000) %}" + "plain text " * 5000 + "{% endfor %}{% endset %}",
    "{% filter upper %}{% for i in range(1000) %}{{ text }}{% endfor %}{% endfilter %}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{{ f(n-1) }}{% endif %}" + "x" * 1000 + "{% endmacro %}{{ f(30) }}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) ~ f(n-1) }}{% else %}{{ text }}{% endif %}{% endmacro %}{{ f(9) }}",
    "{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
    "{% for a in [[[]]] recursive %}{{ loop([[a]]) }}{% endfor %}",
    "{% for a in range(1000) recursive %}{{ loop(range(1000)) if loop.depth < 4 }}{% endfor %}",
    "{% set x = 'ab' %}" + "{% set x = x ~ x %}" * 60 + "{{ x|length }}",
    "{% set x = 'ab' %}" + "{% set x = x + x %}" * 60 + "{{ x|length }}",
    "{% set x = 'ab' %}" + "{% set x = [x, x]|join %}" * 60 + "{{ x|length }}",
    "{% set x = 'ab' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60 + "{{ x|length }}",
    "{% set x = 'ab' %}" + "{% set x = x|replace('a', x) %}" * 60 + "{{ x|length }}",
    "{% set x = [1] %}" + "{% set x = x + x %}" * 60 + "{{ x|length }}",
    "{% set x = 10 %}" + "{% set x = x * x %}" * 60 + "{{ x }}",
    DOUBLED + "{{ x }}",
    DOUBLED + "{{ x == y }}",
    DOUBLED + "{{ x|string }}",
    DOUBLED + "{{ x|tojson }}",
    DOUBLED + "{{ x ~ '' }}",
    DOUBLED + "{{ x is eq y }}",
    DOUBLED + "{{ x in [y] }}",
    DOUBLED + "{{ [x, y]|unique|list }}",
    DOUBLED + "{{ [x, y]|max }}",
    DOUBLED + "{{ [x, y]|sort }}",
    DOUBLED + "{{ {'a': x}|dictsort(by='value') }}",
    DOUBLED + "{{ [y].index(x) }}",
    DOUBLED + "{% for a in [x, y] %}{{ loop.changed(a) }}{% endfor %}",
    TUPLES + "{{ {x: 1} }}",
    TUPLES + "{{ d[x] }}",
    TUPLES + "{{ d.get(x) }}",
    TUPLES + "{{ x in d }}",
    TUPLES + "{{ [x]|unique|list }}",
    "{% macro m() %}{% endmacro %}{% for i in range(1000) %}{{ m(*big) }}{% endfor %}",
    "{% for i in range(1000) %}{{ 1|default(*big) }}{% endfor %}",
    "{% set x = big %}" + "{% set x = [x] %}" * 90 + "{{ x|tojson(indent=8) }}",
    "{% set x = [1] %}" + "{% set x = [x] %}" * 200 + "{{ x }}",
    "{{ text.replace('a', text) }}",
    "{{ text|replace('a', text) }}",
    "{{ text.replace('', text) }}",
    "{{ text.join(text) }}",
    "{{ text|join(text) }}",
    "{{ text.join(big) }}{{ big|join(text) }}",
    "{{ big|map('string')|join(text) }}",
    "{{ text.split('') }}",
    "{{ text|list|list|list|list|list|list|list }}",
    "{{ 5|round(-1000000000) }}",
    "{{ 5|round(1000000000, 'ceil') }}",
    "{{ [1]|batch(1000000000, 'x')|list }}",
    "{{ [1]|slice(1000000000)|list }}",
    "{{ big|sum(start=[]) }}",
    "{{ [[1]]|sum(start=[]) }}",
    "{{ d|tojson(indent=1000000000) }}",
    "{{ text|int(base=16) }}",
    "{{ '9' * 5000 }}",
    "{{ " + "9" * 5000 + " }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{{ " + "-" * 5000 + "1 }}",
    "{{ " + "not " * 5000 + "1 }}",
    "{{ x" + "|upper" * 3000 + " }}",
    "{{ x" + ".x" * 5000 + " }}",
    "{{ " + "[" * 2000 + "]" * 2000 + " }}",
    "{% if 1 %}" * 2000 + "{% endif %}" * 2000,
    "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
    "{{ x }}" * MAX_NODES,
    "x" * (MAX_SOURCE + 1),
]  # fmt: skip


@pytest.mark.parametrize("template", BOMBS, ids=lambda template: template[:60])
def test_no_template_runs_or_grows_without_end(template):
    # Without a limit most of these would not end before the tests do, or take all memory.
    text = "a" * 300_000
    refused(template, text=text, text2=text[1:] + "b", big=[1] * 40_000, big2=[1] * 39_999 + [2], d={"a": 1}, x="a")


def test_the_work_is_counted_and_the_same_every_time():
    template = "{% for i in range(n) %}{% for j in range(100) %}{% endfor %}{% endfor %}"
    for _ in range(2):
        assert render_template(template, {"n": 500}) == ""
        assert "more work" in refused(template * 5, n=1000)


def test_each_rendering_has_its_own_budget():
    template = "{% for i in range(800) %}{% for j in range(100) %}{{ j }}{% endfor %}{% endfor %}"
    wanted = "".join(map(str, range(100))) * 800
    got = []
    threads = [threading.Thread(target=lambda: got.append(render_template(template, {}))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [wanted] * 4
    assert render_template(template, {}) == wanted


def test_what_is_constant_is_not_computed_when_the_template_is_compiled():
    # It would be outside of any budget.
    jinja_sandbox.compiled.cache_clear()
    ready = jinja_sandbox.compiled("{{ 'abc'|replace('a', 'x') }}{{ 'a' is eq 'a' }}{{ 'x' ~ 'y' }}")
    with pytest.raises(LookupError):
        list(ready.template.generate())
    with jinja_work.counting():
        assert "".join(ready.template.generate()) == "xbcTruexy"


def test_the_budget_counts_characters_and_what_is_shared():
    with jinja_work.counting():
        jinja_work.weigh("a" * 16 * (MAX_WORK // 2))
        with pytest.raises(TooMuch):
            jinja_work.weigh(["a" * 16 * (MAX_WORK // 2)])
    shared = [1] * 1000
    with jinja_work.counting():
        jinja_work.weigh([shared] * 900)
        with pytest.raises(TooMuch):
            jinja_work.weigh([shared] * 900)
    with jinja_work.counting(), pytest.raises(TooMuch, match="deeper"):
        deep = []
        for _ in range(101):
            deep = [deep]
        jinja_work.weigh(deep)
    with pytest.raises(LookupError):
        jinja_work.charge(1)


FRAGMENTS = [
    "{{ a }}", "{{ b.c }}", "{% for i in a %}", "{% endfor %}", "{% if b %}", "{% else %}", "{% endif %}", "{% set a = a ~ a %}",
    "{% set a = [a, a] %}", "{{ a|upper }}", "{{ a|join(a) }}", "{{ a.__class__ }}", "{% macro m(x) %}", "{% endmacro %}", "{{ m(a) }}",
    "{% call m(1) %}", "{% endcall %}", "{{ loop.index }}", "{{ caller() }}", "{% raw %}", "{% endraw %}", "{# ", " #}", "text", "{{", "}}",
    "{%", "%}", "{{ a[1:] }}", "{{ a + a }}", "{{ a * 3 }}", "{{ a|tojson }}", "{% filter upper %}", "{% endfilter %}", "{% set x %}",
    "{% endset %}", "{{ x }}", "{{ range(1000)|join(a) }}", "{% for j in range(1000) recursive %}", "{{ loop(a) }}", "{{ a == b }}", "\n", "- %}",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join),
    st.recursive(st.text(max_size=5) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)),
)
def test_whatever_is_put_together_renders_or_is_a_template_error(template, value):
    try:
        assert isinstance(render_template(template, {"a": value, "b": {"c": value}}), str)
    except TemplateError as error:
        assert str(error).startswith("the template ")
