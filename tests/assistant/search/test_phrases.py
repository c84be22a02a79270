"""Languages of phrases: how sentences are made even for them, and the files they stand in."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from SimpleLLMFunc.assistant.search.phrases import Language, built_in_languages, languages_of, read_languages
from SimpleLLMFunc.errors import ConfigError

EN = built_in_languages()["en"]
ZH = built_in_languages()["zh"]


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
    data = json.loads(files("SimpleLLMFunc.assistant.search").joinpath("phrases.json").read_text("utf-8"))
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
