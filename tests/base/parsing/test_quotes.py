"""`Quoted[str]`: an argument contains the quote, or the model is asked again; and it says where."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, List

import pytest
from pydantic import AfterValidator, BaseModel, Field, create_model

from SimpleLLMFunc import ResponseParseError, SignatureError, Text, llm_function
from SimpleLLMFunc.base.parsing.quotes import QuoteCheck
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.markers import Quoted
from tests.support.functions import NATIVE, async_decorated, decorated
from tests.support.golden import as_text, golden

REPORT = "The bridge was built in 1931.\nIt was closed   in 2004 because “the cables” had rusted."


class Claim(BaseModel):
    claim: str
    quote: Quoted[str]
    more: list[Quoted[str]] = []


class Node(BaseModel):
    quote: Quoted[str] = Field(alias="q")
    children: list[Node] = []


def said(quote, *more):
    return json.dumps({"claim": "c", "quote": quote, "more": more}, ensure_ascii=False)


def finder(*replies, **options):
    @llm_function(ScriptedLLM(*replies, profile=NATIVE), **options)
    def find(report: str, notes: list[str] | None = None) -> Claim:
        """Find."""

    return find


def located(quote, **arguments):
    found = Quoted(quote)
    return None if QuoteCheck(arguments)(found) else (found.path, found.start, found.end)


# --- where it stands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quote", "shown"),
    [
        ("one two three", "two", "two"), ("one\n two  three", "one two three", "one\n two  three"),
        ("one two", "one\u00a0two", "one two"), ("今天\n天气 很好。", "今天天气很好", "今天\n天气 很好"),
        ("用GPT模型", "用 GPT 模型", "用GPT模型"), ("价格１２３元，很贵", "价格123元,很贵", "价格１２３元，很贵"), ("ｱｲｳ", "アイウ", "ｱｲｳ"),
        ("ﾊﾞﾅﾅ", "バナナ", "ﾊﾞﾅﾅ"), ("he said “no” twice", 'said "no" twice', "said “no” twice"),
        ("他说「不」了", "他说“不”了", "他说「不」了"), ("it’s", "it's", "it’s"),
        ("cafe\u0301 noir", "caf\u00e9 noir", "cafe\u0301 noir"),
        ("soft\u00adhyphen", "softhyphen", "soft\u00adhyphen"), ("a plain line", '"a plain line"', "a plain line"),
        ("a 'b' c", "'b'", "'b'"), (" a b", " a", " a"), ("one two", " one", "one"),
    ],
)  # fmt: skip
def test_what_does_not_count(text, quote, shown):
    path, start, end = located(quote, text=text)
    assert path == "text"
    assert text[start:end] == shown


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("one two three", "one three"), ("one two three", "One two"), ("one two", "onetwo"), ("one.two", "one two"),
        ("price 12", "price 13"), ("a – b", "a - b"), ("anything", ""), ("anything", " \n"), ("anything", '""'),
        ("", "x"), ("the cat … the mat", "the cat … mat"),
    ],
)  # fmt: skip
def test_what_counts(text, quote):
    assert located(quote, text=text) is None


def test_quotes_are_found_in_every_text_of_an_argument():
    @dataclass
    class Page:
        title: str
        body: str

    class Book(BaseModel):
        pages: list[dict[str, str]]

    arguments = {
        "plain": "first", "pages": [Page("t", "second page")], "book": Book(pages=[{"text": "third"}]),
        "part": Text("fourth"), "number": 1931, "nothing": None, "secret": b"fifth",
    }  # fmt: skip
    assert located("irst", **arguments) == ("plain", 1, 5)
    assert located("second page", **arguments) == ("pages[0].body", 0, 11)
    assert located("third", **arguments) == ("book.pages[0].text", 0, 5)
    assert located("fourth", **arguments) == ("part", 0, 6)
    assert located("1931", **arguments) == ("number", 0, 4)
    assert located("fifth", **arguments) is None
    assert located("pages", **arguments) is None  # a name is no text
    assert QuoteCheck({"secret": b"fifth"})(Quoted("x"))[0][1].endswith("one of the arguments (none of them is a text)")


def test_texts_and_quotes_are_found_33_levels_down():
    text, good, bad = "deep", Quoted("deep"), Quoted("no")
    for _ in range(33):
        text, good, bad = [text], [good], [bad]
    check = QuoteCheck({"a": text})
    assert check(good) == []
    assert [path for path, _, _ in check(bad)] == ["[0]" * 33]
    assert (located("deep", a=[text]), check([bad])) == (None, [])


# --- in an answer -------------------------------------------------------------------------------------------


def test_offsets_in_models_and_lists():
    value = finder(said("closed in 2004", 'because "the cables"'))(REPORT)
    assert value.quote == "closed in 2004"
    assert REPORT[value.quote.start : value.quote.end] == "closed   in 2004"
    assert (value.quote.argument, value.quote.path) == ("report", "report")
    assert REPORT[value.more[0].start : value.more[0].end] == "because “the cables”"
    value = finder(said("1931", "wind"))(REPORT, ["rain", "more wind"])
    assert (value.more[0].argument, value.more[0].path, value.more[0].start) == ("notes", "notes[1]", 5)


def test_a_quote_that_does_not_stand_there_is_asked_for_again():
    find = finder(said("opened in 1931", "rust"), said("built in 1931"))
    result = find.call(REPORT)
    assert result.value.quote == "built in 1931"
    [bad, good] = result.attempts
    assert [path for path, _, _ in bad.violations] == ["quote"]
    assert bad.violations[0][2] == "'opened in 1931'"
    assert not good.violations
    llm = find._pipeline.options.llm_interface
    assert "quote: expected a text that stands word for word in the argument report" in llm.requests[1][-1]["content"]
    with pytest.raises(ResponseParseError) as caught:
        finder(said("no such"), repair="coerce", max_reasks=0)(REPORT)
    assert caught.value.violations[0][0] == "quote"


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_as_the_return_value_in_every_mode(mode):
    llm = ScriptedLLM('{"value": "the  cables"}', profile=NATIVE)
    value = decorated(Quoted[str], llm, output_mode=mode)(REPORT)
    assert isinstance(value, Quoted)
    assert REPORT[value.start : value.end] == "the cables"
    assert "copied from the arguments word for word" in llm.requests[0][0]["content"]


STRIPPED = Annotated[Quoted[str], AfterValidator(str.strip)]


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (Annotated[Quoted[str] | None, AfterValidator(str.strip)], '"{}"'),
        (Annotated[list[Quoted[str]], AfterValidator(lambda texts: [each.strip() for each in texts])], '["{}"]'),
        *((kind, '["{}"]') for kind in (list[STRIPPED], set[STRIPPED] | None, tuple[STRIPPED, ...])),
        (Annotated[tuple[STRIPPED, int], AfterValidator(lambda pair: (*pair, 2))], '["{}", 1]'),
        (dict[str, STRIPPED], '{{"a": "{}"}}'),
    ],
)
def test_a_validator_that_makes_a_plain_text_of_a_quote_leaves_it_a_quote(kind, answer):
    holder = create_model("Holder", quote=(kind, ...), __config__={"frozen": True})
    bad, good = (f'{{"quote": {answer.format(text)}}}' for text in ("in 1932", " bridge "))
    found = decorated(holder, ScriptedLLM(bad, good))(REPORT).quote
    quote, *numbers = [found] if isinstance(found, str) else found.values() if isinstance(found, dict) else found
    assert (quote, quote.is_located, numbers) == ("bridge", True, [1, 2] if "1" in answer else [])


def test_a_list_of_a_users_own_class_stays_one_next_to_a_quote():
    tags, pairs = (type("Own", (kind,), {}) for kind in (list, dict))
    holder = create_model(
        "Holder", tags=(Annotated[list[STRIPPED], AfterValidator(tags)], ...), bare=(List, ...), more=(list[STRIPPED], ...),
        pairs=(Annotated[dict[str, STRIPPED], AfterValidator(pairs)], ...), other=(tuple[STRIPPED, ...], ...),
        free=(Annotated[Quoted[str] | str, AfterValidator(str.strip)], ...),
    )  # fmt: skip
    answer = {
        "tags": ["in"],
        "bare": [1],
        "more": ["was", "in"],
        "pairs": {"a": "in"},
        "other": ["was", "in"],
        "free": "not there",
    }
    found = decorated(holder, ScriptedLLM(json.dumps(answer)))(REPORT)
    assert (type(found.tags), type(found.pairs), found.bare) == (tags, pairs, [1])
    assert [quote.is_located for quote in (*found.more, *found.other)] == [True] * 4


def test_golden_prompt():
    golden("quoted_prompt.txt", as_text(finder().preview(REPORT).messages))


def test_functions_with_and_without_quotes_are_different_versions():
    plain, quoted = (create_model("Holder", q=(kind, ...)) for kind in (str, Quoted[str]))
    versions = {decorated(each, ScriptedLLM())._pipeline.metadata.version for each in (plain, quoted)}
    assert len(versions) == 2


async def test_items_that_stream_are_checked_before_they_are_given_out():
    each = async_decorated(AsyncIterator[Quoted[str]], ScriptedLLM('["one", "nope"]', profile=NATIVE))
    seen = []
    with pytest.raises(ResponseParseError):
        async for quote in each("one two"):
            seen.append((quote, quote.start, quote.end))
    assert seen == [("one", 0, 3)]

    llm = ScriptedLLM('["nope", "one"]', '["two", "one"]', profile=NATIVE)
    assert [quote async for quote in each.with_options(llm_interface=llm)("one two")] == ["two", "one"]


async def test_long_arguments_are_searched_off_the_loop():
    text = "a “b”  c. " * 40_000
    find = async_decorated(
        Quoted[str], ScriptedLLM(json.dumps({"value": 'nothing "b" c.'}), '{"value": "\\"b\\" c."}', profile=NATIVE)
    )
    value = await find(text)
    assert text[value.start : value.end] == "“b”  c."


def test_an_example_has_to_quote_too():
    good = ("built in 1931", {"claim": "c", "quote": "1931"})
    assert finder(examples=[good])._pipeline.examples.all[0].value.quote.start == 9
    with pytest.raises(SignatureError, match=r"examples\[0\]: quote is '1932', not a text that stands"):
        finder(examples=[("built in 1931", {"claim": "c", "quote": "1932"})])


def test_a_quote_is_a_str_that_can_be_kept():
    quote = Quoted("a")
    assert not quote.is_located
    quote.locate("x", "x[1]", 2, 3)
    for again in (pickle.loads(pickle.dumps(quote)), copy.deepcopy(quote)):
        assert (again, again.path, again.start, again.end) == ("a", "x[1]", 2, 3)
    assert json.dumps([quote]) == '["a"]'
    claim = Claim(claim="c", quote=quote)
    assert claim.model_dump_json() == '{"claim":"c","quote":"a","more":[]}'
    assert repr(Claim.model_validate_json(claim.model_dump_json(round_trip=True))) == repr(claim)
    assert Claim(claim="c", quote="plain").quote.start == -1
    assert QuoteCheck({"x": "b"})(quote)
    assert (quote.path, quote.start, quote.end) == ("", -1, -1)


def test_a_model_cannot_claim_a_place():
    forged = "\ue0f1" + json.dumps(["forged", "report", "report", 0, 6])
    with pytest.raises(ResponseParseError):
        finder(said(forged), max_reasks=0)(REPORT)
    value = finder(said("\ue0f1" + json.dumps(["1931", "report", "report", 0, 6])))(REPORT)
    assert REPORT[value.quote.start : value.quote.end] == "1931"
