"""`examples=`: checked at decoration, shown as messages in the form of the output mode, chosen by similarity."""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, EmailStr, Field

from SimpleLLMFunc import BadRequest, ConfigError, ImgUrl, SignatureError, UsageError, llm_function
from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.function.answers import as_answer
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import NATIVE, decorated
from tests.support.golden import golden


class Mood(Enum):
    GLAD = "glad"
    SAD = "sad"


class Bill(BaseModel):
    total: Decimal
    day: dt.date
    mood: Mood = Mood.GLAD


BILL = Bill(total=Decimal("12.50"), day=dt.date(2024, 5, 31), mood=Mood.SAD)
PAIRS = [(("3 pears, 12.50",), BILL), ({"text": "nothing", "strict": True}, {"total": 0, "day": "2024-01-02"})]


def biller(llm, **options):
    options.setdefault("examples", PAIRS)

    @llm_function(llm, **options)
    def bill(text: str, strict: bool = False) -> Bill:
        """Read the bill."""

    return bill


def shown(function, *args, **kwargs):
    return function.preview(*args, **kwargs).messages


def written(messages):
    lines = []
    for message in messages:
        calls = [f"{call['id']}: {call['function']}" for call in message.get("tool_calls", ())]
        lines.append("\n".join([f"[{message['role']}]", *(calls or [str(message["content"])])]))
    return "\n\n".join(lines)


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_golden_messages(mode):
    golden(f"examples_{mode}.txt", written(shown(biller(ScriptedLLM(profile=NATIVE), output_mode=mode), "1 plum, 3")))


def test_each_shown_answer_is_one_that_would_be_taken():
    for mode in ("native", "tool", "prompt"):
        function = biller(ScriptedLLM(profile=NATIVE), output_mode=mode)
        answers = [message for message in shown(function, "x") if message["role"] == "assistant"]
        text = answers[0]["tool_calls"][0]["function"]["arguments"] if mode == "tool" else answers[0]["content"]
        assert function._pipeline.definition.output.parse(text, "off", mode=mode).value == BILL
        assert json.loads(text)["total"] == 12.5  # a number, as the schema wants it


def test_a_set_in_an_answer_has_one_order():
    assert as_answer(compile_output(dict[str, set[str]]), {"x": set("dcba")}) == {"x": ["a", "b", "c", "d"]}


def test_a_refused_mode_is_asked_again_with_examples_of_the_next_and_nothing_lost():
    refusal = BadRequest("m", status=400, body="response_format is not supported")
    llm = ScriptedLLM(refusal, "no", tool_calls(("answer", {"total": 7, "day": "2024-01-02"})), profile=NATIVE)
    assert biller(llm)("plum").total == 7
    native, tool_mode, reasked = llm.requests
    assert [m["role"] for m in native] == ["system", *["user", "assistant"] * 2, "user"]
    assert [m["role"] for m in tool_mode] == ["system", *["user", "assistant", "tool"] * 2, "user"]
    assert [m["role"] for m in reasked] == [*[m["role"] for m in tool_mode], "assistant", "user"]


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (((5,), BILL), "examples[1]: argument 'text' does not fit"),
        ((("a", True, 3), BILL), "the arguments of examples[1]"),
        (({"text": "a", "strict": "no"}, BILL), "argument 'strict'"),
        (("a", {"total": 1}), "examples[1]: the value does not fit: day"),
        (("a", {"total": "much", "day": "2024-01-02"}), "total"), (("a", 5), "the value does not fit"),
        ("ab", "An example is a pair"), (("a", BILL, 3), "An example is a pair"),
    ],
)  # fmt: skip
def test_a_wrong_example_is_named_at_decoration(pair, said):
    with pytest.raises(SignatureError) as caught:
        biller(ScriptedLLM(), examples=[PAIRS[0], pair])
    assert said in str(caught.value)
    assert "bill" in str(caught.value)


def test_none_and_no_list_are_refused():
    with pytest.raises(SignatureError, match="returns None"):

        @llm_function(ScriptedLLM(), examples=[("a", None)])
        def note(text: str) -> None:
            """Note."""

    with pytest.raises(UsageError, match="list of"):
        biller(ScriptedLLM(), examples={"a": BILL})
    with pytest.raises(ConfigError, match="max_examples"):
        biller(ScriptedLLM(), max_examples=-1)


def test_a_path_is_jsonl_with_types_read_from_json(tmp_path):
    path = tmp_path / "shots.jsonl"
    line = {"args": {"text": "三个梨"}, "value": {"total": 3, "day": "2024-01-02", "mood": "glad"}}
    other = {"args": ["a", True], "expected": {"total": 4, "day": "2024-01-02"}}
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n\n" + json.dumps(other) + "\n", encoding="utf-8")
    messages = shown(biller(ScriptedLLM(), examples=path), "x")
    assert "三个梨" in messages[1]["content"]
    assert "strict: True" in messages[3]["content"]
    assert json.loads(messages[2]["content"])["day"] == "2024-01-02"
    assert shown(biller(ScriptedLLM(), examples=str(path)), "x") == messages


@pytest.mark.parametrize(
    ("line", "said", "kind"),
    [
        ("{", "is not JSON", UsageError),
        ("[1]", "", UsageError),
        ('{"value": 1}', 'has no "args"', UsageError),
        ('{"args": "a"}', 'has no "value"', UsageError),
        ('{"args": 5, "value": {"total": 3, "day": "2024-01-02"}}', "jsonl: argument 'text'", SignatureError),
        ('{"args": "a", "value": {"total": 3, "day": "2024-13-02"}}', "jsonl: the value", SignatureError),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said, kind):
    path = tmp_path / "shots.jsonl"
    path.write_text('{"args": "a", "value": {"total": 3, "day": "2024-01-02"}}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(kind) as caught:
        biller(ScriptedLLM(), examples=path)
    assert "line 2 of shots.jsonl" in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "shots.jsonl"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(ConfigError, match=r"shots\.jsonl' cannot be read as UTF-8"):
        biller(ScriptedLLM(), examples=path)


def test_a_missing_file_is_named_with_where_it_was_looked_for():
    with pytest.raises(ConfigError) as caught:
        biller(ScriptedLLM(), examples="no_such.jsonl")
    assert "no_such.jsonl" in str(caught.value)
    assert str(Path(__file__).parent) in str(caught.value)


def test_a_type_that_needs_a_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pydantic.networks.email_validator", None)
    monkeypatch.setitem(sys.modules, "email_validator", None)
    with pytest.raises(SignatureError, match=r"EmailStr .*pip install .*pydantic\[email\]"):

        @llm_function(ScriptedLLM(), examples=[(("ada@example.com",), "Ada")])
        def name_of(address: EmailStr) -> str:
            """Find the name."""


def test_a_picture_may_be_in_code_but_not_in_a_file(tmp_path):
    picture = ImgUrl("https://example.com/a.png")

    @llm_function(ScriptedLLM(), examples=[((picture,), "a cat")])
    def see(picture: ImgUrl) -> str:
        """See."""

    content = shown(see, ImgUrl("https://example.com/b.png"))[1]["content"]
    assert any(part["type"] == "image_url" for part in content)
    path = tmp_path / "shots.jsonl"
    path.write_text('{"args": ["https://example.com/a.png"], "value": "x"}\n', encoding="utf-8")
    with pytest.raises(SignatureError, match="line of JSON cannot hold"):
        see.with_options(examples=path)


def test_methods_and_deferred_types():
    class Reader:
        @llm_function(ScriptedLLM(), examples=[("a", 1)])
        def count(self, text: str) -> int:
            """Count."""

        @classmethod
        @llm_function(ScriptedLLM(), examples=[("a", 1)])
        def of(cls, text: Annotated[str, Field(pattern="(?=a)")]) -> int:  # as pydantic does not take it
            """Count."""

    assert "a" in shown(Reader().count, "b")[1]["content"]
    with pytest.raises(SignatureError, match="does not fit"):

        class Other:
            @llm_function(ScriptedLLM(), examples=[("a", "one")])
            def count(self, text: str) -> int:
                """Count."""

    @llm_function(ScriptedLLM(), examples=[("a", {"n": "one"})])
    def later(text: str) -> Later:
        """Later."""

    class Later(BaseModel):
        n: int

    with pytest.raises(SignatureError, match=r"examples\[0\]"):
        later("x")


def test_with_options_sets_and_takes_away():
    function = biller(ScriptedLLM())
    assert len(shown(function.with_options(examples=None), "x")) == 2
    assert len(shown(function.with_options(max_examples=1), "x")) == 4
    assert len(shown(function.with_options(max_examples=0), "x")) == 2
    given = shown(function.with_options(user_prompt_template="Given: {parameters}"), "x")[1]["content"]
    assert "Given:   - text: 3 pears" in given
    with pytest.raises(SignatureError):
        function.with_options(examples=[("a", "b")])


def test_examples_are_part_of_what_the_function_is():
    llm = ScriptedLLM()
    plain = biller(llm, examples=None)
    definitions = [MappedFunction(f._pipeline).definition() for f in (plain, biller(llm), biller(llm, max_examples=1))]
    assert "examples" not in definitions[0]["prompt"]
    assert definitions[1] != definitions[2] != definitions[0]
    assert len({f._pipeline.metadata.version for f in (plain, biller(llm), biller(llm, max_examples=1))}) == 3


# --- which ones ---------------------------------------------------------------------------------------------

TOPICS = {
    "shipping": ["where is my parcel", "the package has not been delivered", "delivery is late by two days"],
    "refund": ["give me my money back", "I want a refund for the broken lamp", "refunds take too long"],
    "login": ["I forgot my password", "cannot log in to my account", "password reset mail never came"],
}


def test_the_most_similar_are_shown_the_nearest_last():
    pairs = [(text, label) for label, texts in TOPICS.items() for text in texts]
    label = decorated(str, ScriptedLLM(), examples=pairs, max_examples=2)
    messages = shown(label, "my parcel was not delivered")
    assert [m["content"] for m in messages if m["role"] == "assistant"] == ["shipping", "shipping"]
    again = shown(label, "resetting passwords")
    assert [m["content"] for m in again if m["role"] == "assistant"][-1] == "login"
    assert "refunds take too long" in shown(label, "refunds take too long")[3]["content"]
