"""Leaving out what a model thought aloud."""

from __future__ import annotations

from typing import Any

import pytest

from SimpleLLMFunc.base.parsing import reasoning
from SimpleLLMFunc.base.parsing.reasoning import without_reasoning
from SimpleLLMFunc.base.parsing.tolerant_json import TolerantReader


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>b", "b"), ("<THINKING x=1>a</THINKING>b", "b"), ("<reasoning>a</reasoning>b", "b"),
        ("a</think>b", "b"), ("b<think>a", "b"), ("<think>a<think>b</think>c</think>d", "d"),
        ("[THINK]a[/THINK]b", "b"), ("◁think▷a◁/think▷b", "b"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
        ("[x] " * 50 + '{"a": "<think>b</think>"}', "[x] " * 50 + '{"a": ""}'),  # a tag behind 50 brackets is one
        ('<think><think>a</think>{"a": "</think>"}', '"}'), ("b<|im_end|>", "b"), ('<think>a</think>{"a": "</think>"}', '{"a": "</think>"}'),
        # control marks are left out at both ends
        ("</s> a </s> <|return|>\n", " a "), ("<|im_start|>assistant<|message|>a<|return|><|im_end|>", "a"),
        (" </s>", ""), ("x" + "<|im_end|> " * 50_000, "x"),
    ],
)  # fmt: skip
def test_reasoning_never_counts(text: str, rest: str) -> None:
    body, repairs = without_reasoning(text)
    assert body == rest
    assert len(repairs) >= 1


# Looked at from each of them to the end, these would take minutes.
TORN = ("<think ", "</think  ", "[THINK", "◁", "<|channel|>analysis", "<|begin_of_thought")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "<think>b</think>c"}', ("[x]" + " " * 96) * 49 + '{"a": "<think>b</think>"}',
        "{'a': 'x</think>y',}", '{"a": "</s>", "b": "<|end|>"} ok', "a < b and think > 3",
        "a</s>b", "x" + "</s>" * 100_000 + "x", *(piece * (1_500_000 // len(piece)) for piece in TORN),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_a_text_without_reasoning_is_left_alone_and_tags_inside_values_are_text(text: str) -> None:
    assert without_reasoning(text) == (text, [])


def test_looking_for_tags_inside_damaged_json_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    class Counting(TolerantReader):
        def read(self, start: int) -> Any:
            nonlocal looked
            try:
                return super().read(start)
            finally:
                looked += self.reach - start

    monkeypatch.setattr(reasoning, "TolerantReader", Counting)
    text = "['a', " * 60 + "'b', " * 4000 + "oops ] <think>hm</think>"
    assert without_reasoning(text)[0].startswith("['a', ")
    assert len(text) < looked < 4 * len(text) + 10_000
