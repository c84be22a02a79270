"""Attack 1: a template only fills in. No attribute, no item, no conversion, no width, and no second look at a value."""

from typing import Any

import pytest

from SimpleLLMFunc import llm_chat, llm_function
from SimpleLLMFunc.errors import TemplateError
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_function_of

LEAK = "sk-LEAK-0123456789abcdef"


class User:
    """What an application has at hand, and would never show a model."""

    api_key = LEAK
    items = (LEAK,)

    def __getitem__(self, key):
        return LEAK

    def __format__(self, specification):
        return f"{LEAK} {specification}"

    def __repr__(self):
        return LEAK

    def __str__(self):
        return "Anna"


PAYLOADS = [
    "{u.api_key}", "{u.__init__.__globals__}", "{u.__class__.__mro__[1].__subclasses__}", "{u[0]}", "{u[api_key]}",
    "{u.items[0]}", "{x:>1000000000}", "{x!r}", "{x!s:>9}", "{u!r}", "{u:secret}", "{x:{u.api_key}}", "{0}", "{}",
    "{0.api_key}", "{ u }", "{u }", "{{u}}", "{u", "u}", "%(u)s", "%s", "${u.api_key}", "{{ u.api_key }}",
    "{% for c in u.__class__.__mro__ %}{{ c }}{% endfor %}",
]  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_attack_01_a_docstring_is_text_but_for_its_fields(payload):
    llm = ScriptedLLM("ok", "ok")
    say = _with_docstring(llm_function, llm, f"Answer {{x}}: {payload}")
    chat = _with_docstring(llm_chat, llm, f"Answer {{x}}: {payload}")
    params = {"u": User(), "x": "here"}
    await say("q", _template_params=params)
    _ = [each async for each in chat("q", _template_params=params)]
    for request in llm.requests:
        text = str(request[0]["content"])
        assert f"Answer here: {payload}" in text
        assert LEAK not in str(request)
        assert len(text) < 5000  # nothing was padded


def _with_docstring(decorator, llm, docstring):
    async def say(text: str) -> Any:
        raise NotImplementedError

    say.__doc__ = docstring
    return decorator(llm)(say)


@pytest.mark.parametrize("payload", [each for each in PAYLOADS if "{x" in each or "{u" in each or "{0" in each])
@pytest.mark.parametrize("which", ["system_prompt_template", "user_prompt_template"])
async def test_attack_01_so_is_a_prompt_template(payload, which):
    llm = ScriptedLLM("ok")
    field = "{function_description}" if which == "system_prompt_template" else "{parameters}"

    @llm_function(llm, **{which: f"{payload} {field}"})
    async def say(u: User, x: str) -> str:
        """Answer."""

    await say(User(), "here")
    (request,) = llm.requests
    assert any(str(message["content"]).startswith(payload) for message in request)
    assert LEAK not in str(request)


@pytest.mark.parametrize("which", ["system_prompt_template", "user_prompt_template"])
@pytest.mark.parametrize("field", ["u", "api_key", "self", "__class__", "llm"])
async def test_attack_01_a_field_that_cannot_be_filled_stops_before_the_request(which, field):
    llm = ScriptedLLM("never")

    say = async_function_of(llm, **{which: f"Hello {{{field}}}"})
    with pytest.raises(TemplateError) as caught:
        await say("x")
    assert caught.value.field == field
    assert llm.calls == []


async def test_attack_01_a_value_is_never_looked_at_again():
    llm = ScriptedLLM("ok", repeat=True)

    @llm_function(llm, system_prompt_template="{function_description}", user_prompt_template="{parameters}")
    async def say(text: str) -> str:
        """Answer {a} and {b}."""

    values = {"a": "{b} {text} {parameters} {function_description}", "b": "{a} {u.api_key}"}
    await say("{a} {parameters} {text} {u.api_key} {{ 7*7 }}", _template_params=values)
    (request,) = llm.requests
    assert request[0]["content"] == ("Answer {b} {text} {parameters} {function_description} and {a} {u.api_key}.")
    assert "{a} {parameters} {text} {u.api_key} {{ 7*7 }}" in request[1]["content"]


async def test_attack_01_what_comes_later_is_checked_as_well():
    """The templates of 2026 were checked where they were made, and not where they were filled."""
    llm = ScriptedLLM("ok", repeat=True)

    say = async_function_of(llm)
    later = say.with_options(system_prompt_template="{function_description} {u.api_key}", template_params={"u": User()})
    await later("x")
    assert "{u.api_key}" in llm.requests[0][0]["content"]
    with pytest.raises(TemplateError):
        await say.with_options(user_prompt_template="{u}")("x")
    assert LEAK not in str(llm.requests)


async def test_attack_09_what_a_user_writes_is_no_template():
    """Through a decorated function; the Calls' own templates have theirs."""
    llm = ScriptedLLM("ok", repeat=True)
    text = "{{ 7*7 }} {7*7} {% if 1 %}49{% endif %} ${7*7} #{7*7}".replace("49", "yes")

    say = async_function_of(llm)
    chat = _with_docstring(llm_chat, llm, "Talk.")
    await say(text)
    _ = [each async for each in chat(text)]
    for request in llm.requests:
        assert text in str(request[-1]["content"])
        assert "49" not in str(request)
