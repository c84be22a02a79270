"""Errors as bytes, and back."""

from __future__ import annotations

from SimpleLLMFunc.batch.codec import decode_error, encode_error
from SimpleLLMFunc.errors import OutputTruncated, ResponseParseError, RunError
from SimpleLLMFunc.logger.redact import remember_secret
from SimpleLLMFunc.type.usage import Usage

HUGE = "All work and no play makes Jack a dull boy. " * 100_000
USAGE = Usage(1, 2)


def test_an_error_comes_back_whole() -> None:
    error = ResponseParseError("no idea" * 1000, int, [("stars", "an integer", "'many'")])
    again = decode_error(encode_error(error), USAGE)
    assert type(again) is ResponseParseError
    assert str(again) == str(error)
    assert again.text == error.text
    assert again.violations == error.violations
    assert again.usage == USAGE


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
    for start in range(99_970, 100_003, 4):
        text = HUGE[:start] + secret + HUGE
        for error in (ValueError(text), OutputTruncated(partial=text), ResponseParseError(text, int)):
            assert b"CANARY" not in encode_error(error)
