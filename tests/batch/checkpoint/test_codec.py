"""Values and errors as bytes, and back."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from SimpleLLMFunc.base.run.mappable import Answer
from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_value, encode_answer, encode_error, is_sound
from SimpleLLMFunc.errors import OutputTruncated, ResponseParseError, RunError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.type.usage import Usage

HUGE = "All work and no play makes Jack a dull boy. " * 100_000
USAGE = Usage(1, 2)


class Level(IntEnum):
    HIGH = 1


class Loose(BaseModel):
    """Takes anything, also what it does not know."""

    model_config = ConfigDict(extra="allow")
    value: Any = None
    inner: Loose | None = None
    quiet: Any = Field(default=None, repr=False)

    @cached_property
    def looked_at(self) -> list[int]:
        return [7]


def looked_at(value: Loose) -> Loose:
    assert value.looked_at
    return value


@pytest.mark.parametrize("one", [1, True, 1.0, -0.0, "1", None, [1, [True]], {"1": {"2": 1.5}}])
def test_data_is_written_as_data(one) -> None:
    for value in (Loose(value=one), Loose(inner=Loose(value=[one])), Loose(more=one), looked_at(Loose(value=one))):
        data = encode_answer(Answer(value, "{}", "prompt", USAGE), compile_output(Loose), "coerce")
        assert data.startswith(b"d")
        again = decode_value(data, compile_output(Loose))
        assert (again, repr(again)) == (value, repr(value))


@pytest.mark.parametrize("one", [Level.HIGH, [[Level.HIGH]], {"a": Level.HIGH}, {1: 1}, (1,), {1}, [{"a": (1, 2)}]])
def test_what_data_does_not_say_is_written_as_the_answer(one) -> None:
    for value in (Loose(value=one), Loose(inner=Loose(value=[one])), Loose(more=one), Loose(inner=Loose(quiet=one))):
        data = encode_answer(Answer(value, "{}", "prompt", USAGE), compile_output(Loose), "coerce")
        assert data == b't["prompt","coerce","{}"]'


def test_a_row_that_another_version_of_the_library_wrote_is_known_as_sound() -> None:
    row = (7, b"key", 2, None, b"p1", "[1,2]", b'[false,"a"]', 12.5)
    assert is_sound((*row, bytes.fromhex("1e40913480c9807f")))


def test_of_texts_without_end_the_beginning_is_kept() -> None:
    parsing = ResponseParseError(HUGE, int, [(f"items.{number}", "an integer", HUGE) for number in range(20_000)])
    for error in (parsing, OutputTruncated(partial=HUGE), ValueError(HUGE), RunError(HUGE)):
        data = encode_error(error)
        assert len(data) < 1_500_000
        assert len(encode_error(decode_error(data, USAGE))) <= len(data)
    again = decode_error(encode_error(parsing), USAGE)
    assert type(again) is ResponseParseError
    assert again.text[:-1] == HUGE[: len(again.text) - 1]
    assert (len(again.text), len(again.violations)) == (100_001, 1_000)
    assert again.violations[999] == ("items.999", "an integer", f"{HUGE[:1000]}…")


def test_a_secret_at_the_cut_is_not_cut_in_two() -> None:
    secret = "CANARY-0123456789-abcdefghij"
    remember_secret(secret)
    for text in (HUGE[:start] + secret + HUGE for start in range(99_970, 100_003, 4)):
        for error in (ValueError(text), OutputTruncated(partial=text), ResponseParseError(text, int)):
            assert b"CANARY" not in encode_error(error)
