"""How phrases are written, and what becomes of those that make no sense."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.assistant.search.phrase_pattern import compile_phrase
from SimpleLLMFunc.errors import ConfigError


def fits(phrase, sentence, *, words=True, **more):
    return compile_phrase(phrase, words=words, **more).search(sentence) is not None


@pytest.mark.parametrize(
    ("phrase", "yes", "no"),
    [
        ("no idea", ["no idea", "i have no idea ."], ["no ideas", "uno idea", "no new idea"]),
        ("i (can|could) not", ["i can not", "i could not"], ["i cannot", "i can", "i can could not"]),
        ("a (b)? c", ["a c", "a b c"], ["a b b c", "a  b c", "ac"]),
        ("(a)? b", ["b", "a b"], ["xb"]),
        ("a ...2 d", ["a d", "a b d", "a b c d"], ["a b c x d", "a , d", "a . d"]),
        ("a ... z", ["a 1 2 3 4 5 6 z"], ["a 1 2 3 4 5 6 7 z"]),
        ("^ no", ["no", "x , no"], ["oh no"]),
        ("no $", ["oh no", "no , x"], ["no x"]),
        ("the {thing}", ["the cat", "the big dog"], ["the cow", "cat"]),
        ("the (small|{thing}) one", ["the cat one", "the small one"], ["the one"]),
        ("I can't", ["i can not"], ["i can't"]),
        ("a.b*", ["a.b*"], ["axbb"]),
    ],
)
def test_words(phrase, yes, no):
    sets = {"thing": "cat|big dog"}
    assert [text for text in yes if not fits(phrase, text, sets=sets)] == []
    assert [text for text in no if fits(phrase, text, sets=sets)] == []


@pytest.mark.parametrize(
    ("phrase", "yes", "no"),
    [
        (
            "我...3不知道",
            ["我不知道", "我真的不知道"],
            ["我们不知道", "我说他不知道", "我，不知道", "我一二三四不知道"],
        ),
        ("^不(太)?清楚", ["不清楚", "抱歉，不太清楚", "抱歉不清楚"], ["他不清楚"]),
        ("没有$", ["我没有", "没有，好"], ["没有了"]),
    ],
)
def test_characters(phrase, yes, no):
    assert [text for text in yes if not fits(phrase, text, words=False, lead_ins=["抱歉"])] == []
    assert [text for text in no if fits(phrase, text, words=False, lead_ins=["抱歉"])] == []


def test_lead_ins_may_stand_before_a_clause_that_begins():
    assert fits("^ no idea", "sorry , no idea", lead_ins=["sorry"])
    assert fits("^ no idea", "sorry no idea", lead_ins=["sorry"])
    assert not fits("^ no idea", "sorry no idea")


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "   ",
        "...",
        "... a",
        "a (b",
        "a b)",
        "a?",
        "a ^ b",
        "a $ b",
        "((a))",
        "(a(b)c)",
        "{unknown}",
        "a ...31 b",
        "a ...1 b ...1 c ...1 d ...1 e ...1 f",
        "x" * 2001,
        "a (b?)",
        "(a^b) c",
    ],
)
def test_what_makes_no_sense_is_said(phrase):
    with pytest.raises(ConfigError, match="the phrase") as caught:
        compile_phrase(phrase, words=True)
    assert len(str(caught.value)) < 300
