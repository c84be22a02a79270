"""What came from a search is foreign: every shape is read or refused, nothing passes unlimited."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.assistant.search.search_reply import is_empty, on_one_line, read_reply
from SimpleLLMFunc.errors import ProviderError


@pytest.mark.parametrize(
    "data",
    [None, "<html>", [], 3, {}, {"result": []}, {"results": "x"}, {"results": {"a": 1}}, {"results": 5}, {"answer": 5}],
)
def test_what_is_no_reply_is_refused(data):
    with pytest.raises(ProviderError, match="no reply of a search"):
        read_reply(data, service="s")


@pytest.mark.parametrize(
    "data", [{"results": []}, {"results": None, "answer": None}, {"answer": ""}, {"results": [None, 3, "x", {}, []]}]
)
def test_nothing_found_is_a_reply_and_is_empty(data):
    reply = read_reply(data)
    assert reply == {"answer": "", "results": []}
    assert is_empty(reply)


def test_unknown_fields_go_and_missing_ones_are_empty():
    reply = read_reply({"results": [{"title": "t", "score": 1, "raw_content": "r"}], "images": [1]})
    assert reply["results"] == [{"title": "t", "url": "", "content": ""}]
    assert is_empty(reply)  # a title alone tells a model nothing


def test_an_answer_alone_is_something():
    assert not is_empty(read_reply({"answer": "4"}))


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//host/x",
        "http://",
        "http://[::1",
        "https://a b/",
        5,
        "https://x/" + "a" * 3000,
    ],
)
def test_an_address_nobody_should_click_is_dropped(url):
    assert read_reply({"results": [{"title": "t", "url": url, "content": "c"}]})["results"][0]["url"] == ""


def test_long_things_are_cut_and_counted():
    reply = read_reply({"answer": "a" * 10**6, "results": [{"title": "t" * 10**6, "content": "c" * 10**6}] * 500})
    assert len(reply["results"]) == 20
    assert len(reply["answer"]) == 4000
    assert len(reply["results"][0]["content"]) == 4000
    assert len(reply["results"][0]["title"]) == 500


def test_half_characters_become_whole_ones():
    reply = read_reply({"answer": "a\ud800b", "results": [{"title": "\ud83d\ude00", "content": "c\udfff"}]})
    assert reply["answer"] == "a\ufffdb"
    assert reply["results"][0]["title"] == "😀"
    (reply["answer"] + reply["results"][0]["content"]).encode()


def test_titles_stand_on_one_line():
    assert read_reply({"results": [{"title": "a\n\nb\x00\tc", "content": "c"}]})["results"][0]["title"].count("\n") == 0
    assert on_one_line(" a \n b ", 10) == "a b"
