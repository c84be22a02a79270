"""What earlier steps put out, by path."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.calls.call_data import ExecutorHistory
from SimpleLLMFunc.calls.history import read_history

HISTORY = {
    "weather": ExecutorHistory("weather", "", {"city": "杭州", "days": [{"t": 31}, {"t": 28}], "a/b": 1, "m~n": 2, "": 3, "none": None}),
    "llm": ExecutorHistory("llm", "", "It is hot."),
    "io/read": ExecutorHistory("io/read", "", {"text": "of data"}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("weather/city", "杭州"), ("/weather/city", "杭州"), ("weather/days/1/t", 28), ("weather/days/2/t", None),
        ("weather/days/-1", None), ("weather/days/first", None), ("weather/days/²", None),
        ("weather/days/" + "9" * 5000, None), ("weather/a~1b", 1), ("weather/m~0n", 2), ("weather/m~n", 2),
        ("weather/", 3), ("weather/none", None), ("weather/none/deeper", None), ("weather/city/0", None),
        ("llm", "It is hot."), ("llm/text", "It is hot."), ("llm/text/more", None), ("llm/other", None),
        ("io~1read/text", "of data"), ("missing/key", None), ("", None), ("/", None),
    ],
)  # fmt: skip
def test_path(path, value):
    assert read_history(path, HISTORY) == value


def test_a_list_of_steps_serves_and_the_latest_of_a_name_counts():
    steps = [ExecutorHistory("a", "", {"n": 1}), ExecutorHistory("a", "", {"n": 2})]
    assert read_history("a/n", steps) == 2
    assert read_history("a#1/n", steps) == 1


@pytest.mark.parametrize("path", [None, 3, ["weather"], b"weather"])
@pytest.mark.parametrize("history", [HISTORY, None, 5, "text"])
def test_never_raises(path, history):
    assert read_history(path, history) is None
    assert read_history("weather/city/x", history) is None
