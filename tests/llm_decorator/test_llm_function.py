"""`@llm_function`: kinds of functions, views, modes, re-asking, errors."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Literal, TypeVar

import openai
import pytest
from pydantic import AfterValidator, BaseModel

from SimpleLLMFunc import (
    ConfigError,
    FallbackLLM,
    ModelRetry,
    OpenAICompatible,
    OutputTruncated,
    ResponseParseError,
    Result,
    SignatureError,
    TemplateError,
    ToolDefinitionError,
    UsageError,
    fill,
    llm_chat,
    llm_function,
    use_llm,
)
from SimpleLLMFunc.base.events import ReplyDelta, RunFinished, RunStarted
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.llm_decorator.steps.common.options import CHAT_ONLY, FUNCTION_ONLY, Options
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import NATIVE, async_decorated, decorated
from tests.support.server import LoopbackServer

ANY_SERVER = PROFILES["openai-compatible"]
T = TypeVar("T")


class Grade(BaseModel):
    score: int
    why: str


GOOD = '{"score": 4, "why": "clear"}'


def grader(*replies, **options):
    llm = ScriptedLLM(*replies, profile=options.pop("profile", None))

    @llm_function(llm_interface=llm, **options)
    def grade(essay: str, *, strict: bool = False) -> Grade:
        """Grade the essay for a {audience}."""

    return grade, llm


# --- kinds of functions ---


async def test_a_def_returns_the_value_inside_a_running_loop_too():
    grade, llm = grader(GOOD)
    assert grade("On rain", strict=True) == Grade(score=4, why="clear")
    assert "On rain" in llm.requests[0][-1]["content"]
    assert "strict" in llm.requests[0][-1]["content"]


async def test_an_async_def_is_awaited_and_is_a_coroutine_function():
    @llm_function(ScriptedLLM(GOOD))
    async def grade(essay: str) -> Grade:
        """Grade."""
        return fill()

    assert inspect.iscoroutinefunction(grade)
    assert asyncio.iscoroutinefunction(grade)
    assert not inspect.iscoroutinefunction(async_decorated(AsyncIterator[int]))
    assert await grade("x") == Grade(score=4, why="clear")


class Teacher:
    name = "Ada"
    llm = ScriptedLLM('{"score": 1, "why": "x"}', repeat=True)

    @llm_function(llm)
    def method(self, essay: str) -> Grade:
        """Grade."""

    @llm_function(llm)
    async def amethod(self, essay: str) -> Grade:
        """Grade."""

    @classmethod
    @llm_function(llm)
    def outer_class(cls, essay: str) -> Grade:
        """Grade."""

    @llm_function(llm)
    @classmethod
    def inner_class(cls, essay: str) -> Grade:
        """Grade."""

    @staticmethod
    @llm_function(llm)
    def outer_static(essay: str) -> Grade:
        """Grade."""

    @llm_function(llm)
    @staticmethod
    def inner_static(essay: str) -> Grade:
        """Grade."""


@pytest.mark.parametrize("name", ["method", "outer_class", "inner_class", "outer_static", "inner_static"])
def test_methods_of_every_kind_leave_the_instance_out(name):
    for bound in (getattr(Teacher(), name), getattr(Teacher, name) if name != "method" else getattr(Teacher(), name)):
        assert bound("On rain").score == 1
        assert bound.call("On rain").value.score == 1
        assert list(inspect.signature(bound).parameters) == ["essay"]
        prompt = str(Teacher.llm.requests[-1])
        assert "self" not in prompt
        assert "cls" not in prompt


def test_an_argument_of_a_static_method_may_be_called_cls():
    llm = ScriptedLLM("a bird", repeat=True)

    class Animals:
        @staticmethod
        @llm_function(llm)
        def outer(cls: str) -> str:  # noqa: PLW0211
            """Describe."""

        @llm_function(llm)
        @staticmethod
        def inner(cls: str) -> str:  # noqa: PLW0211
            """Describe."""

    for describe in (Animals.outer, Animals.inner, Animals().outer):
        assert describe("Aves") == "a bird"
        assert "cls: Aves" in str(llm.requests[-1])


def test_a_method_called_through_the_class():
    assert Teacher.method(Teacher(), "On rain").score == 1
    assert "object at" not in str(Teacher.llm.requests[-1])


@pytest.mark.parametrize("reply", ["whatever", ""])
def test_none_sends_the_request_and_ignores_the_answer(reply):
    llm = ScriptedLLM(reply)

    assert decorated(None, llm)("x") is None
    assert len(llm.calls) == 1


def test_a_type_of_the_scope_may_be_defined_after_the_function():
    class Local(BaseModel):
        n: int

    @llm_function(ScriptedLLM('{"n": 1}', '{"m": 1}'))
    def read(text: str) -> Local | Later:
        """Count."""

    class Later(BaseModel):
        m: int

    assert (read("x"), read("x")) == (Local(n=1), Later(m=1))


def test_a_method_that_returns_its_own_class():
    class Node(BaseModel):
        n: int

        @staticmethod
        @llm_function(ScriptedLLM('{"n": 1}'))
        def make(text: str) -> Node:
            """Make."""

    assert Node.make("x") == Node(n=1)


def test_the_body_is_never_run_and_fill_says_so_if_it_is():
    with pytest.raises(UsageError, match="llm_function"):
        fill()


# --- views ---


def test_call_gives_everything_known():
    grade, llm = grader(GOOD)
    result = grade.call("On rain")
    assert isinstance(result, Result)
    assert result.value == Grade(score=4, why="clear")
    assert result.text == GOOD
    assert [a.text for a in result.attempts] == [GOOD]
    assert result.repairs == []
    assert result.output_mode == "prompt"
    assert result.output_mode_reason
    assert result.messages == [*llm.requests[0], {"role": "assistant", "content": GOOD}]
    assert result.usage.input_tokens > 0
    assert result.usage == result.attempts[0].usage
    assert result.cost is None
    assert 0 <= result.attempts[0].seconds <= result.seconds < time.monotonic()
    assert result.trace_id.startswith("grade_")
    assert result.finish_reason == "stop"
    assert result.cached is False
    assert result.tool_calls == []


def test_stream_of_text_yields_each_piece():
    say = decorated(str, ScriptedLLM("One two three", chunk_size=4))
    assert list(say.stream("x")) == ["One ", "two ", "thre", "e"]


async def test_async_stream_and_events():
    say = async_decorated(str, ScriptedLLM("One two", "One two", chunk_size=4))
    assert [piece async for piece in say.stream("x")] == ["One ", "two"]
    events = [event async for event in say.events("x")]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert "".join(e.text for e in events if isinstance(e, ReplyDelta)) == "One two"


def test_preview_is_the_request_that_is_sent():
    grade, llm = grader(GOOD, temperature=0.2, profile=NATIVE)
    preview = grade.preview("On rain", _template_params={"audience": "teacher"})
    assert llm.calls == []
    grade("On rain", _template_params={"audience": "teacher"})
    sent = llm.calls[0]
    assert preview.messages == sent.messages
    assert preview.response_format == sent.response_format
    assert preview.response_format["json_schema"]["strict"] is True
    assert preview.params == sent.params == {"temperature": 0.2}
    assert preview.tools is None
    assert preview.output_mode == "native"
    assert preview.input_tokens > 0
    assert preview.body["messages"] == sent.messages
    assert "teacher" in preview.as_curl()
    assert "OPENAI_API_KEY" in preview.as_curl()


def test_with_options_changes_a_copy():
    grade, llm = grader(GOOD, GOOD, temperature=0.2)
    grade.with_options(template_params={"audience": "judge"}, temperature=1, seed=7)("x")
    grade("x")
    assert llm.calls[0].params == {"temperature": 1, "seed": 7}
    assert llm.calls[1].params == {"temperature": 0.2}
    assert "for a judge" in llm.requests[0][0]["content"]
    assert "{audience}" in llm.requests[1][0]["content"]
    with pytest.raises(ConfigError, match="max_reasks"):
        grade.with_options(max_reasks=-1)


# --- modes and re-asking ---


def test_each_request_shows_the_latest_bad_answer_only():
    grade, llm = grader(*["{" + "x" * 10_000] * 5, max_reasks=4)
    with pytest.raises(ResponseParseError) as caught:
        grade("x")
    assert len(llm.calls) == 5
    assert [len(messages) for messages in llm.requests] == [2, 4, 4, 4, 4]
    assert len(llm.requests[-1][2]["content"]) == 4000
    assert len(caught.value.attempts) == 5
    assert caught.value.violations
    assert caught.value.func_name == "grade"
    assert caught.value.trace_id
    assert caught.value.usage.input_tokens > 0
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("empty", ["", "  \n", "<think>Hm.</think>\n", {"role": "assistant", "content": None}])
def test_an_empty_answer_is_asked_again_without_a_word(empty):
    grade, llm = grader(empty, GOOD)
    assert grade("x").score == 4
    assert llm.requests[0] == llm.requests[1]


def test_a_cut_answer_is_never_a_value_but_may_be_a_text():
    cut = {"role": "assistant", "content": "[1, 2]", "finish_reason": "length"}

    numbers = decorated(list[int], ScriptedLLM(cut))
    say = decorated(str, ScriptedLLM(cut))
    with pytest.raises(OutputTruncated) as caught:
        numbers("x")
    assert caught.value.partial == "[1, 2]"
    assert len(caught.value.attempts) == 1
    result = say.call("x")
    assert result.value == "[1, 2]"
    assert result.finish_reason == "length"


# --- wrong input ---


def test_a_return_type_without_a_schema():
    with pytest.raises(SignatureError, match="Thread"):

        @llm_function
        def bad(text: str) -> threading.Thread:
            """Bad."""


def test_an_unknown_template_field():
    grade, llm = grader(GOOD, system_prompt_template="{function_description} {colour}")
    with pytest.raises(TemplateError, match="colour"):
        grade("x")
    assert llm.calls == []


def test_a_tool_without_usable_signature():
    def unclear(*args):
        """Do."""

    with pytest.raises(ToolDefinitionError, match="unclear"):
        grader(toolkit=[unclear])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_tool_calls": -1}, "max_tool_calls"), ({"output_mode": "xml"}, "output_mode"), ({"repair": "magic"}, "repair"),
        ({"deadline": 0}, "deadline"), ({"fallback_reserve": -1}, "fallback_reserve"), ({"messages": []}, "messages"),
        ({"fallback_reserve": True}, "fallback_reserve"), ({"max_result_chars": True}, "max_result_chars"),
        ({"toolkit": "search"}, "toolkit"), ({"on_tool_error": "ignore"}, "on_tool_error"), ({"watching": [print, 3]}, "watching"),
        ({"system_prompt_template": 3}, "system_prompt_template"), ({"toolkit_confirm": True}, "toolkit_confirm"),
        ({"abort_signal": threading.Event()}, "abort_signal must be an AbortSignal or an asyncio.Event"),
    ],
)  # fmt: skip
def test_an_argument_that_cannot_be(options, named):
    with pytest.raises(ConfigError, match=named):
        llm_function(**options)


def test_what_a_call_takes_beside_the_arguments_is_checked_as_the_options_are():
    function = decorated(int, ScriptedLLM("1"))
    for wrong in ({"_template_params": ["role"]}, {"_abort_signal": 5}):
        with pytest.raises(ConfigError, match="must be"):
            function("x", **wrong)
    with pytest.raises(ConfigError, match="template_params must be a mapping"):
        function.with_options(template_params="role")


def test_a_tool_with_the_name_of_the_one_that_takes_the_answer_is_refused_in_its_mode():
    def answer(n: int) -> int:
        """Look it up."""
        raise NotImplementedError

    llm = ScriptedLLM(tool_calls(("answer", {"n": 1})))
    function = decorated(int, llm, toolkit=[answer])
    with pytest.raises(ToolDefinitionError, match="'answer': in output mode 'tool'"):
        function.with_options(output_mode="tool")("x")
    assert [tool["function"]["name"] for tool in function.preview("x").tools] == ["answer"]
    assert llm.requests == []


def test_the_class_of_a_model_is_named_as_what_was_given():
    with pytest.raises(ConfigError, match=r"not <class .*ScriptedLLM"):
        llm_function(ScriptedLLM)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"toolkits": []}, "no option toolkits. Did you mean toolkit?"), ({"max_reask": 1}, "Did you mean max_reasks?"),
        ({"llm": ScriptedLLM("x")}, "no option llm. Say which model is asked as llm_interface="),
        ({"prompt": "x"}, "no option prompt. Write it as the docstring"), ({"tools": [print]}, r"toolkit=\[\.\.\.\]"),
        ({"deps": 1}, "no option deps. Give it as tool_context="), ({"message_history": []}, "A chat takes its history"),
        ({"response_model": Grade}, "no option response_model. The return annotation says"), ({"retries": 1}, "max_reasks="),
    ],
)  # fmt: skip
def test_an_argument_under_another_name_is_told_which_one_is_meant(options, said):
    with pytest.raises(ConfigError, match=said):
        llm_function(**options)
    with pytest.raises(ConfigError, match=said):
        grader(GOOD)[0].with_options(**options)


is_polite = decorated(bool, ScriptedLLM(lambda asked: str("Now" not in asked.text), repeat=True))


def looked_at(text: str) -> str:
    if not is_polite(text):
        raise ModelRetry("ask for it nicely")
    return text


class Polite(BaseModel):
    text: Annotated[str, AfterValidator(looked_at)]


def note(said: Polite) -> str:
    """Note it."""
    return said.text


def test_a_validator_may_ask_a_model():
    please = ('{"text": "Please"}', '{"text": "Please"}', '[{"text": "Please"}]')
    llm = ScriptedLLM('{"text": "Now"}', *please, chunk_size=5)
    reply = decorated(Polite, llm)
    values = [reply("x"), *list(reply.stream("x"))[-1:], *decorated(Iterator[Polite], llm)("x")]
    assert values == [Polite(text="Please")] * 3
    assert "got 'Now': ask for it nicely" in llm.requests[1][-1]["content"]
    noting = ScriptedLLM(tool_calls(("note", {"said": {"text": "Thanks"}})), "Noted.")
    assert decorated(str, noting, toolkit=[note]).call("x").messages[-2]["content"] == "Thanks"


@pytest.mark.parametrize("through_client", [False, True])
async def test_extra_body_stands_at_the_top_of_the_body_as_it_was_given(through_client):
    extra = {"enable_thinking": False, "nothing": None, "max_tokens": 3, "own": {"a": [1, None]}}
    async with LoopbackServer() as server:
        client = openai.AsyncOpenAI(api_key="sk-test-12345678", base_url=server.base_url)
        always = {"extra_body": {"service": "a", "own": 1}}
        options = {"client": client} if through_client else {"base_url": server.base_url}
        llm = OpenAICompatible("m", profile="openai", api_params=always, **options)
        say = async_decorated(str, FallbackLLM(llm), temperature=0, extra_body=extra)
        await say("x")
        await client.close()
    body = server.requests[0].body
    assert body == say.preview("x").body
    assert {name: body[name] for name in (*extra, "service", "temperature")} == {
        **extra, "service": "a", "temperature": 0,
    }  # fmt: skip
    assert "extra_body" not in body


def test_a_model_of_ones_own_gets_extra_body_as_parameters():
    class Own(ScriptedLLM):
        pass

    named = decorated(str, top_k=3, extra_body={"own": 1})
    for wrapped in (lambda llm: llm, FallbackLLM):
        llm = Own("a")
        with use_llm(wrapped(llm)):
            named("x")
        assert llm.calls[0].params == {"top_k": 3, "own": 1}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"temprature": 0}, "Did you mean temperature?"), ({"foo": 1}, "extra_body="), ({"model": "x"}, "llm_interface="),
        ({"timeout": 3}, "deadline="), ({"max_retries": 3}, "OpenAICompatible(..., max_retries=3)"),
        ({"system_prompt": "x"}, "docstring"), ({"extra_headers": {}}, "api_params="),
        ({"extra_body": {"tools": []}}, "tools in extra_body"),
    ],
)  # fmt: skip
def test_an_unknown_option_is_an_error_at_decoration(option, said):
    """Also of chats, and for a double as for a service."""
    grade, llm = grader(GOOD)
    talk = llm_chat(llm)(chatting)
    for decorate in (llm_function, llm_chat, grade.with_options, talk.with_options):
        with pytest.raises(ConfigError, match=re.escape(said)):
            decorate(**option)
    assert llm.calls == []


def chatting(history: list, message: str) -> Iterator[tuple[str, list]]:
    """Talk."""


def test_options_of_the_other_decorator_are_told_as_that():
    grade, llm = grader(GOOD)
    talk = llm_chat(llm)(chatting)
    for decorate in (llm_function, grade.with_options):
        with pytest.raises(ConfigError, match=re.escape("Call .stream(...)")):
            decorate(stream=True)
        with pytest.raises(ConfigError, match="of @llm_chat, not of @llm_function"):
            decorate(compact=list)
    for decorate in (llm_chat, talk.with_options):
        with pytest.raises(ConfigError, match="of @llm_function, not of @llm_chat"):
            decorate(votes=3)


def test_the_options_are_the_parameters_of_the_decorators():
    """What `with_options` takes is what the decorator does, and what is for one version of the function."""
    known = {each.name for each in dataclasses.fields(Options)}
    for decorator, others in ((llm_function, CHAT_ONLY), (llm_chat, FUNCTION_ONLY)):
        added = {"template_params", "improvement"} - others
        assert set(inspect.signature(decorator).parameters) | added == known - others


@pytest.mark.parametrize(
    ("decorate", "thing"),
    [
        *(
            (decorate, kind)
            for decorate in (llm_function, llm_function(), llm_chat, llm_chat())
            for kind in (Grade, int)
        ),
        *((llm_function(), thing) for thing in (3, functools.partial(max, 1))),
    ],
)
def test_something_that_is_no_function(decorate, thing):
    with pytest.raises(SignatureError, match="is not a function"):
        decorate(thing)


def test_an_async_def_does_not_return_a_plain_iterator():
    with pytest.raises(SignatureError, match=r"returns AsyncIterator\[...\]"):
        async_decorated(Iterator[int])


def test_wrong_arguments_are_a_type_error_before_any_request():
    grade, llm = grader(GOOD)
    for args, kwargs in (((), {}), (("x", "y"), {}), (("x",), {"unknown": 1})):
        with pytest.raises(TypeError, match=r"grade\(\)") as caught:
            grade(*args, **kwargs)
        assert isinstance(caught.value, SignatureError)
    with pytest.raises(SignatureError, match="required argument: 'essay', and there is no 'esay'; the signature"):
        grade(esay="x")
    assert llm.calls == []


def test_without_a_docstring_the_name_says_what_to_do():
    def capital_of(country: str) -> str:
        raise NotImplementedError

    with pytest.warns(UserWarning, match="no docstring"):
        capital_of = llm_function(ScriptedLLM("Bern"))(capital_of)
    assert "Function:\ncapital_of\n" in capital_of.preview("Switzerland").messages[0]["content"]


@pytest.mark.parametrize("view", ["", ".call", ".map"])
def test_a_missing_await_is_told_in_the_words_of_its_author(view):
    @llm_function(ScriptedLLM("x"))
    async def summarise(text: str) -> str:
        """Sum up."""

    name = r"<locals>\.summarise" + view.replace(".", r"\.")
    forgotten = (getattr(summarise, view[1:]) if view else summarise)(["a"] if view == ".map" else "a")
    with pytest.warns(RuntimeWarning, match=f"coroutine '.*{name}' was never awaited"):
        del forgotten


# --- models, context, concurrency ---


def test_without_any_model_the_error_names_the_way_out():
    @llm_function
    def lonely(text: str) -> str:
        """Speak."""

    with pytest.raises(ConfigError, match="SIMPLELLMFUNC_MODEL"):
        lonely("x")


def test_threads_share_a_function():
    grade, _ = grader(*[GOOD] * 20)
    found = []
    threads = [threading.Thread(target=lambda: found.append(grade("x").score)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [4] * 20


async def test_a_hundred_labels_do_not_hold_up_the_event_loop():
    # The guard of the suite watches: a pattern for each label took more than a second.
    kinds = Literal[tuple(f"kind_{number} of a hundred" for number in range(100))]

    sort = async_decorated(kinds, ScriptedLLM("None that I can tell apart."), max_reasks=0, output_mode="text")
    with pytest.raises(ResponseParseError):
        await sort("?")
