"""Guards of functions and chats, in every view; and those that ship."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import AbortSignal, llm_chat, llm_function
from SimpleLLMFunc.errors import ConfigError, ContentBlocked, DeadlineExceeded, ResponseParseError, UsageError
from SimpleLLMFunc.guards import Block, Change, ModelRetry, ask_model, max_length, no_match
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.seen import Seen

_TEL = r"\d{3}-\d{4}"


class Note(BaseModel):
    text: str


def made(llm, guards, returns=str):
    async def answer(question: str, tone: str = "kind") -> returns:
        """Answer."""

    return llm_function(llm_interface=llm, guards=guards)(answer)


def loud(arguments):
    return Change({"question": arguments["question"].upper()})


async def shout(value):
    await asyncio.sleep(0)
    return Change(value + "!")


def fits(value, arguments):
    if value not in arguments["question"]:
        raise ModelRetry("a word of the question")


# --- before and after ---


async def test_arguments_are_changed_before_the_model_reads_them():
    llm = ScriptedLLM("yes")
    result = await made(llm, [loud, lambda arguments: Change({**arguments, "tone": "dry"})]).call("why?")
    assert "question: WHY?" in llm.requests[0][-1]["content"]
    assert "tone: dry" in llm.requests[0][-1]["content"]
    told = [("guard loud", "question"), ("guard <lambda>", "question, tone")]
    assert result.repairs == [(guard, f"changed {names} before the model was asked") for guard, names in told]


@pytest.mark.parametrize(
    "guard",
    [
        lambda arguments: arguments["tone"] != "rude", lambda arguments: Block("rude"),
        lambda arguments: ModelRetry("rude"), no_match("rude", on="arguments"),
    ],
)  # fmt: skip
async def test_arguments_are_blocked_before_the_model_is_asked(guard):
    llm = ScriptedLLM("yes")
    with pytest.raises(ContentBlocked, match=f"guard {guard.__name__}: "):
        await made(llm, [guard])("why?", tone="rude")
    assert not llm.calls


async def test_guards_of_the_value_run_in_their_order_and_the_model_reads_why():
    llm = ScriptedLLM("no", "why")
    result = await made(llm, [fits, shout, max_length(10)]).call("but why?")
    assert result.value == "why!"
    assert result.repairs == [("guard shout", "changed the value")]
    refused = ("guard fits", "a word of the question", "an answer that it does not accept")
    assert [attempt.violations for attempt in result.attempts] == [[refused], []]
    assert "a word of the question" in llm.requests[1][-1]["content"]


async def test_a_guard_that_is_never_satisfied_is_an_error_that_names_it():
    llm = ScriptedLLM(*["no"] * 3)
    with pytest.raises(ResponseParseError, match="guard fits") as failed:
        await made(llm, [fits])("why?")
    assert len(failed.value.attempts) == 3


async def test_a_blocked_value_is_told_with_its_attempt():
    seen = Seen()
    ask = made(ScriptedLLM("no"), [lambda value: False]).with_options(watching=seen)
    with pytest.raises(ContentBlocked, match="guard <lambda>: it said no") as failed:
        await ask("why?")
    assert (failed.value.attempts[0].text, failed.value.text, failed.value.finish_reason) == ("no", "no", "stop")
    assert seen.names[-2:] == ["AnswerReviewed", "RunFailed"]


async def test_a_decorated_function_is_a_guard_and_a_typed_value_stays_typed():
    @llm_function(llm_interface=ScriptedLLM("true", "false"))
    async def is_fine(text: Note) -> bool:
        """Is it fine?"""

    ask = made(ScriptedLLM('{"text": "a"}', '{"text": "b"}'), [is_fine], Note)
    assert await ask("?") == Note(text="a")
    with pytest.raises(ContentBlocked, match="guard is_fine"):
        await ask("?")


@pytest.mark.parametrize(
    ("guard", "problem"),
    [
        (lambda value: "fine", "returned a str"),
        (lambda arguments: Change({"quest": 1}), "the arguments are question, tone"),
    ],
)
async def test_what_means_nothing_is_told(guard, problem):
    with pytest.raises(UsageError, match=problem):
        await made(ScriptedLLM("x"), [guard])("?")


async def test_a_value_is_not_changed_into_a_text_of_it():
    with pytest.raises(UsageError, match="another type"):
        await made(ScriptedLLM("3"), [lambda value: Change("3")], int)("?")


@pytest.mark.parametrize(
    ("guard", "first", "partial"),
    [
        (lambda value: asyncio.sleep(9), None, "x"), (lambda arguments: asyncio.sleep(9), None, ""),
        (lambda value: asyncio.sleep(9), lambda question, tone: "y", ""),
    ],
)  # fmt: skip
async def test_the_deadline_of_the_call_covers_guards(guard, first, partial):
    with pytest.raises(DeadlineExceeded) as caught:
        await made(ScriptedLLM("x"), [guard]).with_options(deadline=0.05, first=first)("?")
    assert caught.value.partial == partial


async def test_a_chat_that_is_aborted_while_a_guard_looks_keeps_its_history():
    signal, history = AbortSignal(), [{"role": "user", "content": "hello"}]

    async def looks(arguments):
        signal.abort()
        await asyncio.sleep(9)

    @llm_chat(llm_interface=ScriptedLLM("x"), guards=[looks], abort_signal=signal)
    async def chat(history: list, question: str):
        """Talk."""

    assert [pair async for pair in chat(history, "?")] == [("", history)]


@pytest.mark.parametrize(
    "guards", ["max", 3, [3], [lambda a, b: 0], [lambda: 0], [lambda valeu, b: 0], [lambda value, b: 0]]
)
def test_what_is_no_guard_is_refused_at_decoration(guards):
    with pytest.raises(ConfigError, match="guard"):
        made(ScriptedLLM("x"), guards)


async def test_the_caller_s_own_error_in_a_guard_is_the_caller_s():
    def fails(value):
        raise PermissionError(value)

    with pytest.raises(PermissionError):
        await made(ScriptedLLM("x"), [fails])("?")


# --- the other views ---


async def test_a_stream_gives_nothing_out_before_the_guards_have_seen_it():
    words = made(ScriptedLLM("call 555-1234 now"), [no_match(_TEL, replace_by="[n]")])
    assert [piece async for piece in words.stream("?")] == ["call [n] now"]
    note = made(ScriptedLLM('{"text": "555-1234"}'), [no_match(_TEL)], Note)
    with pytest.raises(ContentBlocked):
        assert [piece async for piece in note.stream("?")] == []


async def test_the_items_of_an_iterator_wait_for_the_guards():
    def at_most_two(value):
        return Change(value[:2])

    assert await made(ScriptedLLM("[1, 2, 3]"), [at_most_two], list[int])("?") == [1, 2]
    counted = made(ScriptedLLM("[1, 2, 3]"), [at_most_two], AsyncIterator[int])
    assert [number async for number in counted("?")] == [1, 2]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_shows_and_remembers_what_the_guards_let_pass(stream):
    llm = ScriptedLLM("no", "call 555-1234")
    guards = [max_length(100), no_match(_TEL, replace_by="[n]"), lambda value: value != "no" or ModelRetry("more")]

    @llm_chat(llm_interface=llm, guards=guards, stream=stream)
    async def chat(history: list, question: str):
        """Talk."""

    pairs = [pair async for pair in chat([], "hi")]
    assert [text for text, _ in pairs] == ["call [n]", ""]
    assert [message["content"] for message in pairs[-1][1]][1:] == ["question: hi", "call [n]"]
    assert "more" in llm.requests[1][-1]["content"]


def test_raw_replies_and_guards_of_the_value_exclude_each_other():
    with pytest.raises(ConfigError, match="return_mode"):
        llm_chat(guards=[shout], return_mode="raw")(shout)


def test_a_row_of_a_map_is_guarded_and_a_batch_file_refuses_guards(tmp_path):
    def answer(question: str) -> str:
        """Answer."""

    ask = llm_function(llm_interface=ScriptedLLM("a", "bb"), guards=[max_length(1)])(answer)
    report = ask.with_options(max_reasks=0).map(["x", "y"], concurrency=1)
    assert [type(row.error).__name__ for row in report.rows] == ["NoneType", "ResponseParseError"]
    with pytest.raises(UsageError, match="under guards"):
        ask.to_batch_file(["x"], tmp_path / "batch.jsonl")


# --- those that ship ---


@pytest.mark.parametrize(
    ("guard", "value", "expected"),
    [
        (max_length(3), "abc", None), (max_length(3), [1, 2], ModelRetry), (no_match(_TEL), "555-1234", Block),
        (no_match(_TEL), Note(text="555-1234"), Block), (no_match("^5.*\n"), Note(text="555\n"), Block),
        (no_match(_TEL, replace_by="x"), {"a": ["555-1234", 5]}, Change({"a": ["x", 5]})),
        (no_match(_TEL, replace_by="x"), Note(text="555-1234"), Block),
        (no_match(_TEL, replace_by="x"), {"555-1234": 1}, Block),
        (no_match(secrets=True), "the key is sk-abcdefghijklmnopqrstuvwx", Block),
        (no_match(secrets=True), "no secret at all", None),
        (no_match("^[ap]$", replace_by="x", on="arguments"), {"p": "a", "q": "b"}, Change({"p": "x"})),
    ],
)  # fmt: skip
def test_length_and_expressions(guard, value, expected):
    said = guard(value)
    assert said == expected if not isinstance(expected, type) else isinstance(said, expected)


async def test_a_question_to_a_model():
    llm = ScriptedLLM("true", "false", "true", *["perhaps"] * 3)
    ask = made(ScriptedLLM(*["fine"] * 4), [ask_model("Is it polite?", llm_interface=llm)])
    assert await ask("?") == "fine"
    with pytest.raises(ContentBlocked, match=r"guard ask_model: Is it polite\? No"):
        await ask("?")
    assert "Is it polite?" in llm.requests[0][0]["content"]
    with pytest.raises(ContentBlocked, match="Yes"):
        await ask.with_options(guards=[ask_model("Is it rude?", llm_interface=llm, wanted=False)])("?")
    with pytest.raises(ContentBlocked, match="guard ask_model: it came to no verdict"):
        await ask("?")


@pytest.mark.parametrize(
    "build", [no_match, lambda: no_match("["), lambda: max_length(3, on="both"), lambda: max_length("3")]
)
def test_a_guard_that_cannot_be_is_refused(build):
    with pytest.raises(ConfigError):
        build()
