"""The prompt of a function: its docstring and its parameters are told once, in one list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from SimpleLLMFunc import ImgUrl, llm_function
from SimpleLLMFunc.testing import ScriptedLLM

LLM = ScriptedLLM("ok", repeat=True)


def system(function, *args, **kwargs):
    return function.preview(*args, **kwargs).messages[0]["content"]


def described(function, *args, **kwargs):
    """Return what stands under "Function:", and the lines of "Parameters:"."""
    text = system(function, *args, **kwargs).partition("Function:\n")[2]
    above, _, below = text.partition("\n\nParameters:\n")
    return above, below.partition("\n\nGive only")[0].splitlines()


def test_the_docstring_and_the_list_of_parameters_are_one_list():
    @llm_function(LLM)
    async def grade(essay: str, marks: list[int | None], *, strict: bool = False) -> str:
        """Grade the essay.

        Be fair.

        Args:
            essay (str): by a pupil;
                in English.
            marks: of others.

        Returns:
            one sentence.

        Examples:
            "Well done."
        """

    above, lines = described(grade, "x", [1])
    assert above == ('Grade the essay.\n\nBe fair.\n\nReturns:\n    one sentence.\n\nExamples:\n    "Well done."')
    assert lines == [
        "  - essay: string — by a pupil;", "    in English.",
        "  - marks: list of integers, each may be null — of others.", "  - strict: true or false",
    ]  # fmt: skip


def test_a_chinese_docstring_is_read_too():
    @llm_function(LLM)
    async def grade(文章: str) -> str:
        """给文章打分。

        参数：
            文章：学生写的
        """

    assert described(grade, "论雨") == ("给文章打分。", ["  - 文章: string — 学生写的"])


def test_every_parameter_is_listed_and_none_that_is_described_is_lost():
    @llm_function(LLM)
    async def read(text: Annotated[Any, "a page"], when, *names: str, **options: int) -> str:
        """Read.

        Args:
            text: not what the annotation says.
            when (ISO date): of the text.
            *names: who is in it.
            depth: how far to look.
        """

    assert described(read, "x", "2026-01-02", "Ann", depth=3)[1] == [
        "  - text: any value — a page", "  - when: any value — of the text. (ISO date)",
        "  - names: list of strings — who is in it.", "  - options: object with any keys whose values are integers",
        "  - depth: any value — how far to look.",
    ]  # fmt: skip


def test_a_method_lists_its_arguments_without_the_instance():
    class Shop:
        @llm_function(LLM)
        async def name(self, text: str) -> str:
            """Name it.

            Args:
                text: as printed.
            """

    assert described(Shop().name, "x") == ("Name it.", ["  - text: string — as printed."])


def test_fields_are_filled_in_both_parts():
    @llm_function(LLM)
    async def grade(essay: str) -> str:
        """Grade for a {audience}.

        Args:
            essay: by a {writer}.
        """

    filled = grade.with_options(template_params={"audience": "teacher", "writer": "pupil\n\nArgs:\n    x: y"})
    above, lines = described(filled, "x")
    assert above == "Grade for a teacher."
    # What a value holds is never read as a part of the docstring.
    assert lines == ["  - essay: string — by a pupil", "    ", "    Args:", "        x: y."]
    other = grade.with_options(template_params={"audience": "critic", "writer": "poet"})
    assert described(other, "x") == ("Grade for a critic.", ["  - essay: string — by a poet."])


def test_where_one_field_has_no_value_all_of_the_docstring_stays_as_written(caplog):
    @llm_function(LLM)
    async def grade(essay: str) -> str:
        """Grade for a {audience}.

        Args:
            essay: by a {writer}.
        """

    half = grade.with_options(template_params={"audience": "teacher"})
    assert described(half, "x") == ("Grade for a {audience}.", ["  - essay: string — by a {writer}."])
    assert len([record for record in caplog.records if "{writer}" in record.getMessage()]) == 1
    assert described(half, "x", _template_params={"writer": "poet"})[0] == "Grade for a teacher."


def test_a_template_without_the_list_keeps_the_docstring_whole():
    @llm_function(LLM, system_prompt_template="Do: {function_description}")
    async def grade(essay: str) -> str:
        """Grade.

        Args:
            essay: by a pupil.
        """

    assert system(grade, "x") == "Do: Grade.\n\nArgs:\n    essay: by a pupil."
    both = grade.with_options(system_prompt_template="{function_description}|{parameters_description}")
    assert system(both, "x") == "Grade.|  - essay: string — by a pupil."


def test_a_docstring_that_describes_its_parameters_alone_leaves_the_list():
    @llm_function(LLM)
    async def grade(essay: str) -> str:
        """:param essay: by a pupil."""

    assert described(grade, "x") == ("grade", ["  - essay: string — by a pupil."])


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("picture", [None, ImgUrl("https://example.com/a.png")])
def test_a_prompt_shows_values_in_one_form_with_a_picture_or_without(picture):
    @llm_function(LLM)
    async def look(text: str, number: float, yes: bool, points: list[Point], table: dict, shot: ImgUrl | None) -> str:
        """Look."""

    content = look.preview('a "b"', 1.5, True, [Point(1)], {"k": None, "é": (1, 2)}, picture).messages[1]["content"]
    shown = content if picture is None else "\n".join(part.get("text", "") for part in content)
    for line in ['text: a "b"', "number: 1.5", "yes: True", 'points: [{"x": 1}]', 'table: {"k": null, "é": [1, 2]}']:
        assert line in shown
