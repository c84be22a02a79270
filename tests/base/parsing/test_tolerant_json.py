"""The reader of what is not quite JSON: mends, or gives up, but never cuts and never makes up."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.base.parsing.json_node import (
    AmbiguousError,
    Bare,
    Braced,
    Num,
    Open,
    TruncatedError,
    UnreadableError,
    plain_value,
)
from SimpleLLMFunc.base.parsing.tolerant_json import TolerantReader


def read(text: str) -> tuple[object, list[tuple[str, str]]]:
    reader = TolerantReader(text)
    return plain_value(reader.read(0)), reader.repairs


@pytest.mark.parametrize(
    ("text", "value", "repair"),
    [
        ("{'a': 1}", {"a": 1}, ("", "single quotes")), ("{a: 1}", {"a": 1}, ("", "key without quotes")),
        ('{"a": "x",} so', {"a": "x"}, ("a", "comma before the closing bracket")),
        ('["x", true,]', ["x", True], ("[1]", "comma before the closing bracket")),
        ('{"a": 1\n"b": 2}', {"a": 1, "b": 2}, ("a", "missing comma")),
        ('{"a": "x" "b": 2}', {"a": "x", "b": 2}, ("a", "missing comma")),
        ('{"a": 1 // one\n}', {"a": 1}, ("a", "comment")), ('{"a": /* one */ 1}', {"a": 1}, ("a", "comment")),
        ('{"a": 1, # one\n"b": 2}', {"a": 1, "b": 2}, ("a", "comment")),
        ('{"a": None}', {"a": None}, ("a", "Python's None")), ('{"a": True}', {"a": True}, ("a", "Python's True")),
        ('{"a": (1, 2)}', {"a": [1, 2]}, ("a", "a tuple as Python writes it")),
        ('{"a"：1}', {"a": 1}, ("", "full-width colon")), ('{"a": 1，"b": 2}', {"a": 1, "b": 2}, ("a", "full-width comma")),
        ("{“a”: 1}", {"a": 1}, ("", "typographic quotes")), ('{"a": `x`}', {"a": "x"}, ("a", "backticks")),
        ('{"a": """x "y" z"""}', {"a": 'x "y" z'}, ("a", "triple quotes")),
        ('{"a": "b\\d"}', {"a": "b\\d"}, ("a", "backslash was not escaped")),
        ('{"a": "b\nc"}', {"a": "b\nc"}, ("a", "line break or control character inside a string")),
        ('{"a": "he said "hi", then left", "b": 1}', {"a": 'he said "hi", then left', "b": 1},
         ("a", "quotes inside a string were not escaped")),
        ('{"a": Paris, France,"b": 1}', {"a": "Paris, France", "b": 1}, ("a", "text without quotes")),
        ('{"a": [{"b": 1,}]}', {"a": [{"b": 1}]}, ("a[0].b", "comma before the closing bracket")),
        ("{\"a\": '\\u00e9\\ud83d\\ude00\\n\\\\'}", {"a": "é😀\n\\"}, ("a", "single quotes")),
        ('{"a": http://x.y/z}', {"a": "http://x.y/z"}, ("a", "text without quotes")),
        ('{"a": "don\\\'t"}', {"a": "don't"}, ("a", "escape that JSON does not know")),
        ('{"a": 4:3}', {"a": "4:3"}, ("a", "text without quotes")), ('{"a": """"""}', {"a": ""}, ("a", "triple quotes")),
        ('[{"a": 1} {"b": 2}]', [{"a": 1}, {"b": 2}], ("[0]", "missing comma")),
        ('{"a": "x "}y" z"}', {"a": 'x "}y" z'}, ("a", "quotes inside a string were not escaped")),
        ("{'" + "k" * 150 + "': 1}", {"k" * 150: 1}, ("", "single quotes")),
        ("{\"a\": 5 'x'}", {"a": "5 'x'"}, ("a", "text without quotes")),
    ],
)  # fmt: skip
def test_mends_and_says_so(text: str, value: object, repair: tuple[str, str]) -> None:
    assert read(text) == (value, [repair])


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        # two readings are possible: ends of strings, a swallowed key, something left out
        (AmbiguousError, ['["a "b", "c" d"]', '{"a": "x" + "b", "c": 1}', '{"a": "He said "no", "b": 1}',
                          '{"a": "hello,\n"b": "x"}', '{"a": "x", b.c: "y"}', '{"a": "x""}', '{"a": 1, "a": 2}', "[1, 2, ...]",
                          "[1, 2 // and so on\n]", "[1,, 2]", '{"a": undefined}', '{"a": <int>}', "[" * 1000,
                          "{a: [" * 75 + "[1]" + "]}" * 75, '{"a": """}', '{"a": """, "b": 1}']),
        (TruncatedError, ["[1, 2", '[{"a": 1}', '{"a": 1', '{"a": "x', '{"a": [1, 2', "{", '{"a"', '{"a": tru',
                          '{"a": "x" b: 1}', '{"a": 1, "b"', '{"a": x ', '{"a": "x""b": 1}']),
        (UnreadableError, ['{"a": [1, 2}', "(1)", '{"a": b:1}', '{"a": 1:b}', "[[1] b: 2]", '{"a": 1"b": 2}', '{"a": 1 b: 2}',
                           '["a", ）"b"]']),
    ],
)  # fmt: skip
def test_gives_up_and_says_why(kind: type[UnreadableError], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(kind):
            pytest.fail(f"{text} gave {TolerantReader(text).read(0)}")


@pytest.mark.parametrize("text", ['{"a": 1, "b": "x"', '{"a": "x",', '{"a": 1\n', '{"a": [1]', '{"a": {"b": 2}'])
def test_an_object_may_lack_its_brace_after_a_closed_value(text: str) -> None:
    assert isinstance(TolerantReader(text).read(0), Open)


def test_numbers_keep_their_characters_and_a_set_is_marked() -> None:
    assert TolerantReader('{"a": 1\n').read(0) == {"a": Num("1")}
    reader = TolerantReader("{a: 1.50, b: 007} and more")
    assert reader.read(0) == {"a": Num("1.50"), "b": Bare("007")}
    assert reader.end == 17
    assert TolerantReader("{a: [" * 75 + "1" + "]}" * 75).read(0), "150 levels"
    assert plain_value(TolerantReader("('x',)").read(0)) == ["x"]
    node = TolerantReader("{1, 2}").read(0)
    assert isinstance(node, Braced)
    assert node == [Num("1"), Num("2")]
