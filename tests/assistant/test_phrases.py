"""How phrases are written, and what becomes of those that make no sense."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from SimpleLLMFunc.assistant.phrases import Language, built_in_languages, compile_phrase, languages_of, read_languages
from SimpleLLMFunc.errors import ConfigError

EN = built_in_languages()["en"]
ZH = built_in_languages()["zh"]


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


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("I can't, really, say.", "i can not , say ."),
        ("I'm   NOT sure…", "i am not sure …"),
        ("We couldn’t", "we could not"),
        ("I don't know about you, but it's 4", "… , but it is 4"),
    ],
)
def test_english_is_made_even(written, normal):
    assert EN.normalized(written) == normal


def test_chinese_is_made_even():
    assert ZH.normalized("本助手 不 知道 ") == "我不知道"
    assert "不确定" not in ZH.normalized("海森堡不确定性原理")


def test_the_file_of_the_library_is_plain_data_that_others_can_start_from(tmp_path):
    data = json.loads(files("SimpleLLMFunc.assistant").joinpath("phrases.json").read_text("utf-8"))
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps(data), "utf-8")
    assert read_languages(copy).keys() == {"zh", "en"}
    assert len(EN.phrases) > 80
    assert len(ZH.phrases) > 80


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ([], "an object is wanted"),
        ({"en": []}, "en: an object"),
        ({"en": {"phrase": []}}, "unknown phrase"),
        ({"en": {"phrases": {}}}, r"en\.phrases: a list"),
        ({"en": {"phrases": ["x"]}}, r"en\.phrases\[0\]: an object"),
        ({"en": {"phrases": [{"any": "x"}]}}, r"phrases\[0\]\.any: a list of texts"),
        ({"en": {"phrases": [{"any": [1]}]}}, "a list of texts"),
        ({"en": {"phrases": [{"any": ["x"], "weight": "1"}]}}, "weight is a number"),
        ({"en": {"phrases": [{"any": ["x"], "weight": True}]}}, "weight is a number"),
        ({"en": {"phrases": [{"any": ["x"], "weight": float("nan")}]}}, "weight is a number"),
        ({"en": {"phrases": [{"any": ["(x"]}]}}, "the phrase"),
        ({"en": {"idioms": ["(x"]}}, "the phrase"),
        ({"en": {"fillers": "x"}}, r"en\.fillers"),
        ({"en": {"sets": ["x"]}}, r"en\.sets"),
        ({"en": {"aliases": {"a": 1}}}, r"en\.aliases"),
    ],
)
def test_a_file_of_another_form_says_where(data, where):
    with pytest.raises(ConfigError, match=where):
        languages_of(data)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nonsense"])
def test_what_is_no_json_is_refused(tmp_path, text):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="no file of phrases"):
        read_languages(file)
    with pytest.raises(FileNotFoundError):
        read_languages(tmp_path / "missing.json")


def test_a_language_without_anything_finds_nothing():
    bare = Language("x")
    assert bare.normalized("I don't know.") == "i do not know ."
    assert not bare.is_conditional("if")
    assert not bare.introduces("he wrote")
    assert not bare.is_about_itself("i")
